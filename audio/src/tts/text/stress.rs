//! Stress marks in phoneme strings, and the phoneme classes of the rules.

const PRIMARY: char = 'ˈ';
const SECONDARY: char = 'ˌ';
const VOWELS: &str = "AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻ";
const CONSONANTS: &str = "bdfhjklmnpstvwzðŋɡɹɾʃʒʤʧθ";
/// Diphthongs and affricates, which have weight two.
const HEAVY: &str = "AIOQWYʤʧ";

pub(super) fn is_vowel(c: char) -> bool {
    VOWELS.contains(c)
}

pub(super) fn is_consonant(c: char) -> bool {
    CONSONANTS.contains(c)
}

pub(super) fn has_primary(phonemes: &str) -> bool {
    phonemes.contains(PRIMARY)
}

fn has_stress(phonemes: &str) -> bool {
    phonemes.contains([PRIMARY, SECONDARY])
}

/// Weight of `phonemes` within a word.
pub(super) fn weight(phonemes: &str) -> usize {
    phonemes.chars().map(|c| if HEAVY.contains(c) { 2 } else { 1 }).sum()
}

/// For a letter-by-letter reading: only the last letter keeps its full stress.
pub(super) fn stress_last(phonemes: &str) -> String {
    let lowered = apply(phonemes, Some(0.0));
    match lowered.rfind(SECONDARY) {
        Some(at) => format!("{}{PRIMARY}{}", &lowered[..at], &lowered[at + SECONDARY.len_utf8()..]),
        None => lowered,
    }
}

/// Changes the stress of a word by `stress`: -2 removes it, -1 and -0.5 lower it, 0 to 1 add a secondary one where
/// there is none, 1 and 2 raise it. `None` leaves the word unchanged.
pub(super) fn apply(phonemes: &str, stress: Option<f32>) -> String {
    let Some(stress) = stress else {
        return phonemes.to_owned();
    };
    if stress < -1.0 {
        return phonemes.replace([PRIMARY, SECONDARY], "");
    }
    if stress == -1.0 || ((stress == 0.0 || stress == -0.5) && has_primary(phonemes)) {
        return phonemes.replace(SECONDARY, "").replace(PRIMARY, "ˌ");
    }
    if (0.0..=1.0).contains(&stress) && !has_stress(phonemes) {
        return before_first_vowel(SECONDARY, phonemes);
    }
    if stress >= 1.0 && !has_primary(phonemes) && phonemes.contains(SECONDARY) {
        return phonemes.replace(SECONDARY, "ˈ");
    }
    if stress > 1.0 && !has_stress(phonemes) {
        return before_first_vowel(PRIMARY, phonemes);
    }
    phonemes.to_owned()
}

fn before_first_vowel(mark: char, phonemes: &str) -> String {
    match phonemes.find(is_vowel) {
        Some(at) => format!("{}{mark}{}", &phonemes[..at], &phonemes[at..]),
        None => phonemes.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stress_moves() {
        assert_eq!(apply("ɹˈɛkˌɔɹd", Some(-2.0)), "ɹɛkɔɹd");
        assert_eq!(apply("ɹˈɛkˌɔɹd", Some(-0.5)), "ɹˌɛkɔɹd");
        assert_eq!(apply("ðə", Some(0.5)), "ðˌə");
        assert_eq!(apply("ðə", Some(2.0)), "ðˈə");
        assert_eq!(apply("ðˌə", Some(2.0)), "ðˈə");
        assert_eq!(apply("ʃ", Some(2.0)), "ʃ");
        assert_eq!(apply("ðə", None), "ðə");
        assert_eq!(stress_last("ˈɛfbˈiˈI"), "ˌɛfbˌiˈI");
    }
}
