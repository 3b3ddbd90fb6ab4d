//! Wake phrases that are heard before their text is known: by heads in the sound, or by the device.

use std::sync::Arc;

use audio::{fair::Owner, wake::Head};

use super::{device_wake::DeviceWake, steps::Steps};
use crate::{
    mailbox::{DeviceMessage, Mailbox, WakeHeard},
    speech::wake::{WakeCounts, WakeWords},
};

/// Who hears wake phrases.
#[derive(Clone)]
pub(crate) enum WakeSource {
    /// Nobody: their text tells.
    Text,
    /// These heads, in the sound.
    Heads(WakeWords, Arc<[Arc<Head>]>),
    /// The device, these phrases of the gateway.
    Device(Arc<[String]>),
}

/// The wake phrases of one device.
pub(super) struct Wake {
    by: By,
    counts: Arc<WakeCounts>,
    mailbox: Mailbox,
    /// The last one that was heard.
    heard: Option<WakeHeard>,
}

enum By {
    Heads(Steps),
    Device(DeviceWake),
}

impl Wake {
    /// For a device whose jobs have this owner. What is heard is reported to `mailbox`; `None`: nobody hears anything.
    pub(super) fn new(source: WakeSource, counts: Arc<WakeCounts>, owner: Owner, mailbox: Mailbox) -> Option<Self> {
        let by = match source {
            WakeSource::Text => return None,
            WakeSource::Heads(words, heads) => {
                By::Heads(Steps::new((words, heads, counts.clone()), owner, mailbox.clone()))
            }
            WakeSource::Device(phrases) => By::Device(DeviceWake::new(phrases)),
        };
        Some(Self { by, counts, mailbox, heard: None })
    }

    /// Listens to what is new: the open utterance with its sound and the capture time of its end, and the end of all sound
    /// so far. `last`: the utterance is about to be closed.
    pub(super) fn listen(&mut self, open: Option<(u32, &[i16], u64)>, until_us: Option<u64>, last: bool) {
        let found = match (&mut self.by, open) {
            (By::Heads(steps), Some(open)) => {
                steps.listen(open, last);
                None
            }
            (By::Heads(_), None) => None,
            (By::Device(device), Some(open)) if last => device.closing(open),
            (By::Device(device), open) => device.found(open, until_us),
        };
        let Some(heard) = found else { return };
        self.counts.heard();
        if self.mailbox.try_send(DeviceMessage::WakeHeard(heard)).is_err() {
            tracing::debug!("a wake phrase of the device found its mailbox full");
        }
    }

    /// The device has heard a wake phrase that ended at this capture time. Returns what it should be told, once. Where it is
    /// not for the device to hear them, nothing follows.
    pub(super) fn told(&mut self, phrase: &str, at_us: u64, score: f32) -> Option<String> {
        match &mut self.by {
            By::Heads(_) => None,
            By::Device(device) => device.note(phrase, at_us, score),
        }
    }

    /// A phrase was heard.
    pub(super) fn note(&mut self, heard: WakeHeard) {
        self.heard = Some(heard);
    }

    /// Samples of an utterance before this capture time: by the phrase that was heard in it, since between the two there is
    /// no gap of the device's clock. `None`: none was heard, or it was heard before that time.
    pub(super) fn samples_before(&self, utterance: u32, from_us: u64) -> Option<usize> {
        let heard = self.heard.as_ref().filter(|heard| heard.utterance == utterance && from_us <= heard.at_us)?;
        Some(heard.samples_before(from_us))
    }

    /// Forgets all sound: the microphone is switched off.
    pub(super) fn forget(&mut self) {
        self.heard = None;
        match &mut self.by {
            By::Heads(steps) => steps.forget(),
            By::Device(device) => device.forget(),
        }
    }
}
