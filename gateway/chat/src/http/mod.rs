//! The HTTP shell of all providers: deadlines, retries before the first token, cancellation that closes the connection,
//! connection reuse, and redaction of secrets in every error.

mod credentials;
mod outgoing;
mod preconnect;
pub(crate) mod refusal;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_core::vocab::{FailureKind, ModelEvent};
use reqwest::{
    Body, Client, Response, StatusCode, Url,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use thiserror::Error;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{
    ChatModel, Request, Tools,
    failure::{Failure, bug},
    names::NameMap,
    provider::{Provider, Rendered},
};

use outgoing::Outgoing;
use preconnect::Preconnect;

pub use credentials::{Credentials, Headers, KeyHeader, NoCredentials};

/// Longest body read of an error, or of an answer that is not streamed.
const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Longest stream of one answer, including ignored parts.
const STREAM_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long an idle connection is kept for the next question. A wearer asks every few minutes, and a new connection
/// costs two or three round trips before the first token.
const IDLE_CONNECTION: Duration = Duration::from_secs(300);
/// Keeps the NAT mapping of home routers alive while a connection is idle.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Address and connection settings of a provider.
#[derive(Clone)]
pub struct Endpoint {
    /// Base address before the provider's own path, for example `http://127.0.0.1:11434/v1`. Its query is sent with
    /// every request, as Azure requires: `https://NAME.openai.azure.com/openai/deployments/D?api-version=V`.
    pub base_url: String,
    /// Credentials; `None`: anonymous.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// Further headers; their values are treated as secrets.
    pub headers: Vec<(String, String)>,
    /// Limit for connecting.
    pub connect_timeout: Duration,
    /// Limit from the request to the first event of the answer.
    pub first_token_timeout: Duration,
    /// Limit between two pieces of an answer.
    pub idle_timeout: Duration,
    /// Limit from the request to the end of the answer.
    pub answer_timeout: Duration,
    /// Retries before the first event, after a failed connection, 429 or 5xx.
    pub retries: u32,
    /// Delay before the first retry; doubles with each.
    pub backoff: Duration,
}

impl Endpoint {
    /// Longest delay before a retry, because the wearer waits. If a server asks for more there is no retry.
    const BACKOFF_MAX: Duration = Duration::from_secs(5);

    /// An endpoint with the default deadlines and no credentials.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            credentials: None,
            headers: Vec::new(),
            connect_timeout: Duration::from_secs(5),
            first_token_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(300),
            retries: 2,
            backoff: Duration::from_millis(300),
        }
    }
}

/// Why a model could not be set up.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The address is invalid.
    #[error("the base URL '{0}' is not an http or https address")]
    Url(String),
    /// A header is invalid.
    #[error("the extra header '{0}' has a name or a value that HTTP does not allow")]
    Header(String),
    /// The HTTP client could not be created.
    #[error("the HTTP client cannot be made: {0}")]
    Client(String),
}

/// A model behind HTTP. Keeps its connections open between requests.
pub struct Http {
    client: Client,
    /// Opens connections ahead; sends nothing.
    opener: Client,
    preconnect: Preconnect,
    base: Url,
    endpoint: Endpoint,
    provider: Arc<dyn Provider>,
}

enum Attempt {
    /// The last event was sent, or the receiver is gone.
    Over,
    /// Worth a retry, after this delay if the server named one.
    Retry(Failure, Option<Duration>),
    /// The server rejected the credentials.
    Unauthorized(Failure),
    Failed(Failure),
}

