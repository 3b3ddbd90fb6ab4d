//! Terms for the router: lower case, without suffixes, without stop words.

/// Maximum bytes of a text: a description has at most 4 KiB, and longer utterances name the tool before that.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// Maximum bytes of one word: longer ones are not words.
const WORD_BYTES_MAX: usize = 40;

/// Stop words. Sorted.
const STOP_WORDS: &[&str] = &[
    "a", "about", "after", "again", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but",
    "by", "can", "could", "did", "do", "does", "doing", "don", "done", "down", "for", "from", "get", "give", "go",
    "going", "got", "had", "has", "have", "he", "her", "here", "him", "his", "how", "i", "if", "in", "into", "is",
    "it", "its", "just", "know", "let", "like", "ll", "m", "make", "may", "me", "more", "my", "need", "no", "not",
    "of", "off", "on", "one", "or", "our", "out", "please", "put", "re", "s", "see", "she", "should", "show", "so",
    "some", "still", "such", "t", "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "those", "to", "too", "under", "up", "us", "ve", "very", "want", "was", "we", "were", "what", "when",
    "where", "which", "while", "who", "why", "will", "with", "would", "you", "your",
];

/// The terms of a text, in order.
pub(super) fn of(text: &str) -> Vec<String> {
    let end = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let mut terms = Vec::new();
    let mut word = String::new();
    let mut last_lower = false;
    for letter in text[..end].chars().chain([' ']) {
        // `listTasks` is two words.
        if !letter.is_alphanumeric() || (letter.is_uppercase() && last_lower) {
            take(&mut word, &mut terms);
        }
        last_lower = letter.is_lowercase();
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
    }
    terms
}

fn take(word: &mut String, terms: &mut Vec<String>) {
    if !word.is_empty() && word.len() <= WORD_BYTES_MAX && STOP_WORDS.binary_search(&word.as_str()).is_err() {
        terms.push(stem(word));
    }
    word.clear();
}

/// Removes English suffixes: steps 1a, 1b and a part of 4 of the Porter stemmer (M. F. Porter, "An algorithm for suffix
/// stripping", 1980). It is simplified: texts and queries are treated alike, and a stem need not be a word.
fn stem(word: &str) -> String {
    if !word.is_ascii() || word.len() < 4 {
        return word.to_owned();
    }
    let mut stem = word;
    for (ending, instead) in [("sses", 2), ("ies", 1), ("ss", 2), ("us", 2), ("is", 2), ("s", 0)] {
        if let Some(rest) = stem.strip_suffix(ending) {
            stem = &stem[..rest.len() + instead];
            break;
        }
    }
    let long = |rest: &&str| rest.len() >= 3 && rest.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    for ending in ["ions", "ness", "ment", "ings", "ing", "ers", "ion", "est", "ed", "er", "or", "ly", "al"] {
        if let Some(rest) = stem.strip_suffix(ending).filter(long) {
            stem = rest;
            break;
        }
    }
    let bytes = stem.as_bytes();
    match bytes {
        // "running" is "run", but "call" and "pass" stay.
        [.., a, b] if a == b && bytes.len() > 3 && !b"lsz".contains(a) => stem = &stem[..stem.len() - 1],
        [.., b'e'] if bytes.len() > 3 => stem = &stem[..stem.len() - 1],
        _ => {}
    }
    match stem.strip_suffix('y').filter(long) {
        Some(rest) => format!("{rest}i"),
        None => stem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn forms_of_a_word_are_one_term() {
        for forms in [
            &["remind", "reminds", "reminder", "reminders", "reminding"][..],
            &["bright", "brighter", "brightness"],
            &["run", "running", "runs"],
            &["list", "lists", "listed", "listing"],
            &["translate", "translation", "translates"],
            &["city", "cities"],
            &["play", "playing", "played"],
            &["message", "messages"],
            &["call", "calling", "calls"],
        ] {
            let stems: Vec<_> = forms.iter().map(|form| stem(form)).collect();
            assert!(stems.windows(2).all(|pair| pair[0] == pair[1]), "{stems:?}");
        }
    }

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(of("google.calendar_listEvents"), of("Google calendar, list events!"));
        assert!(of("What is it that you can do?").is_empty());
        assert_eq!(of("Größe überall"), ["größe", "überall"]);
        assert!(of(&"x".repeat(100_000)).is_empty());
    }
}
