//! What parent and child tell each other: one JSON object in each line, in both directions.
//!
//! Everything from the child is hostile: [`ToParent::parse`] accepts only what an intact child sends.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Version of these messages. Parent and child are the same executable, unless it was replaced in between.
pub const VERSION: u32 = 1;
/// Bytes of a line from the child: a call with the largest arguments, each byte of them escaped.
pub const TO_PARENT_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a line to the child: a program with all of its modules, escaped.
pub const TO_CHILD_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of a program: more than a model writes in one answer.
pub const SOURCE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a capability's file in TypeScript, which is parsed twice.
pub const TYPESCRIPT_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a capability's file in JavaScript: a program with the packages that it uses.
pub const JAVASCRIPT_BYTES_MAX: usize = 1024 * 1024;
/// Modules of a program, and bytes of their JavaScript: those of 1,000 tools have about 200 KiB.
pub const MODULES_MAX: usize = 2048;
/// See [`MODULES_MAX`].
pub const MODULES_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Bytes of a program's values.
pub const MEMORY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Calls of a program.
pub const CALLS_MAX: u32 = 64;
/// Calls of a program that are carried out at a time.
pub const CALLS_AT_ONCE_MAX: usize = 8;
/// Bytes of the name of a module or function.
pub const NAME_BYTES_MAX: usize = 256;
/// Bytes of a call's arguments as JSON.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a call's result as JSON: a file or a response of 1 MiB, in base64 or with what JSON escapes.
pub const ANSWER_BYTES_MAX: usize = 1536 * 1024;
/// Nesting of a value: the limit of the JSON parser is 128, less what is around a value.
pub const VALUE_DEPTH_MAX: usize = 100;
/// Lines that a program prints.
pub const LOG_LINES_MAX: usize = 512;
/// Bytes that a program prints.
pub const LOG_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a program's result as JSON.
pub const RESULT_BYTES_MAX: usize = 64 * 1024;
/// Bytes of an error's message.
pub const MESSAGE_BYTES_MAX: usize = 2 * 1024;
/// Messages of a child: calls, lines, a note where lines are left out, the beginning and the end.
pub const MESSAGES_MAX: usize = CALLS_MAX as usize + LOG_LINES_MAX + 3;

/// From the child.
#[derive(Clone, Debug, PartialEq)]
pub enum ToParent {
    /// It is ready for a program.
    Hello(Hello),
    /// The program calls a function.
    Call {
        /// 1 for the first call, one more for each.
        id: u32,
        /// What it calls.
        call: Call,
    },
    /// The program prints a line.
    Log(String),
    /// The program has ended.
    Done(Done),
    /// The program was ended by an error.
    Failed(Failure),
}

/// The child's fences, as far as the kernel has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`VERSION`].
    pub version: u32,
    /// Files, TCP and signals are closed off by Landlock.
    pub landlock: Fence,
    /// System calls are filtered by seccomp.
    pub seccomp: Fence,
}

/// Whether a fence is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fence {
    /// The kernel has all of it.
    Full,
    /// The kernel has an older version, with fewer restrictions.
    Partial,
    /// The kernel has none.
    Absent,
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Specifier of the module.
    pub module: String,
    /// Name of the function.
    pub function: String,
    /// Its one argument.
    pub arguments: Value,
}

/// The end of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Done {
    /// Its default export.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// The beginning of a default export that is too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
}

/// The beginning of a result that is too long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// The beginning of its JSON.
    pub text: String,
    /// Bytes of the whole.
    pub bytes: usize,
}

/// Why a program was ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// For the program's author.
    pub message: String,
    /// Line in the program, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in the line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Its own error, a limit, or a fault of the sandbox.
    pub kind: FailureKind,
}

/// Why a program ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The program threw an error, or is none.
    Error,
    /// Its computing time is used up.
    TimedOut,
    /// Its memory is used up.
    OutOfMemory,
    /// The sandbox itself failed.
    Internal,
}

/// Lines that the parent sends: the program first, then an answer to each call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToChild {
    /// Run this program.
    Run(Run),
    /// What a call returned.
    Answer {
        /// Number of the call, as the child has given it.
        id: u32,
        /// What it returned, or why it failed.
        result: Result<Value, CallError>,
    },
}

/// The program of a child, and what it may import and use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// TypeScript or JavaScript, an ES module.
    pub source: String,
    /// The modules that it may import.
    pub modules: Vec<Module>,
    /// Computing time, without the time of calls.
    pub compute_ms: u64,
    /// What to do with a file that defines a capability; without it the default export is the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<Task>,
}

/// What to do with a file that defines a capability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// What the file is written in.
    pub language: Language,
    /// What to do.
    pub action: Action,
}

/// The language of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// JavaScript with types, which are read.
    TypeScript,
    /// JavaScript: nothing parses it but the engine.
    JavaScript,
}

/// What to do with a capability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// The result is its definition: `{fields, functions: [{name, fields, asks}], types, lines}`.
    Define,
    /// The result is what the handler of a function returns.
    Handle {
        /// The one whose handler runs.
        function: String,
        /// What the handler is called with.
        arguments: Value,
    },
    /// The result is the question about a call, a text.
    Ask {
        /// The function that would be called.
        function: String,
        /// What it would be called with.
        arguments: Value,
        /// Computing time for the question itself, without that of the file.
        compute_ms: u64,
    },
}

/// A module that a program may import.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// What is imported.
    pub specifier: String,
    /// JavaScript, an ES module.
    pub source: String,
}