impl Http {
    /// Sets up a model. The process must have installed a rustls provider before.
    ///
    /// # Errors
    /// The base URL or a header is invalid, or there is no TLS.
    pub fn new(endpoint: Endpoint, provider: Arc<dyn Provider>) -> Result<Self, SetupError> {
        let bad_url = || SetupError::Url(shown(&endpoint.base_url).to_owned());
        let mut base = Url::parse(&endpoint.base_url).map_err(|_| bad_url())?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(bad_url());
        }
        base.set_fragment(None);
        let mut headers = HeaderMap::new();
        for (name, value) in &endpoint.headers {
            let bad = || SetupError::Header(name.clone());
            let key: HeaderName = name.parse().map_err(|_| bad())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        // Without one the client would panic.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            return Err(SetupError::Client("the process has installed no rustls provider".into()));
        }
        let preconnect = Preconnect::default();
        let build = |side| {
            Client::builder()
                .connector_layer(side)
                .connect_timeout(endpoint.connect_timeout)
                .pool_idle_timeout(IDLE_CONNECTION)
                .tcp_nodelay(true)
                .tcp_keepalive(KEEP_ALIVE)
                // A redirect would send the question, if not the key, to another server.
                .redirect(redirect::Policy::none())
        };
        let failed = |error: reqwest::Error| SetupError::Client(error.without_url().to_string());
        let client = build(preconnect.takes()).default_headers(headers).build().map_err(failed)?;
        let opener = build(preconnect.puts_aside()).build().map_err(failed)?;
        Ok(Self { client, opener, preconnect, base, endpoint, provider })
    }

    async fn run(&self, request: &Request, events: &mpsc::Sender<ModelEvent>) {
        let Rendered { path, headers, body, names, tools } = self.provider.render(request);
        let url = self.url(&path);
        let mut secrets = Vec::new();
        let mut backoff = self.endpoint.backoff;
        let mut left = self.endpoint.retries;
        let mut renewed = false;
        let (kind, message) = loop {
            let first = Instant::now() + self.endpoint.first_token_timeout;
            let sent = match timeout_at(first, self.credentials()).await {
                Err(_) => break transient("the model's credentials did not come in time"),
                Ok(Err(error)) => break (error.kind, error.message),
                Ok(Ok(sent)) => sent,
            };
            secrets.extend(sent.iter().map(|(_, value)| value.clone()));
            let mut post = self.client.post(url.clone()).header(CONTENT_TYPE, "application/json");
            for (name, value) in &headers {
                post = post.header(*name, value);
            }
            for (name, value) in &sent {
                post = post.header(name, value);
            }
            let body = Body::wrap(Outgoing::new(body.bytes().clone(), request.watch.clone(), tools));
            match self.attempt(post.body(body), names.clone(), events, first).await {
                Attempt::Over => return,
                Attempt::Retry(_, wait) if left > 0 && wait.is_none_or(|wait| wait <= Endpoint::BACKOFF_MAX) => {
                    left -= 1;
                    sleep(wait.unwrap_or(backoff).min(Endpoint::BACKOFF_MAX)).await;
                    backoff = backoff.saturating_mul(2);
                }
                Attempt::Unauthorized(failure) => {
                    // Once: a server that rejects a renewed token will also reject the next.
                    let again = !std::mem::replace(&mut renewed, true) && self.renew(&sent, first).await;
                    if !again {
                        break failure;
                    }
                }
                Attempt::Retry(failure, _) | Attempt::Failed(failure) => break failure,
            }
        };
        let message = self.redact(message, &secrets);
        tracing::warn!(model = self.provider.model(), ?kind, "the model failed");
        let _ = events.send(ModelEvent::Failed { kind, message }).await;
    }

    /// The base address followed by the provider's path, with both queries.
    fn url(&self, path: &str) -> Url {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        let queries: Vec<&str> =
            [self.base.query().unwrap_or_default(), query].into_iter().filter(|query| !query.is_empty()).collect();
        url.set_query((!queries.is_empty()).then(|| queries.join("&")).as_deref());
        url
    }

    async fn credentials(&self) -> Result<Headers, NoCredentials> {
        let Some(credentials) = &self.endpoint.credentials else {
            return Ok(Vec::new());
        };
        let mut headers = credentials.headers().await?;
        headers.iter_mut().for_each(|(_, value)| value.set_sensitive(true));
        Ok(headers)
    }

    async fn renew(&self, sent: &Headers, until: Instant) -> bool {
        let Some(credentials) = &self.endpoint.credentials else {
            return false;
        };
        timeout_at(until, credentials.handle_unauthorized(sent)).await.unwrap_or(false)
    }

    async fn attempt(
        &self,
        post: reqwest::RequestBuilder,
        names: NameMap,
        events: &mpsc::Sender<ModelEvent>,
        first: Instant,
    ) -> Attempt {
        let last = Instant::now() + self.endpoint.answer_timeout;
        let late = || Attempt::Failed(transient("the model gave no answer in time"));
        let mut response = match timeout_at(first, post.send()).await {
            Err(_) => return late(),
            Ok(Err(error)) if error.is_builder() => return Attempt::Failed(bug("the request cannot be sent")),
            Ok(Err(error)) => {
                let error = describe(&error);
                tracing::warn!(model = self.provider.model(), error, "the model's server was not reached");
                return Attempt::Retry(transient(&error), None);
            }
            Ok(Ok(response)) => response,
        };
        let status = response.status();
        if !status.is_success() {
            // The body may quote the wearer's words, so it is not logged.
            tracing::warn!(model = self.provider.model(), status = status.as_u16(), "the model's server refused");
            let Ok(body) = timeout_at(first, read_bounded(&mut response)).await else {
                return late();
            };
            let refusal = refusal::read(status, response.headers(), &body);
            return match status {
                StatusCode::UNAUTHORIZED => Attempt::Unauthorized(refusal.failure),
                _ if refusal.retryable => Attempt::Retry(refusal.failure, refusal.wait),
                _ => Attempt::Failed(refusal.failure),
            };
        }
        let mut parser = self.provider.parser(names);
        if is_document(&response) {
            let Ok(document) = timeout_at(first, read_bounded(&mut response)).await else {
                return late();
            };
            return self.forward(parser.push_document(&document), events).await;
        }
        let mut begun = false;
        let mut bytes_read = 0;
        while !parser.is_finished() {
            let until = if begun { last.min(Instant::now() + self.endpoint.idle_timeout) } else { first };
            let out = match timeout_at(until, response.chunk()).await {
                Err(_) => return Attempt::Failed(transient("the model fell silent")),
                Ok(Ok(Some(bytes))) => {
                    bytes_read += bytes.len();
                    if bytes_read > STREAM_BYTES_MAX {
                        return Attempt::Failed(bug(format!("the answer is longer than {STREAM_BYTES_MAX} bytes")));
                    }
                    parser.push(&bytes)
                }
                Ok(Ok(None)) => parser.finish(),
                // A broken connection ends the answer like a closed one.
                Ok(Err(_)) => parser.finish(),
            };
            let nothing_yet = !begun;
            begun |= !out.is_empty();
            // Once the first word was forwarded the answer cannot be restarted.
            let alone = nothing_yet && out.len() == 1;
            match self.forward(out, events).await {
                Attempt::Failed(failure) if alone && failure.0 == FailureKind::Transient => {
                    return Attempt::Retry(failure, None);
                }
                Attempt::Failed(failure) => return Attempt::Failed(failure),
                _ => {}
            }
            if events.is_closed() {
                return Attempt::Over;
            }
        }
        // Reading to the end makes the connection reusable; a server that keeps sending after the end is not waited
        // for.
        let _ = timeout(Duration::from_millis(50), response.chunk()).await;
        Attempt::Over
    }

    async fn forward(&self, out: Vec<ModelEvent>, events: &mpsc::Sender<ModelEvent>) -> Attempt {
        for event in out {
            // All failures pass here, where secrets are removed from their text.
            if let ModelEvent::Failed { kind, message } = event {
                return Attempt::Failed((kind, message));
            }
            if events.send(event).await.is_err() {
                break;
            }
        }
        Attempt::Over
    }

    /// Providers quote the request in errors.
    fn redact(&self, mut message: String, sent: &[HeaderValue]) -> String {
        // Shorter values are words such as a version, not secrets.
        const SECRET_BYTES_MIN: usize = 6;
        let extra = self.endpoint.headers.iter().map(|(_, value)| value.as_str());
        let sent = sent.iter().filter_map(|value| value.to_str().ok());
        for value in extra.chain(sent) {
            let bare = value.split_once(' ').map_or(value, |(_, bare)| bare);
            for secret in [value, bare] {
                if secret.len() >= SECRET_BYTES_MIN {
                    message = message.replace(secret, "[hidden]");
                }
            }
        }
        message
    }
}

