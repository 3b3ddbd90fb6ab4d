//! The words around a command that mean nothing to it.

use super::utterance::{Utterance, View};

/// Words before a command that mean nothing to it.
const OPENINGS: [&str; 33] = [
    "please",
    "hey",
    "okay",
    "ok",
    "so",
    "well",
    "now",
    "and",
    "then",
    "also",
    "just",
    "yes",
    "can you",
    "could you",
    "would you",
    "will you",
    "can we",
    "could we",
    "i would like you to",
    "i want you to",
    "i need you to",
    "i would like to",
    "i want to",
    "let us",
    "go ahead and",
    "would you mind",
    "do me a favor and",
    "be so kind and",
    "quickly",
    "hi",
    "hello",
    "next",
    "be a dear and",
];
/// Words behind a command that mean nothing to it.
const ENDINGS: [&str; 9] = [
    "please",
    "thanks",
    "thank you",
    "would you",
    "will you",
    "if you can",
    "if you could",
    "for me please",
    "thank you very much",
];
/// The same, but they may belong to a free text.
const LOOSE_ENDINGS: [&str; 7] = ["now", "right now", "for me", "then", "okay", "again", "today"];

/// Every place where the command may begin: the start, and behind each opening.
pub(super) fn openings(view: View<'_>, start: usize) -> Vec<usize> {
    const OPENINGS_MAX: usize = 4;
    let mut out = vec![start];
    let mut at = start;
    while out.len() <= OPENINGS_MAX {
        let longest = OPENINGS.iter().filter_map(|words| view.phrase(at, words));
        let Some(next) = longest.max().filter(|next| *next < view.end) else {
            break;
        };
        at = next;
        out.push(at);
    }
    out
}

/// Every place where the command may end, the likeliest first.
pub(super) fn endings(utterance: &Utterance<'_>, start: usize, end: usize) -> Vec<usize> {
    let strip = |mut end: usize, endings: &[&str]| {
        while let Some(next) = endings.iter().find_map(|words| {
            let length = words.split(' ').count();
            let from = end.checked_sub(length).filter(|from| *from > start)?;
            (utterance.view(end).phrase(from, words)? == end).then_some(from)
        }) {
            end = next;
        }
        end
    };
    let polite = strip(end, &ENDINGS);
    let loose = strip(polite, &[LOOSE_ENDINGS.as_slice(), ENDINGS.as_slice()].concat());
    let mut out = vec![polite];
    if loose != polite {
        out.push(loose);
    }
    out
}
