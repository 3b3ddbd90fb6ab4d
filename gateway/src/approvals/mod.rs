//! The approval broker: carries a tool call's request for consent from the executor to the device's conversation, and
//! the settlement back. The core decides; the broker keeps the pending requests and notifies admin clients.

mod event;

use std::{
    collections::BTreeMap,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::{
    input::{Input, UserInput},
    vocab::{AnsweredBy, Approval, ApprovalChoice, ApprovalOutcome, Settlement},
};
use tokio::sync::{broadcast, oneshot};
use tokio_util::sync::CancellationToken;
use tools::{
    ports::{Consent, ConsentRequest, Decision},
    registry::Registry,
};

pub(crate) use self::event::Event;
use crate::{clock, mailbox::DeviceMessage, roster::Roster};

/// How long an answer to a question may take, in milliseconds, from when it is put: time to read it, to think, and to
/// say it twice.
pub(crate) const ANSWER_MS_MAX: u32 = 30_000;
/// Questions of all devices that wait at once; each device has a smaller limit of its own in the core.
const OPEN_MAX: usize = 256;
/// Events that a slow admin client may be behind before it misses some.
const EVENTS_WAITING_MAX: usize = 64;
/// Admin clients that watch at once: each holds a connection to the control socket.
pub(crate) const WATCHERS_MAX: usize = 4;
/// How long an admin client waits to learn what came of its answer: the core settles at once what it settles.
const SETTLED_MS_MAX: u64 = 2_000;

/// Why an answer of an admin client had no effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// No such question.
    #[error("no question {0} is open; `lorgnette approvals list` shows those that are")]
    NotOpen(u64),
    /// Another question comes first, or the glasses have just gone.
    #[error(
        "question {0} is not being asked yet: a wearer is asked one thing after another; answer the first one first"
    )]
    NotPut(u64),
}

/// Tells the machine of a user; `false` where it is not there to be told.
pub(crate) type TellUser = dyn Fn(&str, UserInput) -> bool + Send + Sync;

/// Questions to the wearer: asked and decided in the device's conversation.
pub struct ApprovalBroker {
    roster: Arc<Roster>,
    registry: Arc<Registry>,
    users: OnceLock<Box<TellUser>>,
    next: AtomicU32,
    open: Mutex<BTreeMap<u64, Open>>,
    events: broadcast::Sender<Event>,
    /// Held by each [`Looking`] besides.
    looked_at: Arc<()>,
}

/// An operator looks at the questions on a page and can answer them there, for as long as this is held.
pub(crate) struct Looking {
    _looked_at: Arc<()>,
}

/// A question that somebody waits for.
struct Open {
    arguments_hash: u64,
    reference: u64,
    /// The glasses that are asked; `None`: only an operator can answer.
    device: Option<String>,
    event: Event,
    reply: oneshot::Sender<Decision>,
}

/// Withdraws the question when the requester is dropped.
struct WithdrawOnDrop<'a> {
    approvals: &'a ApprovalBroker,
    id: u64,
}

impl ApprovalBroker {
    /// None is open.
    pub fn new(roster: Arc<Roster>, registry: Arc<Registry>) -> Self {
        // Not from 1 on: glasses that still show a question of before a restart must not answer a new one with it.
        let first = RandomState::new().hash_one(clock::wall_ms()) as u32 / 2;
        Self {
            roster,
            registry,
            users: OnceLock::new(),
            next: AtomicU32::new(first.max(1)),
            open: Mutex::default(),
            events: broadcast::Sender::new(EVENTS_WAITING_MAX),
            looked_at: Arc::default(),
        }
    }

    /// Names the users' machines, which choose the glasses for calls from outside of any turn. Once, at the start.
    pub(crate) fn set_users(&self, tell: Box<TellUser>) {
        drop(self.users.set(tell));
    }

    /// The core of `device` has decided; `None`: the user's, about a question that no glasses have. A decision is taken
    /// only from where it was asked for, and only about the very call and arguments: anything else is a no.
    pub fn settle(&self, device: Option<&str>, settled: Settlement) {
        let Settlement { id, outcome, by, arguments_hash, reference } = settled;
        let Some(open) = self.open().remove(&id) else {
            return;
        };
        let bound =
            open.device.as_deref() == device && open.arguments_hash == arguments_hash && open.reference == reference;
        let outcome = if bound { outcome } else { ApprovalOutcome::Denied };
        if !bound {
            tracing::warn!(id, device, "a decision does not belong to its question: denied");
        }
        self.tell(open, outcome, by);
    }

    /// The user's machine has chosen the glasses for a question from outside; `None`: only an operator can answer it.
    pub fn put(&self, device: Option<&str>, approval: Approval) {
        let id = approval.id;
        let refused = approval.settled(ApprovalOutcome::Unasked, AnsweredBy::Nobody);
        {
            // Under the lock, so that a question that is taken back meanwhile is taken back behind this.
            let mut open = self.open();
            let Some(open) = open.get_mut(&id) else {
                return;
            };
            open.device = device.map(ToOwned::to_owned);
            open.event.device.clone_from(&open.device);
            let told = device.is_none_or(|device| self.tell_device(device, Input::ApprovalAsked(approval)));
            if told {
                let _ = self.events.send(open.event.clone());
                return;
            }
        }
        self.settle(device, refused);
    }

    /// Whether the glasses are there to be told.
    fn tell_device(&self, device: &str, input: Input) -> bool {
        self.roster.get(device).is_some_and(|present| present.mailbox.try_send(DeviceMessage::from(input)).is_ok())
    }

