//! Phonetic match: words that a recogniser may have written for a spoken word, and the cost of each substitution.

use super::language::Kinds;

/// A word that sounds the same: hardly in doubt.
const HOMOPHONE: f32 = 0.3;
/// The word with another ending: "reminds" for "remind".
const INFLECTED: f32 = 0.4;
/// Two words for one: "can sell" for "cancel".
const SPLIT: f32 = 0.5;
/// One small word for another: "of" for "at".
const SMALL: f32 = 0.5;
/// A word with nearly the same spelling or sound.
const ALIKE: f32 = 0.75;
/// Shorter words are too similar to allow different letters.
const LETTERS_MIN: usize = 4;
/// Shorter words with an ending are other words.
const STEM_MIN: usize = 5;
/// One letter in this many may differ.
const LETTERS_PER_MISTAKE: usize = 3;
/// Letters that may differ if the consonants sound the same.
const SAME_SOUND_LETTERS_MAX: usize = 2;

/// Cost of reading `heard` as `word`; `None` if implausible. The words differ. Next to a free text, which could be
/// anything (`strict`), only equal sound counts.
pub(super) fn cost(word: &str, heard: &str, strict: bool, kinds: &Kinds) -> Option<f32> {
    if kinds.homophones.iter().any(|group| group.contains(&word) && group.contains(&heard)) {
        return Some(HOMOPHONE);
    }
    let (letters, others) = (word.len(), heard.len());
    if letters < LETTERS_MIN || others < LETTERS_MIN || letters.abs_diff(others) > 3 || !word.is_ascii() {
        return None;
    }
    if kinds.inflections.iter().any(|ending| heard.strip_suffix(*ending) == Some(word)) {
        return Some(INFLECTED);
    }
    if letters.min(others) >= STEM_MIN
        && letters.abs_diff(others) <= 2
        && (word.starts_with(heard) || heard.starts_with(word))
    {
        return Some(INFLECTED);
    }
    if strict {
        return None;
    }
    let mistakes = strsim::osa_distance(word, heard);
    let alike = mistakes <= letters / LETTERS_PER_MISTAKE
        || (mistakes <= SAME_SOUND_LETTERS_MAX && kinds.sounds_english && same_sound(word, heard));
    alike.then_some(ALIKE)
}

/// Cost of reading one small word as another.
pub(super) fn small_cost() -> f32 {
    SMALL
}

/// Cost of reading two words as `word`.
pub(super) fn split_cost(word: &str, first: &str, second: &str, kinds: &Kinds) -> Option<f32> {
    if word.len() < LETTERS_MIN || second.is_empty() {
        return None;
    }
    // The "t" of "can't" is inaudible before another consonant.
    let joined = [first.trim_end_matches("'t"), second].concat();
    if joined == word {
        return Some(HOMOPHONE);
    }
    (kinds.sounds_english && joined.len().abs_diff(word.len()) <= 2 && begins_alike(word, &joined)).then_some(SPLIT)
}

/// Whether the consonants of `joined` are those of `word`, with at most one more at the end.
fn begins_alike(word: &str, joined: &str) -> bool {
    let (meant, heard) = (consonants(word), consonants(joined));
    // Too many words fit fewer consonants.
    const CONSONANTS_MIN: usize = 4;
    meant.len() >= CONSONANTS_MIN && heard.starts_with(&meant) && heard.len() <= meant.len() + 1
}

/// The Double Metaphone code of a word; empty if it does not apply.
fn consonants(word: &str) -> String {
    use rphonetic::{DoubleMetaphone, Encoder};
    let ascii = word.bytes().all(|byte| byte.is_ascii_lowercase());
    if ascii { DoubleMetaphone::new(Some(8)).encode(word) } else { String::new() }
}

/// Whether the consonants sound the same.
fn same_sound(one: &str, other: &str) -> bool {
    let meant = consonants(one);
    !meant.is_empty() && meant == consonants(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intents::language::Language;

    fn kinds() -> &'static Kinds {
        &Language::english().kinds
    }

    #[test]
    fn words_are_alike_by_sound_or_letters() {
        for (word, heard, expected) in [
            ("read", "red", Some(HOMOPHONE)),
            ("write", "right", Some(HOMOPHONE)),
            ("for", "4", Some(HOMOPHONE)),
            ("remind", "reminds", Some(INFLECTED)),
            ("turn", "turned", Some(INFLECTED)),
            ("stop", "stops", Some(INFLECTED)),
            ("turn", "tuned", None),
            ("remind", "remained", Some(ALIKE)),
            ("timer", "time", Some(ALIKE)),
            ("brightness", "brightest", Some(ALIKE)),
            ("note", "vote", Some(ALIKE)),
            ("note", "mode", None),
            ("set", "see", None),
            ("battery", "matter", Some(ALIKE)),
            ("camera", "canoe", None),
            ("photo", "photograph", None),
        ] {
            assert_eq!(cost(word, heard, false, kinds()), expected, "{word} {heard}");
            let strict = expected.filter(|cost| *cost < ALIKE);
            assert_eq!(cost(word, heard, true, kinds()), strict, "{word} {heard}");
        }
    }

    #[test]
    fn a_word_may_come_in_two() {
        assert_eq!(split_cost("cancel", "can", "sell", kinds()), Some(SPLIT));
        assert_eq!(split_cost("cancel", "can't", "solve", kinds()), Some(SPLIT));
        assert_eq!(split_cost("remind", "re", "mind", kinds()), Some(HOMOPHONE));
        assert_eq!(split_cost("snapshot", "snap", "shot", kinds()), Some(HOMOPHONE));
        assert_eq!(split_cost("cancel", "can", "", kinds()), None);
        assert_eq!(split_cost("cancel", "can", "you", kinds()), None);
        assert_eq!(split_cost("cancel", "can", "see", kinds()), None);
        assert_eq!(split_cost("set", "s", "et", kinds()), None);
    }
}
