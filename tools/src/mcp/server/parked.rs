//! Calls that wait until their client comes back with answers (2026-07-28).

use std::{
    collections::BTreeMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rmcp::ErrorData;
use serde_json::Value;
use tokio_util::task::TaskTracker;

use super::line::{Call, Question};

/// Calls of one user and class that wait at once.
const PARKED_MAX: usize = 64;
/// How long one waits.
const PARKED_MS: u64 = 120_000;

/// A call that waits.
pub(super) struct Waiting {
    pub(super) call: Call,
    pub(super) question: Question,
    /// What was called, with which arguments: the answers are for nothing else.
    pub(super) what: u64,
}

/// The calls that wait, by handle.
#[derive(Clone, Default)]
pub(super) struct Parked(Arc<Mutex<BTreeMap<String, Waiting>>>);

impl Parked {
    /// Parks a call; gives its handle, which nobody can guess.
    pub(super) fn park(&self, waiting: Waiting, tracker: &TaskTracker) -> Result<String, ErrorData> {
        // Each state is seeded by the system's random numbers.
        let random = || RandomState::new().hash_one(0_u8);
        let handle = format!("{:016x}{:016x}", random(), random());
        {
            let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if parked.len() >= PARKED_MAX {
                let message = format!("{PARKED_MAX} calls already wait for answers; answer those first");
                return Err(ErrorData::internal_error(message, None));
            }
            parked.insert(handle.clone(), waiting);
        }
        let (parked, expired) = (self.clone(), handle.clone());
        tracker.spawn(async move {
            tokio::time::sleep(Duration::from_millis(PARKED_MS)).await;
            drop(parked.remove(&expired));
        });
        Ok(handle)
    }

    /// Gives the call back to the client that brings its handle.
    pub(super) fn take(&self, handle: &str, what: u64) -> Result<Waiting, ErrorData> {
        let unknown = || ErrorData::invalid_params("this requestState is unknown, used, or has expired", None);
        let waiting = self.remove(handle).ok_or_else(unknown)?;
        if waiting.what != what {
            return Err(ErrorData::invalid_params("this requestState belongs to another request", None));
        }
        Ok(waiting)
    }

    fn remove(&self, handle: &str) -> Option<Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(handle)
    }
}

/// The answers to a question; `None`: some are missing.
pub(super) fn answers(question: &Question, mut given: BTreeMap<String, Value>) -> Option<BTreeMap<String, Value>> {
    question.requests.keys().map(|key| Some((key.clone(), given.remove(key)?))).collect()
}
