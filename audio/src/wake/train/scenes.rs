//! What is said in training: scenes with the phrase and scenes without it, made on all threads.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use super::clips::{Clip, Scene};
use super::voices::{Manner, Speaker};
use super::{Error, Plan, Progress, Tools, noise, texts};

/// Times that a scene is heard, each by another microphone in another place: with the phrase, and without it. Speaking
/// costs more than hearing, and voices differ less than places.
const HEARD_PHRASE: usize = 3;
const HEARD_OTHER: usize = 2;

/// How often there is noise.
const NOISY: f64 = 0.65;

/// Clips with the phrase.
///
/// # Errors
/// A voice or a model fails.
pub fn phrases(plan: &Plan, tools: Tools<'_>) -> Result<Vec<Clip>, Error> {
    made(plan, tools, ("the phrase", HEARD_PHRASE), &|random, scratch| phrase(plan, tools, random, scratch))
}

/// Clips of near words, talk, requests and noise.
///
/// # Errors
/// A voice or a model fails.
pub fn others(plan: &Plan, tools: Tools<'_>) -> Result<Vec<Clip>, Error> {
    let near = texts::near(&plan.phrase);
    made(plan, tools, ("other words", HEARD_OTHER), &|random, scratch| other(plan, &near, tools, random, scratch))
}

/// Makes the clips of so many scenes, on all threads. Which clip is which does not depend on their number.
fn made(
    plan: &Plan,
    tools: Tools<'_>,
    (stage, heard): (&'static str, usize),
    scene: &(dyn Fn(&mut SmallRng, &Path) -> Result<Scene, Error> + Sync),
) -> Result<Vec<Clip>, Error> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let made = Mutex::new(Vec::with_capacity(plan.sayings));
    let work = |thread: usize| -> Result<(), Error> {
        let scratch = tools.scratch.join(format!("{}-{thread}", stage.len()));
        std::fs::create_dir_all(&scratch).map_err(|source| Error::Io { action: "make a scratch folder", source })?;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= plan.sayings {
                return Ok(());
            }
            let seed = plan.seed.wrapping_mul(1_000_003).wrapping_add((stage.len() * 1_000_000 + index) as u64);
            let random = &mut SmallRng::seed_from_u64(seed);
            let scene = scene(random, &scratch)?;
            let vary = |_| Clip::of(&scene.clone().varied(&noise::FOR_TRAINING, NOISY, random), tools.models);
            let clips = (0..heard).map(vary).collect::<Result<Vec<_>, _>>()?;
            made.lock().unwrap_or_else(PoisonError::into_inner).push((index, clips));
            (tools.progress)(Progress { stage, done: done.fetch_add(1, Ordering::Relaxed) + 1, of: plan.sayings });
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
            thread.join().unwrap_or_else(|_| Err(crate::wake::Error::run(&"a thread panicked").into()))
        })
    })?;
    let mut made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.sort_by_key(|(index, _)| *index);
    Ok(made.into_iter().flat_map(|(_, clips)| clips).collect())
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
