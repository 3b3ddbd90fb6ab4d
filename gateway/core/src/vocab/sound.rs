//! Phonetic similarity of two spellings: a small phonetic key, a weighted edit distance, and names recognised by their
//! sound.
//!
//! Recognisers spell an unknown name in many ways ("Mantra", "Hemantra", "Him andra"), but the consonants stay. So
//! vowels are cheap to change, voiced and unvoiced pairs almost free, and other consonants expensive. Distances are in
//! tenths of an expensive change (Levenshtein with weights).

use alloc::{string::String, vec, vec::Vec};

/// Cost of a change between unrelated sounds, and of an extra or missing consonant.
const DEAR: u16 = 10;
/// Words beyond a name's own that a recogniser may split it into: "kit chen clock".
const EXTRA_WORDS: usize = 2;
/// Limits of the accepted distance: the least, for however short a name, and the greatest. Between them, a tenth of an
/// expensive change for each of its sounds: "captains" matches the captions, and "today" does not match the todo.
const OFF_MAX: core::ops::RangeInclusive<usize> = 3..=10;

/// A name, recognised however a recogniser spells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    letters: String,
    sounds: Vec<u8>,
    words: usize,
}

impl Name {
    /// Prepares a name from its spelling.
    pub fn new(name: &str) -> Self {
        let letters = letters(name);
        Self { sounds: key(&letters), letters, words: words(name).count() }
    }

    /// Most words that it may be recognised as; 0 if it has no letters and no digits.
    pub fn words_max(&self) -> usize {
        if self.letters.is_empty() { 0 } else { self.words + EXTRA_WORDS }
    }

    /// Distance of a recognised text from the name, in tenths of an expensive change; 0 if it sounds the same, `None`
    /// if it is something else.
    pub fn distance(&self, heard: &str) -> Option<u16> {
        let heard = letters(heard);
        if heard == self.letters {
            return (!heard.is_empty()).then_some(0);
        }
        // Digits have no sounds here: another "Route" with other digits must not match "Route 66".
        let digits = |text: &str| text.bytes().any(|letter| letter.is_ascii_digit());
        if self.sounds.is_empty() || digits(&self.letters) || digits(&heard) {
            return None;
        }
        let most = self.sounds.len().clamp(*OFF_MAX.start(), *OFF_MAX.end());
        let off = distance(&self.sounds, &key(&heard));
        (usize::from(off) <= most).then_some(off)
    }
}

/// Letters and digits only, in lower case; small words that are also numbers are spelled as words.
fn letters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in words(text) {
        let lower: String = word.chars().flat_map(char::to_lowercase).collect();
        out.push_str(match lower.as_str() {
            "2" | "two" | "too" => "to",
            "4" | "four" => "for",
            other => other,
        });
    }
    out
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && !matches!(letter, '\'' | '\u{2019}'))
        .map(|word| word.trim_matches(['\'', '\u{2019}']))
        .filter(|word| !word.is_empty())
}

/// The sounds of a spelling, one byte each; doubled letters count once.
pub fn key(text: &str) -> Vec<u8> {
    let letters: Vec<u8> = text.chars().filter_map(plain_letter).map(|letter| letter.to_ascii_lowercase()).collect();
    let mut sounds = Vec::with_capacity(letters.len());
    let mut rest = letters.as_slice();
    while let [first, tail @ ..] = rest {
        let next = tail.first().copied().unwrap_or(0);
        let (sound, used): (&[u8], usize) = match (first, next) {
            (b't', b'h') => (b"0", 2),
            (b'p', b'h') => (b"f", 2),
            (b's' | b'c', b'h') => (b"X", 2),
            (b'w', b'h') => (b"w", 2),
            (b'c', b'e' | b'i' | b'y') => (b"s", 1),
            (b'c' | b'q', _) => (b"k", 1),
            (b'x', _) => (b"ks", 1),
            (b'z', _) => (b"s", 1),
            _ => (core::slice::from_ref(first), 1),
        };
        for &one in sound {
            if sounds.last() != Some(&one) {
                sounds.push(one);
            }
        }
        rest = rest.get(used..).unwrap_or_default();
    }
    sounds
}

fn plain_letter(letter: char) -> Option<u8> {
    match letter {
        'à'..='å' | 'À'..='Å' => Some(b'a'),
        'è'..='ë' | 'È'..='Ë' => Some(b'e'),
        'ì'..='ï' | 'Ì'..='Ï' => Some(b'i'),
        'ò'..='ö' | 'Ò'..='Ö' => Some(b'o'),
        'ù'..='ü' | 'Ù'..='Ü' => Some(b'u'),
        _ if letter.is_ascii_alphabetic() => u8::try_from(letter).ok(),
        _ => None,
    }
}

