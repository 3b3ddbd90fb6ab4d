//! The connection between a running call and the client that waits for it.
//!
//! A call runs in its own task, because it must complete regardless of its client. Its messages and questions are sent
//! over a bounded channel to the handler of the client's request. Clients before 2026-07-28 are asked by requests of
//! our own; later ones get an `input_required` result, and the call is parked until they come back.

#![expect(deprecated, reason = "revisions before 2026-07-28 have sampling, roots and logging")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::vocab::ApprovalOutcome;
use rmcp::{
    ErrorData, RoleServer,
    model::{
        ClientResult, InputRequest, InputRequiredResult, LoggingLevel, LoggingMessageNotificationParam,
        ProgressNotificationParam, ServerRequest,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Approver, results::Outcome};
use crate::{
    caller::{Caller, Exact, NotAsked},
    mutex::lock,
    ports::ConsentRequest,
};

/// Messages of a call that are buffered for its client; progress beyond that is dropped.
const EVENTS_MAX: usize = 64;
/// How long a client may take to answer a question: people have to read it.
const ANSWER_MS_MAX: u64 = 120_000;
/// Key of our own question before a call.
const APPROVAL: &str = "approval";

type Answers = BTreeMap<String, Value>;

/// A question that waits for its answer.
pub(super) struct Question {
    pub(super) requests: BTreeMap<String, Value>,
    pub(super) reply: oneshot::Sender<Answers>,
}

enum Event {
    Ask(Question),
    Progress(f64, Option<f64>, Option<String>),
    Log(Value),
    Done(Box<Result<Outcome, ErrorData>>),
}

/// The call's end of the channel.
#[derive(Debug)]
pub(super) struct CallChannel {
    events: mpsc::Sender<Event>,
    capabilities: Value,
    level: Option<LoggingLevel>,
    approves: Approver,
    is_operator: bool,
    /// Answers that came with the request itself.
    given: Mutex<Option<Answers>>,
    exact: Mutex<Option<Exact>>,
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Event")
    }
}

/// What a client specifies with its request.
pub(super) struct Asking {
    pub(super) capabilities: Value,
    pub(super) level: Option<LoggingLevel>,
    pub(super) given: Option<Answers>,
    pub(super) approves: Approver,
    /// Whether it is the operator's own program.
    pub(super) is_operator: bool,
}

/// A running call, and the client's end of the channel.
pub(super) struct Call {
    events: mpsc::Receiver<Event>,
    /// Cancels the call when nobody waits for it any more.
    cancel: DropGuard,
}

/// The state of a call.
pub(super) enum Step {
    /// It has completed.
    Done(Outcome),
    /// It waits for answers.
    Asks(Call, Question),
}

impl CallChannel {
    /// Creates a channel, and the call's other end; `cancel` fires when that end is dropped.
    pub(super) fn new(asking: Asking, cancel: CancellationToken) -> (Arc<Self>, Call) {
        let (events, received) = mpsc::channel(EVENTS_MAX);
        let Asking { capabilities, level, given, approves, is_operator } = asking;
        let (given, exact) = (Mutex::new(given), Mutex::default());
        let channel = Self { events, capabilities, level, approves, is_operator, given, exact };
        (Arc::new(channel), Call { events: received, cancel: cancel.drop_guard() })
    }

    /// The call has completed.
    pub(super) async fn done(&self, outcome: Result<Outcome, ErrorData>) {
        // If nobody waits any more, the outcome is discarded, as the client requested.
        drop(self.events.send(Event::Done(Box::new(outcome))).await);
    }

    /// The exact outcome, if one was stored.
    pub(super) fn exact(&self) -> Option<Exact> {
        lock(&self.exact).take()
    }

    fn can(&self, request: &Value) -> bool {
        let capability = match request.get("method").and_then(Value::as_str) {
            Some("elicitation/create") => "elicitation",
            Some("sampling/createMessage") => "sampling",
            Some("roots/list") => "roots",
            _ => return false,
        };
        self.capabilities.get(capability).is_some()
    }
}

#[async_trait]
impl Caller for CallChannel {
    async fn consent(&self, request: &ConsentRequest, cancel: &CancellationToken) -> Option<ApprovalOutcome> {
        if self.approves == Approver::Wearer {
            return None;
        }
        let question = json!({ "method": "elicitation/create", "params": {
            "mode": "form",
            "message": request.question.whole(),
            "requestedSchema": { "type": "object", "required": ["approve"], "properties": {
                "approve": { "type": "boolean", "title": "Approve", "description": "Run the tool with these arguments" }
            } }
        } });
        let asked = self.ask(BTreeMap::from([(APPROVAL.to_owned(), question)]));
        let answers = tokio::select! {
            answers = asked => answers,
            () = cancel.cancelled() => return Some(ApprovalOutcome::Cancelled),
        };
        let answer = match answers {
            Ok(mut answers) => answers.remove(APPROVAL).unwrap_or_default(),
            Err(NotAsked::Unable) => return None,
            Err(NotAsked::Silent) => return Some(ApprovalOutcome::Expired),
        };
        Some(match answer.get("action").and_then(Value::as_str) {
            Some("accept") if answer.pointer("/content/approve") == Some(&Value::Bool(true)) => {
                ApprovalOutcome::Approved
            }
            Some("accept" | "decline") => ApprovalOutcome::Denied,
            _ => ApprovalOutcome::Cancelled,
        })
    }

