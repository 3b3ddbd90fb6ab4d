//! Tells the core how like the sound of the device's own speaker the voice in its microphone is, though the device
//! cancels its echo.

use audio::{echo::Played, speaker::Report};
use gateway_core::vocab::VoiceFact;

use super::ear::Ear;

/// Between two looks, in microseconds.
const EVERY_US: u64 = 100_000;
/// Sound that is compared, in microseconds: a voice interrupts after a quarter of a second.
const COMPARED_US: u64 = 300_000;

/// What a device plays, to be compared with what it hears in the open utterance.
pub(crate) struct EchoWatch {
    rate_hz: u32,
    /// While it plays.
    played: Option<Played>,
    utterance: Option<u32>,
    /// Capture time of the last look.
    compared_us: u64,
}

impl EchoWatch {
    /// Of a device with a speaker of this rate.
    pub(super) fn new(rate_hz: u32) -> Self {
        Self { rate_hz, played: None, utterance: None, compared_us: 0 }
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

    /// Compares what is heard with what is played, if it is time for that.
    pub(super) fn compare(&mut self, ear: &Ear) -> Option<VoiceFact> {
        let open = ear.open_utterance();
        if open != self.utterance {
            (self.utterance, self.compared_us) = (open, 0);
        }
        let (utterance, played, heard_us) = (open?, self.played.as_mut()?, ear.heard_until_us()?);
        if heard_us < self.compared_us.saturating_add(EVERY_US) {
            return None;
        }
        self.compared_us = heard_us;
        let (pcm, end_us) = ear.last_sound(COMPARED_US);
        let likeness = played.likeness(&pcm, end_us)?;
        tracing::trace!(utterance, likeness, "the echo was compared");
        Some(VoiceFact::Echo { utterance, likeness })
    }
}
