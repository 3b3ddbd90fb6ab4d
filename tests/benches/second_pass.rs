//! What a second pass makes of spoken commands, without the gateway.
//!
//! `cargo xtask bench second_pass [--table commands|more|more-held-out|free|free-held-out|misheard|unrelated]
//! [--voices others|NAME,NAME] [--first FILE] [--second FILE]`
//!
//! Sentences are said behind "Hey Mentra," in synthetic voices, coded as Opus at 24 kbit/s and decoded; where
//! the first text is no clear command, the sound is decoded again with the vocabulary of the tools, as the
//! gateway does, by the second model and then by the first, and a command as it stands counts; where it holds free text,
//! the second model decodes it again, and the surer text counts. The tables: the development table of the spoken commands;
//! a further one in two halves, of which one is never printed; the typed commands with free text, in the same halves;
//! the development half of the misheard sentences (`heard.tsv`); and everyday talk, of which nothing may fire.
//! Weights: tiny.en for the first pass, and for the second one what the gateway takes by default: whisper-base where
//! it was fetched, or else the same.

mod common;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use audio::asr::normalise::for_commands;
use audio::asr::{self, Decoder as Recogniser, Options};
use chat_models::ChatModel as _;
use chat_models::intents::{Decision, Engine};
use common::clips::CLIP_HZ;
use common::fixture;
use common::voices::{Speaker, coded};
use gateway_core::vocab::CommandMatch;
use serde_json::Value;

const COMMANDS: &str = include_str!("data/commands.tsv");
const MORE: &str = include_str!("data/commands-more.tsv");
const SENTENCES: &str = include_str!("../data/intents/sentences.tsv");
const HEARD: &str = include_str!("../data/intents/heard.tsv");
const UNRELATED: &str = include_str!("../data/intents/unrelated.txt");
/// Everyday sentences, a third for each voice.
const UNRELATED_SENTENCES: usize = 150;
/// Part of the first text's doubt that is left of the second's at most, as in `gateway_core`'s floor.
const DOUBT_LEFT_MAX: f32 = 0.9;
/// Arguments that the tools of the fixture take as free text.
const FREE_TEXTS: [&str; 3] = ["text", "query", "name"];
/// Silence in front, as the listener's pre-roll leaves it, and behind, as a pause begins.
const FRONT: usize = CLIP_HZ as usize / 2;
const BEHIND: usize = CLIP_HZ as usize * 3 / 10;

type Call = (String, Value);
type Row = (Speaker, String, Option<Call>);

