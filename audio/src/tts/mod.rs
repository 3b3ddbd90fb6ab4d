//! Speech synthesis: text to PCM with the Hibari voice, clause by clause.
//!
//! Three steps: `text` turns a clause into phonemes, `acoustic` runs the network that predicts a spectrum every 12.5
//! ms, `vocoder` turns the spectra into samples. Voice, rules and word lists are those of the package hibari-tts 0.2.1
//! (Apache-2.0, after misaki, Kokoro and spaCy); its files are used unchanged.

mod acoustic;
mod assets;
mod error;
mod finish;
mod text;
mod vocoder;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, StandardNormal};

pub use error::Error;

use acoustic::Acoustic;
use text::FrontEnd;
use vocoder::Vocoder;

use crate::meter::Meter;

/// Longest clause in characters: about two minutes of speech, far more than a clause of a reply. It bounds the work of
/// one call.
pub const CLAUSE_CHARS_MAX: usize = 2_000;

/// Slowest and fastest pace in the network's training; other values are clamped.
pub const SPEED_RANGE: std::ops::RangeInclusive<f32> = 0.5..=2.0;

/// Seed of the noise in breath and fricatives: fixed, so that the same clause always gives the same samples.
const NOISE_SEED: u64 = 0x4c6f_7267;

/// One voice, loaded once and shared: `Send + Sync`, no state is kept between calls.
///
/// Calls from several threads run in parallel: each thread has its own compute thread for the networks.
pub struct Voice {
    front_end: FrontEnd,
    acoustic: Acoustic,
    /// Idle vocoders: as many as were ever in use at the same time.
    vocoders: Mutex<Vec<Vocoder>>,
    meter: Arc<Meter>,
}

impl Voice {
    /// Sampling rate of [`Voice::synthesize`] in Hz.
    pub const RATE_HZ: u32 = 24_000;

    /// The files that [`Voice::load`] reads, relative to its folder; all of them are in the package's
    /// `hibari/assets`.
    pub const FILES: &[&str] = &[
        assets::ACOUSTIC,
        assets::VOCAB,
        assets::NORMALIZE,
        assets::TOKENIZER,
        assets::TAGGER,
        assets::LEXICON_GOLD,
        assets::LEXICON_SILVER,
        assets::OOV,
        assets::OOV_ALPHABET,
    ];

    /// Loads the voice from the folder `dir`.
    ///
    /// # Errors
    /// A file that is missing, too large or invalid; the error names it.
    pub fn load(dir: &Path) -> Result<Self, Error> {
        Ok(Self {
            front_end: FrontEnd::load(dir)?,
            acoustic: Acoustic::load(dir)?,
            vocoders: Mutex::new(vec![Vocoder::new()]),
            meter: Arc::default(),
        })
    }

    /// One clause as PCM16, mono, at [`Voice::RATE_HZ`]; empty if the text contains nothing to speak.
    ///
    /// `speed` 1.0 is the voice's own pace, 2.0 twice as fast. Silence before the first sound is cut to a few
    /// milliseconds, silence after each sentence to a pause, and all ends are faded: clauses can be played back to back
    /// without clicks.
    ///
    /// # Errors
    /// [`Error::TooLong`] above [`CLAUSE_CHARS_MAX`]; [`Error::Model`] if a network fails.
    pub fn synthesize(&self, clause: &str, speed: f32) -> Result<Vec<i16>, Error> {
        self.meter.measure(|| self.run(clause, speed, 1.0))
    }

    /// As [`Voice::synthesize`], with another pitch: a factor on the voice's own.
    ///
    /// # Errors
    /// As [`Voice::synthesize`].
    pub fn synthesize_at(&self, clause: &str, speed: f32, pitch: f32) -> Result<Vec<i16>, Error> {
        self.meter.measure(|| self.run(clause, speed, pitch))
    }

    /// Counts the clauses that were synthesised.
    pub fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }

    fn run(&self, clause: &str, speed: f32, pitch: f32) -> Result<Vec<i16>, Error> {
        let speed = clamp_speed(speed);
        let (mut samples, mut pcm) = (Vec::new(), Vec::new());
        let mut rng = SmallRng::seed_from_u64(NOISE_SEED);
        // Nothing that can panic runs under this lock.
        let free = || self.vocoders.lock().unwrap_or_else(PoisonError::into_inner);
        let spare = free().pop();
        let mut vocoder = spare.unwrap_or_else(Vocoder::new);
        for ids in self.phoneme_ids(clause)? {
            let mut spectrum = self.acoustic.run(&ids, speed)?;
            spectrum.pitch_hz.iter_mut().for_each(|hz| *hz *= pitch);
            samples.clear();
            vocoder.render(&spectrum, || StandardNormal.sample(&mut rng), &mut samples);
            finish::finish(&mut samples, &mut pcm);
        }
        free().push(vocoder);
        Ok(pcm)
    }

    /// The network's phoneme ids for `clause`, without the pads: one list per sentence.
    ///
    /// # Errors
    /// As [`Voice::synthesize`].
    pub fn phoneme_ids(&self, clause: &str) -> Result<Vec<Vec<i32>>, Error> {
        let chars = clause.chars().take(CLAUSE_CHARS_MAX + 1).count();
        if chars > CLAUSE_CHARS_MAX {
            return Err(Error::TooLong { chars_max: CLAUSE_CHARS_MAX });
        }
        self.front_end.phoneme_ids(clause)
    }
}

fn clamp_speed(speed: f32) -> f32 {
    if speed.is_nan() { 1.0 } else { speed.clamp(*SPEED_RANGE.start(), *SPEED_RANGE.end()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_clamped() {
        assert_eq!(clamp_speed(f32::NAN), 1.0);
        assert_eq!(clamp_speed(-3.0), 0.5);
        assert_eq!(clamp_speed(f32::INFINITY), 2.0);
        assert_eq!(clamp_speed(1.3), 1.3);
    }

    #[test]
    fn voice_is_shareable() {
        fn check<T: Send + Sync>() {}
        check::<Voice>();
    }
}
