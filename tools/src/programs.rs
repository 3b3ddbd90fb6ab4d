//! What is kept of programs: a record of each run, and routines, which are programs that people have given a name. The
//! gateway stores both.

use std::collections::BTreeMap;

use async_trait::async_trait;
use gateway_core::vocab::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::port_error::PortError;

/// Routines of one user: each is a tool that models are offered.
pub const ROUTINES_MAX: usize = 32;
/// Versions of a routine that stay listed, the present one included.
pub const VERSIONS_MAX: usize = 5;
/// Bytes of a routine's name: a few words.
pub const ROUTINE_NAME_BYTES_MAX: usize = 40;
/// Phrases of a routine.
pub const PHRASES_MAX: usize = 8;
/// Bytes of a phrase: a short sentence.
pub const PHRASE_BYTES_MAX: usize = 80;
/// Words of a phrase, at least: a single word is too easily said by chance.
pub const PHRASE_WORDS_MIN: usize = 2;
/// Words of a phrase, at most.
pub const PHRASE_WORDS_MAX: usize = 12;

/// What stands for the definition of a function of the standard library, which is part of the gateway.
pub const LIBRARY: &str = "library";

/// One run of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Number among the user's; 0 until it is stored.
    #[serde(skip)]
    pub id: u64,
    /// When it began, in milliseconds since the Unix epoch.
    pub wall_ms: i64,
    /// Id of the call that ran it, as the ledger has it.
    pub call: String,
    /// The device on which it was requested, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The session, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Number of the turn, if it belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// TypeScript or JavaScript, as it was written.
    pub source: String,
    /// Its calls, in the order in which they were made.
    #[serde(default)]
    pub calls: Vec<RunCall>,
    /// What it printed.
    #[serde(default)]
    pub output: Vec<String>,
    /// Its default export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// What is left out of output and result, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Why it ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Its duration, including questions to the wearer, in milliseconds.
    pub took_ms: u64,
    /// The gateway was stopped in the middle of it: its duration, what it printed and those of its calls that only read are
    /// unknown, and so are the durations of its calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// Number of the run that this one repeats by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_of: Option<u64>,
    /// The routine whose program it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routine: Option<OfRoutine>,
}

/// A routine in one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfRoutine {
    /// Unique among the user's routines.
    pub name: String,
    /// Its version, from 1 on.
    pub version: u32,
}

/// Why a run ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// The kind of failure.
    pub code: ErrorCode,
    /// For the program's author.
    pub message: String,
    /// Line in the program, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in the line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

/// A call that a program made: of a tool, or of a function of the standard library that has an effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCall {
    /// Full name of the tool; `std.fs.writeFile` of the standard library.
    pub tool: String,
    /// Its arguments as JSON, redacted and cut.
    pub arguments: String,
    /// What became of it.
    pub outcome: CallOutcome,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Its duration, in milliseconds.
    pub ms: u64,
    /// Identifies the tool's definition; `None`: no tool of that name was offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Whether the tool itself was called, and not refused before.
    #[serde(default)]
    pub begun: bool,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    /// The tool has done it.
    Done,
    /// Refused, or failed as its tool says.
    Failed,
    /// Stopped before the tool was called.
    NotBegun,
    /// Stopped midway, or without an answer.
    Unknown,
}

/// The tools that a routine may call: those that its program called when it was kept, each as it was then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frozen {
    /// Name of the routine.
    pub routine: String,
    /// Definitions by the tools' full names.
    pub tools: BTreeMap<String, String>,
}

impl Frozen {
    /// Checks a call of the routine's program. `definition`: that of the tool as it is now.
    ///
    /// # Errors
    /// Why it may not be made, and how the routine is renewed.
    pub fn check(&self, tool: &str, definition: &str) -> Result<(), String> {
        let routine = &self.routine;
        let renew = format!(
            "To renew it, run the program again (`lorgnette code run`, or ask for it) and keep that run as {routine}."
        );
        match self.tools.get(tool) {
            Some(known) if known == definition => Ok(()),
            Some(_) => Err(format!("{tool} has changed since the routine {routine} was kept. {renew}")),
            None => Err(format!("The routine {routine} may not call {tool}: it did not when it was kept. {renew}")),
        }
    }
}

