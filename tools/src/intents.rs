//! At most once: what is about to be done is written down before it is done.
//!
//! A call of a tool that changes something is an *intent*. It is committed before the side effect
//! and gets its outcome behind it. The same call seen again, after a lost answer, a reconnect or a
//! restart, finds what became of the first one and is never run a second time.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use gateway_core::vocab::{ErrorCode, ToolResult};
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::ports::PortError;

/// Names a call once and for all: the first sixteen bytes of SHA-256 over everything that makes it
/// this call.
pub type Key = [u8; 16];

/// A call that is about to change something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Whose call.
    pub user: String,
    /// Session, turn, call id, tool and arguments.
    pub key: Key,
    /// Full name of the tool.
    pub tool: String,
    /// When it began, in milliseconds since the Unix epoch.
    pub wall_ms: i64,
}

/// What became of a call that was begun before.
#[derive(Clone, Debug, PartialEq)]
pub enum Past {
    /// It came to this result.
    Done(Box<ToolResult>),
    /// It was begun; whether it was done is not known.
    Unknown,
}

/// Keeps intents. The gateway stores them.
#[async_trait]
pub trait Journal: Send + Sync {
    /// What became of this call, where it was begun before.
    ///
    /// # Errors
    /// The journal cannot be read.
    fn recall(&self, intent: &Intent) -> Result<Option<Past>, PortError>;

    /// Writes the intent down; when this returns, it is on disk.
    ///
    /// # Errors
    /// Nothing was written, and so nothing may be done.
    async fn begin(&self, intent: &Intent) -> Result<(), PortError>;

    /// Adds the outcome. From now on [`recall`](Self::recall) tells it; that it reaches the disk is
    /// not waited for: where it does not, the outcome is unknown, which is the truth.
    fn finish(&self, intent: &Intent, result: &ToolResult);
}

/// The key of a call. Lengths go in, so that no two calls share their bytes.
pub fn key(parts: &[&[u8]]) -> Key {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().first_chunk().copied().unwrap_or_default()
}

/// What is told of a call whose outcome is not known.
pub(crate) fn unknown() -> ToolResult {
    let message = "This call was begun before and what became of it is not known. It is not repeated.";
    let mut result = ToolResult::failed(ErrorCode::ExecutionError, message, false);
    result.say = Some("I started that before, and I don't know whether it was done.".to_owned());
    result
}

type Watched = watch::Receiver<Option<ToolResult>>;

/// Calls that run at this moment, by user and key.
#[derive(Clone, Default)]
pub(crate) struct Running(Arc<Mutex<BTreeMap<(String, Key), Watched>>>);

/// Whether a call is the first of its key.
pub(crate) enum Entry {
    /// It is; the place is kept until this is dropped.
    First(Place),
    /// Another one runs, and this will have its result.
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
    /// Gives the result to whoever waits for the same call.
    pub(crate) fn tell(&self, result: &ToolResult) {
        // Results are copied only for those who wait; the map itself holds one receiver.
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

/// The result of the call that runs already.
pub(crate) async fn wait(mut other: Watched) -> ToolResult {
    match other.wait_for(Option::is_some).await {
        Ok(result) => result.clone().unwrap_or_else(unknown),
        // It ended without telling: its future was dropped.
        Err(_) => unknown(),
    }
}
