//! Wake phrases of any kind: what recognition makes of them, what it costs, and how soon the ear opens.
//!
//! `cargo xtask bench wake [--half development|held-out|all] [--voices others|NAME,NAME] [--through gateway]`
//!
//! Each configuration of `data/wake-phrases.tsv` is said alone (in all voices that are known, and with noise as well), in front of requests,
//! and not at all; coded as Opus and decoded with the shipped weights and contexts, once, as at a pause. What a text means is judged by the core itself. Of the held-out half only
//! numbers are printed. Processor time is the thread's own. An echo that is taken for a command: the phrase alone, which the core
//! takes for a request. `--through gateway`: the phrase alone is said to a gateway with that
//! configuration, once in each voice, and the time from the last voiced sample to the sign that the ear is open is taken.

mod common;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use audio::asr::normalise::for_commands;
use audio::asr::{Decoder, Options};
use common::clips::CLIP_HZ;
use common::voices::{Speaker, coded, noisy};
use common::{TestGateway, argument, row};
use firmware_sim::transport::Scheme;
use firmware_sim::{Glasses, Seen};
use gateway_core::conversation::{Config, Conversation};
use gateway_core::driver::Driver;
use gateway_core::input::Input;
use gateway_core::output::{Chime, Output};
use gateway_core::vocab::{CommandMatch, DeviceInfo, Timestamp, Transcript, TranscriptKind, VoiceFact};
use tokio::task::JoinSet;

const TABLE: &str = include_str!("data/wake-phrases.tsv");
/// What is said behind the phrase.
const REQUESTS: [&str; 3] = ["what time is it?", "set a timer for ten minutes.", "take a note, buy milk and bread."];
/// What is said without it.
const TALK: [&str; 3] =
    ["What time is it over there?", "The weather was nice today.", "Good morning, thank you very much."];
/// Silence in front, as the listener's pre-roll leaves it, and behind, as a pause begins.
const FRONT: usize = CLIP_HZ as usize / 2;
const BEHIND: usize = CLIP_HZ as usize * 3 / 10;
/// Noise behind a phrase that stands alone: so much below its voice.
const NOISE_DB: f32 = 12.0;
/// A wake phrase alone is over after 450 ms of silence, once its text is known.
const OPEN_MAX: Duration = Duration::from_millis(1_000);
const GIVEN_UP: Duration = Duration::from_secs(6);

/// What a text means to a conversation.
#[derive(Debug, PartialEq)]
enum Meaning {
    Overheard,
    Called,
    Asked(String),
}

#[derive(Default)]
struct Counts {
    clips: usize,
    retried: usize,
    doubled: usize,
    /// The phrase alone: the ear opens, of all; and taken for a request.
    alone: [usize; 3],
    /// A request: understood as one, of all; and word for word.
    requests: [usize; 3],
    /// Talk without the phrase: taken for a call or a request, of all.
    talk: [usize; 2],
    cpu_us: Vec<i64>,
    alone_cpu_us: Vec<i64>,
}

fn main() -> Result<()> {
    let half = argument("--half").unwrap_or_else(|| "development".to_owned());
    let configurations: Vec<Vec<String>> = TABLE
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('\t'))
        .filter(|(of, _)| half == "all" || *of == half)
        .map(|(_, phrases)| phrases.split(" | ").map(str::to_owned).collect())
        .collect();
    anyhow::ensure!(!configurations.is_empty(), "--half development, held-out or all");
    common::calibrate("before")?;
    if argument("--through").is_some() {
        common::runtime()?.block_on(through_gateway(&configurations))?;
    } else {
        decoded(&configurations, half == "development")?;
    }
    common::calibrate("after")
}

