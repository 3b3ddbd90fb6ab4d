//! Makes the head of a phrase from synthetic speech.
//!
//! The phrase is said by many voices, in rooms and noise, alone, behind other speech and in front of requests; against
//! it count near words, talk, noise, and real speech if its embeddings are given ([`stored`]). Training goes in
//! rounds: after each, the windows that the head takes for the phrase count more. What it has learned is judged by
//! voices, requests and noises that training never hears ([`held_out`], [`judge`]).
//!
//! Source: openWakeWord's training from synthetic speech (Scripka 2023), and hard-negative mining as in Sung and
//! Poggio 1998.

pub mod clips;
pub mod held_out;
pub mod judge;
pub mod noise;
pub mod perceptron;
pub mod stored;
pub mod texts;
pub mod voices;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::head::Settings;
use super::{Head, Models};
use crate::tts::Voice;
use clips::{Clip, Label, Scene};
use perceptron::{Adam, Example, Perceptron};
use voices::{Manner, Speaker};

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
        /// Its name.
        name: String,
        /// What it said.
        reason: String,
    },
    /// A file of embeddings cannot be used.
    #[error("{path}: {reason}")]
    Stored {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
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
    /// The words.
    pub phrase: String,
    /// Who says them.
    pub speakers: Vec<Speaker>,
    /// Clips with the phrase.
    pub positives: usize,
    /// Clips of near words, talk and noise.
    pub negatives: usize,
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
        Self { phrase: phrase.trim().to_lowercase(), speakers, positives: 1_500, negatives: 1_500, seed: 1, threads }
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

/// What training uses.
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
}

/// Rounds of training, and passes over the examples in each.
const ROUNDS: usize = 4;
const PASSES: usize = 5;
/// Rate of learning of the first round; each further one has half of it.
const RATE: f32 = 1e-3;
/// Windows without the phrase in one round, at most.
const EASY_MAX: usize = 40_000;
/// Score from which a window without the phrase is hard, and how much it counts then.
const HARD: f32 = 0.1;
const HARD_WEIGHT: f32 = 4.0;
/// How much a window with the phrase counts.
const PHRASE_WEIGHT: f32 = 2.0;
/// Steps in a row that a head wants.
const PATIENCE: u32 = 2;
/// Thresholds that are tried: the first that real speech hardly reaches is taken.
const THRESHOLDS: [f32; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95];
/// Detections in an hour of real speech that training has heard, at which a threshold is good enough: the text
/// verifies what is left.
const FALSE_PER_HOUR: f64 = 0.5;

/// Trains a head. `real`: clips of real speech without the phrase.
///
/// # Errors
/// See [`Error`].
pub fn train(plan: &Plan, real: &[Clip], tools: Tools<'_>) -> Result<Trained, Error> {
    plan.check()?;
    let positives =
        made(plan, tools, "the phrase", plan.positives, &|random, scratch| phrase_scene(plan, tools, random, scratch))?;
    let near = texts::near(&plan.phrase);
    let negatives = made(plan, tools, "other words", plan.negatives, &|random, scratch| {
        other_scene(plan, &near, tools, random, scratch)
    })?;
    let random = &mut SmallRng::seed_from_u64(plan.seed);
    let network = learned(&positives, &negatives, real, random, tools.progress);
    let settings = Settings { threshold: threshold(&network, real), patience: PATIENCE, ..Settings::of(&plan.phrase) };
    let voices = plan.speakers.iter().map(Speaker::name).collect::<Vec<_>>().join(" ");
    let (seed, seconds) = (plan.seed.to_string(), format!("{:.0}", seconds(real)));
    let notes =
        [("lorgnette.voices", voices.as_str()), ("lorgnette.seed", &seed), ("lorgnette.real_speech_s", &seconds)];
    let file = network.file(&settings, &notes);
    let head = Head::of(file.clone(), &plan.phrase).map_err(|reason| super::Error::run(&reason))?;
    Ok(Trained { head, file })
}

