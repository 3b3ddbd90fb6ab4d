//! Prepares tool lists ahead of the first request that uses them: serialises declarations, builds the router's index
//! and the grammar of commands, when glasses connect and whenever tools change. A turn that comes earlier waits here
//! for a bounded time; the device's task never waits.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chat_models::{ChatModel, Request, Tools};
use gateway_core::{
    input::Input,
    vocab::{ClientClass, Turn},
};
use tokio::{
    sync::{Semaphore, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tools::{code::modules::Modules, executor::Executor, registry::Registry};

use crate::{
    mailbox::{DeviceMessage, Mailbox},
    models::chain::ModelChain,
    roster::Roster,
    runtime::compute::{Compute, Urgency},
};

/// Glasses that may wait to be prepared for: more than may be in a session. Dropped work is done by the turn itself.
const WAITING_MAX: usize = 16_384;
/// Turns that may wait for their tools at once.
const TURNS_WAITING_MAX: usize = 64;
/// How long a turn waits for its tools, in milliseconds: about ten times what thousands of tools take.
const READY_MS_MAX: u64 = 500;

/// Prepares the models for the tools of all connected devices, on its own thread.
#[derive(Clone)]
pub struct Preparer {
    offered: Arc<Offered>,
    models: ModelChain,
    roster: Arc<Roster>,
    /// Language of users without glasses.
    language: String,
    compute: Compute,
    turns: Arc<Semaphore>,
    state: Arc<Mutex<State>>,
}

/// The tools that are offered to someone.
type Offered = dyn Fn(&Audience) -> Tools + Send + Sync;

/// To whom a list of tools is offered.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Audience {
    /// Every user.
    Everybody,
    /// A user's glasses.
    Glasses { user: String, device: String },
}

#[derive(Default)]
struct State {
    /// With their languages.
    waiting: BTreeSet<(Audience, String)>,
    /// Whether a job is queued or runs.
    at_work: bool,
    /// Lists prepared since the queue was last empty: most glasses have the same.
    done: Vec<(Tools, String)>,
    /// Whether all glasses are to be notified when the queue is empty.
    tell: bool,
}

impl Preparer {
    /// Starts the thread. `language`: for users without glasses.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(
        (executor, modules): (Executor, Arc<Modules>),
        models: ModelChain,
        roster: Arc<Roster>,
        language: String,
    ) -> std::io::Result<Self> {
        let client = ClientClass::Internal;
        let by_programs = models.iter().any(|model| model.calls_by_programs());
        let offered = move |audience: &Audience| match audience {
            Audience::Everybody => executor.common(client),
            Audience::Glasses { user, device } => {
                if by_programs {
                    modules.prepare(&executor, user, device);
                }
                executor.offered(user, Some(device), client).1
            }
        };
        Self::with(Arc::new(offered), models, roster, language)
    }

    fn with(offered: Arc<Offered>, models: ModelChain, roster: Arc<Roster>, language: String) -> std::io::Result<Self> {
        // One place more than turns have, for the job that goes through all glasses.
        let compute = Compute::start("prepare", 1, TURNS_WAITING_MAX + 1)?;
        let turns = Arc::new(Semaphore::new(TURNS_WAITING_MAX));
        Ok(Self { offered, models, roster, language, compute, turns, state: Arc::default() })
    }

    /// Prepares again for all devices, since any user's tools may have changed. With `tell`, all glasses are notified
    /// as soon as possible that the new tools apply at once.
    pub(crate) fn prepare_all(&self, tell: bool) {
        let present = self.roster.all().into_iter().map(|(device, present)| {
            let audience = Audience::Glasses { user: present.user, device };
            (audience, present.language)
        });
        // For users who connect next: most are offered these.
        let everybody = (Audience::Everybody, self.language.clone());
        self.queue(present.chain([everybody]), tell);
    }

    /// Prepares for the present tools, and again whenever they change or are switched. With `at_once`, all glasses are
    /// notified of a change.
    pub(crate) async fn keep_up(self, registry: Arc<Registry>, at_once: bool, stop: CancellationToken) {
        let mut changes = registry.changes();
        self.prepare_all(false);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Ok(()) = changes.changed() => self.prepare_all(at_once),
                else => return,
            }
        }
    }

    /// Jobs that wait, and those refused since the start.
    pub fn load(&self) -> (usize, u64) {
        self.compute.load()
    }

    /// Whether its thread runs.
    pub(crate) fn is_running(&self) -> bool {
        self.compute.is_running()
    }

    /// Queues the tools that this device is offered at the time the job runs. Repeated calls until then queue it once.
    pub fn prepare(&self, user: &str, device: &str, language: &str) {
        let audience = Audience::Glasses { user: user.to_owned(), device: device.to_owned() };
        self.queue([(audience, language.to_owned())], false);
    }

    fn queue(&self, lists: impl IntoIterator<Item = (Audience, String)>, tell: bool) {
        let mut state = self.state();
        state.tell |= tell;
        let room = WAITING_MAX.saturating_sub(state.waiting.len());
        state.waiting.extend(lists.into_iter().take(room));
        if !std::mem::replace(&mut state.at_work, true) {
            drop(state);
            self.go_on();
        }
    }

    /// One list per job, so that a waiting turn can run in between.
    fn go_on(&self) {
        let this = self.clone();
        let job = move || {
            let next = this.state().waiting.pop_first();
            if let Some((audience, language)) = next {
                // Changes from now on are queued again.
                this.prepare_list(&(this.offered)(&audience), language);
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

    /// Waits until these models are prepared for the tools; `false` on timeout.
    pub async fn ready(&self, models: ModelChain, tools: Tools, language: String) -> bool {
        self.ready_within(Duration::from_millis(READY_MS_MAX), models, tools, language).await
    }

    async fn ready_within(&self, wait: Duration, models: ModelChain, tools: Tools, language: String) -> bool {
        let Ok(place) = self.turns.clone().try_acquire_owned() else {
            return false;
        };
        let (sender, done) = oneshot::channel();
        let job = move || {
            let _place = place;
            let missing = models.iter().filter(|model| !model.is_ready(&tools, &language));
            missing.for_each(|model| model.prepare(&tools, &language));
            // The caller may have timed out.
            let _gone = sender.send(());
        };
        if self.compute.submit(Urgency::Now, job).is_err() {
            return false;
        }
        matches!(timeout(wait, done).await, Ok(Ok(())))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the box's own answer as soon as the tools are prepared; returns whether there is one.
pub(crate) async fn answered_late(
    preparer: &Preparer,
    model: &Arc<dyn ChatModel>,
    request: &Request,
    turn: Turn,
    mailbox: &Mailbox,
) -> bool {
    if !preparer.ready([model.clone()].into(), request.tools.clone(), request.language.clone()).await {
        return false;
    }
    let Some(events) = model.answer_on_box(request) else {
        return false;
    };
    // If the device is gone, the answer is not needed.
    drop(mailbox.send(DeviceMessage::from(Input::AnsweredOnBox { turn, events })).await);
    true
}

/// Whether all of these models are prepared for the tools.
pub(crate) fn are_ready<'a>(
    models: impl IntoIterator<Item = &'a Arc<dyn ChatModel>>,
    tools: &Tools,
    language: &str,
) -> bool {
    models.into_iter().all(|model| model.is_ready(tools, language))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc as sync;

    use async_trait::async_trait;
    use gateway_core::vocab::{ModelEvent, ToolSpec};
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;
    use tools::ports::DeviceStatus;

    use super::*;
    use crate::{
        roster::{Present, Via},
        transport::Transport,
    };

    /// Is ready for lists of as many tools as it was prepared for; reports each one, and continues on a signal.
    struct Slow {
        begun: sync::SyncSender<usize>,
        go_on: Mutex<sync::Receiver<()>>,
        known: Mutex<BTreeSet<usize>>,
    }

    #[async_trait]
    impl ChatModel for Slow {
        fn name(&self) -> &str {
            "slow"
        }

        fn prepare(&self, tools: &Tools, _language: &str) {
            self.begun.send(tools.len()).unwrap();
            // A test that has ended sends nothing more.
            let _ended = self.go_on.lock().unwrap().recv();
            self.known.lock().unwrap().insert(tools.len());
        }

        fn is_ready(&self, tools: &Tools, _language: &str) -> bool {
            self.known.lock().unwrap().contains(&tools.len())
        }

        async fn stream(&self, _: Request, _: mpsc::Sender<ModelEvent>, _: CancellationToken) {}
    }

    struct Fixture {
        preparer: Preparer,
        begun: sync::Receiver<usize>,
        go_on: sync::SyncSender<()>,
        messages: Vec<mpsc::Receiver<DeviceMessage>>,
    }

    fn tools(count: usize) -> Tools {
        (0..count).map(|_| Arc::new(ToolSpec::default())).collect()
    }

    /// Three pairs of glasses. All have the same list except that of the user with one tool more.
    fn fixture() -> Fixture {
        let (roster, mut messages) = (Arc::new(Roster::default()), Vec::new());
        for (device, user) in [("d1", "ann"), ("d2", "bob"), ("d3", "more")] {
            let (mailbox, received) = mpsc::channel(4);
            let via = Via::new(Transport::WSS, ([127, 0, 0, 1], 1).into(), 0);
            let status = Arc::new(Mutex::new(DeviceStatus::default()));
            let present = Present {
                session: 1,
                user: user.into(),
                language: "en".into(),
                mailbox,
                ending: Default::default(),
                status,
                via,
            };
            assert!(matches!(roster.enter(device, present, 9), Ok(None)));
            messages.push(received);
        }
        let (begun_in, begun) = sync::sync_channel(16);
        let (go_on, told) = sync::sync_channel(16);
        let slow = Slow { begun: begun_in, go_on: Mutex::new(told), known: Mutex::default() };
        let (usual, more) = (tools(2), tools(3));
        let offered = Arc::new(move |audience: &Audience| match audience {
            Audience::Glasses { user, .. } if user == "more" => more.clone(),
            _ => usual.clone(),
        });
        let models: ModelChain = [Arc::new(slow) as Arc<dyn ChatModel>].into();
        let preparer = Preparer::with(offered, models, roster, "en".into()).unwrap();
        Fixture { preparer, begun, go_on, messages }
    }

    #[test]
    fn equal_glasses_are_prepared_for_once_and_told_when_all_are() {
        let mut fixture = fixture();
        fixture.preparer.prepare_all(true);
        assert_eq!(fixture.begun.recv(), Ok(2));
        // More calls while one job is running change nothing.
        fixture.preparer.prepare_all(false);
        fixture.go_on.send(()).unwrap();
        assert_eq!(fixture.begun.recv(), Ok(3));
        assert!(fixture.messages.iter_mut().all(|messages| messages.try_recv().is_err()), "not all are prepared yet");
        fixture.go_on.send(()).unwrap();
        for messages in &mut fixture.messages {
            assert!(matches!(messages.blocking_recv(), Some(DeviceMessage::ApplyTools)));
        }
        assert!(fixture.begun.try_recv().is_err(), "each list once");
    }

    #[tokio::test]
    async fn a_turn_waits_for_its_tools_and_not_for_ever() {
        let fixture = fixture();
        let ready = |tools: Tools, wait: Duration| {
            let (models, language) = (fixture.preparer.models.clone(), "en".to_owned());
            assert!(!are_ready(models.iter(), &tools, &language));
            fixture.preparer.ready_within(wait, models, tools, language)
        };
        // Nothing lets it continue.
        assert!(!ready(tools(7), Duration::ZERO).await);
        fixture.go_on.send(()).unwrap();
        fixture.go_on.send(()).unwrap();
        assert!(ready(tools(8), Duration::from_secs(60)).await);
        assert_eq!(fixture.begun.iter().take(2).collect::<Vec<_>>(), [7, 8]);
    }
}
