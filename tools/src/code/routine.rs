//! Routines: programs that people have kept. Each is a tool of its user, which the user's phrases call.

use ::std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, Content, ErrorCode, Phrases, Side, ToolCall, ToolFlags, ToolResult, ToolSpec};
use serde_json::{Value, json};

use super::{
    Engine, Outcome,
    content::result,
    engine::{RUN_MS, RUN_MS_MAX},
};
use crate::{
    limits::{SAID_CHARS_MAX, SHOW_BYTES_MAX},
    programs::{Frozen, OfRoutine, Run},
    registry::{RunContext, Runner},
    reply::cut,
    sides,
    spoken::{capitalised, sentence},
    wording::{plain, said, shortened, visible, words},
};

/// Lines of its output that are spoken.
const SAID_LINES_MAX: usize = 3;
/// Lines of its output that are shown.
const SHOWN_LINES_MAX: usize = 8;

/// A routine as a tool: the version that runs.
#[derive(Clone, Debug)]
pub struct Routine {
    /// Its name and version.
    pub of: OfRoutine,
    /// TypeScript or JavaScript, as it was kept.
    pub source: String,
    /// What the wearer says.
    pub phrases: Vec<String>,
    /// The tools that it may call, by name, each with its definition.
    pub tools: BTreeMap<String, String>,
}

impl Routine {
    /// The full name of its tool.
    pub fn tool(&self) -> String {
        tool_name(&self.of.name)
    }

    /// Its tool, which phrases of this language call.
    pub fn spec(&self, language: &str) -> ToolSpec {
        let calls: Vec<&str> = self.tools.keys().map(String::as_str).collect();
        let calls = if calls.is_empty() { "nothing".to_owned() } else { calls.join(", ") };
        let description =
            format!("Runs the wearer's routine {}, a program that was kept. It may call {calls}.", self.of.name);
        let phrases = Phrases { language: language.to_owned(), templates: self.phrases.clone() };
        ToolSpec {
            name: self.tool(),
            title: Some(capitalised(&words(&self.of.name))),
            description: cut(&description, 1024),
            input_schema: json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false}),
            phrases: if self.phrases.is_empty() { Vec::new() } else { vec![phrases] },
            flags: ToolFlags { persistent: true, ..ToolFlags::default() },
            timeout_ms: Some(RUN_MS_MAX),
            side: side(),
            clients: Some(vec![ClientClass::Internal]),
            ..ToolSpec::default()
        }
    }
}

/// The full name of a routine's tool.
pub fn tool_name(routine: &str) -> String {
    format!("routine.{routine}")
}

/// The side of all routines.
pub fn side() -> Side {
    sides::routines()
}

/// Runs the routines of one user.
pub struct Routines {
    engine: Arc<Engine>,
    /// By their tools' names.
    routines: BTreeMap<String, Routine>,
}

impl Routines {
    /// These, in this engine.
    pub fn new(engine: Arc<Engine>, routines: impl IntoIterator<Item = Routine>) -> Self {
        Self { engine, routines: routines.into_iter().map(|routine| (routine.tool(), routine)).collect() }
    }
}

#[async_trait]
impl Runner for Routines {
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult {
        let (Some(routine), Some(calls)) = (self.routines.get(&call.name), context.calls.clone()) else {
            let message = format!("No routine is named '{}'.", call.name);
            return ToolResult::failed(ErrorCode::ToolNotFound, message, false);
        };
        calls.freeze(Frozen { routine: routine.of.name.clone(), tools: routine.tools.clone() });
        let outcome = self.engine.run(&context, &calls, &routine.source, RUN_MS, Some(routine.of.clone())).await;
        told(routine, &outcome, result(&outcome, &calls))
    }

    fn runs_programs(&self, _local_name: &str) -> bool {
        true
    }

    fn run_of(&self, call: &ToolCall) -> Option<Run> {
        let Routine { of, source, .. } = self.routines.get(&call.name)?;
        Some(Run { source: source.clone(), routine: Some(of.clone()), ..Run::default() })
    }
}

