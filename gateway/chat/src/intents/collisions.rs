//! Sentences of one side that others understand too, found by having each read sentences made from the others'
//! templates.

use std::sync::Arc;

use gateway_core::vocab::{Scene, Side, ToolSpec};
use jiff::Zoned;
use serde::{Deserialize, Serialize};

use super::{
    asking::Reader,
    grammar::{Grammar, sample},
    language::Language,
    sides::Sides,
    template::{Op, SlotKind},
};

/// Most sentences made of one template of the examined side.
const OWN_MAX: usize = 64;
/// The same for all other sides, which have many templates.
const OTHERS_MAX: usize = 12;
/// Replacement for free text: a word that no template has.
const FREE: &str = "abcdefg";

/// A sentence that tools of two sides understand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collision {
    /// As a wearer would say it; free text is shown as dots.
    pub sentence: String,
    /// The tool of the examined side.
    pub tool: String,
    /// The other tool.
    pub other: String,
    /// The side of the other tool.
    pub side: Side,
}

/// Sentences of this side that other sides understand, one for each pair of tools.
pub fn collisions(tools: &[Arc<ToolSpec>], language: &str, side: &Side) -> Vec<Collision> {
    let grammar = Grammar::compile(tools, language);
    let scene = Scene::default();
    let reader = Reader { grammar: &grammar, tools, scene: &scene, now: Zoned::default() };
    let mut out: Vec<Collision> = Vec::new();
    // The side's own sentences first, as its maker knows them.
    for own in [true, false] {
        for (_, _, program) in grammar.templates().filter(|(tool, ..)| tool.side.is_with(side) == own) {
            for sentence in sentences((program, grammar.language), if own { OWN_MAX } else { OTHERS_MAX }) {
                let mut utterance = reader.utterance(&sentence);
                let sides = Sides::of(&scene);
                let found = grammar.understand(&mut utterance, sides);
                let found = reader.with_rivals(&utterance, found.found, sides);
                let Some(mine) = found.iter().find(|one| one.side.is_with(side)) else { continue };
                for other in found.iter().filter(|one| !one.side.is_with(side)) {
                    let (tool, name) = (&mine.intent.name, &other.intent.name);
                    if out.iter().any(|known| known.tool == *tool && known.other == *name) {
                        continue;
                    }
                    out.push(Collision {
                        sentence: sentence.replace(FREE, "\u{2026}"),
                        tool: tool.clone(),
                        other: name.clone(),
                        side: other.side.clone(),
                    });
                }
            }
        }
    }
    out
}

/// Sentences that match a template, starting with the shortest paths through it.
fn sentences(program: (&[Op], &Language), most: usize) -> Vec<String> {
    let mut out = Vec::new();
    walk(program, 0, &mut Vec::new(), most, &mut out);
    out
}

fn walk(
    (program, language): (&[Op], &Language),
    at: usize,
    said: &mut Vec<String>,
    most: usize,
    out: &mut Vec<String>,
) {
    if out.len() >= most {
        return;
    }
    let next = |word: String, said: &mut Vec<String>, out: &mut Vec<String>| {
        said.push(word);
        walk((program, language), at + 1, said, most, out);
        said.pop();
    };
    match program.get(at) {
        None => {}
        Some(Op::End) => out.push(said.join(" ")),
        Some(Op::Jump(to)) => walk((program, language), *to, said, most, out),
        Some(Op::Set(..)) => walk((program, language), at + 1, said, most, out),
        Some(Op::Split(branches)) => {
            for branch in branches.iter().rev() {
                walk((program, language), *branch, said, most, out);
            }
        }
        Some(Op::Word(word)) => next(word.clone(), said, out),
        Some(Op::Slot(slot)) => match &slot.kind {
            SlotKind::Text { .. } | SlotKind::App => next(FREE.to_owned(), said, out),
            kind => next(sample(kind, language), said, out),
        },
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::vocab::Phrases;
    use serde_json::json;

    use super::*;

    fn tool(side: &Side, name: &str, templates: &[&str]) -> Arc<ToolSpec> {
        let text = json!({"type": "string"});
        let input_schema =
            json!({"type": "object", "properties": {"text": text, "seconds": {"type": "integer"}, "to": text}});
        let templates = templates.iter().map(|text| (*text).to_owned()).collect();
        let phrases = vec![Phrases { language: "en".into(), templates }];
        Arc::new(ToolSpec { name: name.into(), side: side.clone(), input_schema, phrases, ..ToolSpec::default() })
    }

    #[test]
    fn templates_that_accept_the_same_words_collide() {
        let (own, lists) = (Side::BuiltIn(Some("timers".into())), Side::App("lists".into()));
        let new = Side::App("new".into());
        let tools = [
            tool(&own, "timer.set", &["(set|start) [a] timer for {seconds:duration}"]),
            tool(&lists, "lists.add", &["add {text} to my list", "read my list"]),
            tool(&new, "new.start", &["start timer {text}"]),
            tool(&new, "new.add", &["(put|add) {text} (on|to) my list", "add {text} to the pile"]),
        ];
        let line = |tool: &str, other: &str, sentence: &str| (tool.to_owned(), other.to_owned(), sentence.to_owned());
        let found: Vec<_> =
            collisions(&tools, "en", &new).into_iter().map(|found| (found.tool, found.other, found.sentence)).collect();
        let expected = [
            line("new.add", "lists.add", "add \u{2026} to my list"),
            line("new.start", "timer.set", "start timer for ten minutes"),
        ];
        assert_eq!(found, expected);
        assert_eq!(collisions(&tools[..2], "en", &new), []);
        assert_eq!(collisions(&tools, "en", &lists).len(), 1);
    }
}
