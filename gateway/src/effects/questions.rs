//! Questions to wearers on their way from the executor to a device's conversation and back. Decided
//! they are in the core; here is only who waits for what, and what admin clients are told of it.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::{
    input::Input,
    vocab::{Approval, ApprovalChoice, ApprovalOutcome},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{broadcast, oneshot};
use tokio_util::sync::CancellationToken;
use tools::{
    ports::{Consent, ConsentRequest},
    registry::{Registry, Source},
};

use crate::{clock, mail::Mail, roster::Roster};

/// How long an answer to a question may take, in milliseconds, from when it is put: time to read it, to think, and to
/// say it twice.
pub const ANSWER_MS_MAX: u32 = 30_000;
/// Questions of the whole house that wait at once; each device has a smaller limit of its own in the core.
const OPEN_MAX: usize = 256;
/// Events that a slow admin client may be behind before it misses some.
const EVENTS_WAITING_MAX: usize = 64;
/// Admin clients that watch at once: each holds a connection to the control socket.
pub const WATCHERS_MAX: usize = 4;
/// How long an admin client waits to learn what came of its answer: the core settles at once what it settles.
const SETTLED_MS_MAX: u64 = 2_000;

/// What admin clients are told: a question was asked, or settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// `approval_required` or `approval_settled`.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// When, RFC 3339.
    pub time: String,
    /// Number of the question: what `approve` and `deny` take.
    pub id: u64,
    /// Whose consent.
    pub user: String,
    /// The glasses that are asked.
    pub device: String,
    /// Who provides the tool: `built_in`, `device`, `app` or `mcp`.
    pub source: String,
    /// The app, server or device of it; `lorgnette` for what is built in.
    pub capability: String,
    /// What the tool is called there.
    pub function: String,
    /// Exactly the arguments that were asked about.
    pub parameters: Value,
    /// The question, as the wearer is asked it.
    pub message: String,
    /// How it ended, where it has: `approved`, `denied`, `expired` or `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub outcome: Option<String>,
}

/// What happened to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// It was asked.
    ApprovalRequired,
    /// It has its answer.
    ApprovalSettled,
}

/// Why an answer of an admin client came to nothing.
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

/// Questions to the wearer: asked and decided in the device's conversation.
pub struct Questions {
    roster: Arc<Roster>,
    registry: Arc<Registry>,
    next: AtomicU32,
    open: Mutex<BTreeMap<u64, Open>>,
    events: broadcast::Sender<Event>,
}

/// A question that somebody waits for.
struct Open {
    arguments_hash: u64,
    event: Event,
    reply: oneshot::Sender<ApprovalOutcome>,
}

/// Takes the question back when whoever asked it goes away.
struct Asked<'a> {
    questions: &'a Questions,
    id: u64,
}

impl Questions {
    /// None is open.
    pub fn new(roster: Arc<Roster>, registry: Arc<Registry>) -> Self {
        // Not from 1 on: glasses that still show a question of before a restart must not answer a new one with it.
        let first = RandomState::new().hash_one(clock::wall_ms()) as u32 / 2;
        Self {
            roster,
            registry,
            next: AtomicU32::new(first.max(1)),
            open: Mutex::default(),
            events: broadcast::Sender::new(EVENTS_WAITING_MAX),
        }
    }

    /// The core of `device` has decided. A decision is taken only from the glasses that were asked, and only about the
    /// very arguments that were asked about: anything else is a no.
    pub fn settle(&self, id: u64, device: &str, arguments_hash: u64, outcome: ApprovalOutcome) {
        let Some(open) = self.open().remove(&id) else {
            return;
        };
        let bound = open.event.device == device && open.arguments_hash == arguments_hash;
        let outcome = if bound { outcome } else { ApprovalOutcome::Denied };
        if !bound {
            tracing::warn!(id, device, "a decision does not belong to its question: denied");
        }
        self.tell(open, outcome);
    }

    /// What is open, oldest first.
    pub fn list(&self) -> Vec<Event> {
        self.open().values().map(|open| open.event.clone()).collect()
    }

    /// What is asked and settled from now on; `None` when as many clients watch as may.
    pub fn watch(&self) -> Option<broadcast::Receiver<Event>> {
        (self.events.receiver_count() < WATCHERS_MAX).then(|| self.events.subscribe())
    }

