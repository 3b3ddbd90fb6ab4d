//! The calls that a program makes: the handle for a tool that runs programs, and the log of what became of each call.
//!
//! The handle only queues calls. The executor takes them from the queue and passes each through all of its steps, for
//! the same user, device, turn and client as the program's own call.

mod effects;

use std::{
    fmt::{self, Debug, Formatter},
    sync::{Arc, Mutex, MutexGuard, OnceLock},
};

use gateway_core::vocab::{ErrorCode, ToolCall, ToolError, ToolResult};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::{
    deadline::Deadline,
    limits::{NAME_BYTES_MAX, NESTED_ARGUMENTS_BYTES_MAX, NESTED_CALLS_MAX, RUN_ARGUMENTS_BYTES_MAX},
    mutex::lock,
    programs::{CallOutcome, Frozen, LIBRARY, RunCall},
    reply::cut,
    secret::Secrets,
};

pub use effects::Effect;
pub(crate) use effects::{Effects, title};

/// Makes calls for a program. Clones share one limit and one log, and may be used at the same time.
#[derive(Clone, Debug)]
pub struct NestedCalls(Arc<Shared>);

/// What takes the calls once they have settled.
type TakeSettled = Box<dyn FnOnce(Vec<RunCall>) + Send>;

struct Shared {
    /// Id of the call that runs the program.
    parent: String,
    deadline: Deadline,
    queue: mpsc::Sender<Request>,
    log: Mutex<Vec<Entry>>,
    secrets: Secrets,
    /// Records changes by functions that are no tools.
    effects: Arc<dyn Effects>,
    /// The tools that a routine may call.
    frozen: OnceLock<Frozen>,
    when_settled: Mutex<Option<TakeSettled>>,
}

/// A call that a program has made and that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NestedCall {
    /// `PARENT/n`, from 1 on.
    pub id: String,
    /// Full name of the tool.
    pub tool: String,
    /// Whether it succeeded.
    pub ok: bool,
    /// The kind of failure, if it failed.
    pub error: Option<ErrorCode>,
    /// Duration, including questions to the wearer, in milliseconds.
    pub ms: u64,
}

/// A call in the queue.
#[derive(Debug)]
pub(crate) struct Request {
    /// From 1 on.
    pub(crate) number: usize,
    pub(crate) call: ToolCall,
    pub(crate) reply: oneshot::Sender<ToolResult>,
}

/// A call in the log.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: String,
    /// Full name.
    pub(crate) tool: String,
    /// The name for people.
    pub(crate) title: String,
    /// The arguments as JSON, redacted and cut.
    pub(crate) arguments: String,
    /// Identifies the tool's definition; absent until the call begins.
    pub(crate) definition: Option<Arc<str>>,
    /// Whether the tool changes something.
    pub(crate) changes: bool,
    pub(crate) state: State,
}

/// How far a call has come.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// It was not begun.
    Waiting,
    /// It was begun and has not ended.
    Running,
    /// It has ended.
    Ended { outcome: Outcome, error: Option<ToolError>, ms: u64, begun: bool },
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// Refused, or failed as its tool says.
    Failed,
    /// Stopped before the tool was called.
    NotBegun,
    /// Stopped midway, or without an answer.
    Unknown,
}

impl Outcome {
    /// What became of a call with this result. `begun`: the tool itself was called.
    pub(crate) fn of(result: &ToolResult, begun: bool) -> Self {
        let Some(error) = &result.error else {
            return Self::Done;
        };
        match error.code {
            ErrorCode::Timeout | ErrorCode::Cancelled | ErrorCode::HttpError if begun => Self::Unknown,
            // It was reached, and went away in the middle.
            ErrorCode::AppNotAvailable if begun && !error.retryable => Self::Unknown,
            ErrorCode::Cancelled => Self::NotBegun,
            _ => Self::Failed,
        }
    }
}

