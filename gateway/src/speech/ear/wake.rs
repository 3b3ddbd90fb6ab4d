//! Wake phrases that are heard before their text is known: by heads in the sound, or by the device.

use std::sync::Arc;

use audio::{fair::Owner, wake::Head};

use super::{device_wake::DeviceWake, steps::Steps};
use crate::{
    mailbox::{Mailbox, WakeHeard},
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
    /// One of the device's that was found in the sound, until it is taken.
    found: Option<WakeHeard>,
    /// The last one that was heard.
    heard: Option<WakeHeard>,
}

enum By {
    Heads(Steps),
    Device(DeviceWake),
}

impl Wake {
    /// For a device whose jobs have this owner. What heads hear, beside the device's task, is reported to `mailbox`; `None`:
    /// nobody hears anything.
    pub(super) fn new(source: WakeSource, counts: Arc<WakeCounts>, owner: Owner, mailbox: Mailbox) -> Option<Self> {
        let by = match source {
            WakeSource::Text => return None,
            WakeSource::Heads(words, heads) => By::Heads(Steps::new((words, heads, counts.clone()), owner, mailbox)),
            WakeSource::Device(phrases) => By::Device(DeviceWake::new(phrases)),
        };
        Some(Self { by, counts, found: None, heard: None })
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
        if found.is_some() {
            self.counts.heard();
            self.found = found;
        }
    }

    /// The phrase of the device that was found in the sound. The device tells of one at a time, so that there is no other
    /// if it is taken before the next one is told.
    pub(super) fn take_found(&mut self) -> Option<WakeHeard> {
        self.found.take()
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
        (self.found, self.heard) = (None, None);
        match &mut self.by {
            By::Heads(steps) => steps.forget(),
            By::Device(device) => device.forget(),
        }
    }
}

#[cfg(test)]
mod tests {
    use audio::frame::RATE_HZ;
    use tokio::sync::mpsc;

    use super::*;
    use crate::mailbox::DeviceMessage;

    #[test]
    fn a_phrase_of_the_device_is_found_however_full_its_mailbox_is() {
        let (mailbox, _messages) = mpsc::channel(1);
        mailbox.try_send(DeviceMessage::CancelCalls).unwrap();
        let counts = Arc::<WakeCounts>::default();
        let source = WakeSource::Device(["hey mentra".to_owned()].into());
        let mut wake = Wake::new(source, counts.clone(), Owner::unique(), mailbox).unwrap();
        let second = [0_i16; RATE_HZ as usize];
        let open = |end_us: u64| Some((3, second.as_slice(), end_us));
        wake.told("Hey, Mentra", 4_750_000, 0.9);
        wake.listen(open(5_000_000), Some(5_000_000), false);
        let found = wake.take_found().map(|heard| (heard.utterance, heard.at_us, heard.end));
        assert_eq!(found, Some((3, 4_750_000, 12_000)));
        assert!(wake.take_found().is_none() && counts.get().heard == 1, "once");
        // Also when its utterance is closed before it has the end of the phrase.
        wake.told("Hey, Mentra", 6_250_000, 0.9);
        wake.listen(open(6_000_000), Some(6_000_000), false);
        assert!(wake.take_found().is_none());
        wake.listen(open(6_000_000), Some(6_000_000), true);
        assert_eq!(wake.take_found().map(|heard| heard.at_us), Some(6_000_000));
        // What was found before the microphone was switched off counts no more.
        wake.told("Hey, Mentra", 5_900_000, 0.9);
        wake.listen(open(6_000_000), Some(6_000_000), false);
        wake.forget();
        assert!(wake.take_found().is_none());
    }
}