fn seconds(clips: &[Clip]) -> f64 {
    clips.iter().map(Clip::steps).sum::<usize>() as f64 * super::STEP_SAMPLES as f64 / f64::from(crate::frame::RATE_HZ)
}

/// Makes so many clips, on all threads. Which clip is which does not depend on their number.
fn made(
    plan: &Plan,
    tools: Tools<'_>,
    stage: &'static str,
    count: usize,
    scene: &(dyn Fn(&mut SmallRng, &Path) -> Result<Scene, Error> + Sync),
) -> Result<Vec<Clip>, Error> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let made = Mutex::new(Vec::with_capacity(count));
    let work = |thread: usize| -> Result<(), Error> {
        let scratch = tools.scratch.join(format!("{}-{thread}", stage.len()));
        std::fs::create_dir_all(&scratch).map_err(|source| Error::Io { action: "make a scratch folder", source })?;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(());
            }
            let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add((stage.len() * 1_000_000 + index) as u64);
            let scene = scene(&mut SmallRng::seed_from_u64(seed), &scratch)?;
            let clip = Clip::of(&scene, tools.models)?;
            made.lock().unwrap_or_else(PoisonError::into_inner).push((index, clip));
            (tools.progress)(Progress { stage, done: done.fetch_add(1, Ordering::Relaxed) + 1, of: count });
        }
    };
    std::thread::scope(|scope| {
        let spawn = |thread| {
            let work = &work;
            std::thread::Builder::new().name(format!("wake-{thread}")).spawn_scoped(scope, move || work(thread))
        };
        let threads: Vec<_> = (0..plan.threads.max(1)).map(spawn).collect();
        threads.into_iter().try_for_each(|thread| {
            let thread = thread.map_err(|source| Error::Io { action: "start a thread", source })?;
            thread.join().unwrap_or_else(|_| Err(super::Error::run(&"a thread panicked").into()))
        })
    })?;
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_by_key(|(index, _)| *index);
    Ok(made.into_iter().map(|(_, clip)| clip).collect())
}

/// Somebody: the product's own voice about half of the time, since it can be varied most.
fn somebody<'a>(plan: &'a Plan, random: &mut SmallRng) -> &'a Speaker {
    let own = plan.speakers.iter().find(|speaker| speaker.is_own()).filter(|_| random.random_bool(0.4));
    own.unwrap_or_else(|| one(&plan.speakers, random))
}

fn one<'a, T>(of: &'a [T], random: &mut SmallRng) -> &'a T {
    &of[random.random_range(0..of.len())]
}

fn text<'a>(of: &[&'a str], random: &mut SmallRng) -> &'a str {
    of[random.random_range(0..of.len())]
}

fn phrase_scene(plan: &Plan, tools: Tools<'_>, random: &mut SmallRng, scratch: &Path) -> Result<Scene, Error> {
    let (speaker, manner) = (somebody(plan, random), Manner::random(random));
    let say = |text: &str| speaker.say(tools.voice, text, manner, scratch);
    let phrase = say(&format!("{}{}", plan.phrase, text(&[".", ",", "!", "?", ""], random)))?;
    let scene = match random.random_range(0..20) {
        0..=7 => Scene::of(&[&phrase], Some(0), random),
        8..=12 => Scene::of(&[&phrase, &say(text(&texts::REQUESTS, random))?], Some(0), random),
        13..=15 => {
            let other = somebody(plan, random);
            let talk = other.say(tools.voice, text(&texts::TALK, random), Manner::random(random), scratch)?;
            Scene::of(&[&talk, &phrase], Some(1), random)
        }
        _ => {
            // In one breath. Without a final lengthening the phrase is a little shorter.
            let whole = say(&format!("{}, {}", plan.phrase, text(&texts::REQUESTS, random)))?;
            let mut scene = Scene::of(&[&whole], Some(0), random);
            let begin = scene.phrase_end.unwrap_or_default().saturating_sub(whole.len());
            scene.phrase_end = Some(begin + (phrase.len() * 93 / 100).min(whole.len()));
            scene
        }
    };
    Ok(scene.varied(&noise::FOR_TRAINING, random))
}

