//! What recognition makes of the sentences of the offline engine, in three synthetic voices.
//!
//! `cargo xtask bench heard > tests/data/intents/heard.tsv`
//!
//! Each command of `tests/data/intents/sentences.tsv` is said behind "Hey Mentra,", coded as Opus at 24 kbit/s
//! and decoded with the shipped weights, prompt and contexts. A line is printed where recognition did not
//! write the sentence word for word: voice, sentence, what was heard behind the wake word. The table
//! gives the engine's tests real mishearings without a recogniser.

mod common;

use std::thread;

use anyhow::{Context as _, Result, anyhow};
use audio::asr::Options;
use audio::asr::normalise::for_commands;
use common::clips::CLIP_HZ;
use common::voices::{Speaker, coded};

const SENTENCES: &str = include_str!("../data/intents/sentences.tsv");
/// Silence in front and behind, as the listener's pre-roll and pause leave it: half a second.
const AROUND: usize = CLIP_HZ as usize / 2;
/// The wake word ends at a mark of punctuation within so many letters, or was not heard.
const WAKE_BYTES_MAX: usize = 20;

fn main() -> Result<()> {
    let commands: Vec<&str> = SENTENCES
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (sentence, rest) = line.split_once('\t')?;
            (!rest.starts_with('-')).then_some(sentence)
        })
        .collect();
    let engine = common::engine()?;
    let folder = tempfile::tempdir()?;
    println!("# Voice, sentence, what recognition wrote instead. Made by `cargo xtask bench heard`.");
    let tables = thread::scope(|scope| {
        let speakers = Speaker::ALL.map(|speaker| {
            let (engine, commands, folder) = (&engine, &commands, folder.path());
            scope.spawn(move || -> Result<Vec<String>> {
                let phrases = ["hey mentra", "ok mentra", "mentra"].map(str::to_owned);
                let options = Options { wake_phrases: phrases.into(), ..Options::default() };
                let mut decoder = engine.decoder()?;
                let mut lines = Vec::new();
                for sentence in commands {
                    let clean = speaker.say(&format!("Hey Mentra, {sentence}"), folder)?;
                    let heard = decoder.transcribe(coded(&clean, AROUND, AROUND)?.as_slice(), &options)?.text;
                    let behind = behind_wake(&heard);
                    if behind.is_none_or(|text| for_commands(text) != for_commands(sentence)) {
                        lines.push(format!("{}\t{sentence}\t{}", speaker.name(), behind.unwrap_or("-")));
                    }
                }
                Ok(lines)
            })
        });
        speakers.map(|thread| thread.join().map_err(|_| anyhow!("a speaker panicked")))
    });
    for table in tables {
        for line in table?.context("saying the sentences")? {
            println!("{line}");
        }
    }
    Ok(())
}

fn behind_wake(heard: &str) -> Option<&str> {
    let at = heard.find([',', '.', '!', '?', ':']).filter(|at| *at <= WAKE_BYTES_MAX)?;
    let rest = heard.get(at + 1..)?.trim();
    (!rest.is_empty()).then_some(rest)
}
