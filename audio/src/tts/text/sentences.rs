//! Splits text into sentences, and phonemes into stretches for the network.

use std::collections::HashSet;

use super::abbreviations;

const CLOSERS: &[char] = &['"', '”', '’', ')', ']'];
const ENDS: &[char] = &['.', '!', '?', '…'];
const CLAUSE_MARKS: &[char] = &[',', ';', ':', '—'];

/// Sentences of `text`. A line break ends one, and so does an end mark followed by white space, except after a title,
/// an initial or an abbreviation that never ends a sentence, before a small letter, or in "No. 5". A street ends one, a
/// saint does not: both are "St.".
pub(super) fn split<'t>(text: &'t str, titles: &HashSet<String>) -> Vec<&'t str> {
    let mut sentences = Vec::new();
    for line in text.lines().map(str::trim) {
        let mut start = 0;
        for (at, mark) in line.char_indices().filter(|(_, c)| ENDS.contains(c)) {
            let end = at + mark.len_utf8();
            let rest = &line[end..];
            let after_closers = rest.trim_start_matches(CLOSERS);
            let next = after_closers.trim_start();
            if next.len() == after_closers.len() || end <= start {
                continue;
            }
            if next.chars().next().is_some_and(|c| !c.is_lowercase())
                && (mark != '.' || ends(&line[..at], next, titles))
            {
                sentences.push(&line[start..end]);
                start = line.len() - next.len();
            }
        }
        sentences.push(&line[start..]);
    }
    sentences.retain(|sentence| !sentence.trim().is_empty());
    sentences
}

/// Whether a period between `before` and `next` ends a sentence.
fn ends(before: &str, next: &str, titles: &HashSet<String>) -> bool {
    let (earlier, word) = before.rsplit_once(' ').unwrap_or(("", before));
    let word = word.trim_start_matches(['(', '"', '“', '\'', '‘']);
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    let number = matches!(word, "No" | "Nos" | "no" | "nos") && next.starts_with(|c: char| c.is_ascii_digit());
    let title = titles.contains(word) && !abbreviations::is_street(earlier, word, next);
    !initial && !number && !title && abbreviations::ends_sentence(word, next).unwrap_or(true)
}

/// Stretches of at most `chars_max` phonemes, cut after clause marks, else between words, else anywhere.
pub(super) fn split_phonemes(phonemes: &str, chars_max: usize) -> Vec<String> {
    let mut stretches = Vec::new();
    let mut stretch = String::new();
    for (piece, gap) in pieces(phonemes, chars_max) {
        let joined = stretch.chars().count() + piece.chars().count() + usize::from(gap);
        if !stretch.is_empty() && joined > chars_max {
            stretches.push(std::mem::take(&mut stretch));
        }
        if gap && !stretch.is_empty() {
            stretch.push(' ');
        }
        stretch.push_str(piece);
    }
    if !stretch.is_empty() {
        stretches.push(stretch);
    }
    stretches
}

/// Pieces of at most `chars_max` phonemes, each with whether a space preceded it.
fn pieces(phonemes: &str, chars_max: usize) -> Vec<(&str, bool)> {
    let fits = |piece: &str| piece.chars().count() <= chars_max;
    if fits(phonemes) {
        return vec![(phonemes, false)];
    }
    let mut pieces = Vec::new();
    for clause in clauses(phonemes) {
        if fits(clause) {
            pieces.push((clause, true));
            continue;
        }
        for word in clause.split_whitespace() {
            let mut rest = word;
            let mut gap = true;
            while let Some((end, _)) = rest.char_indices().nth(chars_max) {
                pieces.push((&rest[..end], gap));
                rest = &rest[end..];
                gap = false;
            }
            pieces.push((rest, gap));
        }
    }
    pieces
}

fn clauses(phonemes: &str) -> Vec<&str> {
    let mut clauses = Vec::new();
    let mut start = 0;
    for (at, mark) in phonemes.char_indices().filter(|(_, c)| CLAUSE_MARKS.contains(c)) {
        let rest = &phonemes[at + mark.len_utf8()..];
        let next = rest.trim_start();
        if next.len() < rest.len() {
            clauses.push(&phonemes[start..at + mark.len_utf8()]);
            start = phonemes.len() - next.len();
        }
    }
    clauses.push(&phonemes[start..]);
    clauses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_they_end() {
        let titles = HashSet::from(["Dr".to_owned(), "St".to_owned()]);
        let split = |text| split(text, &titles);
        assert_eq!(
            split("Dr. Smith called. \"Why?\" I do not know.\nNext"),
            ["Dr. Smith called.", "\"Why?", "I do not know.", "Next"]
        );
        assert_eq!(split("J. K. Rowling, e.g. today... or so"), ["J. K. Rowling, e.g. today... or so"]);
        assert_eq!(split("No. 5 is late. No. It is not."), ["No. 5 is late.", "No.", "It is not."]);
        assert_eq!(split("He is at no. 7. I said no. It is."), ["He is at no. 7.", "I said no.", "It is."]);
        assert_eq!(
            split("12 Elm St. It closes at five. Go to Oak St. Turn left."),
            ["12 Elm St.", "It closes at five.", "Go to Oak St.", "Turn left."]
        );
        for one in
            ["St. Mary's is shut.", "He lives in East St. Louis.", "It is near St. Pancras.", "St. James St. is shut."]
        {
            assert_eq!(split(one), [one]);
        }
        assert_eq!(split("Wait... What"), ["Wait...", "What"]);
        assert_eq!(
            split("In Oct. Paris vs. Rome. It was Oct. It rained."),
            ["In Oct. Paris vs. Rome.", "It was Oct.", "It rained."]
        );
        assert_eq!(split(" \n\n "), Vec::<&str>::new());
    }

    #[test]
    fn stretches_are_bounded_and_complete() {
        let long = "əbk dɛf, ".repeat(60);
        for max in [5, 20, 400] {
            let stretches = split_phonemes(long.trim(), max);
            assert!(stretches.iter().all(|stretch| stretch.chars().count() <= max), "{stretches:?}");
            let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            assert_eq!(letters(&stretches.concat()), letters(&long));
        }
        assert_eq!(split_phonemes(&"a".repeat(950), 400).len(), 3);
        assert_eq!(split_phonemes("a, b", 400), ["a, b"]);
    }
}