/// Cost of recognising `heard` where `meant` was spoken.
pub fn distance(meant: &[u8], heard: &[u8]) -> u16 {
    let mut row: Vec<u16> = Vec::with_capacity(heard.len() + 1);
    row.push(0);
    for &sound in heard {
        let before = row.last().copied().unwrap_or(0);
        row.push(before.saturating_add(gap(sound)));
    }
    for (index, &wanted) in meant.iter().enumerate() {
        let following = meant.get(index + 1).copied();
        // Recognisers add sounds at the end of a name: "Trev", "Mantras".
        let at_end = following.is_none();
        let mut next = vec![row.first().copied().unwrap_or(0) + missing(wanted, following)];
        for (column, &sound) in heard.iter().enumerate() {
            let last = at_end && column + 1 == heard.len();
            let changed = cell(&row, column).saturating_add(change(wanted, sound));
            let dropped = cell(&row, column + 1).saturating_add(missing(wanted, following));
            let extra = if last { gap(sound).min(6) } else { gap(sound) };
            let added = cell(&next, column).saturating_add(extra);
            next.push(changed.min(dropped).min(added));
        }
        row = next;
    }
    row.last().copied().unwrap_or(u16::MAX)
}

fn cell(row: &[u16], column: usize) -> u16 {
    row.get(column).copied().unwrap_or(u16::MAX)
}

fn is_vowel(sound: u8) -> bool {
    matches!(sound, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

/// Cost of an extra sound.
fn gap(sound: u8) -> u16 {
    match sound {
        _ if is_vowel(sound) => 3,
        b'h' => 4,
        _ => DEAR,
    }
}

/// Cost of a missing sound. A nasal before a stop is easily lost ("Metra").
fn missing(sound: u8, following: Option<u8>) -> u16 {
    match (sound, following) {
        (b'n' | b'm', Some(b't' | b'd' | b'k' | b'g' | b'p' | b'b')) => 6,
        _ => gap(sound),
    }
}

fn change(meant: u8, heard: u8) -> u16 {
    if meant == heard {
        return 0;
    }
    if is_vowel(meant) && is_vowel(heard) {
        return 2;
    }
    match (meant.min(heard), meant.max(heard)) {
        (b'd', b't') | (b'b', b'p') | (b'g', b'k') | (b'f', b'v') => 3,
        (b'm', b'n') => 4,
        (b'l', b'r') | (b'0', b't') | (b'X', b's') => 6,
        _ => DEAR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_by_its_sound() {
        for (name, heard, expected) in [
            ("Todo", "to do", Some(0)),
            ("Todo", "To-do", Some(0)),
            ("Todo", "two do", Some(0)),
            ("Todo", "2 do", Some(0)),
            ("Todo", "today", None),
            ("Todo", "door", None),
            ("Kitchen Clock", "kit chen clock", Some(0)),
            ("Kitchen Clock", "kitchen clog", Some(3)),
            ("Kitchen Clock", "kitchen", None),
            ("Kitchen Clock", "the clock", None),
            ("Chess", "chest", None),
            ("Chess", "Jess", None),
            ("Captions", "captains", Some(4)),
            ("Weather", "whether", Some(3)),
            ("Moby Dick", "Mobi Dig", Some(5)),
            ("2048", "2048", Some(0)),
            ("2048", "2049", None),
            ("Route 66", "route 60", None),
            ("\u{68cb}", "\u{68cb}", Some(0)),
            ("!", "", None),
        ] {
            assert_eq!(Name::new(name).distance(heard), expected, "{name} {heard}");
        }
        assert_eq!((Name::new("Kitchen Clock").words_max(), Name::new("?!").words_max()), (4, 0));
    }

    #[test]
    fn key_joins_letters_that_are_one_sound() {
        assert_eq!(key("Philips Church"), b"filipsXurX");
        assert_eq!(key("Back-Quay thé"), b"bakuay0e".to_vec());
        assert_eq!(key("O.K., mammoth"), b"okmamo0");
        assert_eq!(key("city, cent, tax, zoo, back"), b"sitysentaksobak");
        assert_eq!(key("à È ì Ö ü"), b"aeiou");
    }

    #[test]
    fn distance_is_small_for_what_sounds_alike() {
        let meant = key("hey mentra");
        for (heard, most) in [
            ("heymentra", 0),
            ("hey mantra", 2),
            ("hemantra", 5),
            ("him andra", 10),
            ("hey man Trev", 10),
            ("hey metra", 6),
        ] {
            let found = distance(&meant, &key(heard));
            assert!(found <= most, "{heard}: {found}");
        }
        for (heard, least) in [("hey mandy", 12), ("hey entry", 12), ("hey martha", 20)] {
            let found = distance(&meant, &key(heard));
            assert!(found >= least, "{heard}: {found}");
        }
        for (meant, heard, costs) in
            [("ma", "mah", 4), ("ma", "na", 4), ("la", "ra", 6), ("tha", "ta", 6), ("a", "as", 6), ("a", "ama", 13)]
        {
            assert_eq!(distance(&key(meant), &key(heard)), costs, "{meant} {heard}");
        }
        assert_eq!(distance(&[], &key("ma")), 13);
        assert_eq!(distance(&key("ma"), &[]), 13);
    }
}