#[async_trait]
impl ChatModel for Http {
    fn name(&self) -> &str {
        self.provider.model()
    }

    fn prepare(&self, tools: &Tools, _: &str) {
        self.provider.prepare(tools);
    }

    async fn preconnect(&self) -> bool {
        if !self.preconnect.wants_one() {
            return false;
        }
        // Always fails: its connection is stored before anything is written.
        let put_aside = self.opener.get(self.base.clone()).send();
        let _ = timeout(self.endpoint.connect_timeout, put_aside).await;
        self.preconnect.opened()
    }

    fn close_unused(&self) {
        self.preconnect.close_unused();
    }

    async fn stream(&self, request: Request, events: mpsc::Sender<ModelEvent>, cancel: CancellationToken) {
        // Dropping the response closes its connection.
        if cancel.run_until_cancelled(self.run(&request, &events)).await.is_some() {
            self.preconnect.used();
        }
    }
}

fn transient(message: &str) -> Failure {
    (FailureKind::Transient, message.to_owned())
}

/// A base URL for display: queries and user names may be secrets.
pub(crate) fn shown(url: &str) -> &str {
    let url = url.split('?').next().unwrap_or_default();
    if url.contains('@') { "[hidden]" } else { url }
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

/// An error without its URL, which may contain a secret, but with its cause.
pub(crate) fn describe(error: &reqwest::Error) -> String {
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
