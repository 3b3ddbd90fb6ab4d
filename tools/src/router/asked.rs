//! The choice of tools by a model: what it is asked, and what is read from its answer.

use std::fmt::Write as _;

use super::Query;
use crate::registry::Specs;

/// What the model is told to do; the [`question`] follows.
pub const INSTRUCTIONS: &str = "You choose tools for an assistant. Given the tools and what the user says, answer with \
    a JSON array of the names of all tools that might help, most useful first, and nothing else; an empty array where \
    none does. When in doubt, include the tool.";
/// Longest answer in tokens: a dozen names.
pub const TOKENS_MAX: u32 = 200;
/// Tools in its catalogue: the best matches by words. Each takes about 20 tokens.
const CATALOGUE_MAX: usize = 200;
/// Characters of a description: the first sentence is the relevant one.
const DESCRIPTION_CHARS_MAX: usize = 120;

/// What the model is asked. `ranked` are positions of matching tools in `tools`, best first: the least relevant are
/// cut.
pub fn question(tools: &Specs, ranked: &[(usize, f32)], said: &Query) -> String {
    let mut question = format!("Tools:\n{}\n", catalogue(tools, ranked));
    if !said.before.is_empty() {
        question.push_str(&format!("Before, the user said: {:?}\n", said.before));
    }
    question.push_str(&format!("The user says: {:?}", said.now));
    question
}

/// A line for each tool, the most relevant ones first.
fn catalogue(tools: &Specs, ranked: &[(usize, f32)]) -> String {
    let mut order: Vec<usize> = ranked.iter().map(|(at, _)| *at).collect();
    let mut listed = vec![false; tools.len()];
    order.iter().for_each(|at| listed[*at] = true);
    order.extend((0..tools.len()).filter(|at| !listed[*at]));
    let mut out = String::new();
    let routed = order.into_iter().filter_map(|at| tools.get(at)).filter(|tool| !tool.flags.always);
    for tool in routed.take(CATALOGUE_MAX) {
        let first: String =
            tool.description.lines().next().unwrap_or_default().chars().take(DESCRIPTION_CHARS_MAX).collect();
        // Writing to a string cannot fail.
        let _written = writeln!(out, "- {}: {first}", tool.name);
    }
    out
}

/// Positions in `tools` of those that an answer names, as a ranking; `None` if it contains no list of names.
pub fn ranking(tools: &Specs, answer: &str) -> Option<Vec<(usize, f32)>> {
    let list = answer.get(answer.find('[')?..=answer.rfind(']')?)?;
    let names: Vec<String> = serde_json::from_str(list).ok()?;
    let place = |name: &String| tools.binary_search_by(|tool| tool.name.cmp(name)).ok();
    Some(names.iter().filter_map(place).map(|at| (at, 1.0)).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gateway_core::vocab::{ToolFlags, ToolSpec};

    use super::*;

    fn tools() -> Specs {
        let flags = ToolFlags { always: true, ..ToolFlags::default() };
        let mut tools = vec![ToolSpec { name: "clock".into(), flags, ..ToolSpec::default() }];
        tools.extend(["note.add", "note.list"].map(|name| ToolSpec {
            name: name.into(),
            description: format!("Does {name}.\nMore."),
            ..ToolSpec::default()
        }));
        tools.into_iter().map(Arc::new).collect()
    }

    #[test]
    fn the_best_matches_come_first_and_what_is_always_on_is_no_question() {
        let said = Query { now: "Go".into(), ..Query::default() };
        let lines = "Tools:\n- note.list: Does note.list.\n- note.add: Does note.add.\n\n";
        assert_eq!(question(&tools(), &[(2, 1.0)], &said), format!("{lines}The user says: \"Go\""));
        let after = Query { before: "Wait".into(), ..said };
        let before = "Before, the user said: \"Wait\"\n";
        assert_eq!(question(&tools(), &[(2, 1.0)], &after), format!("{lines}{before}The user says: \"Go\""));
    }

    #[test]
    fn an_answer_is_a_list_of_names_with_or_without_words_around_it() {
        let found = ranking(&tools(), "Sure: [\"note.list\", \"nothing\", \"note.add\"].");
        assert_eq!(found, Some(vec![(2, 1.0), (1, 1.0)]));
        assert_eq!(ranking(&tools(), "[]"), Some(Vec::new()));
        for answer in ["none of them", "[1]", "]["] {
            assert_eq!(ranking(&tools(), answer), None, "{answer}");
        }
    }
}
