//! Calls the tools of mini-apps: `POST {publicUrl}/tool`, in the published shape or in the MCP one.
//!
//! The wearer's words and the app's key are sent to the app's own origin only: redirects are refused. The size of a
//! response is limited while it is received.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::vocab::{ToolCall, ToolResult};
use reqwest::{
    Response, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION},
    redirect,
};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;
use tokio::{sync::Semaphore, time::timeout};

use super::{
    answer,
    failure::Failure,
    log::{Event, Fault, Log},
    manifest::{App, CallShape},
};
use crate::{
    consent::cancelled,
    conversation::Said,
    registry::{RunContext, Runner},
    reply::cut,
    secret::{Secret, Secrets},
};

/// Header with SHA-256 of the app's key, as MentraOS sends it.
const KEY_HEADER: &str = "x-app-api-key";
/// Maximum bytes of a response: up to 64 KiB of data, and a small picture.
const ANSWER_BYTES_MAX: usize = 512 * 1024;
/// Maximum bytes that are read of a response with an error status: a message, not a page.
const ERROR_BYTES_MAX: usize = 8 * 1024;
/// Connect timeout in milliseconds: apps run on the same machine, on the local network, or one round trip away.
const CONNECT_MS_MAX: u64 = 3_000;
/// Milliseconds that an idle connection is kept for the next call. Node closes idle connections after 5 s, and a call
/// that coincides with the closing has an unknown outcome.
const IDLE_MS_MAX: u64 = 4_000;
/// Idle connections kept per app.
const IDLE_PER_APP_MAX: usize = 4;
/// Concurrent calls of one app; further ones wait. Bounds memory: each may hold a response.
const CALLS_PER_APP_MAX: usize = 64;
/// Bytes of arguments and of a response in the log entry of a call.
const TOLD_BYTES_MAX: usize = 150;
/// Milliseconds subtracted from a call's deadline, so that the timeout is reported here and not by the executor, which
/// has less information.
const MARGIN_MS: u64 = 20;

