//! Other pronunciations of a text. Synthetic voices say a word in one way each, people in many: a head that has heard one
//! vowel at the end of a phrase is deaf to the others.
//!
//! Phonemes are those of espeak-ng, in its own notation (its document `phonemes.md`).

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

/// Sounds of English, and what other speakers say for them. Near enough that a listener takes them for the same; no
/// vowel becomes one that tells words apart, as in "mentra" and "mantra".
const SOUNDS: [(&str, &[&str]); 24] = [
    ("eI", &["e:", "E:", "e"]),
    ("oU", &["o:", "O:", "o"]),
    ("aI", &["A:", "OI"]),
    ("A@", &["A:", "a#"]),
    ("O@", &["O:", "o:"]),
    ("o@", &["O:", "o:"]),
    ("e@", &["E:", "e:"]),
    ("i@", &["i:", "i"]),
    ("a#", &["@", "V", "a"]),
    ("t#", &["t", "d"]),
    ("A:", &["a", "O:"]),
    ("O:", &["O", "o:"]),
    ("u:", &["u", "U"]),
    ("i:", &["i", "I"]),
    ("3:", &["@", "E:"]),
    ("3", &["@", "V", "a#"]),
    ("@", &["V", "a#", "A:", "a"]),
    ("E", &["e", "E:", "E#"]),
    ("I", &["i", "i:"]),
    ("a", &["A:", "a#"]),
    ("0", &["O", "A:"]),
    ("V", &["a#", "A:", "U"]),
    ("D", &["d", "z"]),
    ("T", &["t", "s"]),
];

/// Consonants that fewer speakers say in another way.
const RARE: [(&str, &str); 3] = [("r", "R"), ("w", "v"), ("h", "")];

/// How often a sound, and one of the rare consonants, is another in an accent.
const CHANGED: f64 = 0.5;
const RARELY: f64 = 0.15;

/// How much of the words that end in `a` get an `h` behind it.
const OPEN_END: f64 = 0.5;

/// `phonemes` in the accent of this number: a sound is the same in all of them.
pub fn phonemes(phonemes: &str, accent: u64) -> String {
    let random = &mut SmallRng::seed_from_u64(accent);
    let mut changes: Vec<(&str, &str)> = SOUNDS
        .iter()
        .map(|(sound, others)| {
            let other = others[random.random_range(0..others.len())];
            (*sound, if random.random_bool(CHANGED) { other } else { *sound })
        })
        .collect();
    changes.extend(RARE.iter().filter(|_| random.random_bool(RARELY)));
    let (mut rest, mut out) = (phonemes, String::new());
    while let Some(first) = rest.chars().next() {
        // Two letters go before one.
        let known = changes.iter().filter(|(sound, _)| rest.starts_with(sound)).max_by_key(|(sound, _)| sound.len());
        let (from, to) = known.copied().unwrap_or((&rest[..first.len_utf8()], &rest[..first.len_utf8()]));
        out.push_str(to);
        rest = &rest[from.len()..];
    }
    out
}

/// `text` as it is spelled where a final `a` is open, in the accent of this number.
pub fn spelling(text: &str, accent: u64) -> String {
    if !SmallRng::seed_from_u64(accent).random_bool(OPEN_END) {
        return text.to_owned();
    }
    let word = |word: &str| {
        let letters = word.trim_end_matches(|letter: char| !letter.is_alphabetic());
        let marks = &word[letters.len()..];
        if letters.len() > 2 && letters.ends_with('a') { format!("{letters}h{marks}") } else { word.to_owned() }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn accents_differ_and_each_is_consistent() {
        let all: BTreeSet<String> = (0..200).map(|accent| phonemes("h'eI m'Entr@", accent)).collect();
        assert!(all.len() > 40 && all.contains("h'eI m'Entr@") && all.contains("h'eI m'Entra#"), "{all:?}");
        assert!(
            all.iter().all(|said| !said.contains("mAntr") && said.contains("ntr") | said.contains("ntR")),
            "{all:?}"
        );
        for accent in 0..50 {
            let (one, two) = (phonemes("m'Entr@", accent), phonemes("m'Entr@ m'Entr@", accent));
            assert_eq!(two, format!("{one} {one}"));
        }
        assert_eq!(phonemes("ü|", 3), "ü|");
    }

    #[test]
    fn an_open_end_is_spelled() {
        let all: BTreeSet<String> = (0..20).map(|accent| spelling("hey mentra, take a nova.", accent)).collect();
        let wanted = ["hey mentra, take a nova.", "hey mentrah, take a novah."];
        assert_eq!(all, wanted.map(str::to_owned).into());
    }
}