/// Why a call failed; the program gets it as a `ToolError`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallError {
    /// For programs.
    pub code: String,
    /// For people.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}

/// All fields that a line from the child may have; each kind of message has one, a call two.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToParentLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hello: Option<Hello>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<Call>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    done: Option<Done>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<Failure>,
}

/// The same of a line to the child.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToChildLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<Run>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    ok: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<CallError>,
}

/// A value that is there, also if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Why a line is no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

impl std::fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

fn limit(what: &str, bytes: usize, max: usize) -> Result<(), Malformed> {
    if bytes <= max { Ok(()) } else { Err(Malformed(format!("{what} has {bytes} bytes, {max} are the maximum"))) }
}

impl ToParent {
    /// Reads a line from the child, without its end. Every text of the message is within its limit.
    pub fn parse(line: &[u8]) -> Result<Self, Malformed> {
        limit("the line", line.len(), TO_PARENT_BYTES_MAX)?;
        let read: ToParentLine = serde_json::from_slice(line).map_err(|error| Malformed(error.to_string()))?;
        let message = match read {
            ToParentLine { id: None, hello: Some(hello), call: None, log: None, done: None, failed: None } => {
                Self::Hello(hello)
            }
            ToParentLine { id: Some(id), hello: None, call: Some(call), log: None, done: None, failed: None } => {
                limit("the module's name", call.module.len(), NAME_BYTES_MAX)?;
                limit("the function's name", call.function.len(), NAME_BYTES_MAX)?;
                limit("the arguments", call.arguments.to_string().len(), VALUE_BYTES_MAX)?;
                Self::Call { id, call }
            }
            ToParentLine { id: None, hello: None, call: None, log: Some(log), done: None, failed: None } => {
                limit("what is printed", log.len(), LOG_BYTES_MAX)?;
                Self::Log(log)
            }
            ToParentLine { id: None, hello: None, call: None, log: None, done: Some(done), failed: None } => {
                if done.result.is_some() && done.cut.is_some() {
                    return Err(Malformed("a result that is both whole and cut".to_owned()));
                }
                let bytes = done.result.as_ref().map_or(0, |result| result.to_string().len());
                limit("the result", bytes, RESULT_BYTES_MAX)?;
                limit("the result", done.cut.as_ref().map_or(0, |cut| cut.text.len()), RESULT_BYTES_MAX)?;
                Self::Done(done)
            }
            ToParentLine { id: None, hello: None, call: None, log: None, done: None, failed: Some(failed) } => {
                limit("the message", failed.message.len(), MESSAGE_BYTES_MAX)?;
                Self::Failed(failed)
            }
            _ => return Err(Malformed("neither one message nor a call with its id".to_owned())),
        };
        Ok(message)
    }

    /// The message as a line, with its end.
    pub fn line(&self) -> Result<Vec<u8>, Malformed> {
        let empty = ToParentLine::default();
        to_line(&match self.clone() {
            Self::Hello(hello) => ToParentLine { hello: Some(hello), ..empty },
            Self::Call { id, call } => ToParentLine { id: Some(id), call: Some(call), ..empty },
            Self::Log(log) => ToParentLine { log: Some(log), ..empty },
            Self::Done(done) => ToParentLine { done: Some(done), ..empty },
            Self::Failed(failed) => ToParentLine { failed: Some(failed), ..empty },
        })
    }
}

impl ToChild {
    /// Reads a line from the parent, without its end.
    pub fn parse(line: &[u8]) -> Result<Self, Malformed> {
        limit("the line", line.len(), TO_CHILD_BYTES_MAX)?;
        let read: ToChildLine = serde_json::from_slice(line).map_err(|error| Malformed(error.to_string()))?;
        match read {
            ToChildLine { id: None, run: Some(run), ok: None, error: None } => Ok(Self::Run(run)),
            ToChildLine { id: Some(id), run: None, ok: Some(value), error: None } => {
                Ok(Self::Answer { id, result: Ok(value) })
            }
            ToChildLine { id: Some(id), run: None, ok: None, error: Some(error) } => {
                Ok(Self::Answer { id, result: Err(error) })
            }
            _ => Err(Malformed("neither a program nor an answer with its id".to_owned())),
        }
    }

    /// The message as a line, with its end.
    pub fn line(&self) -> Result<Vec<u8>, Malformed> {
        let empty = ToChildLine::default();
        to_line(&match self.clone() {
            Self::Run(run) => ToChildLine { run: Some(run), ..empty },
            Self::Answer { id, result: Ok(value) } => ToChildLine { id: Some(id), ok: Some(value), ..empty },
            Self::Answer { id, result: Err(error) } => ToChildLine { id: Some(id), error: Some(error), ..empty },
        })
    }
}

fn to_line(message: &impl Serialize) -> Result<Vec<u8>, Malformed> {
    let mut line = serde_json::to_vec(message).map_err(|error| Malformed(error.to_string()))?;
    line.push(b'\n');
    Ok(line)
}

/// Whether a value nests no deeper than [`VALUE_DEPTH_MAX`].
pub fn is_shallow(value: &Value) -> bool {
    fn within(value: &Value, left: usize) -> bool {
        let Some(left) = left.checked_sub(1) else { return false };
        match value {
            Value::Array(items) => items.iter().all(|item| within(item, left)),
            Value::Object(fields) => fields.values().all(|field| within(field, left)),
            _ => true,
        }
    }
    within(value, VALUE_DEPTH_MAX)
}

/// The beginning of a text, at most so many bytes.
pub fn beginning(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}
