//! Firmware for the device of a session (PROTOCOL.md, section 19): offered, sent while nobody speaks, and reported about.

use std::sync::Arc;

use device_protocol::{
    Down, Up, UpdateAnswer,
    down::{FirmwareCancel, FirmwareChunk, FirmwareOffer},
    limits::FIRMWARE_CHUNK_BYTES_MAX,
    up,
};

use super::{chunks::Sending, session::Session, update::Stage};
use crate::{
    clock,
    firmware::{ImageId, Outcome, Report, facts::Transfer},
    mailbox::DeviceMessage,
    runtime::compute::Full,
    text::in_one_line,
    transport::LinkError,
};

/// After which a device that was busy, or had no battery left, is asked again, or an image is read for which the disk had no time.
const LATER_US: u64 = 600_000_000;
/// After which it is looked again whether the link has sent what it had.
const LINK_BUSY_US: u64 = 20_000;

impl Session {
    /// When the update of the firmware is to be looked at.
    pub(super) fn firmware_due_us(&self) -> Option<u64> {
        self.update.next_wake_us().filter(|_| self.link.outgoing.is_attached() && self.is_conversation_idle())
    }

    /// Whether nobody speaks, and nothing is worked on: else firmware waits.
    fn is_conversation_idle(&self) -> bool {
        self.update.is_idle && self.turns.current().is_none() && !self.speech.is_under_way()
    }

    /// Offers firmware, or sends what is due of it.
    ///
    /// # Errors
    /// The link is gone, or too slow.
    pub(super) fn update_firmware(&mut self) -> Result<(), LinkError> {
        if self.update.candidate.is_none() || !self.link.outgoing.is_attached() {
            return Ok(());
        }
        let now_us = clock::mono_us();
        if self.update.check {
            self.withdraw_firmware()?;
        }
        match &self.update.stage {
            Stage::None if self.update.check && now_us >= self.update.not_before_us && self.is_conversation_idle() => {
                self.choose_firmware();
            }
            Stage::Offered { .. } if self.update.is_unanswered(now_us) => self.cancel_firmware(None)?,
            Stage::Sending { sending, .. } if sending.is_stalled(now_us) => {
                tracing::info!(device = self.id, "a device stores nothing of the firmware that it is sent");
                self.cancel_firmware(Some(now_us + LATER_US))?;
            }
            Stage::Sending { .. } => self.send_firmware(now_us)?,
            _ => {}
        }
        Ok(())
    }

    /// Withdraws an offer that does not stand any more.
    fn withdraw_firmware(&mut self) -> Result<(), LinkError> {
        let (Some(image), Some(candidate)) = (self.update.image(), &self.update.candidate) else { return Ok(()) };
        if self.services.firmware.offer(candidate).is_some_and(|offer| offer.id == *image) {
            self.update.check = false;
            return Ok(());
        }
        self.cancel_firmware(Some(clock::mono_us()))
    }

    /// Tells the device that an offer is withdrawn, and ends it; `later_us`: when it may be made again in this session.
    fn cancel_firmware(&mut self, later_us: Option<u64>) -> Result<(), LinkError> {
        let number = self.update.open_offer();
        self.update.end(later_us);
        self.services.firmware.transfers(&self.id, None);
        match number {
            Some(update) => self.link.send(None, Down::FirmwareCancel(FirmwareCancel { update })),
            None => Ok(()),
        }
    }

    /// Has the image read that the device is to be offered.
    fn choose_firmware(&mut self) {
        self.update.check = false;
        let Some(candidate) = &self.update.candidate else { return };
        let firmware = &self.services.firmware;
        let Some(image) = firmware.offer(candidate).filter(|image| self.update.given_up != Some(image.id)) else {
            return;
        };
        // Else a change tells when there is one.
        let Some(place) = firmware.place() else { return };
        let (mailbox, id) = (self.mailbox.clone(), image.id);
        let reading = firmware.load(image.clone(), move |read| {
            // A session that is gone needs no image. This thread has time to wait.
            drop(mailbox.blocking_send(DeviceMessage::Firmware { image: id, read }));
        });
        match reading {
            Ok(()) => self.update.stage = Stage::Loading { image, place },
            // The place is for others meanwhile.
            Err(Full) => {
                tracing::warn!(device = self.id, "firmware is not read: too much waits for the disk");
                (self.update.check, self.update.not_before_us) = (true, clock::mono_us() + LATER_US);
            }
        }
    }

