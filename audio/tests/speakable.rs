//! Figures, units and signs sound as the same text in words: the language rows of tests/data/speakable.tsv, compared by
//! phonemes. Needs the voice's files.
#![cfg(feature = "tts")]

use std::path::PathBuf;

use audio::tts::Voice;

const TABLE: &str = include_str!("../../tests/data/speakable.tsv");
/// Share of the phonemes that may differ: stress and pauses depend slightly on the surrounding words.
const DIFFERENT_MAX: f64 = 0.12;

fn voice() -> Voice {
    let models = std::env::var_os("LORGNETTE_MODELS").map(PathBuf::from).unwrap_or_else(|| {
        PathBuf::from(std::env::var_os("HOME").expect("HOME is set")).join(".local/share/lorgnette/models")
    });
    match Voice::load(&models.join("hibari")) {
        Ok(voice) => voice,
        Err(error) => panic!("{error}\nThe voice is missing: run `cargo xtask fetch` first."),
    }
}

/// FNV-1a, 64 bits: <http://www.isthe.com/chongo/tech/comp/fnv/>.
fn is_held_out(text: &str) -> bool {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step) & 1 == 1
}

/// Levenshtein distance as a share of the longer sequence.
fn distance(a: &[i32], b: &[i32]) -> f64 {
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
    row[b.len()] as f64 / a.len().max(b.len()).max(1) as f64
}

/// The sounds of a text, stretch after stretch.
fn ids(voice: &Voice, text: &str) -> Vec<i32> {
    voice.phoneme_ids(text).expect("phonemes").concat()
}

/// Rows that the voice reads differently, with the reason. A row listed here that sounds right also fails the test.
const EXPECTED_MISSES: &[(&str, &str)] = &[
    ("on 24.12.2027", "a year in figures has another stress than in words"),
    ("4 × 6 inches", "units that are written out do not tell dimensions from products"),
    ("a 2.5 kg roast", "a decimal in figures has another stress than in words"),
    ("Oct–Dec", "the second month stays short"),
    ("on Mon. Sept. 7", "without the pause of a comma"),
];

/// In `exact` rows each sound counts: a plural is one sound.
#[test]
fn figures_and_signs_sound_as_their_words_do() {
    let voice = voice();
    let mut count = [0, 0];
    let mut missed = Vec::new();
    for line in TABLE.lines() {
        let most = match line.split_once('\t') {
            Some(("language", _)) => DIFFERENT_MAX,
            Some(("exact", _)) => 0.0,
            _ => continue,
        };
        let columns: Vec<&str> = line.split('\t').collect();
        let [_, written, _, said] = columns.as_slice() else { panic!("four columns: {line}") };
        count[usize::from(is_held_out(written))] += 1;
        let distance = distance(&ids(&voice, written), &ids(&voice, said));
        if distance > most {
            println!("{written} | {said}: {distance:.2}, held out: {}", is_held_out(written));
            missed.push(*written);
        }
    }
    println!("{} of {} rows missed", missed.len(), count[0] + count[1]);
    assert!(count[0] >= 20 && count[1] >= 20, "{count:?}");
    let expected: Vec<&str> = EXPECTED_MISSES.iter().map(|(written, _)| *written).collect();
    assert_eq!(missed, expected);
}

/// Rows of the held-out table that sound different from their words; only their number is checked.
const HELD_OUT_MISSED: usize = 4;
/// The same for the table's second part, where each sound counts.
const EXACT_MISSED: usize = 2;
/// The classes of the second part.
const EXACT_CLASSES: [&str; 5] = ["version", "dimension", "ratio", "attributive", "short"];

#[test]
fn language_of_the_held_out_table() {
    let voice = voice();
    let table = include_str!("../../tests/data/speakable_held_out.tsv");
    let (mut rows, mut missed) = ([0, 0], [0, 0]);
    for line in table.lines().filter(|line| !line.starts_with('#') && !line.ends_with("\t-")) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [class, _, plain, words] = columns.as_slice() else { panic!("four columns: {line}") };
        let sounds = ids(&voice, plain.split(" || ").next().unwrap_or_default());
        let exact = EXACT_CLASSES.contains(class);
        let most = if exact { 0.0 } else { DIFFERENT_MAX };
        rows[usize::from(exact)] += 1;
        let right = words.split(" || ").any(|words| distance(&sounds, &ids(&voice, words)) <= most);
        missed[usize::from(exact)] += usize::from(!right);
    }
    assert_eq!((rows, missed), ([78, 48], [HELD_OUT_MISSED, EXACT_MISSED]));
}
