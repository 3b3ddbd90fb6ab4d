//! What the first request with a list of tools would otherwise wait for, done ahead: declarations are written, the
//! router's index and the grammar of commands are made, as soon as glasses are there and whenever tools change. A turn
//! that comes before that waits here for a little while, and its device's task for nothing.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chat_models::{ChatModel, Tools};
use gateway_core::vocab::ClientClass;
use tokio::{
    sync::{Semaphore, oneshot},
    time::timeout,
};
use tools::executor::Executor;

use super::compute::{Compute, Urgency};
use crate::{ranks::Ranks, roster::Roster};

/// Glasses that may wait to be prepared for: more than may be in a session. The turn does what is dropped.
const WAITING_MAX: usize = 16_384;
/// Turns that may wait for their tools at once.
const TURNS_WAITING_MAX: usize = 64;
/// How long a turn waits for that, in milliseconds: some ten times as long as thousands of tools take.
const READY_MS_MAX: u64 = 500;

/// Prepares the models for the tools of all that are connected, on a thread of its own.
#[derive(Clone)]
pub struct Preparer {
    executor: Executor,
    models: Ranks,
    roster: Arc<Roster>,
    /// Of users without glasses.
    language: String,
    compute: Compute,
    turns: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

/// Whose tools: user, device and language.
type Whose = (String, String, String);

#[derive(Default)]
struct State {
    waiting: BTreeSet<Whose>,
    /// Whether a job is queued or runs.
    at_work: bool,
    /// Lists that were prepared since there was nothing to do: most glasses have the same.
    done: Vec<(Tools, String)>,
    /// Whether all glasses are to be told when nothing waits any more.
    tell: bool,
}

impl Preparer {
    /// Starts the thread. `language` is that of users without glasses.
    ///
    /// # Errors
    /// The system gives none.
    pub fn start(executor: Executor, models: Ranks, roster: Arc<Roster>, language: String) -> std::io::Result<Self> {
        // One place more than turns have is for the job that goes through all glasses.
        let compute = Compute::start("prepare", 1, TURNS_WAITING_MAX + 1)?;
        let turns = Arc::new(Semaphore::new(TURNS_WAITING_MAX));
        Ok(Self { executor, models, roster, language, compute, turns, state: Arc::default() })
    }

    /// The tools of everybody may have changed. With `tell`, all glasses are told that they are to count at once, as soon
    /// as they can.
    pub fn prepare_all(&self, tell: bool) {
        let present = self.roster.all().into_iter().map(|(device, present)| (present.user, device, present.language));
        // Also for whoever comes next: what is built in and what servers offer is the same for all.
        let nobody = (String::new(), String::new(), self.language.clone());
        self.queue(present.chain([nobody]), tell);
    }

    /// Queues the tools that this device is offered by then; once, however often it is called meanwhile.
    pub fn prepare(&self, user: &str, device: &str, language: &str) {
        self.queue([(user.to_owned(), device.to_owned(), language.to_owned())], false);
    }

    fn queue(&self, whose: impl IntoIterator<Item = Whose>, tell: bool) {
        let mut state = self.state();
        state.tell |= tell;
        let room = WAITING_MAX.saturating_sub(state.waiting.len());
        state.waiting.extend(whose.into_iter().take(room));
        if !std::mem::replace(&mut state.at_work, true) {
            drop(state);
            self.go_on();
        }
    }

    /// One list at a time, so that a turn that waits comes in between.
    fn go_on(&self) {
        let this = self.clone();
        let job = move || {
            let next = this.state().waiting.pop_first();
            if let Some((user, device, language)) = next {
                // Whatever changes from now on is queued anew.
                this.prepare_list(&this.executor.offered(&user, &device, ClientClass::Internal).1, language);
            }
            let tell = {
                let mut state = this.state();
                state.at_work = !state.waiting.is_empty();
                if state.at_work {
                    drop(state);
                    return this.go_on();
                }
                state.done.clear();
                std::mem::take(&mut state.tell)
            };
            if tell {
                this.roster.apply_tools(None);
            }
        };
        if self.compute.submit(Urgency::Soon, job).is_err() {
            tracing::error!("there is no room for the one job that there is");
        }
    }

    fn prepare_list(&self, tools: &Tools, language: String) {
        let mut state = self.state();
        if state.done.iter().any(|(list, of)| Arc::ptr_eq(list, tools) && *of == language) {
            return;
        }
        state.done.push((tools.clone(), language.clone()));
        drop(state);
        for model in self.models.iter() {
            model.prepare(tools, &language);
        }
        tracing::debug!(tools = tools.len(), "models are prepared for these tools");
    }

    /// Waits until these models have what they need of the tools; `false` where that takes too long.
    pub async fn ready(&self, models: Ranks, tools: Tools, language: String) -> bool {
        let Ok(place) = self.turns.clone().try_acquire_owned() else {
            return false;
        };
        let (sender, done) = oneshot::channel();
        let job = move || {
            let _place = place;
            let missing = models.iter().filter(|model| !model.is_ready(&tools, &language));
            missing.for_each(|model| model.prepare(&tools, &language));
            drop(sender.send(()));
        };
        if self.compute.submit(Urgency::Now, job).is_err() {
            return false;
        }
        matches!(timeout(Duration::from_millis(READY_MS_MAX), done).await, Ok(Ok(())))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether all of these models have what they need of the tools.
pub fn are_ready<'a>(
    models: impl IntoIterator<Item = &'a Arc<dyn ChatModel>>,
    tools: &Tools,
    language: &str,
) -> bool {
    models.into_iter().all(|model| model.is_ready(tools, language))
}
