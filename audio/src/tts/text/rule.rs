//! What a rule is given, and how it is applied: the voice's word lists, a match, and the replacement of all matches.

use std::collections::HashMap;

use fancy_regex::{Captures, Regex};
use serde::Deserialize;

use super::super::assets::Pairs;

/// The word lists in the file's format.
#[derive(Deserialize)]
pub(super) struct Words {
    pub(super) months: Pairs<String>,
    pub(super) titles: HashMap<String, String>,
    pub(super) abbreviations: HashMap<String, String>,
    /// Singular and plural of units.
    pub(super) units: HashMap<String, [String; 2]>,
    pub(super) symbols: Pairs<String>,
    pub(super) currency: HashMap<String, [String; 2]>,
    pub(super) roman_cardinal: Vec<String>,
    pub(super) roman_ordinal: Vec<String>,
}

/// One match: its groups, and the text right after it.
pub(super) struct Match<'a> {
    captures: &'a Captures<'a, str>,
    pub(super) rest: &'a str,
}

impl<'a> Match<'a> {
    /// Group `n`, empty if it did not take part in the match.
    pub(super) fn group(&self, n: usize) -> &'a str {
        self.captures.get(n).map_or("", |group| group.as_str())
    }
}

/// The reading of a match; `None` leaves it as written.
pub(super) type Say = fn(&Words, &Match<'_>) -> Option<String>;

/// Replaces each match by the result of `say`. If the pattern's bounded search gives up, the rest of the text is left
/// unchanged.
pub(super) fn replace(pattern: &Regex, text: String, say: impl Fn(&Match<'_>) -> Option<String>) -> String {
    let mut out = String::new();
    let mut done = 0;
    for captures in pattern.captures_iter(text.as_str()) {
        let Ok(captures) = captures else { break };
        let Some(whole) = captures.get(0) else { break };
        let found = Match { captures: &captures, rest: &text[whole.end()..] };
        if let Some(words) = say(&found) {
            out.push_str(&text[done..whole.start()]);
            out.push_str(&words);
            done = whole.end();
        }
    }
    if done == 0 && out.is_empty() {
        return text;
    }
    out.push_str(&text[done..]);
    out
}