impl NestedCalls {
    /// The handle for the program of this call, and the queue of its calls.
    pub(crate) fn new(
        parent: String,
        deadline: Deadline,
        secrets: Secrets,
        effects: Arc<dyn Effects>,
    ) -> (Self, mpsc::Receiver<Request>) {
        // There is room for all calls that a program may make.
        let (queue, requests) = mpsc::channel(NESTED_CALLS_MAX);
        let (log, frozen, when_settled) = (Mutex::default(), OnceLock::new(), Mutex::default());
        let shared = Shared { parent, deadline, queue, log, secrets, effects, frozen, when_settled };
        (Self(Arc::new(shared)), requests)
    }

    /// From now on the program may call these tools only, each with this definition. Once: the first one counts.
    pub fn freeze(&self, tools: Frozen) {
        drop(self.0.frozen.set(tools));
    }

    /// Whether the program may call a tool with this definition.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(&self, tool: &str, definition: &str) -> Result<(), String> {
        self.0.frozen.get().map_or(Ok(()), |frozen| frozen.check(tool, definition))
    }

    /// A function of the standard library is about to have an effect: it is in the account of the program from now on.
    /// `changes`: it changes something, which must not be repeated. The result's end has to be told; if it is dropped
    /// before, it is unknown what was done.
    ///
    /// # Errors
    /// The call must not be made: the program is being stopped, is a routine that may not, or the intent could not be
    /// recorded.
    pub async fn effect(&self, name: &str, arguments: &Value, changes: bool) -> Result<Effect, ToolError> {
        let refuse = |code, message: String| Err(ToolError { code, message, retryable: false });
        if let Err(message) = self.check(name, LIBRARY) {
            return refuse(ErrorCode::PermissionDenied, message);
        }
        if self.0.queue.is_closed() {
            return refuse(ErrorCode::Cancelled, "The program is being stopped; this call was not made.".to_owned());
        }
        let Some((number, _)) = self.note(name, arguments) else {
            return refuse(ErrorCode::RateLimited, too_many());
        };
        self.begin(number, title(name), changes, LIBRARY.into());
        let entry = self.log().get(number.saturating_sub(1)).cloned();
        let arguments = entry.map(|entry| cut(&entry.arguments, NESTED_ARGUMENTS_BYTES_MAX)).unwrap_or_default();
        Effect::begin(self.clone(), (number, name, arguments), changes).await
    }

    /// Calls a tool by its full name, like a model would, and returns the call's only result. A call runs to its end
    /// even if this future is dropped; one that was not begun by then is not made.
    ///
    /// Beyond [`NESTED_CALLS_MAX`] calls in total the result is a failure. If [`NESTED_AT_ONCE_MAX`] calls run, it
    /// waits for one of them. Once the program is being stopped, no call is begun.
    ///
    /// [`NESTED_AT_ONCE_MAX`]: crate::limits::NESTED_AT_ONCE_MAX
    pub async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        let Some((number, id)) = self.note(name, &arguments) else {
            return ToolResult::failed(ErrorCode::RateLimited, too_many(), false);
        };
        let (reply, result) = oneshot::channel();
        let call = ToolCall { id, name: name.to_owned(), arguments };
        // It fails only if the program is being stopped; then the result does as well.
        drop(self.0.queue.try_send(Request { number, call, reply }));
        result.await.unwrap_or_else(|_stopped| {
            ToolResult::failed(ErrorCode::Cancelled, "The program is being stopped; this call was not made.", false)
        })
    }

    /// The calls that have ended, in the order in which they were made.
    pub fn done(&self) -> Vec<NestedCall> {
        let ended = |entry: Entry| match entry.state {
            State::Waiting | State::Running => None,
            State::Ended { error, ms, .. } => {
                let error = error.map(|error| error.code);
                Some(NestedCall { id: entry.id, tool: entry.tool, ok: error.is_none(), error, ms })
            }
        };
        self.entries().into_iter().filter_map(ended).collect()
    }

    /// Once the calls have settled, `take` gets them all as they are kept, in the order in which they were made. A
    /// program that is stopped ends before its calls do, and what became of them is known only then.
    pub fn when_settled(&self, take: impl FnOnce(Vec<RunCall>) + Send + 'static) {
        *lock(&self.0.when_settled) = Some(Box::new(take));
    }

    /// All calls as they would be kept now.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> Vec<RunCall> {
        self.entries().into_iter().map(RunCall::from).collect()
    }

    /// The calls have settled, or are not waited for any longer.
    pub(crate) fn settled(&self) {
        self.0.settled();
    }

    /// When the program has to end. It stands still while the wearer is asked about one of its calls, so that a
    /// program's own time must be measured with it as well ([`Deadline::within`]).
    pub fn deadline(&self) -> &Deadline {
        &self.0.deadline
    }

    /// Id of the call that runs the program.
    pub fn parent(&self) -> &str {
        &self.0.parent
    }

    /// All calls in the order in which they were made.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.log().clone()
    }

    /// The tool of a call is found, and the call begins.
    pub(crate) fn begin(&self, number: usize, title: String, changes: bool, definition: Arc<str>) {
        if let Some(entry) = self.log().get_mut(number.saturating_sub(1)) {
            (entry.title, entry.changes, entry.state) = (title, changes, State::Running);
            entry.definition = Some(definition).filter(|definition| !definition.is_empty());
        }
    }

    /// A call has its result. `begun`: the tool itself was called.
    pub(crate) fn end(&self, number: usize, result: &ToolResult, begun: bool, ms: u64) {
        if let Some(entry) = self.log().get_mut(number.saturating_sub(1)) {
            let (outcome, error) = (Outcome::of(result, begun), result.error.clone());
            entry.state = State::Ended { outcome, error, ms, begun };
        }
    }

    /// Adds a call to the log and returns its number and id; `None`: there are too many.
    fn note(&self, name: &str, arguments: &Value) -> Option<(usize, String)> {
        let mut log = self.log();
        if log.len() >= NESTED_CALLS_MAX {
            return None;
        }
        let number = log.len() + 1;
        let id = format!("{}/{number}", self.0.parent);
        let tool = cut(name, NAME_BYTES_MAX);
        let arguments = redacted(&self.0.secrets, arguments, RUN_ARGUMENTS_BYTES_MAX);
        let (title, state) = (tool.clone(), State::Waiting);
        log.push(Entry { id: id.clone(), tool, title, arguments, definition: None, changes: false, state });
        Some((number, id))
    }

    fn log(&self) -> MutexGuard<'_, Vec<Entry>> {
        lock(&self.0.log)
    }
}

