//! Makes the head of a phrase from synthetic speech.
//!
//! The phrase is said by many voices, alone, behind other speech and in front of requests; against it count near words,
//! talk, noise ([`scenes`]), and real speech if its embeddings are given ([`stored`]). What is said once is heard several
//! times, by other microphones in other rooms and noise ([`clips`]). Training goes in rounds: after each, the windows
//! that the head takes for the phrase count more ([`rounds`]). Its threshold is chosen by other voices and other real
//! speech ([`operating`]), and what it has learned is judged by voices, requests and noises that neither hears
//! ([`held_out`], [`judge`]).
//!
//! A head that is made can learn a wearer's own voice from a few [`recording`]s ([`enrol`]).
//!
//! Source: openWakeWord's training from synthetic speech (Scripka 2023), and hard-negative mining as in Sung and
//! Poggio 1998.

pub mod accents;
pub mod clips;
pub mod enrol;
pub mod held_out;
pub mod judge;
pub mod noise;
pub mod operating;
mod parallel;
pub mod perceptron;
pub mod plot;
pub mod recording;
pub mod rounds;
pub mod scenes;
pub mod stored;
pub mod texts;
pub mod voices;

use std::path::Path;
use std::sync::Arc;

use rand::SeedableRng as _;
use rand::rngs::SmallRng;

use super::head::Settings;
use super::{Head, Models};
use crate::tts::Voice;
use clips::Clip;
use operating::Point;
use voices::Speaker;

/// Why a head could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A phrase that nothing can be trained for.
    #[error("the phrase {phrase:?} cannot be trained: {reason}")]
    Phrase {
        /// As it was given.
        phrase: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A voice cannot speak.
    #[error("the voice {name} failed: {reason}")]
    Voice {
        /// As in the list of voices.
        name: String,
        /// What it said.
        reason: String,
    },
    /// A file of embeddings cannot be used.
    #[error("{path}: {reason}")]
    Stored {
        /// The file, as it was named.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A head cannot learn these recordings.
    #[error("the head cannot learn this voice: {0}")]
    Enrol(String),
    /// A model failed.
    #[error(transparent)]
    Wake(#[from] super::Error),
    /// The system fails.
    #[error("cannot {action}: {source}")]
    Io {
        /// A verb and its object.
        action: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
}

/// What to train, and with how much.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In lower case, one to five words.
    pub phrase: String,
    /// Who says them.
    pub speakers: Vec<Speaker>,
    /// Times that the phrase is said, and times that something else is.
    pub sayings: usize,
    /// Everything random follows from it.
    pub seed: u64,
    /// Threads that speak and listen.
    pub threads: usize,
}

impl Plan {
    /// The plan for a phrase, with all voices that are installed.
    pub fn of(phrase: &str) -> Self {
        let (speakers, threads) =
            (Speaker::for_training(), std::thread::available_parallelism().map_or(1, usize::from));
        Self { phrase: phrase.trim().to_lowercase(), speakers, sayings: SAYINGS.into(), seed: 1, threads }
    }

    fn check(&self) -> Result<(), Error> {
        let wrong = |reason| Err(Error::Phrase { phrase: self.phrase.clone(), reason });
        let letters = self.phrase.chars().filter(|letter| letter.is_alphabetic()).count();
        if self.phrase.chars().count() > super::head::PHRASE_CHARS_MAX || self.phrase.split_whitespace().count() > 5 {
            return wrong("it is longer than a head can hear: five words, 1.5 s");
        }
        if letters < 4 || self.phrase.chars().any(|letter| !(letter.is_alphabetic() || " '-".contains(letter))) {
            return wrong("it needs four letters or more, and nothing but words");
        }
        if self.speakers.is_empty() {
            return wrong("no voice is there to say it");
        }
        Ok(())
    }
}

/// How far training is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is done.
    pub stage: &'static str,
    /// Parts that are done.
    pub done: usize,
    /// Of so many.
    pub of: usize,
}

/// What each part of a training or an enrolment works with.
#[derive(Clone, Copy)]
pub struct Tools<'a> {
    /// The shared models.
    pub models: &'a Arc<Models>,
    /// The product's own voice.
    pub voice: &'a Voice,
    /// A folder for files of other programs.
    pub scratch: &'a Path,
    /// Told of each part, by any thread.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

/// A head, as it is used and as a file.
pub struct Trained {
    /// Ready for use.
    pub head: Arc<Head>,
    /// Its ONNX file.
    pub file: Vec<u8>,
    /// Why its threshold is the one that it has.
    pub point: Point,
}

/// Times that the phrase is said. This many reach the aims in five minutes (docs/measurements-hearing.md).
pub const SAYINGS: u16 = 130;

/// Steps in a row that a head wants.
const PATIENCE: u32 = 2;

/// Every so many clips of real speech, one is not learned from: the threshold is chosen by it.
const REAL_FOR_THRESHOLD: usize = 5;

/// Trains a head. `real`: clips of real speech without the phrase.
///
/// # Errors
/// See [`Error`].
pub fn train(plan: &Plan, real: &[Clip], tools: Tools<'_>) -> Result<Trained, Error> {
    plan.check()?;
    let phrases = scenes::phrases(plan, tools)?;
    let others = scenes::others(plan, tools)?;
    let (kept, learned) = split(real);
    let clips: Vec<&Clip> = phrases.iter().chain(&others).chain(learned).collect();
    let random = &mut SmallRng::seed_from_u64(plan.seed);
    let network = rounds::learn(&clips, random, tools.progress);
    let said = operating::said(&plan.phrase, tools)?;
    let point = operating::choose(&network, &said, &kept, PATIENCE);
    let settings = Settings { threshold: point.threshold, patience: PATIENCE, ..Settings::of(&plan.phrase) };
    let (seed, sayings, minutes) =
        (plan.seed.to_string(), plan.sayings.to_string(), format!("{:.0}", seconds(real) / 60.0));
    let notes =
        [("lorgnette.seed", seed.as_str()), ("lorgnette.sayings", &sayings), ("lorgnette.real_speech_min", &minutes)];
    let file = network.file(&settings, &notes);
    let head = Head::of(&file, &plan.phrase).map_err(|reason| super::Error::run(&reason))?;
    Ok(Trained { head, file, point })
}

/// Real speech that chooses the threshold, and real speech that is learned.
fn split(real: &[Clip]) -> (Vec<&Clip>, Vec<&Clip>) {
    let for_threshold = |(index, _): &(usize, &Clip)| index % REAL_FOR_THRESHOLD == REAL_FOR_THRESHOLD - 1;
    let (kept, learned): (Vec<_>, Vec<_>) = real.iter().enumerate().partition(for_threshold);
    let clips = |all: Vec<(usize, _)>| all.into_iter().map(|(_, clip)| clip).collect();
    (clips(kept), clips(learned))
}

/// Seconds of sound in these clips.
pub fn seconds<'a>(clips: impl IntoIterator<Item = &'a Clip>) -> f64 {
    let steps: usize = clips.into_iter().map(Clip::steps).sum();
    steps as f64 * super::STEP_SAMPLES as f64 / f64::from(crate::frame::RATE_HZ)
}
