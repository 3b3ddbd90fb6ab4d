//! Runs programs that models write. Each runs in a child process of its own, behind the kernel's fences
//! (`code_sandbox`), and reaches nothing but the functions of its host. docs/code.md has limits and threat model.
//!
//! Start with [`Sandbox::run`]. [`handlers`] are the programs that carry out calls of capabilities; [`bridge`] checks what a child sends, `process` starts and ends children, `run` passes
//! a program's calls to its host.

pub mod bridge;
mod content;
mod engine;
pub mod handlers;
mod keep;
pub mod modules;
pub mod names;
mod process;
pub mod routine;
mod run;
mod sandbox;
pub mod std;
pub mod tools;

use ::std::time::Duration;

use async_trait::async_trait;
pub use code_sandbox::protocol::{
    Action, CALLS_AT_ONCE_MAX, CALLS_MAX, JAVASCRIPT_BYTES_MAX, Language, RESULT_BYTES_MAX, SOURCE_BYTES_MAX,
    TYPESCRIPT_BYTES_MAX, Task,
};
pub use engine::Engine;
pub use sandbox::Sandbox;
use serde_json::Value;

/// Computing time of a program, at most: half of what the kernel allows its process.
pub const COMPUTE_MAX: Duration = Duration::from_secs(30);
/// Time of a program with all of its calls, at most: ten questions to the wearer.
pub const WALL_MAX: Duration = Duration::from_secs(600);
/// Bytes of a result for a model: it has to read them in each later request.
pub const PROGRAM_CONTENT_BYTES_MAX: usize = 8 * 1024;

/// What a child runs, and the modules that it is given.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// TypeScript or JavaScript, an ES module.
    pub source: String,
    /// What it may import: specifiers, and the JavaScript of the modules.
    pub modules: Vec<(String, String)>,
    /// What to do with a file that defines a capability; without it the default export is the result.
    pub task: Option<Task>,
}

/// Limits of one run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Computing time. It stands still while calls are carried out, also while the wearer is asked.
    pub compute: Duration,
    /// Time of the whole run.
    pub wall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { compute: Duration::from_secs(5), wall: Duration::from_secs(300) }
    }
}

/// What a program's functions do, and where its words go.
#[async_trait]
pub trait Host: Send + Sync {
    /// Carries out a call. Up to [`CALLS_AT_ONCE_MAX`] run at a time. Names and arguments are not checked.
    async fn call(&self, module: &str, function: &str, arguments: Value) -> Result<Value, HostError>;

    /// The program printed a line. It will be in [`Outcome::logs`], too.
    fn log(&self, line: &str);
}

/// Why a call failed. The program gets it as a `ToolError`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostError {
    /// For programs.
    pub code: String,
    /// For the program's author.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
}

/// What came of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Its default export.
    pub result: Option<Value>,
    /// The beginning of a default export that is too long, and the bytes of the whole.
    pub cut: Option<(String, usize)>,
    /// The lines that it printed.
    pub logs: Vec<String>,
    /// Why it ended early.
    pub error: Option<ProgramError>,
    /// How it ended.
    pub ended: Ended,
}

/// Why a program ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramError {
    /// For the program's author.
    pub message: String,
    /// Line in the program, from 1.
    pub line: Option<u32>,
    /// Column in the line, from 1.
    pub column: Option<u32>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It ran to its end.
    Finished,
    /// It threw an error, or is no program.
    Failed,
    /// It ran too long.
    TimedOut,
    /// It used too much memory.
    OutOfMemory,
    /// Its run was cancelled.
    Cancelled,
    /// Its process broke off, or sent what no program can send.
    Crashed,
    /// No process could be started for it.
    Unavailable,
}

impl Outcome {
    /// A program that has ended so.
    fn new(ended: Ended) -> Self {
        Self { result: None, cut: None, logs: Vec::new(), error: None, ended }
    }

    /// A program that ended early.
    fn early(ended: Ended, message: impl Into<String>) -> Self {
        let error = ProgramError { message: message.into(), line: None, column: None };
        Self { error: Some(error), ..Self::new(ended) }
    }
}
