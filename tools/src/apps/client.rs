//! Calls the tools of mini-apps: `POST {publicUrl}/tool`, in the published shape or in the MCP one.
//!
//! The wearer's words and the app's key are sent to the app's own origin only: redirects are refused. The size of a
//! response is limited while it is received.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_core::vocab::{ToolCall, ToolResult};
use reqwest::{
    header::{HeaderMap, HeaderValue},
    redirect,
};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::{
    log::{Event, Fault, Log},
    manifest::{App, CallShape},
    post::Post,
};
use crate::{
    consent::cancelled,
    conversation::PastMessage,
    registry::{RunContext, Runner},
    reply::cut,
    secret::{Secret, Secrets},
};

/// Header with SHA-256 of the app's key, as MentraOS sends it.
const KEY_HEADER: &str = "x-app-api-key";
/// Connect timeout in milliseconds: apps run on the same machine, on the local network, or one round trip away.
const CONNECT_MS_MAX: u64 = 3_000;
/// Milliseconds that an idle connection is kept for the next call. Node closes idle connections after 5 s, and a call
/// that coincides with the closing has an unknown outcome.
const IDLE_MS_MAX: u64 = 4_000;
/// Idle connections kept per app.
const IDLE_PER_APP_MAX: usize = 4;
/// Bytes of arguments and of a response in the log entry of a call.
const TOLD_BYTES_MAX: usize = 150;

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
    post: Post,
    client: Arc<Client>,
}

impl AppRunner {
    /// A runner for the tools that `app` declares.
    pub fn new(app: Arc<App>, client: Arc<Client>) -> Self {
        let mut headers = HeaderMap::new();
        if let Ok(mut key) = HeaderValue::from_str(&app.api_key_sha256) {
            key.set_sensitive(true);
            headers.insert(KEY_HEADER, key);
        }
        // If an app echoes what it was sent, its key must not reach a model.
        let secrets = Secrets::default();
        secrets.keep(&Secret::new(app.api_key_sha256.as_str()));
        let url = format!("{}/tool", app.public_url.trim_end_matches('/'));
        Self { post: Post::new(&url, headers, secrets, client.http().clone()), app, client }
    }
}

#[async_trait]
impl Runner for AppRunner {
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult {
        let began_us = context.ports.clock.now().mono_us;
        let told = call.arguments.to_string();
        // The app's log shows the call without the conversation.
        let shown = body(&self.app, &context, &call.arguments, None);
        let sent = match self.app.gets_conversation() {
            true => body(&self.app, &context, &call.arguments, Some(context.conversation.as_ref())),
            false => shown.clone(),
        };
        let mut answer = String::new();
        let Some(result) = self.post.call(&context, &self.app.name, sent, &mut answer).await else {
            return cancelled();
        };
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
            self.post.secrets().redact(&mut answer);
            let fault = Fault {
                wall_ms: now.wall_ms,
                user: Some(context.user),
                what: context.local_name,
                code: error.code,
                message: error.message.clone(),
                request: format!("POST {}/tool {shown}", self.app.public_url),
                answer,
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
    conversation_history: Option<&'a [PastMessage]>,
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
    conversation_history: Option<&'a [PastMessage]>,
}

fn body(app: &App, context: &RunContext, arguments: &Value, conversation_history: Option<&[PastMessage]>) -> String {
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

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
