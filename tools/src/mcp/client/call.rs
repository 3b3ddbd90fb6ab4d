//! One request to a server, with exactly one outcome.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_core::vocab::{ErrorCode, Question, ToolCall, ToolError, ToolResult};
use rmcp::{
    ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientCapabilities,
        ClientRequest, CompleteRequestParams, CompleteResult, ErrorData, GetPromptRequest, GetPromptRequestParams,
        GetPromptResult, InputRequiredResult, InputResponses, ReadResourceRequest, ReadResourceRequestParams,
        ReadResourceResult, RequestId, RequestMetaObject, ServerResult,
    },
    service::PeerRequestOptions,
    transport::DynamicTransportError,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::{
    Downstream, FailedCall, Now, OnBehalf, State,
    ask::Wearer,
    child::{MESSAGE_BYTES_MAX, TOO_LARGE},
    convert,
    http::{HttpError, OVERSIZED},
    link::{FORGOTTEN, Link},
};
use crate::{
    caller::Exact,
    executor::arguments_hash,
    mutex::lock,
    ports::ConsentRequest,
    registry::{RunContext, Runner},
    reply::{cut, seconds},
    secret::Secrets,
    spoken,
};

/// Maximum number of times that a server may ask back within one call.
const ROUNDS_MAX: usize = 10;
/// Pause before a call is repeated because the server requested it without asking a question.
const AGAIN_MS: u64 = 200;
/// The client stops waiting, and notifies the server, this much earlier than the executor.
const MARGIN_MS: u64 = 50;
/// How long a call that the server has refused with its session waits for the next connection.
const NEXT_LINK_MS_MAX: u64 = 5_000;
/// How long log output of the server may arrive after its answer.
const WORDS_MS: u64 = 200;
/// Maximum bytes of a failure's reason that are kept for the operator.
const WHY_BYTES_MAX: usize = 512;
/// Maximum bytes of an exact result that is forwarded to an MCP client.
const EXACT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no connection, or the server has refused all that is sent over it; nothing was done.
    Down(String),
    /// It ended, or something other than an answer arrived: it is unknown whether anything was done.
    Broken(String),
    /// No answer within this time; the server was told to stop.
    Late(Duration),
    /// The answer exceeds the limit.
    TooLarge,
    /// An error returned by the server.
    Refused(ErrorData),
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::McpError(error) if error.code.0 == TOO_LARGE => Self::TooLarge,
            ServiceError::McpError(error) => Self::Refused(error),
            ServiceError::TransportSend(error) if is_forgotten(&error) => Self::Down(FORGOTTEN.to_owned()),
            // The library has no error kind for this.
            other => match other.to_string() {
                why if why.contains(OVERSIZED) => Self::TooLarge,
                why => Self::Broken(why),
            },
        }
    }
}

impl Failure {
    /// The same without secrets, which the server or the library may have quoted.
    fn redacted(self, secrets: &Secrets) -> Self {
        let redacted = |mut text: String| {
            secrets.redact(&mut text);
            text
        };
        match self {
            Self::Down(why) => Self::Down(redacted(why)),
            Self::Broken(why) => Self::Broken(redacted(why)),
            Self::Refused(ErrorData { code, message, mut data }) => {
                data.iter_mut().for_each(|data| secrets.redact_value(data));
                Self::Refused(ErrorData { code, message: redacted(message.into_owned()).into(), data })
            }
            Self::Late(_) | Self::TooLarge => self,
        }
    }
}

/// Whether a request was refused because the server does not know the session any more.
fn is_forgotten(error: &DynamicTransportError) -> bool {
    matches!(error.error.downcast_ref::<HttpError>(), Some(HttpError::SessionExpired))
}

impl Downstream {
    fn up(&self) -> Result<Arc<Link>, Failure> {
        self.link().ok_or_else(|| {
            Failure::Down(match self.state() {
                State::Down(why) => why,
                _ => "it is still starting".to_owned(),
            })
        })
    }

