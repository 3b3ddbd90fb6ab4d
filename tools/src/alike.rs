//! Suggestions for names that do not exist: similar tools for a model, similar sentences for a person.

use std::collections::BTreeSet;

use gateway_core::vocab::{ToolResult, ToolSpec};

use crate::{matching::words, registry::Specs};

/// Maximum number of suggested names.
const NAMES_MAX: usize = 5;

/// Adds the available tools with similar names to the result of a failed call.
pub fn name_some(result: &mut ToolResult, wanted: &str, offered: &Specs) {
    let names = alike(wanted, offered);
    if names.is_empty() {
        return;
    }
    let more = format!(" Tools that are offered now: {}.", names.join(", "));
    result.content.push_str(&more);
    if let Some(error) = &mut result.error {
        error.message.push_str(&more);
    }
}

/// The names most similar to `wanted`; if none is similar, the first ones.
fn alike<'a>(wanted: &str, offered: &'a Specs) -> Vec<&'a str> {
    let wanted = pieces(wanted);
    let shared = |spec: &ToolSpec| pieces(&spec.name).intersection(&wanted).count();
    let mut ranked: Vec<(usize, &str)> = offered.iter().map(|spec| (shared(spec), spec.name.as_str())).collect();
    ranked.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
    let any = ranked.first().is_some_and(|(shared, _)| *shared > 0);
    ranked.into_iter().filter(|(shared, _)| !any || *shared > 0).take(NAMES_MAX).map(|(_, name)| name).collect()
}

/// Similarity of two texts: the shared parts per mille of all parts in either of them.
pub fn likeness(text: &str, other: &str) -> usize {
    let (text, other) = (pieces(&words(text).join(" ")), pieces(&words(other).join(" ")));
    let shared = text.intersection(&other).count();
    shared * 1_000 / (text.len() + other.len() - shared).max(1)
}

/// The words of a name and their trigrams, so that `light` is similar to `lights.on`.
fn pieces(name: &str) -> BTreeSet<String> {
    let name = name.to_lowercase();
    let words = name.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.len() > 1);
    let mut pieces = BTreeSet::new();
    for word in words {
        let letters: Vec<char> = word.chars().collect();
        pieces.extend(letters.windows(3).map(|three| three.iter().collect::<String>()));
        pieces.insert(word.to_owned());
    }
    pieces
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gateway_core::vocab::ErrorCode;

    use super::*;

    fn offered(names: &[&str]) -> Specs {
        names.iter().map(|name| Arc::new(ToolSpec { name: (*name).into(), ..ToolSpec::default() })).collect()
    }

    #[test]
    fn names_that_share_a_word_come_first() {
        let specs = offered(&["note.add", "note.list", "timer.set", "com.example.lights.on", "weather"]);
        for (wanted, expected) in [
            ("timer.start", vec!["timer.set"]),
            ("notes_add", vec!["note.add", "note.list"]),
            ("light", vec!["com.example.lights.on"]),
            ("zzz", vec!["note.add", "note.list", "timer.set", "com.example.lights.on", "weather"]),
            ("", vec!["note.add", "note.list", "timer.set", "com.example.lights.on", "weather"]),
        ] {
            assert_eq!(alike(wanted, &specs), expected, "{wanted}");
        }
        let many: Vec<String> = (0..100).map(|number| format!("note.n{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(alike("note", &offered(&many)).len(), NAMES_MAX);
    }

    #[test]
    fn sentences_are_as_alike_as_what_they_share() {
        let sentence = "put milk on my shopping list";
        let ranked = ["put on the shopping list", "what is on the list", "start the", ""];
        let found = ranked.map(|other| likeness(sentence, other));
        assert!(found.is_sorted_by(|a, b| a > b || *b == 0) && found[3] == 0, "{found:?}");
        assert_eq!(likeness("Shopping list!", "the shopping list"), 1_000);
        assert!(likeness("shoping", "shopping") > 0);
    }

    #[test]
    fn the_result_says_what_there_is() {
        let mut result = ToolResult::failed(ErrorCode::ToolNotFound, "No tool named 'notes' is offered.", false);
        name_some(&mut result, "notes", &offered(&["note.add"]));
        let expected = "No tool named 'notes' is offered. Tools that are offered now: note.add.";
        assert_eq!((result.content.as_str(), result.error.unwrap().message.as_str()), (expected, expected));
        let mut result = ToolResult::failed(ErrorCode::ToolNotFound, "None.", false);
        name_some(&mut result, "notes", &offered(&[]));
        assert_eq!(result.content, "None.");
    }
}
