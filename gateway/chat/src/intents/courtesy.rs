//! Polite words around a command, without meaning for it.

use super::{
    reply,
    utterance::{Utterance, View},
};

/// A possible end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// One past its last word.
    pub at: usize,
    /// Whether the removed words cannot belong to a dictated text: there are none, or they are courtesy set apart by a
    /// comma or the end of a sentence, as the recogniser writes it. "Tell him to say please" has neither, and a
    /// superfluous word does less harm than a lost one.
    pub set_apart: bool,
    /// Whether words were removed that a template may contain.
    pub loose: bool,
}

/// Every position where the command may begin: the start, and after each opening.
pub(super) fn openings(view: View<'_>, start: usize) -> Vec<usize> {
    const OPENINGS_MAX: usize = 4;
    let mut out = vec![start];
    let mut at = start;
    while out.len() <= OPENINGS_MAX {
        let longest = view.language().courtesy.openings.iter().filter_map(|words| view.phrase(at, words));
        let Some(next) = longest.max().filter(|next| *next < view.end) else {
            break;
        };
        at = next;
        out.push(at);
    }
    out
}

/// The reply to an utterance that is nothing but thanks, a greeting or a farewell.
pub(super) fn reply_to(utterance: &Utterance<'_>) -> Option<&'static str> {
    let view = utterance.view(utterance.words.len());
    let is_one_of = |phrases: &[&str]| phrases.iter().any(|phrase| view.phrase(0, phrase) == Some(view.end));
    let formulas = utterance.language.courtesy.formulas;
    let replies = [
        (formulas.thanks, reply::WELCOME),
        (formulas.greetings, reply::GREETING),
        (formulas.farewells, reply::FAREWELL),
    ];
    replies.into_iter().find_map(|(phrases, reply)| is_one_of(phrases).then_some(reply))
}

/// Every position where the command may end, the most likely first.
pub(super) fn endings(utterance: &Utterance<'_>, start: usize, end: usize) -> Vec<Ending> {
    let strip = |mut end: usize, endings: &[&str], set_apart: bool| {
        while let Some(next) = endings.iter().find_map(|words| {
            let length = words.split(' ').count();
            let from = end.checked_sub(length).filter(|from| *from > start)?;
            (utterance.view(end).phrase(from, words)? == end && (!set_apart || utterance.is_set_apart(from)))
                .then_some(from)
        }) {
            end = next;
        }
        end
    };
    let words = &utterance.language.courtesy;
    let plain = [words.please, words.formulas.thanks].concat();
    let polite = strip(end, &[&plain, words.endings].concat(), false);
    let all = [&plain, words.endings, words.loose_endings].concat();
    let mut out: Vec<Ending> = Vec::new();
    for ending in [
        Ending { at: end, set_apart: true, loose: false },
        Ending { at: strip(end, &plain, true), set_apart: true, loose: false },
        Ending { at: polite, set_apart: false, loose: false },
        Ending { at: strip(polite, &all, false), set_apart: false, loose: true },
    ] {
        if out.iter().all(|other| other.at != ending.at) {
            out.push(ending);
        }
    }
    out
}