    /// As [`rounds`], once more over the next connection if the server has forgotten the session.
    async fn rounds(
        &self,
        behalf: &OnBehalf,
        wait: Duration,
        mut request: impl FnMut(Option<InputResponses>, Option<String>) -> ClientRequest,
    ) -> Result<ServerResult, Failure> {
        let (link, began) = (self.up()?, Instant::now());
        let outcome = match rounds(&link, behalf, wait, &mut request).await {
            Err(Failure::Down(why)) if link.forgotten.is_cancelled() => {
                let next = self.link_after(&link, wait).await.ok_or(Failure::Down(why))?;
                rounds(&next, behalf, wait.saturating_sub(began.elapsed()), &mut request).await
            }
            outcome => outcome,
        };
        outcome.map_err(|failure| failure.redacted(&self.secrets))
    }

    /// An answer without the secrets that the server was sent: from here on nobody gets them.
    fn redacted<T: Serialize + DeserializeOwned>(&self, answer: T) -> Result<T, Failure> {
        let invalid = || Failure::Broken("its answer makes no sense without the secrets in it".to_owned());
        self.secrets.redacted(answer).ok_or_else(invalid)
    }

    /// Waits for the connection that replaces this one; `None`: there is none in time.
    async fn link_after(&self, link: &Arc<Link>, wait: Duration) -> Option<Arc<Link>> {
        let mut now = self.now.subscribe();
        let is_next = |now: &Now| now.link.as_ref().is_some_and(|next| !Arc::ptr_eq(next, link));
        let limit = wait.min(Duration::from_millis(NEXT_LINK_MS_MAX));
        let next = timeout(limit, now.wait_for(is_next)).await.ok()?.ok()?;
        next.link.clone()
    }

    pub(crate) async fn call_tool(
        &self,
        name: &str,
        arguments: Value,
        behalf: &OnBehalf,
        wait: Duration,
    ) -> Result<CallToolResult, Failure> {
        let mut params = CallToolRequestParams::new(name.to_owned());
        params.arguments = match arguments {
            Value::Object(arguments) => Some(arguments),
            _ => None,
        };
        let rounds = self.rounds(behalf, wait, |responses, state| {
            params.input_responses = responses;
            params.request_state = state;
            ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()))
        });
        match rounds.await? {
            ServerResult::CallToolResult(result) => self.redacted(result),
            _ => Err(ServiceError::UnexpectedResponse.into()),
        }
    }

    pub(crate) async fn get_prompt(
        &self,
        mut params: GetPromptRequestParams,
        behalf: &OnBehalf,
        wait: Duration,
    ) -> Result<GetPromptResult, Failure> {
        let rounds = self.rounds(behalf, wait, |responses, state| {
            params.input_responses = responses;
            params.request_state = state;
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params.clone()))
        });
        match rounds.await? {
            ServerResult::GetPromptResult(result) => self.redacted(result),
            _ => Err(ServiceError::UnexpectedResponse.into()),
        }
    }

    pub(crate) async fn read_resource(
        &self,
        mut params: ReadResourceRequestParams,
        behalf: &OnBehalf,
        wait: Duration,
    ) -> Result<ReadResourceResult, Failure> {
        let rounds = self.rounds(behalf, wait, |responses, state| {
            params.input_responses = responses;
            params.request_state = state;
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params.clone()))
        });
        match rounds.await? {
            ServerResult::ReadResourceResult(result) => self.redacted(result),
            _ => Err(ServiceError::UnexpectedResponse.into()),
        }
    }

    pub(crate) async fn complete(
        &self,
        params: CompleteRequestParams,
        wait: Duration,
    ) -> Result<CompleteResult, Failure> {
        let link = self.up()?;
        match timeout(wait, link.peer.complete(params)).await {
            Ok(Ok(result)) => self.redacted(result),
            Ok(Err(error)) => Err(Failure::from(error).redacted(&self.secrets)),
            Err(_elapsed) => Err(Failure::Late(wait)),
        }
    }
}

