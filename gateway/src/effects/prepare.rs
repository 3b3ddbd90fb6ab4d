//! What the first request with a list of tools would otherwise wait for, done ahead: declarations are written, the
//! router's index and the grammar of commands are made, as soon as glasses are there and whenever tools change.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gateway_core::vocab::ClientClass;
use tools::executor::Executor;

use super::compute::{Compute, Urgency};
use crate::{ranks::Ranks, roster::Roster};

/// Lists that may wait: about as many as there are glasses on one box. The first request does what is dropped.
const WAITING_MAX: usize = 64;

/// Prepares the models for the tools of all that are connected, on a thread of its own.
#[derive(Clone)]
pub struct Preparer {
    executor: Executor,
    models: Ranks,
    compute: Compute,
    waiting: Arc<Mutex<BTreeSet<Whose>>>,
}

/// Whose tools: user, device and language.
type Whose = (String, String, String);

impl Preparer {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives none.
    pub fn start(executor: Executor, models: Ranks) -> std::io::Result<Self> {
        let compute = Compute::start("prepare", 1, WAITING_MAX)?;
        Ok(Self { executor, models, compute, waiting: Arc::default() })
    }

    /// The tools of everybody may have changed. `language` is that of users without glasses.
    pub fn prepare_all(&self, roster: &Roster, language: &str) {
        // Also for whoever comes next: what is built in and what servers offer is the same for all.
        self.prepare("", "", language);
        for (device, present) in roster.all() {
            self.prepare(&present.user, &device, &present.language);
        }
    }

    /// Queues the tools that this device is offered by then; once, however often it is called meanwhile.
    pub fn prepare(&self, user: &str, device: &str, language: &str) {
        let whose = (user.to_owned(), device.to_owned(), language.to_owned());
        if !self.waiting().insert(whose.clone()) {
            return;
        }
        let (this, key) = (self.clone(), whose.clone());
        let job = move || {
            // Before it looks: whatever changes from now on is another job.
            this.waiting().remove(&key);
            let (user, device, language) = key;
            let (revision, tools) = this.executor.offered(&user, &device, ClientClass::Internal);
            for model in this.models.iter() {
                model.prepare(&tools, &language);
            }
            tracing::debug!(device, revision, tools = tools.len(), "models are prepared for these tools");
        };
        if self.compute.submit(Urgency::Soon, job).is_err() {
            self.waiting().remove(&whose);
            tracing::debug!(device, "too many lists of tools wait: the first request with this one prepares it");
        }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeSet<Whose>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
