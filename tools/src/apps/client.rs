//! Calls the tools of mini-apps: `POST {publicUrl}/tool`, in the published shape or in the MCP one.
//!
//! The wearer's words and the app's key go to the app's own origin and nowhere else: redirects are
//! refused. What an app answers is bounded while it comes.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use backon::{ConstantBuilder, Retryable as _};
use gateway_core::vocab::{ErrorCode, ToolCall, ToolResult};
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
    faults::{Fault, Faults},
    manifest::{App, AppTool, CallShape},
};
use crate::runner::{RunContext, Runner};

/// Header with SHA-256 of the app's key, as MentraOS sends it.
const KEY_HEADER: &str = "x-app-api-key";
/// Bytes of an answer: a result may have 64 KiB of data, and a small picture beside it.
const ANSWER_BYTES_MAX: usize = 512 * 1024;
/// Bytes that are read of an answer with a status of failure: a message, not a page.
const ERROR_BYTES_MAX: usize = 8 * 1024;
/// Milliseconds that connecting may take: apps run on the box, in the house, or a round trip away.
const CONNECT_MS_MAX: u64 = 3_000;
/// Milliseconds that a connection is kept for the next call. Node closes idle ones after 5 s, and a
/// call that meets the closing has an unknown outcome.
const IDLE_MS_MAX: u64 = 4_000;
/// Connections kept per app.
const IDLE_PER_APP_MAX: usize = 4;
/// Calls of one app at once; more wait their turn. Bounds memory: each may hold an answer.
const CALLS_PER_APP_MAX: usize = 64;
/// Milliseconds before an app that refused the connection is tried again: it may be restarting.
const RETRY_MS: u64 = 250;
/// How often it is tried again.
const RETRIES_MAX: usize = 2;
/// Milliseconds that starting an app may take: MentraOS allows 5 s, and the app asks for no more.
const ACTIVATE_MS_MAX: u64 = 6_000;
/// Milliseconds that are kept of a call's deadline, so that the end is told here and not by the
/// executor, who knows less about it.
const MARGIN_MS: u64 = 20;

/// No client could be made.
#[derive(Debug, Error)]
#[error("the HTTP client for mini-apps cannot be made: {0}")]
pub struct ClientError(#[from] reqwest::Error);

/// The one HTTP client for all apps, and what went wrong with them lately.
pub struct Client {
    http: reqwest::Client,
    faults: Faults,
}

impl Client {
    /// A client without connections. The process must have chosen its TLS provider before.
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
        Ok(Self { http, faults: Faults::default() })
    }

    /// For other requests to apps: follows no redirects.
    pub fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// What went wrong lately.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }
}

/// Runs the tools of one app.
pub struct AppRunner {
    app: Arc<App>,
    by_name: BTreeMap<String, usize>,
    url: Option<Url>,
    headers: HeaderMap,
    turns: Semaphore,
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
        Self {
            by_name: app.tools.iter().enumerate().map(|(at, tool)| (tool.spec.name.clone(), at)).collect(),
            url: Url::parse(&format!("{}/tool", app.public_url.trim_end_matches('/'))).ok(),
            headers,
            turns: Semaphore::new(CALLS_PER_APP_MAX),
            app,
            client,
        }
    }

    async fn call(&self, context: &RunContext, tool: &AppTool, call: &mut Attempt) -> Result<ToolResult, Failure> {
        let Ok(_turn) = self.turns.acquire().await else {
            return Err(Failure::NotReached("the app is being removed".to_owned()));
        };
        let mut activated = false;
        if tool.spec.app.is_some() || tool.spec.flags.requires_display {
            let limit = context.deadline.min(Duration::from_millis(ACTIVATE_MS_MAX));
            let activate = context.ports.apps.activate(&context.user, &self.app.package, limit);
            activated = activate.await.map_err(Failure::NotStarted)?;
        }
        let timestamp = timestamp(context.ports.clock.now().wall_ms);
        call.body = body(&self.app, tool, context, call.arguments.take(), &timestamp, activated);
        let url = self.url.as_ref().ok_or_else(|| Failure::NotReached("its address is no URL".to_owned()))?;
        call.sent.store(true, Ordering::Relaxed);
        let response = self.post(url, &call.body).await?;
        self.read(response, &mut call.answer).await
    }

    /// Sends the request; once more only where nothing can have arrived.
    async fn post(&self, url: &Url, body: &str) -> Result<Response, Failure> {
        let send = || {
            let request = self.client.http.post(url.clone()).headers(self.headers.clone()).body(body.to_owned());
            request.send()
        };
        let pauses = ConstantBuilder::new().with_delay(Duration::from_millis(RETRY_MS)).with_max_times(RETRIES_MAX);
        send.retry(pauses).when(|error| error.is_connect() && !error.is_timeout()).await.map_err(failure)
    }

    async fn read(&self, response: Response, excerpt: &mut String) -> Result<ToolResult, Failure> {
        let status = response.status();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            return Err(Failure::Redirected { to: to.unwrap_or("nowhere").to_owned() });
        }
        if !status.is_success() {
            // A message that does not come in one piece of decent size is done without.
            let body = bounded(response, ERROR_BYTES_MAX).await.unwrap_or_default();
            *excerpt = format!("{status} {}", String::from_utf8_lossy(&body));
            return Err(Failure::Status { status: status.as_u16(), message: answer::message(&body) });
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !is_json(kind) {
            return Err(Failure::ContentType(kind.to_owned()));
        }
        let body = bounded(response, ANSWER_BYTES_MAX).await?;
        *excerpt = String::from_utf8_lossy(body.get(..super::faults::EXCERPT_BYTES_MAX).unwrap_or(&body)).into_owned();
        answer::read(&body).map_err(|garbage| Failure::Garbage(garbage.0))
    }
}

