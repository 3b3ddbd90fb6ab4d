//! Where the update of a device's firmware stands in one session.

use device_protocol::{UpdateAnswer, firmware::Version, up::HelloOwned};
use gateway_core::vocab::ListeningState;
use tokio::sync::watch;

use super::chunks::{STALLED_US_MAX, Sending};
use crate::{
    clock,
    firmware::{Candidate, Firmware, ImageId, Place, Stored, facts::Transfer},
};

/// How long after a session's begin the first offer comes: the device's report about its last update is there by then.
const SETTLE_US: u64 = 2_000_000;
/// How long a device may take to answer an offer: it verifies a signature, and may ask its wearer nothing.
const ANSWER_US_MAX: u64 = 60_000_000;
/// Reports that are taken in one session: each may be written to the disk.
const REPORTS_MAX: u8 = 8;

/// The update of one device, in one session.
pub(super) struct Update {
    /// `None`: the device is not updated by the gateway.
    pub(super) candidate: Option<Candidate>,
    changes: watch::Receiver<u64>,
    /// Whether it has to be looked at again what is to be offered.
    pub(super) check: bool,
    pub(super) not_before_us: u64,
    /// The image that the device does not take in this session.
    pub(super) given_up: Option<ImageId>,
    numbered: u32,
    reports: u8,
    /// The conversation leaves the link alone.
    pub(super) is_idle: bool,
    pub(super) stage: Stage,
}

/// Where an update stands.
pub(super) enum Stage {
    /// Nothing is offered.
    None,
    /// The image is being read.
    Loading { image: Stored, place: Place },
    /// The device has not answered yet.
    Offered { image: Stored, sending: Sending, since_us: u64, place: Place },
    /// The device is sent the image.
    Sending { image: Stored, sending: Sending, _place: Place },
    /// It has all of it.
    Stored { image: ImageId },
}

impl Update {
    /// For a device that says this of itself.
    pub(super) fn new(device: &str, hello: &HelloOwned, firmware: &Firmware) -> Self {
        let version = Version::parse(&hello.firmware).filter(|_| hello.capabilities.image_bytes_max > 0);
        let candidate = version.map(|version| Candidate {
            device: device.to_owned(),
            model: hello.model.clone(),
            hardware: hello.capabilities.hardware,
            version,
            image_bytes_max: hello.capabilities.image_bytes_max,
        });
        if let Some(candidate) = &candidate {
            firmware.came(candidate);
        }
        Self {
            check: candidate.is_some(),
            candidate,
            changes: firmware.changes(),
            not_before_us: clock::mono_us() + SETTLE_US,
            given_up: None,
            numbered: 0,
            reports: 0,
            is_idle: true,
            stage: Stage::None,
        }
    }

    /// Waits until something else may be offered. Cancel safe.
    pub(super) async fn changed(&mut self) {
        if self.candidate.is_none() || self.changes.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.check = true;
    }

    /// The state of the conversation has changed.
    pub(super) fn conversation(&mut self, state: ListeningState) {
        self.is_idle = matches!(state, ListeningState::Idle | ListeningState::Muted);
    }

    /// When it is to be looked at, unless the conversation goes on.
    pub(super) fn next_wake_us(&self) -> Option<u64> {
        match &self.stage {
            Stage::None => (self.check && self.candidate.is_some()).then_some(self.not_before_us),
            Stage::Offered { since_us, .. } => Some(since_us + ANSWER_US_MAX),
            Stage::Sending { sending, .. } if sending.may_send() => Some(sending.next_us),
            Stage::Sending { sending, .. } if sending.sent > sending.stored => {
                Some(sending.progress_us + STALLED_US_MAX)
            }
            Stage::Loading { .. } | Stage::Sending { .. } | Stage::Stored { .. } => None,
        }
    }

    /// The image that is under way.
    pub(super) fn image(&self) -> Option<&ImageId> {
        match &self.stage {
            Stage::None => None,
            Stage::Loading { image, .. } | Stage::Offered { image, .. } | Stage::Sending { image, .. } => {
                Some(&image.id)
            }
            Stage::Stored { image } => Some(image),
        }
    }

    /// Number of the offer that the device knows of.
    pub(super) fn open_offer(&self) -> Option<u32> {
        match &self.stage {
            Stage::Offered { sending, .. } | Stage::Sending { sending, .. } => Some(sending.number),
            Stage::None | Stage::Loading { .. } | Stage::Stored { .. } => None,
        }
    }

    /// Ends what is under way; the image is not offered again in this session, or later.
    pub(super) fn end(&mut self, later_us: Option<u64>) {
        match later_us {
            Some(at_us) => (self.check, self.not_before_us) = (true, at_us),
            None => self.given_up = self.image().copied(),
        }
        self.stage = Stage::None;
    }

    /// Whether the device has not answered its offer in time.
    pub(super) fn is_unanswered(&self, now_us: u64) -> bool {
        matches!(&self.stage, Stage::Offered { since_us, .. } if now_us >= since_us + ANSWER_US_MAX)
    }

    /// A number for the next offer.
    pub(super) fn next_number(&mut self) -> u32 {
        self.numbered += 1;
        self.numbered
    }

    /// Takes the image with this id out of [`Stage::Loading`]; `None`: it is not awaited.
    pub(super) fn take_loading(&mut self, id: ImageId) -> Option<(Stored, Place)> {
        match std::mem::replace(&mut self.stage, Stage::None) {
            Stage::Loading { image, place } if image.id == id => Some((image, place)),
            other => {
                self.stage = other;
                None
            }
        }
    }

    /// Counts a report of the device; `false`: it has sent as many as are taken.
    pub(super) fn takes_report(&mut self) -> bool {
        let takes = self.reports < REPORTS_MAX;
        self.reports += u8::from(takes);
        takes
    }
}

impl Stage {
    /// What others are told of an image that the device refuses with this answer; `None`: there was none to refuse.
    pub(super) fn refused(&self, answer: UpdateAnswer) -> Option<Transfer> {
        let (Stage::Offered { image, sending, .. } | Stage::Sending { image, sending, .. }) = self else { return None };
        let name = answer.name().map_or_else(|| answer.number().to_string(), str::to_owned);
        let (version, bytes) = (image.version.to_string(), sending.size());
        Some(Transfer { version, stored: sending.stored, bytes, refused: Some(name) })
    }
}