/// Sends a request, answers the server's questions, and sends it again, until there is a result.
async fn rounds(
    link: &Arc<Link>,
    behalf: &OnBehalf,
    wait: Duration,
    mut request: impl FnMut(Option<InputResponses>, Option<String>) -> ClientRequest,
) -> Result<ServerResult, Failure> {
    let (mut responses, mut state) = (None, None);
    for _ in 0..ROUNDS_MAX {
        let InputRequiredResult { input_requests, request_state, .. } =
            match send(link, request(responses, state), behalf, wait).await? {
                ServerResult::InputRequiredResult(asked) => asked,
                result => return Ok(result),
            };
        responses = match input_requests.filter(|requests| !requests.is_empty()) {
            None => {
                sleep(Duration::from_millis(AGAIN_MS)).await;
                None
            }
            Some(requests) => {
                let mut requests: BTreeMap<String, Value> = requests
                    .into_iter()
                    .map(|(key, request)| (key, serde_json::to_value(&request).unwrap_or_default()))
                    .collect();
                requests.values_mut().for_each(|request| link.secrets.redact_value(request));
                let answers = behalf.answer(requests).await;
                Some(answers.ok_or_else(|| Failure::Broken("it asked for what nobody here can answer".to_owned()))?)
            }
        };
        state = request_state;
    }
    Err(Failure::Broken(format!("it asked back more than {ROUNDS_MAX} times")))
}

/// Sends one request and waits for its answer.
async fn send(
    link: &Arc<Link>,
    request: ClientRequest,
    behalf: &OnBehalf,
    wait: Duration,
) -> Result<ServerResult, Failure> {
    let mut options = PeerRequestOptions::no_options();
    if link.is_modern() {
        options = options.with_meta(meta(behalf));
    }
    let handle = {
        let _gate = link.routes.gate.lock().await;
        let handle = link.peer.send_request_with_option(request, options).await?;
        link.routes.add(handle.id.clone(), handle.progress_token.clone(), behalf.clone());
        handle
    };
    let mut open = Open { link: link.clone(), id: handle.id.clone(), answered: false };
    match timeout(wait, handle.await_response()).await {
        Ok(result) => {
            open.answered = true;
            Ok(result?)
        }
        Err(_elapsed) => Err(Failure::Late(wait)),
    }
}

/// Since 2026-07-28 each request declares the capabilities of its client.
fn meta(behalf: &OnBehalf) -> RequestMetaObject {
    let mut meta = RequestMetaObject::new();
    let capabilities: ClientCapabilities = serde_json::from_value(behalf.capabilities()).unwrap_or_default();
    meta.set_client_capabilities(capabilities);
    let level = behalf.caller.as_ref().and_then(|caller| caller.log_level());
    if let Some(level) = level.and_then(|level| serde_json::from_value(Value::String(level)).ok()) {
        meta.set_log_level(level);
    }
    meta
}

/// A pending request: if it is abandoned without an answer, the server is notified.
struct Open {
    link: Arc<Link>,
    id: RequestId,
    answered: bool,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.link.routes.remove(&self.id);
        if self.answered {
            return;
        }
        let (peer, id) = (self.link.peer.clone(), self.id.clone());
        self.link.tracker.spawn(async move {
            let reason = "the caller does not wait any more".to_owned();
            drop(peer.notify_cancelled(CancelledNotificationParam::new(Some(id), Some(reason))).await);
        });
    }
}

/// Runs the calls of one server's tools.
pub(super) struct McpRunner {
    server: Arc<Downstream>,
}

impl McpRunner {
    pub(super) fn new(server: Arc<Downstream>) -> Self {
        Self { server }
    }
}

#[async_trait]
impl Runner for McpRunner {
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult {
        let name = &self.server.config.name;
        // The server may have answered the call before the wearer answers its question.
        let cancel = context.cancel.child_token();
        let _withdraws = cancel.clone().drop_guard();
        let wearer = Wearer {
            server: name.clone(),
            consent: context.ports.consent.clone(),
            call: ConsentRequest {
                user: context.user.clone(),
                device: context.device.clone(),
                turn: context.turn,
                call_id: call.id.clone(),
                tool: call.name.clone(),
                question: Question::default(),
                arguments: call.arguments.clone(),
                arguments_hash: arguments_hash(&call.name, &call.arguments),
                program: context.program.clone(),
            },
            cancel,
        };
        let behalf = OnBehalf { caller: context.caller.clone(), wearer: Some(wearer) };
        let wait = context.deadline.saturating_sub(Duration::from_millis(MARGIN_MS));
        let said = self.server.words.count();
        let outcome = self.server.call_tool(&context.local_name, call.arguments, &behalf, wait).await;
        // The message names the timeout that the operator configured.
        let outcome = outcome.map_err(|failure| match failure {
            Failure::Late(_) => Failure::Late(context.deadline),
            other => other,
        });
        if let Some(caller) = &context.caller {
            keep_exact(caller.as_ref(), &outcome);
        }
        let read_only = context.offered.find(&call.name).is_some_and(|tool| tool.spec.flags.read_only);
        let result = match outcome {
            Ok(result) => convert::result(result),
            Err(failure) => failed(name, failure, read_only),
        };
        if let Some(error) = &result.error {
            self.server.note_failure(&call.name, error, said);
        }
        result
    }
}