fn main() -> Result<()> {
    common::calibrate("before")?;
    let (tools, engine, folder) = (fixture::tools(), Engine::new(), tempfile::tempdir()?);
    let phrases: Arc<[String]> = ["hey mentra", "ok mentra", "mentra"].map(str::to_owned).into();
    let mut recogniser = weights("--first", "whisper-tiny.en.bin")?.decoder()?;
    let second = weights("--second", "whisper-base.bin");
    let has_second = second.is_ok();
    let mut second_model = second.or_else(|_| common::engine())?.decoder()?;
    let printed = common::argument("--table").is_none_or(|table| !table.contains("held-out"));
    let mut by_voice: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let (mut times, mut times_second, mut times_third) = (Vec::new(), Vec::new(), Vec::new());
    let (mut clear, mut fired, mut wrong_tools) = (0, [0; 2], 0);
    for (speaker, sentence, expected) in table()? {
        let sound = coded(&speaker.say(&format!("Hey Mentra, {sentence}"), folder.path())?, FRONT, BEHIND)?;
        let options = Options { wake_phrases: phrases.clone(), ..Options::default() };
        let (first, confidence) = hear(&mut recogniser, &sound, options, &mut times)?;
        let match_command = |text: &str| engine.match_command(&fixture::request(text, &tools));
        let mut better = first.clone();
        if let Some(found) = match_command(&first) {
            let (wake_phrases, vocabulary) = (phrases.clone(), found.vocabulary);
            let options =
                || Options { wake_phrases: wake_phrases.clone(), vocabulary: vocabulary.clone(), ..Options::default() };
            let is_command =
                |text: &str| match_command(text).is_some_and(|found| found.matched >= CommandMatch::FreeText);
            clear += usize::from(found.matched >= CommandMatch::FreeText);
            match found.matched {
                CommandMatch::None | CommandMatch::Beginning | CommandMatch::Misheard | CommandMatch::Incomplete => {
                    let (second, _) = hear(&mut second_model, &sound, options(), &mut times_second)?;
                    if is_command(&second) {
                        better = second;
                    } else if has_second {
                        let (third, _) = hear(&mut recogniser, &sound, options(), &mut times_third)?;
                        better = if is_command(&third) { third } else { better };
                    }
                }
                CommandMatch::FreeText if has_second => {
                    let (second, sure) = hear(&mut second_model, &sound, options(), &mut times_second)?;
                    if sure >= 1.0 - DOUBT_LEFT_MAX * (1.0 - confidence) && is_command(&second) {
                        better = second;
                    }
                }
                CommandMatch::FreeText | CommandMatch::Exact | CommandMatch::Closed => {}
            }
        }
        let decide = |text: &str| match engine.decide(&fixture::request(text, &tools)) {
            Decision::Calls(mut calls) if calls.len() == 1 => calls.pop().map(|call| (call.name, call.arguments)),
            _ => None,
        };
        let calls = [decide(&first), decide(&better)];
        let counts = [1, usize::from(is_right(&expected, &calls[0])), usize::from(is_right(&expected, &calls[1]))];
        by_voice.entry(speaker.name()).or_default().iter_mut().zip(counts).for_each(|(sum, one)| *sum += one);
        for (count, call) in fired.iter_mut().zip(&calls) {
            *count += usize::from(expected.is_none() && call.is_some());
        }
        wrong_tools += usize::from(match (&expected, &calls[1]) {
            (Some((tool, _)), Some((called, _))) => tool != called,
            _ => false,
        });
        if printed && expected.is_some() && !is_right(&expected, &calls[1]) {
            println!("  {}: {sentence:?} first {first:?}, then {better:?}: {:?}", speaker.name(), calls[1]);
        }
    }
    let mut all = [0; 3];
    for (voice, counts) in &by_voice {
        all.iter_mut().zip(counts).for_each(|(sum, one)| *sum += one);
        show(voice, *counts);
    }
    show("all", all);
    println!("{clear} clear at first");
    println!("fired at first {}, with a second pass {}; wrong tools {wrong_tools}", fired[0], fired[1]);
    common::row("first hearing", times);
    common::row("second pass", times_second);
    common::row("third, by the first's weights", times_third);
    common::calibrate("after")
}

fn show(who: &str, [said, before, after]: [usize; 3]) {
    println!("{who}: {said} said, right at first {before}, with a second pass {after}");
}

fn weights(argument: &str, otherwise: &str) -> Result<asr::Engine> {
    let path = common::argument(argument).map_or_else(|| audio::models::default_dir().join(otherwise), Into::into);
    Ok(asr::Engine::load(&path, asr::Config::default())?)
}

fn said_by_all(sentence: &str, expected: &HashMap<String, Call>) -> Result<Vec<Row>> {
    let row = |speaker| (speaker, sentence.to_owned(), expected.get(sentence).cloned());
    Ok(Speaker::asked_for()?.into_iter().map(row).collect())
}

