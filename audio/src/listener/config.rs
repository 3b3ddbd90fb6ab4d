//! Settings of the listener, and their errors.

use crate::codec::{self, Codec};
use crate::jitter;
use crate::resample;

/// Longest pre-roll in microseconds. It is kept for every connected device, speaking or not.
pub const PREROLL_US_MAX: u64 = 5_000_000;

/// Longest utterance in microseconds: Whisper's window is 30 s.
pub const UTTERANCE_US_MAX: u64 = 30_000_000;

/// Settings of one device's listener. Times in microseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// How the device's packets are coded.
    pub codec: Codec,
    /// Sample rate of the device's microphone, one of [`codec::RATES_HZ`].
    pub rate_hz: u32,
    /// Limits of the wait for a gap.
    pub jitter: jitter::Config,
    /// Sound kept from before the onset is detected.
    pub preroll_us: u64,
    /// How long before the onset an utterance starts: soft consonants precede the voice.
    pub lead_us: u64,
    /// How long after the last voice an utterance's sound ends, for the same reason.
    pub tail_us: u64,
    /// How long the gate stays open after a voiced frame.
    pub gate_hangover_us: u64,
    /// Voice probability at which silence turns to voice.
    pub enter: f32,
    /// Voice probability under which voice turns to silence; lower than `enter`, so that a fading voice does not
    /// toggle.
    pub leave: f32,
    /// Voiced windows of 32 ms in a row that open an utterance; a single one may be a click.
    pub onset_windows: u32,
    /// Silence after which a pause is reported.
    pub pause_us: u64,
    /// Length at which an utterance is ended.
    pub utterance_us_max: u64,
    /// Time without a packet, within an utterance, after which the device counts as silent, though it has not said that it
    /// pauses: longer than a network may be gone unnoticed, since what was said meanwhile comes when it is back.
    pub vanished_us: u64,
    /// How long a microphone may send samples of one value before it counts as dead; `None`: for ever.
    pub dead_us: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            codec: Codec::Pcm16,
            rate_hz: 16_000,
            jitter: jitter::Config::default(),
            preroll_us: 2_000_000,
            lead_us: 400_000,
            tail_us: 300_000,
            gate_hangover_us: 300_000,
            enter: 0.5,
            leave: 0.35,
            onset_windows: 2,
            pause_us: 90_000,
            utterance_us_max: 28_000_000,
            vanished_us: 20_000_000,
            dead_us: Some(30_000_000),
        }
    }
}

impl Config {
    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |what, why| Err(Error::Setting { what, why });
        if !(1_500_000..=PREROLL_US_MAX).contains(&self.preroll_us) {
            return wrong("preroll_us", "it must be 1.5 to 5 s");
        }
        if self.lead_us > self.preroll_us {
            return wrong("lead_us", "it must not exceed preroll_us");
        }
        if !(self.leave > 0.0 && self.leave <= self.enter && self.enter < 1.0) {
            return wrong("enter, leave", "0 < leave <= enter < 1 must hold");
        }
        if !(1..=8).contains(&self.onset_windows) {
            return wrong("onset_windows", "it must be 1 to 8");
        }
        if !(1_000_000..=UTTERANCE_US_MAX).contains(&self.utterance_us_max) {
            return wrong("utterance_us_max", "it must be 1 to 30 s");
        }
        if self.pause_us > self.utterance_us_max || self.tail_us > self.utterance_us_max {
            return wrong("pause_us, tail_us", "they must not exceed utterance_us_max");
        }
        if self.vanished_us == 0 {
            return wrong("vanished_us", "it must not be 0");
        }
        Ok(())
    }
}

/// Why a listener could not be created or a packet could not be processed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A setting out of its range.
    #[error("listener setting {what}: {why}")]
    Setting {
        /// Name of the setting.
        what: &'static str,
        /// The range that it must be in, as a sentence.
        why: &'static str,
    },
    /// An error of the codec.
    #[error(transparent)]
    Codec(#[from] codec::Error),
    /// The rate cannot be converted.
    #[error(transparent)]
    Resample(#[from] resample::Error),
}