    /// The image was read: it is offered.
    ///
    /// # Errors
    /// The link is gone, or too slow.
    pub(super) fn firmware_read(&mut self, id: ImageId, read: Result<Arc<Vec<u8>>, String>) -> Result<(), LinkError> {
        let Some((image, place)) = self.update.take_loading(id) else { return Ok(()) };
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::error!(version = %image.version, error, "firmware cannot be offered");
                self.update.given_up = Some(id);
                return Ok(());
            }
        };
        let number = self.update.next_number();
        let offer = FirmwareOffer {
            update: number,
            manifest: &image.manifest,
            signature: image.signature,
            chunk_bytes: FIRMWARE_CHUNK_BYTES_MAX as u16,
        };
        self.link.send(None, Down::FirmwareOffer(offer))?;
        tracing::info!(device = self.id, version = %image.version, "firmware offered");
        let sending = Sending { number, bytes, sent: 0, stored: 0, next_us: 0, progress_us: 0 };
        self.update.stage = Stage::Offered { image, sending, since_us: clock::mono_us(), place };
        Ok(())
    }

    /// Sends the chunk that is due, if nothing else waits for the link.
    fn send_firmware(&mut self, now_us: u64) -> Result<(), LinkError> {
        if !self.is_conversation_idle() {
            return Ok(());
        }
        let is_link_idle = self.link.outgoing.is_link_idle();
        let rate_bytes_s = self.services.firmware.rate_bytes_s();
        let Stage::Sending { sending, .. } = &mut self.update.stage else { return Ok(()) };
        if !is_link_idle {
            sending.next_us = sending.next_us.max(now_us + LINK_BUSY_US);
            return Ok(());
        }
        let Some((offset, range)) = sending.next_chunk(now_us, rate_bytes_s) else { return Ok(()) };
        let (update, bytes) = (sending.number, sending.bytes.clone());
        let payload = bytes.get(range).unwrap_or_default();
        self.link.send(None, Down::FirmwareChunk(FirmwareChunk { update, offset, payload }))
    }

    /// The device says something about firmware.
    pub(super) fn about_firmware(&mut self, message: &Up<'_>) {
        let sent = match message {
            Up::FirmwareAnswer(answer) => self.firmware_answered(answer),
            Up::FirmwareProgress(progress) => self.firmware_progress(progress),
            Up::FirmwareReport(report) => {
                self.firmware_reported(report);
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = sent {
            self.failed(&error);
        }
    }

    /// The device answers an offer, or withdraws from it.
    fn firmware_answered(&mut self, answer: &up::FirmwareAnswer) -> Result<(), LinkError> {
        if self.update.open_offer() != Some(answer.update) {
            return Ok(());
        }
        let now_us = clock::mono_us();
        match (answer.answer, std::mem::replace(&mut self.update.stage, Stage::None)) {
            (UpdateAnswer::Accepted, Stage::Offered { image, mut sending, place, .. }) => {
                let can_be = sending.begin(answer.offset, now_us);
                self.update.stage = Stage::Sending { image, sending, _place: place };
                if !can_be {
                    tracing::warn!(device = self.id, "a device has more of the firmware than there is");
                    return self.cancel_firmware(None);
                }
                tracing::info!(device = self.id, from = answer.offset, "firmware accepted");
                self.firmware_stored();
            }
            // It has said so before.
            (UpdateAnswer::Accepted, stage) => self.update.stage = stage,
            (refusal, stage) => {
                let is_for_later = matches!(refusal, UpdateAnswer::Busy | UpdateAnswer::Battery);
                let transfer = stage.refused(refusal);
                tracing::info!(device = self.id, answer = ?refusal, "firmware refused");
                self.update.stage = stage;
                self.update.end(is_for_later.then_some(now_us + LATER_US));
                self.services.firmware.transfers(&self.id, transfer);
            }
        }
        Ok(())
    }

    /// The device has stored more.
    fn firmware_progress(&mut self, progress: &up::FirmwareProgress) -> Result<(), LinkError> {
        let now_us = clock::mono_us();
        let Stage::Sending { sending, .. } = &mut self.update.stage else { return Ok(()) };
        if sending.number != progress.update {
            return Ok(());
        }
        if !sending.progress(progress.offset, now_us) {
            tracing::warn!(device = self.id, offset = progress.offset, "a device has stored what it was not sent");
            return self.cancel_firmware(None);
        }
        self.firmware_stored();
        Ok(())
    }

    /// Tells others how far it is, and gives the place back when all is stored.
    fn firmware_stored(&mut self) {
        let Stage::Sending { image, sending, .. } = &self.update.stage else { return };
        let (stored, bytes) = (sending.stored, sending.size());
        let transfer = Transfer { version: image.version.to_string(), stored, bytes, refused: None };
        let image = image.id;
        if stored == bytes {
            self.update.stage = Stage::Stored { image };
        }
        self.services.firmware.transfers(&self.id, Some(transfer));
    }

    /// The device reports how its last update ended.
    fn firmware_reported(&mut self, report: &up::FirmwareReport<'_>) {
        let Some(outcome) = Outcome::of(report.outcome) else { return };
        if !self.update.takes_report() {
            return;
        }
        let Some(candidate) = &self.update.candidate else { return };
        let failure = match (report.failure.name(), report.message) {
            (Some("none"), "") => None,
            (name, message) => Some(in_one_line(&format!("{}: {message}", name.unwrap_or("unknown"))).into_owned()),
        };
        let version = in_one_line(report.version).into_owned();
        let report_kept = Report { outcome, failure, version, wall_ms: clock::wall_ms(), tries: 0 };
        self.services.firmware.report(candidate, &report.image, report_kept);
        // One that is not used need not be waited for.
        if outcome == Outcome::Failed && self.update.image() == Some(&report.image) {
            self.update.end(None);
        }
    }
}