/// What is known of a call while it runs, for the report if it fails.
#[derive(Default)]
struct Attempt {
    arguments: Value,
    body: String,
    answer: String,
    sent: AtomicBool,
}

#[async_trait]
impl Runner for AppRunner {
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult {
        let Some(tool) = self.by_name.get(&call.name).and_then(|at| self.app.tools.get(*at)) else {
            return ToolResult::failed(ErrorCode::ToolNotFound, "The app has no such tool.", false);
        };
        let repeatable = tool.spec.flags.read_only || tool.spec.flags.idempotent;
        let mut attempt = Attempt { arguments: call.arguments, ..Attempt::default() };
        let limit = context.deadline.saturating_sub(Duration::from_millis(MARGIN_MS));
        let ended = timeout(limit, self.call(&context, tool, &mut attempt)).await;
        let result = match ended {
            Ok(Ok(result)) => result,
            Ok(Err(failure)) => failure.result(&self.app.name, repeatable),
            Err(_elapsed) => {
                let ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                let sent = attempt.sent.load(Ordering::Relaxed);
                Failure::TimedOut { ms, sent }.result(&self.app.name, repeatable)
            }
        };
        if let Some(error) = &result.error {
            let fault = Fault {
                wall_ms: context.ports.clock.now().wall_ms,
                what: tool.local_name.clone(),
                code: error.code,
                message: error.message.clone(),
                request: format!("POST {}/tool {}", self.app.public_url, attempt.body),
                answer: attempt.answer,
            };
            self.client.faults.record(&self.app.package, fault);
        }
        result
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PublishedCall<'a> {
    tool_id: &'a str,
    tool_parameters: Value,
    user_id: &'a str,
    timestamp: &'a str,
    active_session: Option<()>,
}

#[derive(Serialize)]
struct McpCall<'a> {
    name: &'a str,
    arguments: Value,
    context: McpContext<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct McpContext<'a> {
    user_id: &'a str,
    session_id: String,
    timestamp: &'a str,
    activated_for_tool: bool,
}

/// The session's name towards an app; opaque to both sides.
pub fn session_id(user: &str, package: &str) -> String {
    format!("{user}-{package}")
}

fn body(
    app: &App,
    tool: &AppTool,
    context: &RunContext,
    arguments: Value,
    timestamp: &str,
    activated_for_tool: bool,
) -> String {
    // Published apps index into it without looking.
    let arguments = if arguments.is_object() { arguments } else { Value::Object(serde_json::Map::new()) };
    let user_id = context.user.as_str();
    let written = match app.shape {
        CallShape::Published => serde_json::to_string(&PublishedCall {
            tool_id: &tool.local_name,
            tool_parameters: arguments,
            user_id,
            timestamp,
            active_session: None,
        }),
        CallShape::Mcp => serde_json::to_string(&McpCall {
            name: &tool.local_name,
            arguments,
            context: McpContext {
                user_id,
                session_id: session_id(user_id, &app.package),
                timestamp,
                activated_for_tool,
            },
        }),
    };
    // Strings and values that came from JSON: nothing in them can fail to become JSON.
    written.unwrap_or_default()
}

fn timestamp(wall_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(wall_ms).unwrap_or_default().to_string()
}

fn is_json(kind: &str) -> bool {
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// The body, at most `max` bytes of it; one that announces more is not read at all.
async fn bounded(mut response: Response, max: usize) -> Result<Vec<u8>, Failure> {
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

fn failure(error: reqwest::Error) -> Failure {
    // The innermost cause is the one that people can act on: "Connection refused".
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let why = cause.to_string();
    if error.is_connect() { Failure::NotReached(why) } else { Failure::Lost(why) }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