/// Which run becomes a routine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhichRun {
    /// The one with this number.
    Number(u64),
    /// The last one of this session on this device, no routine; without a session, the last one outside of any.
    Last {
        /// `None`: it was requested on none.
        device: Option<String>,
        /// `None`: outside of any.
        session: Option<String>,
        /// It had ended by then, in milliseconds since the Unix epoch: a program that ran while the wearer was asked is not
        /// the one that was meant.
        until_wall_ms: i64,
    },
}

impl Run {
    /// The record of a run that the last stop of the gateway has cut off: with the changes that it had begun.
    #[must_use]
    pub fn cut_off(self, calls: Vec<RunCall>) -> Self {
        let message = "the gateway was stopped in the middle of this program; what it would have done after these calls is unknown";
        let error = RunError { code: ErrorCode::ExecutionError, message: message.to_owned(), line: None, column: None };
        let left_out = Some("what it printed, and its calls that only read".to_owned());
        Self { calls, left_out, error: Some(error), cut_off: true, ..self }
    }

    /// Whether this is the record of the run that the other one is the beginning of.
    pub fn is_of(&self, begun: &Self) -> bool {
        // Ids of calls without a session begin anew with each process.
        let place = |run: &Self| (run.call.clone(), run.device.clone(), run.session.clone(), run.turn);
        place(self) == place(begun) && self.source == begun.source && self.wall_ms >= begun.wall_ms
    }

    /// The tools that it has called, each with the definition that it had.
    pub fn called(&self) -> BTreeMap<String, String> {
        let begun = self.calls.iter().filter(|call| call.begun);
        begun.filter_map(|call| Some((call.tool.clone(), call.definition.clone()?))).collect()
    }
}

/// A run is to be kept as a routine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    /// The run, by its number or as the last one.
    pub run: WhichRun,
    /// The routine's name.
    pub name: String,
    /// What the wearer says to run it; if empty, those of the version before.
    pub phrases: Vec<String>,
}

/// A routine that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRoutine {
    /// Its name and version.
    pub of: OfRoutine,
    /// What the wearer says to run it.
    pub phrases: Vec<String>,
    /// The tools that it may call.
    pub tools: Vec<String>,
}

/// Why a run was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotKept {
    /// It cannot be: why, and what to do.
    Refused(String),
    /// The store failed.
    Port(PortError),
}

/// Stores runs and routines of users.
#[async_trait]
pub trait ProgramStore: Send + Sync {
    /// Stores a run. It does not block and does not fail: the program has run.
    fn record(&self, user: &str, run: Run);
    /// The tools that a run has called, which are those that a routine of it may call; `None`: there is no such run.
    async fn called(&self, user: &str, run: &WhichRun) -> Option<Vec<String>>;
    /// Keeps a run as a routine, in a new version if there is one of this name. `device`: the tools of these glasses
    /// count where phrases are compared.
    async fn keep(&self, user: &str, device: Option<&str>, keep: Keep) -> Result<KeptRoutine, NotKept>;
}

/// A store without programs.
pub struct NoPrograms;

#[async_trait]
impl ProgramStore for NoPrograms {
    fn record(&self, _user: &str, _run: Run) {}

    async fn called(&self, _user: &str, _run: &WhichRun) -> Option<Vec<String>> {
        None
    }

    async fn keep(&self, _user: &str, _device: Option<&str>, _keep: Keep) -> Result<KeptRoutine, NotKept> {
        Err(NotKept::Port(PortError::Unavailable("no programs are kept".to_owned())))
    }
}

/// Checks the name of a routine: words of small letters and digits with single hyphens between them.
///
/// # Errors
/// What is wrong with it.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_word = |word: &str| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        !word.is_empty() && word.chars().all(allowed)
    };
    if name.len() > ROUTINE_NAME_BYTES_MAX || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Err(format!(
            "a routine's name has 1 to {ROUTINE_NAME_BYTES_MAX} characters and begins with a small letter, such as \
             morning-summary"
        ));
    }
    match name.split('-').all(is_word) {
        true => Ok(()),
        false => Err("a routine's name has small letters, digits and single hyphens between words, such as \
                      morning-summary"
            .to_owned()),
    }
}