fn other_scene(
    plan: &Plan,
    near: &[String],
    tools: Tools<'_>,
    random: &mut SmallRng,
    scratch: &Path,
) -> Result<Scene, Error> {
    let (speaker, manner) = (somebody(plan, random), Manner::random(random));
    let say = |text: &str| speaker.say(tools.voice, text, manner, scratch);
    let scene = match random.random_range(0..20) {
        0..=8 => {
            let said = say(&near[random.random_range(0..near.len())])?;
            let request = if random.random_bool(0.5) { say(text(&texts::REQUESTS, random))? } else { Vec::new() };
            Scene::of(&[&said, &request], None, random)
        }
        9..=16 => Scene::of(&[&say(text(&texts::TALK, random))?, &say(text(&texts::TALK, random))?], None, random),
        17..=18 => Scene::of(&[&say(text(&texts::REQUESTS, random))?], None, random),
        _ => {
            let kind = *one(&noise::FOR_TRAINING, random);
            let level = 10.0_f32.powf(1.0 + 2.5 * random.random::<f32>());
            let samples = kind.samples(4 * crate::frame::RATE_HZ as usize, random);
            Scene { samples: samples.into_iter().map(|x| x * level).collect(), phrase_end: None }
        }
    };
    Ok(scene.varied(&noise::FOR_TRAINING, random))
}

/// Learns in rounds; after each the hard windows count more.
fn learned(
    positives: &[Clip],
    negatives: &[Clip],
    real: &[Clip],
    random: &mut SmallRng,
    progress: &(dyn Fn(Progress) + Sync),
) -> Perceptron {
    let phrases = labelled(positives, Label::Phrase);
    let mut others = labelled(positives, Label::Other);
    others.extend(labelled(negatives, Label::Other));
    others.extend(labelled(real, Label::Other));
    let every = others.len().div_ceil(EASY_MAX).max(1);
    let sample = phrases.iter().copied().chain(others.iter().step_by(every).copied());
    let mut network = Perceptron::new(sample, random);
    let mut adam = Adam::default();
    let mut rate = RATE;
    for round in 0..ROUNDS {
        let mut examples: Vec<Example<'_>> =
            phrases.iter().map(|window| Example { window, positive: true, weight: PHRASE_WEIGHT }).collect();
        for (index, window) in others.iter().enumerate() {
            // The first round knows nothing that is hard.
            let hard = round > 0 && network.score(window) > HARD;
            let chosen = hard || (index + round).is_multiple_of(every);
            if chosen {
                let weight = if hard { HARD_WEIGHT } else { 1.0 };
                examples.push(Example { window, positive: false, weight });
            }
        }
        for pass in 0..PASSES {
            let loss = network.learn(&examples, &mut adam, rate, random);
            tracing::debug!(round, pass, loss, examples = examples.len(), "wake training");
            progress(Progress { stage: "learning", done: round * PASSES + pass + 1, of: ROUNDS * PASSES });
        }
        rate *= 0.5;
    }
    network
}

fn labelled(clips: &[Clip], wanted: Label) -> Vec<&[f32]> {
    clips.iter().flat_map(Clip::windows).filter(|(_, label)| *label == wanted).map(|(window, _)| window).collect()
}

/// The first threshold that real speech hardly reaches.
fn threshold(network: &Perceptron, real: &[Clip]) -> f32 {
    let scores: Vec<Vec<f32>> =
        real.iter().map(|clip| clip.windows().map(|(window, _)| network.score(window)).collect()).collect();
    let allowed = (seconds(real) / 3_600.0 * FALSE_PER_HOUR) as usize;
    let fires =
        |threshold: f32| -> usize { scores.iter().map(|scores| clips::detections(scores, threshold, PATIENCE)).sum() };
    let good = THRESHOLDS.into_iter().find(|threshold| fires(*threshold) <= allowed);
    good.unwrap_or(THRESHOLDS[THRESHOLDS.len() - 1])
}
