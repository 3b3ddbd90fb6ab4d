//! Sound that is taken out of an ear.

use audio::{
    frame::{RATE_HZ, us_to_samples},
    samples::Samples,
};

use super::Ear;

impl Ear {
    /// Switches the copying of audio for apps on or off.
    pub(crate) fn set_tapped(&mut self, tapped: bool) {
        self.listener.set_tapped(tapped);
    }

    /// The audio since the last call, mono at 16 kHz.
    pub(crate) fn take_tapped(&mut self) -> Samples {
        self.listener.take_tapped()
    }

    /// The utterance that has begun and not ended; `None`: nobody speaks.
    pub(crate) fn open_utterance(&self) -> Option<u32> {
        self.listener.open_utterance().map(|(utterance, ..)| utterance)
    }

    /// The last sound, so many microseconds of it, mono at 16 kHz, and the capture time of its end.
    pub(crate) fn last_sound(&self, us: u64) -> (Samples, u64) {
        self.listener.last_sound(us_to_samples(us, RATE_HZ) as usize)
    }
}
