//! What is said in training: scenes with the phrase and scenes without it, made on all threads.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::clips::{Clip, Scene};
use super::recording::Recording;
use super::voices::{Manner, Speaker};
use super::{Error, Plan, Progress, Tools, noise, parallel, texts};

/// Times that a scene is heard, each by another microphone in another place: with the phrase, and without it. Speaking
/// costs more than hearing, and voices differ less than places.
const HEARD_PHRASE: usize = 3;
const HEARD_OTHER: usize = 2;

/// How often a recording is heard alone; else in front of a request.
const ALONE: f64 = 0.5;

/// How often there is noise.
const NOISY: f64 = 0.65;

/// Clips with the phrase.
///
/// # Errors
/// A voice or a model fails.
pub fn phrases(plan: &Plan, tools: Tools<'_>) -> Result<Vec<Clip>, Error> {
    let scene = |_, random: &mut SmallRng, scratch: &Path| phrase(plan, tools, random, scratch);
    made(plan, tools, ("the phrase", plan.sayings, HEARD_PHRASE), &scene)
}

/// Clips of near words, talk, requests and noise.
///
/// # Errors
/// A voice or a model fails.
pub fn others(plan: &Plan, tools: Tools<'_>) -> Result<Vec<Clip>, Error> {
    let near = texts::near(&plan.phrase);
    let scene = |_, random: &mut SmallRng, scratch: &Path| other(plan, &near, tools, random, scratch);
    made(plan, tools, ("other words", plan.sayings, HEARD_OTHER), &scene)
}

/// Clips of recordings, each heard so many times, alone or in front of a request; with the number of its recording.
///
/// # Errors
/// A voice or a model fails.
pub(super) fn recorded(
    plan: &Plan,
    (recordings, phrase): (&[Recording], bool),
    heard: usize,
    tools: Tools<'_>,
) -> Result<Vec<(usize, Clip)>, Error> {
    let own = Speaker::own();
    let scene = |index: usize, random: &mut SmallRng, scratch: &Path| {
        let voice = recordings[index % recordings.len()].voice();
        let phrase = phrase.then_some(0);
        if random.random_bool(ALONE) {
            return Ok(Scene::of(&[voice], phrase, random));
        }
        let request = own.say(tools.voice, one(&texts::REQUESTS, random), Manner::random(random), scratch)?;
        Ok(Scene::of(&[voice, &request], phrase, random))
    };
    let count = recordings.len() * heard.div_ceil(HEARD_PHRASE);
    let stage = if phrase { "recordings" } else { "no phrase" };
    let clips = made(plan, tools, (stage, count, HEARD_PHRASE), &scene)?;
    Ok(clips.into_iter().enumerate().map(|(n, clip)| (n / HEARD_PHRASE % recordings.len().max(1), clip)).collect())
}

/// Makes the clips of so many scenes, on all threads. Which clip is which does not depend on the number of threads.
fn made(
    plan: &Plan,
    tools: Tools<'_>,
    (stage, count, heard): (&'static str, usize, usize),
    scene: &(dyn Fn(usize, &mut SmallRng, &Path) -> Result<Scene, Error> + Sync),
) -> Result<Vec<Clip>, Error> {
    let done = AtomicUsize::new(0);
    let work = |thread: usize, index: usize| -> Result<Vec<Clip>, Error> {
        let scratch = tools.scratch.join(format!("{}-{thread}", stage.len()));
        std::fs::create_dir_all(&scratch).map_err(|source| Error::Io { action: "make a scratch folder", source })?;
        let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add((stage.len() * 1_000_000 + index) as u64);
        let random = &mut SmallRng::seed_from_u64(seed);
        let scene = scene(index, random, &scratch)?;
        let vary = |_| Clip::of(&scene.clone().varied(&noise::FOR_TRAINING, NOISY, random), tools.models);
        let clips = (0..heard).map(vary).collect::<Result<Vec<_>, _>>()?;
        (tools.progress)(Progress { stage, done: done.fetch_add(1, Ordering::Relaxed) + 1, of: count });
        Ok(clips)
    };
    Ok(parallel::all(plan.threads, count, &work)?.into_iter().flatten().collect())
}

fn one<'a>(of: &'a [&str], random: &mut SmallRng) -> &'a str {
    of[random.random_range(0..of.len())]
}

fn phrase(plan: &Plan, tools: Tools<'_>, random: &mut SmallRng, scratch: &Path) -> Result<Scene, Error> {
    let (speaker, manner) = (Speaker::one_of(&plan.speakers, random), Manner::random(random));
    let say = |text: &str| speaker.say(tools.voice, text, manner, scratch);
    let phrase = say(&format!("{}{}", plan.phrase, one(&[".", ",", "!", "?", ""], random)))?;
    Ok(match random.random_range(0..20) {
        0..=7 => Scene::of(&[&phrase], Some(0), random),
        8..=12 => Scene::of(&[&phrase, &say(one(&texts::REQUESTS, random))?], Some(0), random),
        13..=15 => {
            let other = Speaker::one_of(&plan.speakers, random);
            let talk = other.say(tools.voice, one(&texts::TALK, random), Manner::random(random), scratch)?;
            Scene::of(&[&talk, &phrase], Some(1), random)
        }
        _ => {
            // In one breath. Without a final lengthening the phrase is a little shorter.
            let whole = say(&format!("{}, {}", plan.phrase, one(&texts::REQUESTS, random)))?;
            let mut scene = Scene::of(&[&whole], Some(0), random);
            let begin = scene.phrase_end.unwrap_or_default().saturating_sub(whole.len());
            scene.phrase_end = Some(begin + (phrase.len() * 93 / 100).min(whole.len()));
            scene
        }
    })
}

fn other(
    plan: &Plan,
    near: &[String],
    tools: Tools<'_>,
    random: &mut SmallRng,
    scratch: &Path,
) -> Result<Scene, Error> {
    let (speaker, manner) = (Speaker::one_of(&plan.speakers, random), Manner::random(random));
    let say = |text: &str| speaker.say(tools.voice, text, manner, scratch);
    Ok(match random.random_range(0..20) {
        0..=8 => {
            let said = say(&near[random.random_range(0..near.len())])?;
            let request = if random.random_bool(0.5) { say(one(&texts::REQUESTS, random))? } else { Vec::new() };
            Scene::of(&[&said, &request], None, random)
        }
        9..=16 => Scene::of(&[&say(one(&texts::TALK, random))?, &say(one(&texts::TALK, random))?], None, random),
        17..=18 => Scene::of(&[&say(one(&texts::REQUESTS, random))?], None, random),
        _ => {
            let kind = noise::FOR_TRAINING[random.random_range(0..noise::FOR_TRAINING.len())];
            let level = 10.0_f32.powf(1.0 + 2.5 * random.random::<f32>());
            let samples = kind.samples(4 * crate::frame::RATE_HZ as usize, random);
            Scene { samples: samples.into_iter().map(|x| x * level).collect(), phrase_end: None }
        }
    })
}