/// The HTTP client could not be created.
#[derive(Debug, Error)]
#[error("the HTTP client for mini-apps cannot be made: {0}")]
pub struct ClientError(#[from] reqwest::Error);

/// The shared HTTP client for all apps, and the log of recent events.
pub struct Client {
    http: reqwest::Client,
    log: Log,
}

impl Client {
    /// A client without connections. The process must have installed its TLS provider before.
    ///
    /// # Errors
    /// The system's certificates cannot be used.
    pub fn new() -> Result<Self, ClientError> {
        let http = reqwest::Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .connect_timeout(Duration::from_millis(CONNECT_MS_MAX))
            .pool_idle_timeout(Duration::from_millis(IDLE_MS_MAX))
            .pool_max_idle_per_host(IDLE_PER_APP_MAX)
            .tcp_nodelay(true)
            .build()?;
        Ok(Self { http, log: Log::default() })
    }

    /// The client for other requests to apps: it follows no redirects.
    pub fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// The log of recent events.
    pub fn log(&self) -> &Log {
        &self.log
    }
}

/// Runs the tools of one app.
pub struct AppRunner {
    app: Arc<App>,
    url: Option<Url>,
    headers: HeaderMap,
    turns: Semaphore,
    secrets: Secrets,
    client: Arc<Client>,
}

impl AppRunner {
    /// A runner for the tools that `app` declares.
    pub fn new(app: Arc<App>, client: Arc<Client>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Ok(mut key) = HeaderValue::from_str(&app.api_key_sha256) {
            key.set_sensitive(true);
            headers.insert(KEY_HEADER, key);
        }
        // If an app echoes what it was sent, its key must not reach a model.
        let secrets = Secrets::default();
        secrets.keep(&Secret::new(app.api_key_sha256.as_str()));
        Self {
            secrets,
            url: Url::parse(&format!("{}/tool", app.public_url.trim_end_matches('/'))).ok(),
            headers,
            turns: Semaphore::new(CALLS_PER_APP_MAX),
            app,
            client,
        }
    }

    async fn call(
        &self,
        context: &RunContext,
        attempt: &mut Attempt,
        arguments: Value,
        sent: &AtomicBool,
    ) -> Result<ToolResult, Failure> {
        let Ok(_turn) = self.turns.acquire().await else {
            return Err(Failure::NotReached("the app is being removed".to_owned()));
        };
        let conversation = self.app.gets_conversation().then(|| context.conversation.as_ref());
        // The app's log shows the call without the conversation.
        attempt.body = body(&self.app, context, &arguments, None);
        let written = match conversation {
            Some(_) => body(&self.app, context, &arguments, conversation),
            None => attempt.body.clone(),
        };
        let url = self.url.as_ref().ok_or_else(|| Failure::NotReached("its address is no URL".to_owned()))?;
        let request = self.client.http.post(url.clone()).headers(self.headers.clone()).body(written);
        sent.store(true, Ordering::Relaxed);
        let response = request.send().await.map_err(failure)?;
        self.read(response, &mut attempt.answer).await
    }

    async fn read(&self, response: Response, excerpt: &mut String) -> Result<ToolResult, Failure> {
        let status = response.status();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            return Err(Failure::Redirected { to: to.unwrap_or("nowhere").to_owned() });
        }
        if !status.is_success() {
            // A message that is too large or incomplete is ignored.
            let body = bounded(response, ERROR_BYTES_MAX).await.unwrap_or_default();
            *excerpt = format!("{status} {}", String::from_utf8_lossy(&body));
            return Err(Failure::Status { status: status.as_u16(), message: answer::message(&body) });
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !is_json(kind) {
            return Err(Failure::ContentType(kind.to_owned()));
        }
        let body = bounded(response, ANSWER_BYTES_MAX).await?;
        *excerpt = String::from_utf8_lossy(body.get(..super::log::EXCERPT_BYTES_MAX).unwrap_or(&body)).into_owned();
        answer::read(&body).map_err(|garbage| Failure::Garbage(garbage.0))
    }
}

/// State of a running call, for the report if it fails.
#[derive(Default)]
struct Attempt {
    body: String,
    answer: String,
}

#[async_trait]
impl Runner for AppRunner {
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult {
        let repeatable = context.flags.read_only || context.flags.idempotent;
        let began_us = context.ports.clock.now().mono_us;
        let told = call.arguments.to_string();
        let mut attempt = Attempt::default();
        let sent = AtomicBool::new(false);
        let limit = context.deadline.saturating_sub(Duration::from_millis(MARGIN_MS));
        // Dropping the request closes the connection, which notifies the app. A change that has begun is waited for.
        let unwanted = async {
            context.cancel.cancelled().await;
            if sent.load(Ordering::Relaxed) && !repeatable {
                std::future::pending::<()>().await;
            }
        };
        let ended = tokio::select! {
            ended = timeout(limit, self.call(&context, &mut attempt, call.arguments, &sent)) => ended,
            () = unwanted => return cancelled(),
        };
        let mut result = match ended {
            Ok(Ok(result)) => result,
            Ok(Err(failure)) => failure.result(&self.app.name, repeatable),
            Err(_elapsed) => {
                let ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                let sent = sent.load(Ordering::Relaxed);
                Failure::TimedOut { ms, sent }.result(&self.app.name, repeatable)
            }
        };
        self.secrets.blot_result(&mut result);
        let now = context.ports.clock.now();
        let took_ms = now.mono_us.saturating_sub(began_us) / 1_000;
        let outcome = result.error.as_ref().map_or_else(|| result.content.clone(), |_| "failed".to_owned());
        let event = Event {
            wall_ms: now.wall_ms,
            user: context.user.clone(),
            what: context.local_name.clone(),
            message: format!("{took_ms} ms  {}  ->  {}", cut(&told, TOLD_BYTES_MAX), cut(&outcome, TOLD_BYTES_MAX)),
        };
        self.client.log.event(&self.app.package, event);
        if let Some(error) = &result.error {
            self.secrets.redact(&mut attempt.answer);
            let fault = Fault {
                wall_ms: now.wall_ms,
                user: context.user,
                what: context.local_name,
                code: error.code,
                message: error.message.clone(),
                request: format!("POST {}/tool {}", self.app.public_url, attempt.body),
                answer: attempt.answer,
                times: 1,
            };
            self.client.log.fault(&self.app.package, fault);
        }
        result
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PublishedCall<'a> {
    tool_id: &'a str,
    tool_parameters: &'a Value,
    user_id: &'a str,
    timestamp: &'a str,
    active_session: Option<()>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_history: Option<&'a [Said]>,
}

#[derive(Serialize)]
struct McpCall<'a> {
    name: &'a str,
    arguments: &'a Value,
    context: McpContext<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct McpContext<'a> {
    user_id: &'a str,
    session_id: String,
    timestamp: &'a str,
    activated_for_tool: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation_history: Option<&'a [Said]>,
}

fn body(app: &App, context: &RunContext, arguments: &Value, conversation_history: Option<&[Said]>) -> String {
    // Published apps index into it without a check.
    let none = Value::Object(serde_json::Map::new());
    let arguments = if arguments.is_object() { arguments } else { &none };
    let user_id = context.user.as_str();
    let timestamp = timestamp(context.ports.clock.now().wall_ms);
    let timestamp = timestamp.as_str();
    let written = match app.shape {
        CallShape::Published => serde_json::to_string(&PublishedCall {
            tool_id: &context.local_name,
            tool_parameters: arguments,
            user_id,
            timestamp,
            active_session: None,
            conversation_history,
        }),
        CallShape::Mcp => serde_json::to_string(&McpCall {
            name: &context.local_name,
            arguments,
            context: McpContext {
                user_id,
                session_id: format!("{user_id}-{}", app.package),
                timestamp,
                activated_for_tool: context.activated,
                conversation_history,
            },
        }),
    };
    // Strings and values that were parsed from JSON always serialise to JSON.
    written.unwrap_or_default()
}

fn timestamp(wall_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(wall_ms).unwrap_or_default().to_string()
}

fn is_json(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Reads at most `max` bytes of the body; a body whose announced length exceeds this is not read at all.
pub(super) async fn bounded(mut response: Response, max: usize) -> Result<Vec<u8>, Failure> {
    if let Some(bytes) = response.content_length().filter(|bytes| *bytes > max as u64) {
        return Err(Failure::TooLarge { bytes, max });
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failure)? {
        if body.len() + chunk.len() > max {
            return Err(Failure::TooLarge { bytes: (body.len() + chunk.len()) as u64, max });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The innermost cause, which is the actionable one, such as "Connection refused".
pub(super) fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn failure(error: reqwest::Error) -> Failure {
    let why = cause(&error);
    if error.is_connect() { Failure::NotReached(why) } else { Failure::Lost(why) }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
