//! OpenAI-compatible chat completions: a pure [`render()`], a pure [`Parser`] and a thin HTTP shell.
//! Works with OpenAI, Ollama, llama.cpp, vLLM and everything that speaks like them.

mod parse;
mod render;

use std::time::Duration;

use async_trait::async_trait;
use gateway_core::vocab::{FailureKind, ModelEvent};
use reqwest::{
    Client, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
    redirect,
};
use serde_json::Value;
use thiserror::Error;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{ChatModel, Request, auth::Key};

pub use parse::Parser;
pub use render::{Options, render};

/// Longest body that is read of an error, or of an answer that is not streamed.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Where and how to reach a provider.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Up to and without `/chat/completions`, for example `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    /// Sent as a bearer token.
    pub key: Option<Key>,
    /// Further headers; their values are treated as secrets.
    pub headers: Vec<(String, String)>,
    /// Until a connection stands.
    pub connect_timeout: Duration,
    /// From the request to the first event of the answer.
    pub first_token_timeout: Duration,
    /// Between two pieces of an answer.
    pub idle_timeout: Duration,
    /// Further attempts after a failed connection, 429 or 5xx, before the first event.
    pub retries: u32,
    /// Wait before the first further attempt; doubles with each.
    pub backoff: Duration,
}

impl Endpoint {
    /// Longest wait before a further attempt, whatever a server asks for: the wearer waits too.
    const BACKOFF_MAX: Duration = Duration::from_secs(5);

    /// An endpoint with the usual deadlines and no key.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            key: None,
            headers: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            first_token_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(30),
            retries: 2,
            backoff: Duration::from_millis(300),
        }
    }
}

/// Why a model cannot be set up.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The address cannot be used.
    #[error("the base URL '{0}' is not an http or https address")]
    Url(String),
    /// A header cannot be sent.
    #[error("the extra header '{0}' has a name or a value that HTTP does not allow")]
    Header(String),
    /// The HTTP client cannot be made.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

/// A model behind an OpenAI-compatible endpoint. Keeps its connections alive between requests.
pub struct ChatCompletions {
    client: Client,
    url: reqwest::Url,
    endpoint: Endpoint,
    options: Options,
}

type Failure = (FailureKind, String);

enum Attempt {
    /// The last event was sent, or nobody listens any more.
    Over,
    /// Worth another attempt, after this wait where the server named one.
    Again(Failure, Option<Duration>),
    Failed(Failure),
}