/// A phrase as it is stored: plain words with one space between them.
///
/// # Errors
/// What is wrong with it.
pub fn phrase(text: &str) -> Result<String, String> {
    let about = |what: &str| Err(format!("a phrase {what}, such as \"run my morning summary\""));
    // Small letters of some scripts are longer, and may have marks of their own.
    let text = text.trim().trim_end_matches(['.', '!', '?']).to_lowercase();
    if text.len() > PHRASE_BYTES_MAX {
        return about(&format!("has at most {PHRASE_BYTES_MAX} bytes"));
    }
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '\'' | '-');
    if !text.chars().all(allowed) {
        return about("has only letters, digits, spaces, apostrophes and hyphens");
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    if !(PHRASE_WORDS_MIN..=PHRASE_WORDS_MAX).contains(&words.len()) {
        return about(&format!("has {PHRASE_WORDS_MIN} to {PHRASE_WORDS_MAX} words"));
    }
    if words.iter().any(|word| !word.contains(char::is_alphanumeric)) {
        return about("is made of words");
    }
    Ok(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_phrases_are_plain_words() {
        for name in ["a", "morning-summary", "day2", "a-1-b"] {
            check_name(name).unwrap();
        }
        let long = "a".repeat(ROUTINE_NAME_BYTES_MAX + 1);
        for name in ["", "-", "a-", "-a", "a--b", "A", "1a", "a b", "a.b", "é", "a/b", "a\n", &long] {
            assert!(check_name(name).unwrap_err().contains("morning-summary"), "{name:?}");
        }
        assert_eq!(phrase(" Run my  morning Summary. ").unwrap(), "run my morning summary");
        assert_eq!(phrase("what's up-to-date?").unwrap(), "what's up-to-date");
        assert_eq!(phrase("Guten Morgen Überblick").unwrap(), "guten morgen überblick");
        assert!(phrase("good morning, summary").unwrap_err().contains("only letters"));
        let (long, many) = (format!("a {}", "b".repeat(PHRASE_BYTES_MAX)), "a ".repeat(PHRASE_WORDS_MAX + 1));
        for text in [
            "",
            "run",
            "run {it}",
            "run (a|b)",
            "run\u{202e}it now",
            "run\nit\u{7} now",
            "- '",
            "İstanbul now",
            &long,
            &many,
        ] {
            assert!(phrase(text).unwrap_err().contains("run my morning summary"), "{text:?}");
        }
    }

    #[test]
    fn a_routine_calls_what_it_called_and_nothing_that_has_changed() {
        let tools = BTreeMap::from([("note.list".to_owned(), "one".to_owned())]);
        let frozen = Frozen { routine: "morning".into(), tools };
        assert_eq!(frozen.check("note.list", "one"), Ok(()));
        for (tool, definition, words) in
            [("note.list", "two", "has changed since"), ("note.add", "one", "may not call")]
        {
            let error = frozen.check(tool, definition).unwrap_err();
            assert!(error.contains(words) && error.contains(tool) && error.contains("keep that run as morning"));
        }
    }

    /// What is stored stays readable.
    #[test]
    fn a_run_has_the_stored_form_that_it_always_had() {
        let stored = r#"{"wall_ms":5,"call":"c1","device":"g","session":"s","turn":7,"source":"1","calls":[{"tool":"a.b","arguments":"{}","outcome":"not_begun","error":"no","ms":3,"definition":"d","begun":true}],"output":["x"],"result":{"a":1},"left_out":"y","error":{"code":"EXECUTION_ERROR","message":"m","line":2,"column":3},"took_ms":9,"again_of":4,"routine":{"name":"n","version":2}}"#;
        let run: Run = serde_json::from_str(stored).unwrap();
        assert_eq!(serde_json::to_string(&run).unwrap(), stored);
        assert_eq!((run.calls[0].outcome, run.id), (CallOutcome::NotBegun, 0));
        assert!(!run.cut_off && Run { cut_off: true, ..run }.called().contains_key("a.b"));
        let least = r#"{"wall_ms":5,"call":"c1","source":"1","took_ms":9}"#;
        let run: Run = serde_json::from_str(least).unwrap();
        assert!(run.calls.is_empty() && run.error.is_none() && run.again_of.is_none());
    }
}