    fn capabilities(&self) -> Value {
        self.capabilities.clone()
    }

    async fn ask(&self, requests: BTreeMap<String, Value>) -> Result<Answers, NotAsked> {
        if !requests.values().all(|request| self.can(request)) {
            return Err(NotAsked::Unable);
        }
        // Each answer is used once: a server that does not accept an answer must be able to ask again. Our own question
        // is never answered before it was asked.
        let given = if requests.contains_key(APPROVAL) { None } else { lock(&self.given).take() };
        if let Some(given) = given
            && requests.keys().all(|key| given.contains_key(key))
        {
            return Ok(requests.keys().filter_map(|key| Some((key.clone(), given.get(key)?.clone()))).collect());
        }
        let (reply, answer) = oneshot::channel();
        let question = Event::Ask(Question { requests, reply });
        self.events.send(question).await.map_err(|_| NotAsked::Silent)?;
        match timeout(Duration::from_millis(ANSWER_MS_MAX), answer).await {
            Ok(Ok(answers)) => Ok(answers),
            _ => Err(NotAsked::Silent),
        }
    }

    fn progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        drop(self.events.try_send(Event::Progress(done, total, message)));
    }

    fn log_level(&self) -> Option<String> {
        serde_json::to_value(self.level?).ok()?.as_str().map(str::to_owned)
    }

    fn log(&self, message: Value) {
        drop(self.events.try_send(Event::Log(message)));
    }

    fn keep(&self, exact: Exact) {
        *lock(&self.exact) = Some(exact);
    }

    fn is_operator(&self) -> bool {
        self.is_operator
    }
}

impl Call {
    /// Serves the call from within the handler of a client's request, until it has completed or has to be parked.
    pub(super) async fn serve(
        mut self,
        context: &RequestContext<RoleServer>,
        level: Option<LoggingLevel>,
    ) -> Result<Step, ErrorData> {
        let modern = is_modern(context);
        loop {
            let event = tokio::select! {
                event = self.events.recv() => event,
                () = context.ct.cancelled() => {
                    return Err(ErrorData::internal_error("the request was cancelled", None));
                }
            };
            match event {
                Some(Event::Progress(done, total, message)) => {
                    let Some(token) = context.meta.get_progress_token() else {
                        continue;
                    };
                    let mut params = ProgressNotificationParam::new(token, done);
                    params.total = total;
                    params.message = message;
                    drop(context.peer.notify_progress(params).await);
                }
                Some(Event::Log(message)) => {
                    if let (Some(least), Ok(params)) =
                        (level, serde_json::from_value::<LoggingMessageNotificationParam>(message))
                        && severity(params.level) >= severity(least)
                    {
                        drop(context.peer.notify_logging_message(params).await);
                    }
                }
                Some(Event::Ask(question)) if modern => return Ok(Step::Asks(self, question)),
                Some(Event::Ask(question)) => {
                    // If the client cannot answer, the question is dropped, and the call continues without an answer.
                    if let Some(answers) = ask(context, question.requests).await {
                        drop(question.reply.send(answers));
                    }
                }
                Some(Event::Done(outcome)) => {
                    drop(self.cancel.disarm());
                    return outcome.map(Step::Done);
                }
                None => return Err(ErrorData::internal_error("the call was lost", None)),
            }
        }
    }
}

/// Asks a client by requests of our own. This runs in the handler's task, so that they are sent on the stream of the
/// client's request.
async fn ask(context: &RequestContext<RoleServer>, requests: BTreeMap<String, Value>) -> Option<Answers> {
    let mut answers = Answers::new();
    for (key, request) in requests {
        let request = match serde_json::from_value(request).ok()? {
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            _ => return None,
        };
        let asked = timeout(Duration::from_millis(ANSWER_MS_MAX), context.peer.send_request(request));
        let result = tokio::select! {
            result = asked => result.ok()?,
            () = context.ct.cancelled() => return None,
        };
        let answer = match result.ok()? {
            ClientResult::CreateMessageResult(result) => serde_json::to_value(&result),
            ClientResult::ElicitResult(result) => serde_json::to_value(&result),
            ClientResult::ListRootsResult(result) => serde_json::to_value(&result),
            _ => return None,
        };
        answers.insert(key, answer.ok()?);
    }
    Some(answers)
}

/// The result for a client of 2026-07-28 when a call waits for its answers.
pub(super) fn input_required(requests: &BTreeMap<String, Value>, state: String) -> InputRequiredResult {
    let requests = requests
        .iter()
        .filter_map(|(key, request)| Some((key.clone(), serde_json::from_value(request.clone()).ok()?)))
        .collect();
    InputRequiredResult::new(Some(requests), Some(state))
}

/// Whether the request is of 2026-07-28 or later.
pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| !version.has_initialize())
}

fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}

#[cfg(test)]
#[path = "call_channel_tests.rs"]
mod tests;