    /// Whether the user's machine is there to be told.
    fn tell_user(&self, user: &str, input: UserInput) -> bool {
        self.users.get().is_some_and(|tell| tell(user, input))
    }

    /// What is open, oldest first.
    pub fn list(&self) -> Vec<Event> {
        self.open().values().map(|open| open.event.clone()).collect()
    }

    /// What is asked and settled from now on; `None` when as many clients watch as may.
    pub fn watch(&self) -> Option<broadcast::Receiver<Event>> {
        (self.events.receiver_count() < WATCHERS_MAX).then(|| self.events.subscribe())
    }

    /// Counts an operator who looks at the questions on a page among those who watch. As many may as have a page.
    pub(crate) fn look(&self) -> Looking {
        Looking { _looked_at: self.looked_at.clone() }
    }

    /// Whether an operator is there to answer what no glasses are asked.
    fn is_watched(&self) -> bool {
        self.events.receiver_count() > 0 || Arc::strong_count(&self.looked_at) > 1
    }

    /// An operator's answer. The core decides about it like about a tap on the glasses; this returns what came of it.
    ///
    /// # Errors
    /// The question is not open, or another one comes first.
    pub async fn answer(&self, id: u64, choice: ApprovalChoice) -> Result<String, AnswerError> {
        let asked = self.open().get(&id).map(|open| (open.event.user.clone(), open.device.clone()));
        let (user, device) = asked.ok_or(AnswerError::NotOpen(id))?;
        let mut events = self.events.subscribe();
        let told = match device.as_deref() {
            None => self.tell_user(&user, UserInput::ApprovalAnswered { id, choice }),
            Some(device) => self.tell_device(device, Input::ApprovalAnswered { id, choice, by: AnsweredBy::Operator }),
        };
        if !told {
            return Err(AnswerError::NotPut(id));
        }
        let settled = async {
            loop {
                match events.recv().await {
                    Ok(event) if event.id == id && event.outcome.is_some() => return event.outcome,
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        };
        match tokio::time::timeout(Duration::from_millis(SETTLED_MS_MAX), settled).await {
            Ok(Some(outcome)) => Ok(outcome),
            _ => Err(AnswerError::NotPut(id)),
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, open: Open, outcome: ApprovalOutcome, by: AnsweredBy) {
        let Open { device, event, reply, .. } = open;
        let (word, by_word) = (event::outcome_word(outcome), event::answered_by_word(by));
        tracing::info!(
            id = event.id,
            user = event.user,
            device = event.device,
            tool = event.function,
            word,
            by = by_word,
            "approval"
        );
        let decision = Decision { outcome, by, device };
        let _ = self.events.send(event.settled(outcome, by));
        let _ = reply.send(decision);
    }
}

#[async_trait]
impl Consent for ApprovalBroker {
    async fn ask(&self, request: ConsentRequest, cancel: CancellationToken) -> Decision {
        // Wraps after two thousand million questions; 0 is never used.
        let id = u64::from(self.next.fetch_add(1, Ordering::Relaxed).max(1));
        let event = Event::required(&self.registry, id, &request);
        let from_outside = request.turn.is_none();
        // Tells this call from any other one, whatever numbers both have.
        let reference = RandomState::new().hash_one(&request.call_id);
        let (reply, answer) = oneshot::channel();
        {
            let mut open = self.open();
            if open.len() >= OPEN_MAX || open.contains_key(&id) {
                return ApprovalOutcome::Denied.into();
            }
            // The glasses for a question from outside are chosen by the user's machine.
            let device = request.device.clone().filter(|_| !from_outside);
            let (arguments_hash, event) = (request.arguments_hash, event.clone());
            open.insert(id, Open { arguments_hash, reference, device, event, reply });
        }
        let _asked = WithdrawOnDrop { approvals: self, id };
        let approval = Approval {
            id,
            turn: request.turn,
            reference,
            question: request.question,
            arguments_hash: request.arguments_hash,
            expires_ms: ANSWER_MS_MAX,
        };
        let told = if from_outside {
            let watched = self.is_watched();
            self.tell_user(&request.user, UserInput::ApprovalAsked { approval, watched })
        } else {
            let _ = self.events.send(event);
            request.device.as_deref().is_some_and(|device| self.tell_device(device, Input::ApprovalAsked(approval)))
        };
        if !told {
            tracing::info!(id, user = request.user, device = request.device, "approval: nobody is there to be asked");
            let left = self.open().remove(&id);
            if let Some(open) = left {
                self.tell(open, ApprovalOutcome::Unasked, AnsweredBy::Nobody);
            }
            return ApprovalOutcome::Unasked.into();
        }
        tokio::select! {
            decision = answer => decision.unwrap_or_else(|_| ApprovalOutcome::Cancelled.into()),
            () = cancel.cancelled() => ApprovalOutcome::Cancelled.into(),
        }
    }
}

impl Drop for WithdrawOnDrop<'_> {
    fn drop(&mut self) {
        let left = self.approvals.open().remove(&self.id);
        if let Some(open) = left {
            // The question is withdrawn from the wearer. The core does not decide this: the call is over.
            let (id, user) = (self.id, open.event.user.clone());
            if let Some(device) = &open.device {
                self.approvals.tell_device(device, Input::ApprovalWithdrawn { id });
            }
            self.approvals.tell_user(&user, UserInput::ApprovalWithdrawn { id });
            self.approvals.tell(open, ApprovalOutcome::Cancelled, AnsweredBy::Nobody);
        }
    }
}

#[cfg(test)]
mod attack_tests;
#[cfg(test)]
mod decision_tests;
#[cfg(test)]
mod test_support;