fn decoded(configurations: &[Vec<String>], printed: bool) -> Result<()> {
    let (folder, speakers) = (tempfile::tempdir()?, Speaker::asked_for()?);
    let mut recogniser = common::engine()?.decoder()?;
    let (mut singles, mut others) = (Counts::default(), Counts::default());
    for phrases in configurations {
        let first = phrases.first().context("a phrase")?;
        let mut counts = Counts::default();
        for speaker in Speaker::ALL.into_iter().chain(Speaker::OTHERS) {
            for noise_db in [None, Some(NOISE_DB)] {
                let said = (format!("{first}."), Some(""));
                let pcm = speaker.say(&said.0, folder.path())?;
                let pcm = noise_db.map_or_else(|| pcm.clone(), |db| noisy(&pcm, db));
                hear(&mut recogniser, phrases, (speaker, said, &pcm), printed, &mut counts)?;
            }
        }
        for speaker in &speakers {
            let requests = REQUESTS.iter().map(|request| (format!("{first}, {request}"), Some(*request)));
            for said in requests.chain(TALK.iter().map(|talk| ((*talk).to_owned(), None))) {
                let pcm = speaker.say(&said.0, folder.path())?;
                hear(&mut recogniser, phrases, (*speaker, said, &pcm), printed, &mut counts)?;
            }
        }
        show(&phrases.join(" | "), &counts);
        add(if phrases.len() == 1 && !first.contains(' ') { &mut singles } else { &mut others }, counts);
    }
    show("a single word", &singles);
    show("all others", &others);
    row("processor time of a clip, single words", singles.cpu_us);
    row("processor time of a single word alone", singles.alone_cpu_us);
    row("processor time of a clip, others", others.cpu_us);
    Ok(())
}

fn hear(
    recogniser: &mut Decoder,
    phrases: &[String],
    (speaker, (said, request), pcm): (Speaker, (String, Option<&str>), &[i16]),
    printed: bool,
    counts: &mut Counts,
) -> Result<()> {
    let options = Options { wake_phrases: phrases.iter().cloned().collect::<Arc<[String]>>(), ..Options::default() };
    let sound = coded(pcm, FRONT, BEHIND)?;
    let before = common::cpu_of_thread_us();
    let heard = recogniser.transcribe(sound.as_slice(), &options)?;
    let cpu_us = (common::cpu_of_thread_us() - before) as i64;
    counts.cpu_us.push(cpu_us);
    counts.clips += 1;
    counts.retried += usize::from(heard.retried);
    let doubled = is_doubled(&heard.text);
    counts.doubled += usize::from(doubled);
    let meaning = meaning(phrases, &heard.text);
    let right = match request {
        Some("") => {
            let right = meaning == Meaning::Called;
            counts.alone[0] += usize::from(right);
            counts.alone[1] += 1;
            counts.alone[2] += usize::from(matches!(meaning, Meaning::Asked(_)));
            counts.alone_cpu_us.push(cpu_us);
            right
        }
        Some(request) => {
            let (asked, exact) = match &meaning {
                Meaning::Asked(text) => (true, for_commands(text) == for_commands(request)),
                _ => (false, false),
            };
            counts.requests[0] += usize::from(asked);
            counts.requests[1] += 1;
            counts.requests[2] += usize::from(exact);
            exact
        }
        None => {
            let wrong = meaning != Meaning::Overheard;
            counts.talk[0] += usize::from(wrong);
            counts.talk[1] += 1;
            !wrong
        }
    };
    if printed && (!right || heard.retried || doubled) {
        let again = if heard.retried { ", decoded at full context" } else { "" };
        println!("  {}: {said:?} heard {:?}{again}: {meaning:?}", speaker.name(), heard.text);
    }
    Ok(())
}

/// Whether the text begins with the same words twice.
fn is_doubled(text: &str) -> bool {
    let plain = for_commands(text);
    let words: Vec<&str> = plain.split(' ').filter(|word| !word.is_empty()).collect();
    (1..=3).any(|unit| words.len() >= 2 * unit && words[..unit] == words[unit..2 * unit])
}

/// What a pair of glasses that nobody used before makes of the words.
fn meaning(phrases: &[String], text: &str) -> Meaning {
    let config = Config { wake_phrases: phrases.to_vec(), ..Config::default() };
    let mut conversation = Driver::new(Conversation::new(config));
    let now = Timestamp { mono_us: 1_000_000_000, wall_ms: 1_800_000_000_000, offset_s: 0 };
    let device = DeviceInfo {
        id: "bench".to_owned(),
        user: "bench".to_owned(),
        display: None,
        bitmaps: false,
        speaker: true,
        echo_cancelled: true,
        captions: false,
    };
    conversation.push(Input::Connected { device, resumed: false });
    conversation.push(Input::Voice(VoiceFact::SpeechStarted { utterance: 1, at_us: 0, voiced_us: 0 }));
    conversation.push(Input::Voice(VoiceFact::Ended { utterance: 1, at_us: 1_000_000 }));
    let (mut request, mut meaning) = (String::new(), Meaning::Overheard);
    while let Some(output) = conversation.poll_output(now) {
        match output {
            Output::Transcribe { utterance, revision, kind: kind @ TranscriptKind::Final, .. } => {
                let text = text.to_owned();
                let transcript = Transcript {
                    utterance,
                    revision,
                    kind,
                    text,
                    confidence: 0.9,
                    last_word: 0.9,
                    breaks_off: 0.0,
                    foreign: false,
                };
                conversation.push(Input::Transcript(transcript));
            }
            Output::MatchCommand { utterance, revision, text, .. } => {
                request = text;
                let (matched, vocabulary) = (CommandMatch::Exact, None);
                conversation.push(Input::CommandMatched { utterance, revision, matched, vocabulary });
            }
            Output::Chime(Chime::Attentive) => meaning = Meaning::Called,
            Output::RequestTurn { .. } => meaning = Meaning::Asked(request.clone()),
            _ => {}
        }
    }
    meaning
}

