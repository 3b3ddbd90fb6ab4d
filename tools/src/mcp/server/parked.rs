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

use super::call_channel::{Call, Question};

/// Maximum waiting calls of one user and class.
const PARKED_MAX: usize = 64;
/// How long a call may wait.
const PARKED_MS: u64 = 120_000;

/// A call that was answered with a question, and goes on with its answer.
pub(super) struct Waiting {
    pub(super) call: Call,
    pub(super) question: Question,
    /// The tool and the arguments: the answers are valid for nothing else.
    pub(super) what: u64,
}

/// The waiting calls, by handle.
#[derive(Clone, Default)]
pub(super) struct Parked(Arc<Mutex<BTreeMap<String, Waiting>>>);

impl Parked {
    /// Parks a call; returns its unguessable handle.
    pub(super) fn park(&self, waiting: Waiting, tracker: &TaskTracker) -> Result<String, ErrorData> {
        // Each hasher state is seeded by the system's random number generator.
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

    /// Returns the call to the client that presents its handle.
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
