//! What went wrong with apps lately, each with the request that caused it: for who writes them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use gateway_core::vocab::ErrorCode;
use serde::{Deserialize, Serialize};

use crate::reply::cut;

/// Faults kept of one app: who debugs looks at the last few.
pub const FAULTS_PER_APP_MAX: usize = 32;
/// Apps whose faults are kept: more than one box has installed.
pub const APPS_MAX: usize = 128;
/// Bytes kept of a request or an answer: its beginning tells what it was.
pub const EXCERPT_BYTES_MAX: usize = 2 * 1024;

/// Something that went wrong with an app. Holds the wearer's words: for the operator only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// When, in milliseconds since the Unix epoch.
    pub wall_ms: i64,
    /// What was being done: the tool's own name, or `webhook`, `socket`.
    pub what: String,
    /// Kind of failure.
    pub code: ErrorCode,
    /// In words.
    pub message: String,
    /// Where the request went, and its body; cut to the limit.
    pub request: String,
    /// The beginning of the answer; empty when there was none.
    pub answer: String,
}

/// The latest faults of each app.
#[derive(Default)]
pub struct Faults(Mutex<BTreeMap<String, VecDeque<Fault>>>);

impl Faults {
    /// Keeps a fault in place of the app's oldest.
    pub fn record(&self, package: &str, mut fault: Fault) {
        fault.request = cut(&fault.request, EXCERPT_BYTES_MAX);
        fault.answer = cut(&fault.answer, EXCERPT_BYTES_MAX);
        fault.message = cut(&fault.message, EXCERPT_BYTES_MAX);
        let mut apps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !apps.contains_key(package) && apps.len() >= APPS_MAX {
            return;
        }
        let faults = apps.entry(package.to_owned()).or_default();
        if faults.len() >= FAULTS_PER_APP_MAX {
            faults.pop_front();
        }
        faults.push_back(fault);
    }

    /// An app's faults, oldest first.
    pub fn of(&self, package: &str) -> Vec<Fault> {
        let apps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        apps.get(package).map(|faults| faults.iter().cloned().collect()).unwrap_or_default()
    }

    /// Forgets an app, as when it is removed.
    pub fn forget(&self, package: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(package);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(at: i64) -> Fault {
        Fault {
            wall_ms: at,
            what: "add".into(),
            code: ErrorCode::HttpError,
            message: "status 500".into(),
            request: "x".repeat(EXCERPT_BYTES_MAX * 2),
            answer: String::new(),
        }
    }

    #[test]
    fn the_latest_are_kept_and_cut() {
        let faults = Faults::default();
        for at in 0..FAULTS_PER_APP_MAX as i64 + 3 {
            faults.record("com.example.todo", fault(at));
        }
        let kept = faults.of("com.example.todo");
        assert_eq!((kept.len(), kept[0].wall_ms), (FAULTS_PER_APP_MAX, 3));
        assert!(kept.iter().all(|fault| fault.request.len() <= EXCERPT_BYTES_MAX));
        assert!(faults.of("com.example.other").is_empty());
        faults.forget("com.example.todo");
        assert!(faults.of("com.example.todo").is_empty());
    }

    #[test]
    fn no_more_apps_are_kept_than_the_limit() {
        let faults = Faults::default();
        for at in 0..APPS_MAX + 1 {
            faults.record(&format!("app{at}"), fault(0));
        }
        assert!(faults.of(&format!("app{APPS_MAX}")).is_empty());
        assert_eq!(faults.of("app0").len(), 1);
    }
}
