//! Tells the core when the voice in the microphone is the device's own speaker, though the device cancels its echo.

use audio::{echo::Played, speaker::Report};
use gateway_core::vocab::VoiceFact;

use super::ear::Ear;

/// Between two looks, in microseconds.
const EVERY_US: u64 = 100_000;
/// Sound that is compared, in microseconds: a voice interrupts after a quarter of a second.
const COMPARED_US: u64 = 300_000;
/// Likeness from which on one comparison tells an echo. These thresholds are judged by `cargo xtask bench echo`.
const SAME: f32 = 0.75;
/// Likeness from which on [`LOOKS`] comparisons in a row tell an echo.
const LIKE: f32 = 0.6;
/// Likeness below which as many tell that somebody else speaks.
const UNLIKE: f32 = 0.45;
/// Comparisons in a row: a single one is sometimes wrong.
const LOOKS: u8 = 2;

/// What a device plays, and whether it hears that in the open utterance.
pub(crate) struct EchoWatch {
    rate_hz: u32,
    /// While it plays.
    played: Option<Played>,
    utterance: Option<u32>,
    /// Capture time of the last look.
    looked_us: u64,
    is_echo: bool,
    /// Looks in a row that found the echo, and that did not.
    like: u8,
    unlike: u8,
}

impl EchoWatch {
    /// Of a device with a speaker of this rate.
    pub(super) fn new(rate_hz: u32) -> Self {
        Self { rate_hz, played: None, utterance: None, looked_us: 0, is_echo: false, like: 0, unlike: 0 }
    }

    /// A speech begins: from now on its sound is kept for comparison.
    pub(super) fn begin(&mut self) {
        self.played = Some(Played::new(self.rate_hz));
    }

    /// This follows in it, at the speaker's rate.
    pub(super) fn push(&mut self, pcm: &[i16]) {
        self.played.iter_mut().for_each(|played| played.push(pcm));
    }

    /// The device tells how far it has played it.
    pub(super) fn follow(&mut self, report: Report, stopped: bool) {
        if stopped || report.finished {
            self.end();
        } else if let Some(played) = self.played.as_mut().filter(|_| report.playing) {
            played.report(report.played_us, report.at_us);
        }
    }

    /// The speech is over: its sound is compared no more.
    pub(super) fn end(&mut self) {
        self.played = None;
    }

    /// Compares what is heard with what is played; what has changed.
    pub(super) fn look(&mut self, ear: &Ear) -> Option<VoiceFact> {
        let open = ear.open_utterance();
        if open != self.utterance {
            (self.utterance, self.looked_us) = (open, 0);
            (self.is_echo, self.like, self.unlike) = (false, 0, 0);
        }
        let (utterance, played, heard_us) = (open?, self.played.as_mut()?, ear.heard_until_us()?);
        if heard_us < self.looked_us.saturating_add(EVERY_US) {
            return None;
        }
        self.looked_us = heard_us;
        let (pcm, end_us) = ear.last_sound(COMPARED_US);
        let likeness = played.likeness(&pcm, end_us)?;
        tracing::trace!(utterance, likeness, "a look at the echo");
        Some(VoiceFact::Echo { utterance, present: self.judge(likeness)? })
    }

    /// Whether it is echo from now on; `None`: as before.
    fn judge(&mut self, likeness: f32) -> Option<bool> {
        let count = |before: u8, another: bool| if another { before.saturating_add(1) } else { 0 };
        self.like = count(self.like, likeness >= LIKE);
        self.unlike = count(self.unlike, likeness < UNLIKE);
        let is_echo = if self.is_echo { self.unlike < LOOKS } else { self.like >= LOOKS || likeness >= SAME };
        (std::mem::replace(&mut self.is_echo, is_echo) != is_echo).then_some(is_echo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_plain_or_found_twice_before_it_counts_and_missed_twice_before_it_does_not() {
        let mut watch = EchoWatch::new(16_000);
        let told = [0.7, 0.5, 0.7, 0.7, 0.3, 0.5, 0.2, 0.1, 0.5, 0.9].map(|one| watch.judge(one));
        assert_eq!(told, [None, None, None, Some(true), None, None, None, Some(false), None, Some(true)]);
    }
}