/// The result in words for the wearer: the first lines of what it printed and returned, or why it failed.
fn told(routine: &Routine, outcome: &Outcome, mut result: ToolResult) -> ToolResult {
    let name = words(&routine.of.name);
    let lines = match &result.error {
        None => lines(outcome),
        Some(error) => {
            let why = error.message.trim_start_matches("Error: ");
            vec![format!("I couldn't finish {name}: {}", sentence(&plain(why)))]
        }
    };
    let spoken: Vec<String> = lines.iter().take(SAID_LINES_MAX).map(|line| sentence(&plain(line))).collect();
    let more = lines.len() > SAID_LINES_MAX;
    result.say = Some(match spoken.is_empty() {
        true => format!("{} is done.", capitalised(&name)),
        false => shortened(&spoken.join(" "), SAID_CHARS_MAX),
    });
    let mut shown: Vec<String> = lines.iter().take(SHOWN_LINES_MAX).map(|line| visible(line)).collect();
    if lines.len() > SHOWN_LINES_MAX {
        shown.push(format!("({} more lines)", lines.len() - SHOWN_LINES_MAX));
    }
    if more || !shown.is_empty() {
        let text = cut(&shown.join("\n"), SHOW_BYTES_MAX / 2);
        result.show = Some(Content::Card { title: capitalised(&name), text });
    }
    result
}

/// What it printed and returned, in lines.
fn lines(outcome: &Outcome) -> Vec<String> {
    let returned = match (&outcome.result, &outcome.cut) {
        (Some(Value::Null), _) | (None, None) => None,
        (Some(Value::String(text)), _) => Some(text.clone()),
        (Some(value), _) => Some(said(value)),
        (None, Some((text, _))) => Some(text.clone()),
    };
    let all = outcome.logs.iter().cloned().chain(returned);
    let split = all.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>());
    split.filter(|line| !line.trim().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::{Ended, ProgramError};

    fn routine() -> Routine {
        let tools = BTreeMap::from([("note.list".to_owned(), "d".to_owned())]);
        let of = OfRoutine { name: "morning-summary".into(), version: 2 };
        Routine { of, source: String::new(), phrases: vec!["run my morning summary".into()], tools }
    }

    fn of(outcome: &Outcome) -> ToolResult {
        let result = match &outcome.error {
            None => ToolResult::default(),
            Some(error) => ToolResult::failed(ErrorCode::ExecutionError, &*error.message, false),
        };
        told(&routine(), outcome, result)
    }

    #[test]
    fn the_first_lines_are_told() {
        let mut outcome = Outcome::new(Ended::Finished);
        assert_eq!(of(&outcome).say.as_deref(), Some("Morning summary is done."));
        outcome.logs = vec!["Two notes".into(), " ".into(), "One\nreminder\u{202e}".into()];
        outcome.result = Some(json!("And no timer!"));
        let result = of(&outcome);
        assert_eq!(result.say.as_deref(), Some("Two notes. One. reminder."));
        let Some(Content::Card { title, text }) = result.show else { panic!("a card") };
        assert_eq!(
            (title.as_str(), text.as_str()),
            ("Morning summary", "Two notes\nOne\nreminder<U+202E>\nAnd no timer!")
        );
        outcome.logs.clear();
        outcome.result = Some(json!({"notes": 2}));
        assert_eq!(of(&outcome).say.as_deref(), Some("notes 2."));
        outcome.error = Some(ProgramError { message: "no train\nto X".into(), line: Some(1), column: None });
        assert_eq!(of(&outcome).say.as_deref(), Some("I couldn't finish morning summary: no train to X."));
    }

    #[test]
    fn its_tool_is_one_that_can_be_registered() {
        let spec = routine().spec("en");
        crate::registry::check(&spec).unwrap();
        assert_eq!(spec.name, "routine.morning-summary");
        assert!(spec.description.contains("It may call note.list."));
        assert_eq!(spec.side, side());
    }
}