    /// An operator's answer. The core decides about it like about a tap on the glasses; this returns what came of it.
    ///
    /// # Errors
    /// The question is not open, or another one comes first.
    pub async fn answer(&self, id: u64, choice: ApprovalChoice) -> Result<String, AnswerError> {
        let device = self.open().get(&id).map(|open| open.event.device.clone()).ok_or(AnswerError::NotOpen(id))?;
        let mut events = self.events.subscribe();
        let present = self.roster.get(&device).ok_or(AnswerError::NotPut(id))?;
        let letter = Mail::Input(Input::ApprovalAnswered { id, choice });
        present.mail.try_send(letter).map_err(|_| AnswerError::NotPut(id))?;
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

    fn tell(&self, open: Open, outcome: ApprovalOutcome) {
        let Open { event, reply, .. } = open;
        let word = outcome_word(outcome);
        tracing::info!(
            id = event.id,
            user = event.user,
            device = event.device,
            tool = event.function,
            word,
            "approval"
        );
        let _ = self.events.send(Event {
            kind: EventKind::ApprovalSettled,
            time: now(),
            outcome: Some(word.to_owned()),
            ..event
        });
        let _ = reply.send(outcome);
    }

    fn describe(&self, id: u64, request: &ConsentRequest) -> Event {
        let offered = self.registry.snapshot(&request.user, &request.device);
        let (source, capability, function) = match offered.find(&request.tool) {
            Some(tool) => {
                let (source, capability) = source_words(&tool.source);
                (source, capability, tool.local_name.clone())
            }
            None => ("unknown", String::new(), request.tool.clone()),
        };
        Event {
            kind: EventKind::ApprovalRequired,
            time: now(),
            id,
            user: request.user.clone(),
            device: request.device.clone(),
            source: source.to_owned(),
            capability,
            function,
            parameters: request.arguments.clone(),
            message: request.question.clone(),
            outcome: None,
        }
    }
}

#[async_trait]
impl Consent for Questions {
    async fn ask(&self, request: ConsentRequest, cancel: CancellationToken) -> ApprovalOutcome {
        // Wraps after two thousand million questions; 0 is never used.
        let id = u64::from(self.next.fetch_add(1, Ordering::Relaxed).max(1));
        let event = self.describe(id, &request);
        let Some(present) = self.roster.get(&request.device) else {
            // Nobody can be asked: that is a question that nobody answers, without the wait.
            tracing::info!(id, user = request.user, device = request.device, "approval: the glasses are not connected");
            return ApprovalOutcome::Expired;
        };
        let (reply, answer) = oneshot::channel();
        {
            let mut open = self.open();
            if open.len() >= OPEN_MAX || open.contains_key(&id) {
                return ApprovalOutcome::Denied;
            }
            open.insert(id, Open { arguments_hash: request.arguments_hash, event: event.clone(), reply });
        }
        let _asked = Asked { questions: self, id };
        let approval = Approval {
            id,
            turn: request.turn,
            tool: request.tool,
            question: request.question,
            arguments_hash: request.arguments_hash,
            expires_ms: ANSWER_MS_MAX,
        };
        let _ = self.events.send(event);
        if present.mail.try_send(Mail::Input(Input::ApprovalAsked(approval))).is_err() {
            return ApprovalOutcome::Expired;
        }
        tokio::select! {
            outcome = answer => outcome.unwrap_or(ApprovalOutcome::Cancelled),
            () = cancel.cancelled() => ApprovalOutcome::Cancelled,
        }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let left = self.questions.open().remove(&self.id);
        if let Some(open) = left {
            self.questions.tell(open, ApprovalOutcome::Cancelled);
        }
    }
}

fn now() -> String {
    jiff::Timestamp::from_millisecond(clock::wall_ms()).unwrap_or_default().to_string()
}

fn outcome_word(outcome: ApprovalOutcome) -> &'static str {
    match outcome {
        ApprovalOutcome::Approved => "approved",
        ApprovalOutcome::Denied => "denied",
        ApprovalOutcome::Expired => "expired",
        ApprovalOutcome::Cancelled => "cancelled",
    }
}

fn source_words(source: &Source) -> (&'static str, String) {
    match source {
        Source::BuiltIn => ("built_in", "lorgnette".to_owned()),
        Source::Device(id) => ("device", id.clone()),
        Source::App(package) => ("app", package.clone()),
        Source::Mcp(name) => ("mcp", name.clone()),
    }
}

#[cfg(test)]
#[path = "questions_tests.rs"]
mod tests;
