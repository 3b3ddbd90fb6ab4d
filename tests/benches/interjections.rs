//! What becomes of short words that are said over an answer, without the gateway.
//!
//! `cargo xtask bench interjections [--voices others|NAME,NAME] [--phases 3] [--second FILE]`
//!
//! Each row of `data/interjections.tsv` in each voice, with white noise 30 dB below it, coded as Opus at 24 kbit/s so many times, each time a
//! fraction of a packet later, with the silence around it that a pause has; decoded as the gateway does, behind the usual prompt;
//! and, where the first text is neither a stop nor an "okay", decoded again with the vocabulary of the tools: a stop counts then. It
//! counts what is taken for a stop, for an "okay" and for anything else, and prints what is taken for another thing than it means.
//! Weights: tiny.en, for both passes; `--second` is a file in the folder of models.

mod common;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use audio::asr::{self, Decoder as Recogniser, Options};
use chat_models::ChatModel as _;
use chat_models::intents::Engine;
use common::clips::CLIP_HZ;
use common::voices::{Speaker, coded, noisy};
use common::{argument, fixture, number};

const TABLE: &str = include_str!("data/interjections.tsv");
/// Silence in front, as the listener's pre-roll leaves it, and behind, as a pause begins.
const FRONT: usize = CLIP_HZ as usize * 3 / 10;
const BEHIND: usize = CLIP_HZ as usize / 5;
/// Samples of a packet.
const PACKET: usize = CLIP_HZ as usize / 50;
const NOISE_DB: f32 = 30.0;
const WEIGHTS: &str = "whisper-tiny.en.bin";

/// How often words of a meaning are taken for what, by the first text and behind the second one.
type Counts = BTreeMap<&'static str, [BTreeMap<&'static str, usize>; 2]>;

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let phases = number("--phases", 3)? as usize;
    let first =
        Options { wake_phrases: ["hey mentra", "ok mentra", "mentra"].map(str::to_owned).into(), ..Options::default() };
    let matched = Engine::new().match_command(&fixture::request("frobnicate", &fixture::tools()));
    let again = Options { vocabulary: matched.context("a matcher")?.vocabulary, ..first.clone() };
    let mut recogniser = weights(WEIGHTS)?;
    let mut second = weights(&argument("--second").unwrap_or_else(|| WEIGHTS.to_owned()))?;
    let mut counts = Counts::new();
    for speaker in Speaker::asked_for()? {
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let (meaning, words) = line.split_once('\t').context("a meaning and words")?;
            let said = noisy(&speaker.say(words, folder.path())?, NOISE_DB);
            for phase in 0..phases {
                let sound = coded(&said, FRONT + phase * PACKET / phases, BEHIND)?;
                let text = hear(&mut recogniser, &sound, &first)?;
                let taken = taken_for(&text);
                let mut better = text.clone();
                if taken == OTHER {
                    let text = hear(&mut second, &sound, &again)?;
                    better = if gateway_core::is_cancel(&text) { text } else { better };
                }
                let [before, behind] = counts.entry(meaning).or_default();
                *before.entry(taken).or_default() += 1;
                *behind.entry(taken_for(&better)).or_default() += 1;
                if taken_for(&better) != meaning {
                    println!("  {}: {words:?} first {text:?}, then {better:?}", speaker.name());
                }
            }
        }
    }
    for (meaning, [first, second]) in counts {
        println!("{meaning}: by the first text {first:?}, behind a second pass {second:?}");
    }
    Ok(())
}

const OTHER: &str = "other";

fn taken_for(text: &str) -> &'static str {
    if gateway_core::is_cancel(text) {
        "stop"
    } else if gateway_core::is_backchannel(text) {
        "listens"
    } else {
        OTHER
    }
}

fn weights(file: &str) -> Result<Recogniser> {
    Ok(asr::Engine::load(&audio::models::default_dir().join(file), asr::Config::default())?.decoder()?)
}

fn hear(recogniser: &mut Recogniser, sound: &[i16], options: &Options) -> Result<String> {
    Ok(recogniser.transcribe(sound, options)?.text)
}