impl Downstream {
    /// Handles a failed call: stores the reason for the operator, and logs what the server wrote during the call.
    fn note_failure(self: &Arc<Self>, tool: &str, error: &ToolError, said: u64) {
        let (tool, why) = (tool.to_owned(), cut(&error.message, WHY_BYTES_MAX));
        *lock(&self.last_failure) = Some((FailedCall { tool, code: error.code, why }, Instant::now()));
        let server = self.clone();
        self.tracker.spawn(async move {
            // The server's log output and its answers arrive on different channels.
            sleep(Duration::from_millis(WORDS_MS)).await;
            server.tell_words(said);
        });
    }
}

fn keep_exact(caller: &dyn crate::caller::Caller, outcome: &Result<CallToolResult, Failure>) {
    match outcome {
        Ok(result) => match serde_json::to_value(result) {
            Ok(value) if value.to_string().len() <= EXACT_BYTES_MAX => caller.keep(Exact::Result(value)),
            _ => {}
        },
        Err(Failure::Refused(error)) => caller.keep(Exact::Error {
            code: error.code.0,
            message: error.message.to_string(),
            data: error.data.clone(),
        }),
        Err(_) => {}
    }
}

/// A failure as a result in the gateway's own words, with a sentence for the wearer.
fn failed(server: &str, failure: Failure, read_only: bool) -> ToolResult {
    let (code, message, retryable, say) = match failure {
        Failure::Down(why) => (
            ErrorCode::AppNotAvailable,
            format!("The MCP server '{server}' is not running: {}. Nothing was done.", spoken::clause(&why)),
            true,
            format!("{server} isn't running right now."),
        ),
        Failure::Broken(why) if read_only => (
            ErrorCode::AppNotAvailable,
            format!("The MCP server '{server}' stopped in the middle: {}.", spoken::clause(&why)),
            true,
            format!("{server} stopped before it could answer."),
        ),
        Failure::Broken(why) => (
            ErrorCode::AppNotAvailable,
            format!(
                "The MCP server '{server}' stopped in the middle: {}. Whether it was done is unknown. Do not repeat it.",
                spoken::clause(&why)
            ),
            false,
            format!("{server} stopped in the middle. I don't know whether it was done."),
        ),
        Failure::TooLarge => (
            ErrorCode::HttpError,
            format!(
                "The MCP server '{server}' answered with more than {} MiB, which is not read.{}",
                MESSAGE_BYTES_MAX >> 20,
                if read_only { "" } else { " What was asked for was most likely done. Do not repeat it." }
            ),
            false,
            format!("{server} answered with more than I can take."),
        ),
        Failure::Late(wait) if read_only => (
            ErrorCode::Timeout,
            format!("The MCP server '{server}' did not answer within {}.", seconds(wait)),
            true,
            format!("{server} took too long to answer."),
        ),
        Failure::Late(wait) => (
            ErrorCode::Timeout,
            format!(
                "The MCP server '{server}' did not answer within {}; whether it was done is unknown. Do not repeat it.",
                seconds(wait)
            ),
            false,
            format!("{server} took too long. I don't know whether it was done."),
        ),
        Failure::Refused(error) => (
            ErrorCode::ExecutionError,
            spoken::sentence(&format!("The MCP server '{server}' refused: {}", error.message)),
            false,
            format!("{server} couldn't do that."),
        ),
    };
    let mut result = ToolResult::failed(code, message, retryable);
    result.say = Some(say);
    result
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
