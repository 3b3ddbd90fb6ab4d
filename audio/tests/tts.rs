//! The voice against the reference: phoneme ids of whole sentences, spectra turned into samples, and invalid inputs.
//! Needs the voice's files.
#![allow(clippy::disallowed_methods, reason = "a test's own thread ends with it")]
#![cfg(feature = "tts")]

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use audio::tts::{CLAUSE_CHARS_MAX, Error, Voice};
use proptest::prelude::*;

const GOLDEN: &str = include_str!("data/tts_golden.tsv");

static VOICE: LazyLock<Arc<Voice>> = LazyLock::new(|| {
    let models = std::env::var_os("LORGNETTE_MODELS").map(PathBuf::from).unwrap_or_else(|| {
        PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".local/share/lorgnette/models")
    });
    match Voice::load(&models.join("hibari")) {
        Ok(voice) => Arc::new(voice),
        Err(error) => panic!("{error}\nThe voice is missing: run `cargo xtask fetch` first."),
    }
});

fn ids(chunk: &str) -> Vec<i32> {
    chunk.split_whitespace().map(|id| id.parse().expect("the golden file holds integers")).collect()
}

/// Sentences of the list in which the package mistakes or spells out a word: here they are read like the second
/// sentence.
const SAID_OTHERWISE: [(&str, &str); 13] = [
    ("Add 250 g of flour and 2 tsp of salt.", "Add 250 grams of flour and 2 teaspoons of salt."),
    ("The room is 20 m² in size.", "The room is 20 square meters in size."),
    ("See e.g. the manual, i.e. page 12.", "See for example the manual, that is page 12."),
    ("Cats vs. dogs, etc.", "Cats vs. dogs, et cetera."),
    ("I am 5'10\" tall.", "I am 5 foot 10 tall."),
    ("The next full moon is on Dec. 4.", "The next full moon is on December fourth."),
    ("Firmware 2.4.1 is installed.", "Firmware two point four point one is installed."),
    ("It is approx. 20 min. away.", "It is approximately 20 minutes away."),
    ("We meet on Mon. and Thurs. from 9-11.", "We meet on Monday and Thursday from 9 to 11."),
    ("The show ran from 1998-2003.", "The show ran from 1998 to 2003."),
    ("1/2 plus 1/4 equals 3/4.", "one half plus 1 quarter equals 3 quarters."),
    ("Call 555-0123 or 415-555-2671.", "Call 5 5 5, 0 1 2 3 or 4 1 5, 5 5 5, 2 6 7 1."),
    ("The score was 3-2.", "The score was 3 to 2."),
];

/// Every sentence of the list gives exactly the package's ids, except those above.
#[test]
fn phonemes_are_those_of_the_reference() {
    let mut equal = 0;
    let mut different = Vec::new();
    for line in GOLDEN.lines() {
        let (sentence, chunks) = line.split_once('\t').expect("a tab parts sentence and ids");
        let expected: Vec<Vec<i32>> = match SAID_OTHERWISE.iter().find(|(written, _)| *written == sentence) {
            Some((_, said)) => VOICE.phoneme_ids(said).unwrap(),
            None => chunks.split(" | ").map(ids).collect(),
        };
        let got = VOICE.phoneme_ids(sentence).unwrap();
        if got == expected {
            equal += 1;
        } else {
            different.push(format!("{sentence}\n  reference {expected:?}\n  here      {got:?}"));
        }
    }
    let total = equal + different.len();
    println!("{equal} of {total} sentences equal");
    assert!(total >= 160, "the list has shrunk to {total} sentences");
    assert!(different.is_empty(), "{equal} of {total} equal; different:\n{}", different.join("\n"));
}

/// The levels of 25 ms pieces agree with those of the package's own samples for the same sentence, where there is
/// sound. Noise differs, and the pieces of the two are offset by up to half a piece: hence 3 dB in the mean.
#[test]
fn levels_are_those_of_the_reference() {
    for line in include_str!("data/tts_levels.tsv").lines() {
        let (sentence, levels) = line.split_once('\t').expect("a tab parts sentence and levels");
        let levels: Vec<f32> = levels.split(' ').map(|level| level.parse().expect("a level in dB")).collect();
        let pcm = VOICE.synthesize(sentence, 1.0).unwrap();
        let got: Vec<f32> = pcm.chunks_exact(600).map(level_db).collect();
        // The reference starts with its silence, this voice a few milliseconds before the first sound.
        let best = (0..=levels.len().saturating_sub(got.len().saturating_sub(2)))
            .map(|shift| distance_db(&levels[shift.min(levels.len())..], &got))
            .min_by(f32::total_cmp)
            .expect("there is at least one shift");
        println!("{best:.2} dB apart: {sentence}");
        assert!(best < 3.0, "{best:.2} dB apart: {sentence}");
    }
}