fn add(sum: &mut Counts, one: Counts) {
    sum.clips += one.clips;
    sum.retried += one.retried;
    sum.doubled += one.doubled;
    sum.alone.iter_mut().zip(one.alone).for_each(|(sum, one)| *sum += one);
    sum.requests.iter_mut().zip(one.requests).for_each(|(sum, one)| *sum += one);
    sum.talk.iter_mut().zip(one.talk).for_each(|(sum, one)| *sum += one);
    sum.cpu_us.extend(one.cpu_us);
    sum.alone_cpu_us.extend(one.alone_cpu_us);
}

fn show(name: &str, counts: &Counts) {
    let Counts { clips, retried, doubled, alone, requests, talk, cpu_us, alone_cpu_us } = counts;
    let seconds = |us: &[i64]| us.iter().sum::<i64>() as f64 / 1e6 / us.len().max(1) as f64;
    println!(
        "{name}: of {clips} clips {retried} at full context, {doubled} doubled; alone: {} of {} open the ear, {} taken for a command, \
         {:.3} s of processor time each; requests: {} of {} taken, {} word for word; talk: {} of {} taken for it; {:.3} s each",
        alone[0],
        alone[1],
        alone[2],
        seconds(alone_cpu_us),
        requests[0],
        requests[1],
        requests[2],
        talk[0],
        talk[1],
        seconds(cpu_us),
    );
}

/// The phrase alone, said to a gateway, two voices at a time: recognition of one does not wait for that of many.
async fn through_gateway(configurations: &[Vec<String>]) -> Result<()> {
    let mut opened = Vec::new();
    for phrases in configurations {
        let mut of_phrase = Vec::new();
        let gateway = TestGateway::start(&format!("[hearing]\nwake = \"text\"\nwake_phrases = {phrases:?}")).await?;
        let phrase = phrases.first().context("a phrase")?;
        for speakers in Speaker::asked_for()?.chunks(2) {
            let mut tasks = JoinSet::new();
            for speaker in speakers.iter().copied() {
                let glasses = gateway.glasses(gateway.options(Scheme::Ws, speaker.name())?, speaker.name()).await?;
                let (folder, text) = (gateway.folder.path().to_owned(), format!("{phrase}."));
                let pcm = tokio::task::spawn_blocking(move || speaker.say(&text, &folder)).await??;
                tasks.spawn(open_ear(glasses, pcm));
            }
            while let Some(done) = tasks.join_next().await {
                of_phrase.push(done??);
            }
        }
        gateway.running.stop().await;
        show_opened(phrase, &of_phrase);
        opened.extend(of_phrase);
    }
    show_opened("all", &opened);
    row("last voice -> the ear is open", opened.into_iter().flatten().collect());
    Ok(())
}

fn show_opened(name: &str, opened: &[Option<i64>]) {
    let late = opened.iter().flatten().filter(|us| **us > OPEN_MAX.as_micros() as i64).count();
    println!(
        "{name}: {} said alone, {late} opened later than {} ms, {} not at all",
        opened.len(),
        OPEN_MAX.as_millis(),
        opened.iter().filter(|us| us.is_none()).count()
    );
}

/// Microseconds from the last voiced sample to the sign that the ear is open; `None`: it did not open.
async fn open_ear(glasses: Glasses, pcm: Vec<i16>) -> Result<Option<i64>> {
    let mark = glasses.log().mark();
    let said = glasses.say_pcm("wake phrase", &pcm, None).await?;
    let opened = glasses.log().find(mark, |event| matches!(&event.seen, Seen::Chime { sound } if sound == "wake"));
    let opened = tokio::time::timeout(GIVEN_UP, opened).await.ok();
    glasses.goodbye().await;
    Ok(opened.map(|(event, _)| event.at_us as i64 - said.t0_us as i64))
}
