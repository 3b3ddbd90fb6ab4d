//! Tells the core when the voice in the microphone is the device's own speaker, though the device cancels its echo.

use gateway_core::vocab::VoiceFact;

use super::{ear::Ear, mouth::Mouth};

/// Between two looks, in microseconds.
const EVERY_US: u64 = 100_000;
/// Sound that is compared, in microseconds: a voice interrupts after a quarter of a second.
const COMPARED_US: u64 = 300_000;
/// Likeness from which on a voice counts as echo, and below which it may be another one (`cargo xtask bench echo`).
const LIKE: f32 = 0.6;
const UNLIKE: f32 = 0.45;
/// So many looks in a row that find another voice tell that somebody else speaks.
const UNLIKE_MAX: u8 = 2;

/// What is known of the open utterance.
#[derive(Default)]
pub(crate) struct EchoWatch {
    utterance: Option<u32>,
    /// Capture time of the last look.
    looked_us: u64,
    is_echo: bool,
    unlike: u8,
}

impl EchoWatch {
    /// Compares what is heard with what is played; what has changed.
    pub(crate) fn look(&mut self, ear: &Ear, mouth: &mut Mouth) -> Option<VoiceFact> {
        let open = ear.open_utterance();
        if open != self.utterance {
            *self = Self { utterance: open, ..Self::default() };
        }
        let (utterance, heard_us) = (open?, ear.heard_until_us()?);
        if heard_us < self.looked_us + EVERY_US {
            return None;
        }
        self.looked_us = heard_us;
        let (pcm, end_us) = ear.last_sound(COMPARED_US);
        let present = self.judge(mouth.likeness(&pcm, end_us)?)?;
        Some(VoiceFact::Echo { utterance, present })
    }

    /// Whether it is echo from now on; `None`: as before.
    fn judge(&mut self, likeness: f32) -> Option<bool> {
        self.unlike = if likeness < UNLIKE { self.unlike.saturating_add(1) } else { 0 };
        let is_echo = likeness >= LIKE || (self.is_echo && self.unlike < UNLIKE_MAX);
        (std::mem::replace(&mut self.is_echo, is_echo) != is_echo).then_some(is_echo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_counts_at_once_and_ends_when_it_is_missed_twice() {
        let mut watch = EchoWatch::default();
        let told = [0.1, 0.5, 0.8, 0.3, 0.5, 0.2, 0.1, 0.5, 0.7].map(|one| watch.judge(one));
        assert_eq!(told, [None, None, Some(true), None, None, None, Some(false), None, Some(true)]);
    }
}