impl ChatCompletions {
    /// Sets up a model. The process must have installed a rustls provider before.
    pub fn new(endpoint: Endpoint, options: Options) -> Result<Self, SetupError> {
        let bad_url = || SetupError::Url(endpoint.base_url.clone());
        let joined = format!("{}/chat/completions", endpoint.base_url.trim_end_matches('/'));
        let url = reqwest::Url::parse(&joined).map_err(|_| bad_url())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(bad_url());
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &endpoint.headers {
            let bad = || SetupError::Header(name.clone());
            let key: HeaderName = name.parse().map_err(|_| bad())?;
            headers.insert(key, secret(value).ok_or_else(bad)?);
        }
        if let Some(key) = &endpoint.key {
            let value = secret(&format!("Bearer {}", key.secret()));
            headers.insert(AUTHORIZATION, value.ok_or_else(|| SetupError::Header("authorization".into()))?);
        }
        // Without one the client would panic.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            return Err(SetupError::Client("the process has installed no rustls provider".into()));
        }
        let client = Client::builder()
            .default_headers(headers)
            .connect_timeout(endpoint.connect_timeout)
            // A redirect would carry the question, if not the key, to somebody else.
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|error| SetupError::Client(error.without_url().to_string()))?;
        Ok(Self { client, url, endpoint, options })
    }

    async fn run(&self, request: &Request, events: &mpsc::Sender<ModelEvent>) {
        let (body, names) = render(request, &self.options);
        let body = body.to_string();
        let mut backoff = self.endpoint.backoff;
        let mut left = self.endpoint.retries;
        loop {
            let parser = Parser::new(names.clone());
            let (kind, message) = match self.attempt(body.clone(), parser, events).await {
                Attempt::Over => return,
                Attempt::Again(_, wait) if left > 0 => {
                    left -= 1;
                    sleep(wait.unwrap_or(backoff).min(Endpoint::BACKOFF_MAX)).await;
                    backoff *= 2;
                    continue;
                }
                Attempt::Again(failure, _) | Attempt::Failed(failure) => failure,
            };
            let message = self.redact(&message);
            tracing::warn!(model = self.options.model, ?kind, "the model failed");
            let _ = events.send(ModelEvent::Failed { kind, message }).await;
            return;
        }
    }

    async fn attempt(&self, body: String, mut parser: Parser, events: &mpsc::Sender<ModelEvent>) -> Attempt {
        let transient = |message: &str| (FailureKind::Transient, message.to_owned());
        let first = Instant::now() + self.endpoint.first_token_timeout;
        let post = self.client.post(self.url.clone());
        let sent = post.header(CONTENT_TYPE, "application/json").body(body).send();
        let mut response = match timeout_at(first, sent).await {
            Err(_) => return Attempt::Failed(transient("the model gave no answer in time")),
            Ok(Err(error)) => {
                let failure = transient(&describe(&error));
                return if error.is_connect() { Attempt::Again(failure, None) } else { Attempt::Failed(failure) };
            }
            Ok(Ok(response)) => response,
        };
        if !response.status().is_success() {
            return match timeout_at(first, refused(response)).await {
                Ok(attempt) => attempt,
                Err(_) => Attempt::Failed(transient("the model gave no answer in time")),
            };
        }
        if is_document(&response) {
            let document = timeout_at(first, read_bounded(&mut response)).await;
            let Ok(document) = document else {
                return Attempt::Failed(transient("the model gave no answer in time"));
            };
            return self.forward(parser.push_document(&document), events).await;
        }
        let mut begun = false;
        while !parser.is_finished() {
            let next = if begun {
                timeout(self.endpoint.idle_timeout, response.chunk()).await
            } else {
                timeout_at(first, response.chunk()).await
            };
            let out = match next {
                Err(_) => return Attempt::Failed(transient("the model fell silent")),
                Ok(Ok(Some(bytes))) => parser.push(&bytes),
                Ok(Ok(None)) => parser.finish(),
                // A cut connection ends the answer as surely as a closed one.
                Ok(Err(_)) => parser.finish(),
            };
            begun |= !out.is_empty();
            if let Attempt::Failed(failure) = self.forward(out, events).await {
                return Attempt::Failed(failure);
            }
            if events.is_closed() {
                return Attempt::Over;
            }
        }
        // Reading to the end lets the connection be used again; a server that goes on after the
        // end of its answer is not waited for.
        let _ = timeout(Duration::from_millis(50), response.chunk()).await;
        Attempt::Over
    }

    async fn forward(&self, out: Vec<ModelEvent>, events: &mpsc::Sender<ModelEvent>) -> Attempt {
        for event in out {
            // Failures leave through one door, where the key is taken out of their text.
            if let ModelEvent::Failed { kind, message } = event {
                return Attempt::Failed((kind, message));
            }
            if events.send(event).await.is_err() {
                break;
            }
        }
        Attempt::Over
    }

    fn redact(&self, message: &str) -> String {
        const SECRET_BYTES_MIN: usize = 6;
        let mut message = message.to_owned();
        if let Some(key) = &self.endpoint.key {
            message = key.redact(&message);
        }
        for (_, value) in &self.endpoint.headers {
            if value.len() >= SECRET_BYTES_MIN {
                message = message.replace(value, "[hidden]");
            }
        }
        message
    }
}

#[async_trait]
impl ChatModel for ChatCompletions {
    fn name(&self) -> &str {
        &self.options.model
    }

    async fn stream(&self, request: Request, events: mpsc::Sender<ModelEvent>, cancel: CancellationToken) {
        // Dropping the response closes its connection.
        cancel.run_until_cancelled(self.run(&request, &events)).await;
    }
}

fn secret(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn is_document(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

async fn read_bounded(response: &mut Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(bytes)) = response.chunk().await {
        if body.len() + bytes.len() > BODY_BYTES_MAX {
            break;
        }
        body.extend_from_slice(&bytes);
    }
    body
}

/// What an error status means.
async fn refused(mut response: Response) -> Attempt {
    let status = response.status();
    let wait = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(Duration::from_secs);
    let body = read_bounded(&mut response).await;
    let document: Value = serde_json::from_slice(&body).unwrap_or_default();
    let error = document.get("error").unwrap_or(&document);
    let code = error.get("code").and_then(Value::as_str);
    let kind = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => FailureKind::Auth,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::PAYMENT_REQUIRED => FailureKind::Limited,
        StatusCode::REQUEST_TIMEOUT => FailureKind::Transient,
        _ if status.is_server_error() => FailureKind::Transient,
        _ if code == Some("content_filter") => FailureKind::Refused,
        _ => FailureKind::Bug,
    };
    let words = if error.is_null() { String::new() } else { format!(": {}", parse::error_text(error)) };
    let failure = (kind, format!("the model's server answered {status}{words}"));
    // A used-up quota is a 429 too, and waiting does not help.
    let quota = code == Some("insufficient_quota");
    if (status == StatusCode::TOO_MANY_REQUESTS && !quota) || status.is_server_error() {
        Attempt::Again(failure, wait)
    } else {
        Attempt::Failed(failure)
    }
}

/// An error without its address, which may carry a secret, but with its cause.
fn describe(error: &reqwest::Error) -> String {
    use std::error::Error;
    if error.is_connect() {
        let mut cause = error.source();
        while let Some(deeper) = cause.and_then(Error::source) {
            cause = Some(deeper);
        }
        let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
        return format!("the model's server cannot be reached{cause}");
    }
    "the connection to the model's server broke before an answer".to_owned()
}
