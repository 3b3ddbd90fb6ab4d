//! What is written in figures, units and signs sounds as it does in words: the language rows of tests/data/speakable.tsv,
//! by their phonemes. Needs the voice's files.
#![cfg(feature = "tts")]

use std::path::PathBuf;

use audio::tts::Voice;

const TABLE: &str = include_str!("../../tests/data/speakable.tsv");
/// Part of the phonemes that may differ: stress and pauses, which words in their place have too, differ a little.
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

/// Levenshtein's distance as a part of the longer one.
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

#[test]
fn figures_and_signs_sound_as_their_words_do() {
    let voice = voice();
    let (mut count, mut wrong) = ([0, 0], [Vec::new(), Vec::new()]);
    for line in TABLE.lines().filter(|line| line.starts_with("language\t")) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (written, said) = (columns[1], columns[3]);
        let half = usize::from(is_held_out(written));
        count[half] += 1;
        let ids = |text: &str| voice.phoneme_ids(text).expect("phonemes").concat();
        let distance = distance(&ids(written), &ids(said));
        if distance > DIFFERENT_MAX {
            wrong[half].push(format!("{written} | {said}: {distance:.2}"));
        }
    }
    println!("development {} of {} wrong, held out {} of {}", wrong[0].len(), count[0], wrong[1].len(), count[1]);
    assert!(count[0] >= 20 && count[1] >= 20, "{count:?}");
    assert!(wrong[0].len() <= WRONG_MAX[0], "{:#?}", wrong[0]);
    assert!(wrong[1].len() <= WRONG_MAX[1], "held out: {} of {}", wrong[1].len(), count[1]);
}

/// Known to be read otherwise, by half: docs/measurements.md names them.
const WRONG_MAX: [usize; 2] = [0, 0];
