//! Posts calls to the HTTP server of an app or a capability, and reads its answers.
//!
//! What is sent goes to that server's own origin only: redirects are refused. The size of an answer is limited while it
//! is received.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use gateway_core::vocab::ToolResult;
use reqwest::{
    Response, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION},
};
use tokio::{sync::Semaphore, time::timeout};

use super::{answer, failure::Failure, log::EXCERPT_BYTES_MAX};
use crate::{registry::RunContext, secret::Secrets};

/// Maximum bytes of an answer: up to 64 KiB of data, and a small picture.
const ANSWER_BYTES_MAX: usize = 512 * 1024;
/// Maximum bytes that are read of an answer with an error status: a message, not a page.
const ERROR_BYTES_MAX: usize = 8 * 1024;
/// Concurrent calls of one server; further ones wait. Bounds memory: each may hold an answer.
pub(super) const CALLS_MAX: usize = 64;
/// Milliseconds subtracted from a call's deadline, so that the timeout is reported here and not by the executor, which
/// has less information.
const MARGIN_MS: u64 = 20;

/// A server that carries out calls.
pub(crate) struct Post {
    url: Option<Url>,
    headers: HeaderMap,
    pub(super) turns: Semaphore,
    /// What must not come back in a result: the server may echo what it was sent.
    secrets: Secrets,
    http: reqwest::Client,
}

impl Post {
    /// A server at this address, which is sent these headers and JSON. `http` must follow no redirects.
    pub(crate) fn new(url: &str, mut headers: HeaderMap, secrets: Secrets, http: reqwest::Client) -> Self {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Self { url: Url::parse(url).ok(), headers, turns: Semaphore::new(CALLS_MAX), secrets, http }
    }

    /// The secrets that it is sent.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Makes a call. `name`: that of the server, in messages; `excerpt` gets the beginning of its answer. `None`: the
    /// call was cancelled, and nothing was done.
    pub(crate) async fn call(
        &self,
        context: &RunContext,
        name: &str,
        body: String,
        excerpt: &mut String,
    ) -> Option<ToolResult> {
        let repeatable = context.flags.read_only || context.flags.idempotent;
        let sent = AtomicBool::new(false);
        let limit = context.deadline.saturating_sub(Duration::from_millis(MARGIN_MS));
        // Dropping the request closes the connection, which notifies the server. A change that has begun is waited for.
        let unwanted = async {
            context.cancel.cancelled().await;
            if sent.load(Ordering::Relaxed) && !context.flags.read_only {
                std::future::pending::<()>().await;
            }
        };
        let ended = tokio::select! {
            ended = timeout(limit, self.exchange(body, excerpt, &sent)) => ended,
            () = unwanted => return None,
        };
        let mut result = match ended {
            Ok(Ok(result)) => result,
            Ok(Err(failure)) => failure.result(name, repeatable),
            Err(_elapsed) => {
                let ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                let sent = sent.load(Ordering::Relaxed);
                Failure::TimedOut { ms, sent }.result(name, repeatable)
            }
        };
        self.secrets.redact_result(&mut result);
        Some(result)
    }

    async fn exchange(&self, body: String, excerpt: &mut String, sent: &AtomicBool) -> Result<ToolResult, Failure> {
        let Ok(_turn) = self.turns.acquire().await else {
            return Err(Failure::NotReached("it is being removed".to_owned()));
        };
        let url = self.url.as_ref().ok_or_else(|| Failure::NotReached("its address is no URL".to_owned()))?;
        let request = self.http.post(url.clone()).headers(self.headers.clone()).body(body);
        sent.store(true, Ordering::Relaxed);
        let response = request.send().await.map_err(failure)?;
        read(response, excerpt).await
    }
}

async fn read(response: Response, excerpt: &mut String) -> Result<ToolResult, Failure> {
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
    *excerpt = String::from_utf8_lossy(body.get(..EXCERPT_BYTES_MAX).unwrap_or(&body)).into_owned();
    answer::read(&body).map_err(|invalid| Failure::InvalidResponse(invalid.0))
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
