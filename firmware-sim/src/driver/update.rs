//! Messages about firmware, and the restart into a new image.

use device_protocol::{UpdateAnswer, firmware::Release};

use super::*;
use crate::firmware::{Reaction, Updater};
use crate::names::named;

impl Driver {
    pub(crate) fn handle_offer(&mut self, offer: &device_protocol::down::FirmwareOffer<'_>) {
        let version = Release::parse(offer.manifest).map_or_else(|_| "?".to_owned(), |it| it.version.to_string());
        let reaction = match &mut self.updater {
            Some(updater) => updater.offer(offer, self.options.battery_percent),
            None => {
                let what = "firmware was offered to glasses that are not updated".to_owned();
                self.see(Seen::Violation { what });
                let answer = UpdateAnswer::NotWanted;
                Reaction::Answer(up::FirmwareAnswer { update: offer.update, answer, offset: 0 })
            }
        };
        if let Reaction::Answer(answer) = reaction {
            let (answer, offset) = (named(answer.answer.name()), answer.offset);
            self.see(Seen::FirmwareOffered { version, answer, offset });
        }
        self.react(reaction);
    }

    pub(crate) fn handle_piece(&mut self, chunk: &device_protocol::down::FirmwareChunk<'_>) {
        self.see(Seen::FirmwareChunk { offset: chunk.offset, bytes: chunk.payload.len() });
        let reaction = self.updater.as_mut().map_or(Reaction::Nothing, |updater| updater.chunk(chunk));
        self.react(reaction);
    }

    pub(crate) fn handle_withdrawn(&mut self, update: u32) {
        self.see(Seen::FirmwareWithdrawn);
        if let Some(updater) = &mut self.updater {
            updater.cancel(update);
        }
    }

    fn react(&mut self, reaction: Reaction) {
        match reaction {
            Reaction::Nothing => {}
            Reaction::Answer(answer) => self.control(answer),
            Reaction::Progress(progress) => {
                self.see(Seen::FirmwareStored { offset: progress.offset });
                self.control(progress);
            }
            Reaction::PowerLost(stored) => {
                self.see(Seen::PowerLost { stored });
                self.link = None;
                self.over = true;
                return;
            }
        }
        if self.updater.as_ref().is_some_and(Updater::is_complete) {
            self.verify();
        }
    }

    fn verify(&mut self) {
        let Some(updater) = &mut self.updater else { return };
        match updater.verify() {
            Ok(verified) => {
                self.report_firmware();
                if verified {
                    self.say_goodbye(GoodbyeReason::Unspecified, "restarts with the new firmware");
                    self.restarting = true;
                }
            }
            Err(error) => self.see(Seen::Violation { what: format!("the flash failed: {error}") }),
        }
    }

    /// Reports how the last update ended, if there was one.
    pub(super) fn report_firmware(&mut self) {
        // Taken out meanwhile, since the report borrows from it.
        let Some(updater) = self.updater.take() else { return };
        if let Some(report) = updater.report() {
            self.see(Seen::FirmwareReported {
                outcome: named(report.outcome.name()),
                failure: named(report.failure.name()),
                version: report.version.to_owned(),
            });
            self.control(report);
        }
        self.updater = Some(updater);
    }

    /// Starts the new image, and connects again. `false`: there is none.
    pub(super) fn restart(&mut self) -> bool {
        if !std::mem::take(&mut self.restarting) {
            return false;
        }
        let Some(updater) = &mut self.updater else { return false };
        if let Err(error) = updater.boot() {
            self.see(Seen::Violation { what: format!("the flash failed: {error}") });
            return false;
        }
        updater.reset();
        self.options.profile.firmware = updater.version().to_owned();
        // Nothing of the old session is in memory after a start.
        self.welcome = None;
        self.microphone = None;
        self.sequences = Sequences::default();
        self.missing.clear();
        self.replay.clear();
        self.over = false;
        self.attempts = 0;
        self.connect(false);
        true
    }
}
