//! The voice's text front end against that of its package on voice_text.tsv, by category, with the held-out half apart.
//! Without capture (`--nocapture`) it prints the table. Needs the voice's files.
#![cfg(feature = "tts")]

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use audio::tts::Voice;

const LIST: &str = include_str!("data/voice_text.tsv");
const REFERENCE: &str = include_str!("data/voice_text_reference.tsv");

/// Percent of the held-out phonemes that must agree.
const AGREEMENT_MIN: f64 = 99.0;

#[derive(Default, Clone, Copy)]
struct Count {
    sentences: usize,
    /// Sentences with exactly the package's phonemes.
    identical: usize,
    /// Sentences that the package misreads, read here exactly as the package reads them in words.
    on_purpose: usize,
    phonemes: usize,
    /// Levenshtein distance to the package's phonemes, without the sentences read otherwise on purpose.
    errors: usize,
}

impl Count {
    fn add(&mut self, other: Self) {
        self.sentences += other.sentences;
        self.identical += other.identical;
        self.on_purpose += other.on_purpose;
        self.phonemes += other.phonemes;
        self.errors += other.errors;
    }

    /// Share of the phonemes that agree, in percent.
    fn agreement(&self) -> f64 {
        100.0 - 100.0 * self.errors as f64 / self.phonemes.max(1) as f64
    }

    fn line(&self) -> String {
        format!(
            "{:4} sentences, {:4} identical, {:3} on purpose, {:3} different, phonemes {:6.2} %",
            self.sentences,
            self.identical,
            self.on_purpose,
            self.sentences - self.identical - self.on_purpose,
            self.agreement()
        )
    }
}

fn models() -> PathBuf {
    std::env::var_os("LORGNETTE_MODELS").map(PathBuf::from).unwrap_or_else(|| {
        PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".local/share/lorgnette/models")
    })
}

/// The ids of all stretches, one after another.
fn ids(stretches: &str) -> Vec<i32> {
    let ids = stretches.split_whitespace().filter(|id| *id != "|");
    ids.map(|id| id.parse().expect("the file holds integers")).collect()
}

fn distance(a: &[i32], b: &[i32]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = before + usize::from(left != right);
            before = row[j + 1];
            row[j + 1] = replaced.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Phonemes as letters, to be read by people.
fn letters(ids: &[i32]) -> String {
    let vocab = std::fs::read(models().join("hibari/vocab.json")).expect("the voice's vocabulary");
    let vocab: HashMap<char, i32> = serde_json::from_slice(&vocab).expect("a map of ids");
    let vocab: HashMap<i32, char> = vocab.into_iter().map(|(phoneme, id)| (id, phoneme)).collect();
    ids.iter().map(|id| vocab.get(id).copied().unwrap_or('?')).collect()
}

#[test]
fn phonemes_agree_with_the_package() {
    let voice = Voice::load(&models().join("hibari"))
        .unwrap_or_else(|error| panic!("{error}\nThe voice is missing: run `cargo xtask fetch` first."));
    let mut counts: BTreeMap<(bool, &str), Count> = BTreeMap::new();
    let rows = LIST.lines().filter(|line| !line.starts_with('#')).zip(REFERENCE.lines());
    for (n, (row, reference)) in rows.enumerate() {
        let is_held_out = n % 2 == 1;
        let columns: Vec<&str> = row.split('\t').collect();
        let expected: Vec<&str> = reference.split('\t').collect();
        let (category, sentence) = (columns[0], columns[1]);
        assert_eq!((sentence, columns.len()), (expected[0], expected.len()), "run voice_text.py again");
        let here = voice.phoneme_ids(sentence).expect("phonemes").concat();
        let package = ids(expected[1]);
        let errors = distance(&here, &package);
        assert!(errors > 0 || expected.len() == 2, "{sentence}: its words are not needed");
        let on_purpose = errors > 0 && expected.get(2).is_some_and(|said| ids(said) == here);
        if errors > 0 && !on_purpose && !is_held_out {
            println!("{sentence}\n  package {}\n  here    {}", letters(&package), letters(&here));
        }
        counts.entry((is_held_out, category)).or_default().add(Count {
            sentences: 1,
            identical: usize::from(errors == 0),
            on_purpose: usize::from(on_purpose),
            phonemes: package.len(),
            errors: if on_purpose { 0 } else { errors },
        });
    }
    let mut totals = [Count::default(); 2];
    for ((is_held_out, category), count) in &counts {
        let half = if *is_held_out { "held out" } else { "tuned" };
        println!("{half:8} {category:12} {}", count.line());
        totals[usize::from(*is_held_out)].add(*count);
    }
    println!("tuned    all          {}\nheld out all          {}", totals[0].line(), totals[1].line());
    assert_eq!(totals.map(|half| half.sentences), [345, 345], "half of the list is held out");
    assert_eq!(totals[0].errors, 0, "a sentence above sounds neither as the package reads it nor as its words");
    assert!(totals[1].agreement() >= AGREEMENT_MIN, "{:.2} %", totals[1].agreement());
}
