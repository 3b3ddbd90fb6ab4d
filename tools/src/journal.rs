//! The write-ahead journal of calls, for at-most-once execution: a call is recorded on disk before it is made.
//!
//! A call of a tool that changes something is an *intent*. It is committed before the side effect, and its outcome is
//! added afterwards. If the same call arrives again, after a lost answer, a reconnect or a restart, it gets the
//! outcome of the first one and is never run a second time.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use gateway_core::vocab::{ErrorCode, ToolCall, ToolResult};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::{call::CallContext, ports::PortError, programs::Run, registry::Registered};

/// Identifies a call: the first sixteen bytes of SHA-256 over everything that distinguishes it.
pub type Key = [u8; 16];

/// A call that is about to change something.
#[derive(Clone, Debug, PartialEq)]
pub struct Intent {
    /// For whom it is made.
    pub user: String,
    /// Session, turn, call id, tool and arguments.
    pub key: Key,
    /// Full name of the tool.
    pub tool: String,
    /// When it began, in milliseconds since the Unix epoch.
    pub wall_ms: i64,
    /// The call whose program makes this call; `None`: no program makes it.
    pub program: Option<Key>,
    /// The arguments of a program's call, redacted and cut, for the account of the program; otherwise empty.
    pub arguments: String,
    /// Whether a turn made it: then its wearer is told of it where nobody knows what became of it.
    pub of_turn: bool,
    /// Of a call that runs a program: what is known of the run before it begins, without secrets.
    pub run: Option<Box<Run>>,
}

/// A change that a program has begun.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Full name of the tool.
    pub tool: String,
    /// The [arguments](Intent::arguments).
    pub arguments: String,
    /// What became of it.
    pub past: Past,
}

/// A call about which the wearer is being asked: nothing of it was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AskedCall {
    /// The glasses that it was requested on, where the wearer is asked.
    pub device: String,
    /// The call, with exactly the arguments of the question.
    pub call: ToolCall,
    /// Hash of the tool's definition.
    pub definition: u64,
}

/// A question that a process before this one has put, to be put again.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftQuestion {
    /// Key of its record. The call keeps it, so that the record is there until the question is answered, or given up.
    pub key: Key,
    /// The call, and the glasses that asked.
    pub asked: AskedCall,
}

/// The outcome of a call that was begun before.
#[derive(Clone, Debug, PartialEq)]
pub enum Past {
    /// It completed with this result.
    Done(Box<ToolResult>),
    /// It was begun; whether it was completed is unknown.
    Unknown,
}

/// Stores intents. The gateway implements it.
#[async_trait]
pub trait Journal: Send + Sync {
    /// The outcome of this call, if it was begun before.
    ///
    /// # Errors
    /// The journal cannot be read.
    fn recall(&self, intent: &Intent) -> Result<Option<Past>, PortError>;

    /// The calls that the program of this call has begun.
    ///
    /// # Errors
    /// The journal cannot be read.
    fn made_by(&self, program: &Intent) -> Result<Vec<Made>, PortError> {
        let _ = program;
        Ok(Vec::new())
    }

    /// Records the intent; when this returns, it is on disk.
    ///
    /// # Errors
    /// Nothing was recorded, so the call must not be made.
    async fn begin(&self, intent: &Intent) -> Result<(), PortError>;

    /// Records that the wearer is asked about this call, so that it can be asked again after a restart. What follows is
    /// [`begin`](Self::begin), which replaces this record, or [`withdraw`](Self::withdraw). It does not wait for the disk.
    fn ask(&self, intent: &Intent, asked: AskedCall) {
        let _ = (intent, asked);
    }

    /// The call is not made, or is not recorded: what [`ask`](Self::ask) has recorded is removed.
    fn withdraw(&self, intent: &Intent) {
        let _ = intent;
    }

    /// Adds the outcome. From now on [`recall`](Self::recall) returns it. This does not wait for the disk: if the
    /// outcome does not get there, it is correctly reported as unknown after a restart.
    fn finish(&self, intent: &Intent, result: &ToolResult);
}

/// The key of a call. The parts' lengths are hashed as well, so that different parts cannot yield the same input.
pub fn key(parts: &[&[u8]]) -> Key {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().first_chunk().copied().unwrap_or_default()
}

/// The result for a call whose outcome is unknown.
pub(crate) fn unknown() -> ToolResult {
    let message = "This call was begun before and what became of it is not known. It is not repeated.";
    let mut result = ToolResult::failed(ErrorCode::ExecutionError, message, false);
    result.say = Some("I started that before, and I don't know whether it was done.".to_owned());
    result
}

/// The record of a question. If it is dropped before the call is begun, the record goes.
pub(crate) struct OpenQuestion<'a> {
    journal: &'a dyn Journal,
    intent: &'a Intent,
    is_begun: bool,
}

impl<'a> OpenQuestion<'a> {
    /// Records the question about a call of a turn on glasses; any other caller is gone after a restart.
    pub(crate) fn record(
        journal: &'a dyn Journal,
        intent: &'a Intent,
        context: &CallContext,
        tool: &Registered,
        call: &ToolCall,
    ) -> Option<Self> {
        let device = context.device.clone().filter(|_| context.session.is_some() && context.turn.is_some())?;
        journal.ask(intent, AskedCall { device, call: call.clone(), definition: tool.definition_hash() });
        Some(Self { journal, intent, is_begun: false })
    }

    /// The intent is recorded in its place.
    pub(crate) fn begun(question: Option<Self>) {
        if let Some(mut question) = question {
            question.is_begun = true;
        }
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if !self.is_begun {
            self.journal.withdraw(self.intent);
        }
    }
}

type Watched = watch::Receiver<Option<ToolResult>>;

/// Calls that are currently running, by user and key.
#[derive(Clone, Default)]
pub(crate) struct Running(Arc<Mutex<BTreeMap<(String, Key), Watched>>>);

/// Whether a call is the first one with its key.
pub(crate) enum Entry {
    /// It is the first; its place is held until this is dropped.
    First(Place),
    /// The same call is already running, and this one gets its result.
    Same(Watched),
}

/// The place of a running call.
pub(crate) struct Place {
    running: Running,
    at: (String, Key),
    result: watch::Sender<Option<ToolResult>>,
}

impl Running {
    pub(crate) fn enter(&self, intent: &Intent) -> Entry {
        let at = (intent.user.clone(), intent.key);
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = running.get(&at) {
            return Entry::Same(other.clone());
        }
        let (result, watched) = watch::channel(None);
        running.insert(at.clone(), watched);
        Entry::First(Place { running: self.clone(), at, result })
    }
}

impl Place {
    /// Passes the result to the calls that wait for it.
    pub(crate) fn tell(&self, result: &ToolResult) {
        // Results are cloned only if a call waits; the map itself holds one receiver.
        if self.result.receiver_count() > 1 {
            self.result.send_replace(Some(result.clone()));
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.running.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.at);
    }
}

/// Waits for the result of the call that is already running.
pub(crate) async fn wait(mut other: Watched) -> ToolResult {
    match other.wait_for(Option::is_some).await {
        Ok(result) => result.clone().unwrap_or_else(unknown),
        // It ended without a result: its future was dropped.
        Err(_) => unknown(),
    }
}
