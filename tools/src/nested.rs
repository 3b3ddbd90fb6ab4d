//! The calls that a program makes: the handle for a tool that runs programs, and the log of what became of each call.
//!
//! The handle only queues calls. The executor takes them from the queue and passes each through all of its steps, for
//! the same user, device, turn and client as the program's own call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gateway_core::vocab::{ErrorCode, ToolCall, ToolError, ToolResult};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::{
    deadline::Deadline,
    limits::{NAME_BYTES_MAX, NESTED_ARGUMENTS_BYTES_MAX, NESTED_CALLS_MAX},
    reply::cut,
};

/// Makes calls for a program. Clones share one limit and one log, and may be used at the same time.
#[derive(Clone, Debug)]
pub struct NestedCalls(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Id of the call that runs the program.
    parent: String,
    deadline: Deadline,
    queue: mpsc::Sender<Request>,
    log: Mutex<Vec<Entry>>,
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
    /// The arguments as JSON, cut.
    pub(crate) arguments: String,
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
    Ended { outcome: Outcome, error: Option<ToolError>, ms: u64 },
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
        match result.error.as_ref().map(|error| error.code) {
            None => Self::Done,
            Some(ErrorCode::Timeout | ErrorCode::Cancelled | ErrorCode::HttpError) if begun => Self::Unknown,
            Some(ErrorCode::Cancelled) => Self::NotBegun,
            Some(_) => Self::Failed,
        }
    }
}

impl NestedCalls {
    /// The handle for the program of this call, and the queue of its calls.
    pub(crate) fn new(parent: String, deadline: Deadline) -> (Self, mpsc::Receiver<Request>) {
        // There is room for all calls that a program may make.
        let (queue, requests) = mpsc::channel(NESTED_CALLS_MAX);
        (Self(Arc::new(Shared { parent, deadline, queue, log: Mutex::default() })), requests)
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
            let message = format!("A program may make {NESTED_CALLS_MAX} calls; this one was not made.");
            return ToolResult::failed(ErrorCode::RateLimited, message, false);
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
    pub(crate) fn begin(&self, number: usize, title: String, changes: bool) {
        if let Some(entry) = self.log().get_mut(number.saturating_sub(1)) {
            (entry.title, entry.changes, entry.state) = (title, changes, State::Running);
        }
    }

    /// A call has its result. `begun`: the tool itself was called.
    pub(crate) fn end(&self, number: usize, result: &ToolResult, begun: bool, ms: u64) {
        if let Some(entry) = self.log().get_mut(number.saturating_sub(1)) {
            entry.state = State::Ended { outcome: Outcome::of(result, begun), error: result.error.clone(), ms };
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
        let arguments = cut(&arguments.to_string(), NESTED_ARGUMENTS_BYTES_MAX);
        let (title, state) = (tool.clone(), State::Waiting);
        log.push(Entry { id: id.clone(), tool, title, arguments, changes: false, state });
        Some((number, id))
    }

    fn log(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