fn level_db(samples: &[i16]) -> f32 {
    let power: f32 = samples.iter().map(|s| (f32::from(*s) / 32_768.0).powi(2)).sum::<f32>() / samples.len() as f32;
    10.0 * (power + 1e-10).log10()
}

/// Mean distance where either is louder than -45 dB.
fn distance_db(a: &[f32], b: &[f32]) -> f32 {
    let loud: Vec<f32> =
        a.iter().zip(b).filter(|(a, b)| **a > -45.0 || **b > -45.0).map(|(a, b)| (a - b).abs()).collect();
    loud.iter().sum::<f32>() / loud.len().max(1) as f32
}

#[test]
fn speech_starts_at_once_and_ends_without_clicks() {
    for text in ["Done.", "Timer set for ten minutes.", "Sorry?", "Zebra."] {
        let pcm = VOICE.synthesize(text, 1.0).unwrap();
        let first = pcm.iter().position(|sample| sample.unsigned_abs() > 164).expect("something is heard");
        assert!(first <= 24 * 40, "{text}: {} ms of silence", first / 24);
        assert_eq!((pcm.first(), pcm.last()), (Some(&0), Some(&0)), "{text}");
        let peak = pcm.iter().map(|sample| sample.unsigned_abs()).max();
        assert!(peak > Some(3_000), "{text}: peak {peak:?}");
    }
}

#[test]
fn the_same_clause_gives_the_same_samples() {
    let again = std::thread::spawn(|| VOICE.synthesize("Your timer is done.", 1.0).unwrap());
    assert_eq!(VOICE.synthesize("Your timer is done.", 1.0).unwrap(), again.join().unwrap());
}

#[test]
fn speed_changes_the_length() {
    let length = |speed| VOICE.synthesize("Your timer for the pasta is done.", speed).unwrap().len() as f32;
    let (slow, normal, fast) = (length(0.7), length(1.0), length(1.5));
    assert!(slow > normal * 1.2 && fast < normal * 0.85, "{slow} {normal} {fast}");
    assert_eq!(length(f32::NAN), normal);
}

#[test]
fn nothing_to_say_is_nothing() {
    for text in ["", "   ", "\n\n", "👍", "```", "...", "!?", "漢字", "***"] {
        assert!(VOICE.synthesize(text, 1.0).unwrap().is_empty(), "{text:?}");
    }
}

#[test]
fn length_is_bounded() {
    let error = VOICE.synthesize(&"word ".repeat(1_000), 1.0).unwrap_err();
    assert!(matches!(error, Error::TooLong { chars_max: CLAUSE_CHARS_MAX }), "{error}");
    let longest = "Many words make one long clause without any mark ".repeat(50);
    VOICE.phoneme_ids(&longest[..CLAUSE_CHARS_MAX]).unwrap();
    for hard in ["a".repeat(2_000), "9".repeat(2_000), "$".repeat(2_000), "1/".repeat(1_000), "'".repeat(2_000)] {
        VOICE.phoneme_ids(&hard).unwrap();
    }
}

#[test]
fn a_missing_or_damaged_file_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = Voice::load(dir.path()).err().expect("an empty folder holds no voice").to_string();
    assert!(error.contains("normalize.json") || error.contains("vocab.json"), "{error}");
    for name in Voice::FILES {
        std::fs::write(dir.path().join(name), b"\x08\x07not a model").unwrap();
    }
    let error = Voice::load(dir.path()).err().expect("these are no files of a voice").to_string();
    assert!(error.contains("damaged"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_panics(text in "\\PC{0,120}") {
        VOICE.phoneme_ids(&text).unwrap();
    }

    #[test]
    fn no_likely_text_panics(text in "([0-9]{0,3}[-$€%°:/.,' #*_@+=a-zA-Z]{1,2}){0,25}") {
        VOICE.phoneme_ids(&text).unwrap();
    }
}