impl Shared {
    fn settled(&self) {
        let take = lock(&self.when_settled).take();
        if let Some(take) = take {
            let entries = lock(&self.log).clone();
            take(entries.into_iter().map(RunCall::from).collect());
        }
    }
}

impl Drop for Shared {
    /// Also where the executor gave the program up.
    fn drop(&mut self) {
        self.settled();
    }
}

impl Debug for Shared {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("parent", &self.parent).finish_non_exhaustive()
    }
}

/// Arguments as JSON without secrets, in at most so many bytes.
pub(crate) fn redacted(secrets: &Secrets, arguments: &Value, bytes_max: usize) -> String {
    let mut text = arguments.to_string();
    // Before it is cut: half a secret would not be found.
    secrets.redact(&mut text);
    cut(&text, bytes_max)
}

fn too_many() -> String {
    format!("A program may make {NESTED_CALLS_MAX} calls; this one was not made.")
}

impl From<Entry> for RunCall {
    fn from(entry: Entry) -> Self {
        let (outcome, error, ms, begun) = match entry.state {
            State::Waiting => (CallOutcome::NotBegun, None, 0, false),
            State::Running => (CallOutcome::Unknown, None, 0, true),
            State::Ended { outcome, error, ms, begun } => {
                let outcome = match outcome {
                    Outcome::Done => CallOutcome::Done,
                    Outcome::Failed => CallOutcome::Failed,
                    Outcome::NotBegun => CallOutcome::NotBegun,
                    Outcome::Unknown => CallOutcome::Unknown,
                };
                (outcome, error.map(|error| error.message), ms, begun)
            }
        };
        let definition = entry.definition.map(|definition| definition.to_string());
        Self { tool: entry.tool, arguments: entry.arguments, outcome, error, ms, definition, begun }
    }
}