fn table() -> Result<Vec<Row>> {
    let mut expected: HashMap<String, Call> = HashMap::new();
    for line in COMMANDS.lines().chain(MORE.lines()).chain(SENTENCES.lines()).filter(|line| !line.starts_with('#')) {
        if let [sentence, tool, arguments] = line.split('\t').collect::<Vec<_>>()[..]
            && tool != "-"
        {
            expected.insert(sentence.to_owned(), (tool.to_owned(), serde_json::from_str(arguments)?));
        }
    }
    let mut rows = Vec::new();
    match common::argument("--table").as_deref() {
        Some("misheard") => {
            for line in HEARD.lines().filter(|line| !line.starts_with('#')) {
                let mut cells = line.split('\t');
                let (voice, sentence) = (cells.next().context("a voice")?, cells.next().context("a sentence")?);
                let speaker = Speaker::named(voice)?;
                if !fixture::is_held_out(sentence) {
                    rows.push((speaker, sentence.to_owned(), expected.get(sentence).cloned()));
                }
            }
        }
        Some(table @ ("free" | "free-held-out")) => {
            for line in SENTENCES.lines().filter(|line| !line.starts_with('#')) {
                let sentence = line.split('\t').next().unwrap_or_default();
                let call = expected.get(sentence);
                let has_free_text =
                    call.is_some_and(|(_, wanted)| FREE_TEXTS.iter().any(|name| wanted.get(name).is_some()));
                if has_free_text && fixture::is_held_out(sentence) == (table == "free-held-out") {
                    rows.extend(said_by_all(sentence, &expected)?);
                }
            }
        }
        Some(table @ ("more" | "more-held-out")) => {
            for line in MORE.lines().filter(|line| !line.starts_with('#')) {
                let sentence = line.split('\t').next().unwrap_or_default();
                if fixture::is_held_out(sentence) == (table == "more-held-out") {
                    rows.extend(said_by_all(sentence, &expected)?);
                }
            }
        }
        Some("unrelated") => {
            let talk = everyday();
            rows.extend(
                talk.into_iter().zip(Speaker::ALL.into_iter().cycle()).map(|(text, voice)| (voice, text, None)),
            );
        }
        _ => {
            for line in COMMANDS.lines().filter(|line| !line.starts_with('#')) {
                let sentence = line.split('\t').next().unwrap_or_default();
                rows.extend(said_by_all(sentence, &expected)?);
            }
        }
    }
    Ok(rows)
}

/// Sentences from the patterns of everyday talk; each use of a word list takes its next word.
fn everyday() -> Vec<String> {
    let lines = UNRELATED.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let is_list = |line: &str| line.split_once(": ").is_some_and(|(name, _)| !name.contains(' '));
    let (lists, patterns): (Vec<&str>, Vec<&str>) = lines.partition(|line| is_list(line));
    let lists: Vec<(&str, Vec<&str>)> = lists
        .iter()
        .filter_map(|list| list.split_once(": "))
        .map(|(name, words)| (name, words.split(", ").collect()))
        .collect();
    let mut used = 0;
    let mut out = Vec::new();
    for pattern in patterns.iter().cycle().take(UNRELATED_SENTENCES) {
        let mut text = (*pattern).to_owned();
        for (name, words) in &lists {
            while text.contains(&format!("{{{name}}}")) {
                used += 1;
                text = text.replacen(&format!("{{{name}}}"), words[used % words.len()], 1);
            }
        }
        out.push(text);
    }
    out
}

/// What stands behind the wake word; empty where it was not heard. The gateway knows it by its sound ("Kementra").
/// With it, how sure recognition is, 0 to 1.
fn hear(recogniser: &mut Recogniser, sound: &[i16], options: Options, times: &mut Vec<i64>) -> Result<(String, f32)> {
    let heard = recogniser.transcribe(sound, &options)?;
    times.push(heard.decode_us as i64);
    let behind = heard.text.split_once("entra").map_or("", |(_, behind)| behind);
    let text = behind.trim_start_matches([',', '.', '!', '?', ':', ' ']).to_owned();
    Ok((text, heard.confidence()))
}

fn is_right(expected: &Option<Call>, given: &Option<Call>) -> bool {
    let plain = |value: &Value| for_commands(&value.to_string()).replace(' ', "");
    match (expected, given) {
        (Some((tool, wanted)), Some((name, given))) => tool == name && plain(wanted) == plain(given),
        _ => false,
    }
}
