//! A server that is reached over HTTP. The end of its session is noticed here, and an answer that is too large.
//!
//! A server answers 404 to a session that it does not know any more, for example after a restart. The library would
//! open another session and tell nobody: what the server offers would not be listed again, nothing would be subscribed
//! again, and a call whose answer was lost would count as refused. Therefore the connection ends with its session.
//!
//! The library ends a stream of events at one that is too large, and the call that it answers would count as broken.
//! Therefore an error takes the place of such an answer.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt as _;
use reqwest::{
    StatusCode,
    header::{HeaderName, HeaderValue},
};
use rmcp::{
    model::{ClientJsonRpcMessage, RequestId},
    transport::{
        StreamableHttpClientTransport,
        common::client_side_sse::{BoxedSseResponse, ExponentialBackoff},
        streamable_http_client::{
            SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
            StreamableHttpPostResponse,
        },
    },
};
use serde_json::json;
use sse_stream::Sse;
use tokio_util::sync::CancellationToken;

use super::{
    child::{MESSAGE_BYTES_MAX, TOO_LARGE},
    renewal::PAUSE_MS_MAX,
};

/// Time limit for connecting.
const CONNECT_S_MAX: u64 = 10;

/// Part of the library's errors about what is too large; it has no public error kind for an event.
pub(super) const OVERSIZED: &str = "exceeded the maximum size";

pub(super) type HttpError = StreamableHttpError<reqwest::Error>;

/// The HTTP client of one connection.
#[derive(Clone)]
pub(super) struct HttpClient {
    client: reqwest::Client,
    /// Cancelled when the server does not know the session any more.
    forgotten: CancellationToken,
    /// The server has accepted a GET: only then does 404 as the answer to another one mean that the session is gone.
    /// There are servers that answer 404 to every GET.
    takes_get: Arc<AtomicBool>,
}

/// A transport to this address. `forgotten` is cancelled when the server does not know the session any more.
pub(super) fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
    forgotten: CancellationToken,
) -> Result<StreamableHttpClientTransport<HttpClient>, String> {
    // A redirect to another host would send our headers there.
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(CONNECT_S_MAX))
        .build()
        .map_err(|error| format!("the HTTP client: {error}"))?;
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let wrong = |what| format!("header `{name}`: not a valid {what}");
        let name = name.parse().map_err(|_| wrong("name"))?;
        custom.insert(name, value.parse().map_err(|_| wrong("value"))?);
    }
    let mut retry = ExponentialBackoff::default();
    retry.max_delay = Some(Duration::from_millis(PAUSE_MS_MAX));
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(custom)
        .max_sse_event_size(MESSAGE_BYTES_MAX)
        .reinit_on_expired_session(false);
    config.retry_config = Arc::new(retry);
    let client = HttpClient { client, forgotten, takes_get: Arc::default() };
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let max = MESSAGE_BYTES_MAX;
        self.post_message_with_max_sse_event_size(uri, message, session_id, auth_header, custom_headers, max).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let id = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let posting = self.client.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            max_sse_event_size,
        );
        match (posting.await, id) {
            (Ok(StreamableHttpPostResponse::Sse(events, session)), Some(id)) => {
                Ok(StreamableHttpPostResponse::Sse(answered(events, id), session))
            }
            (Err(StreamableHttpError::SessionExpired), _) => {
                self.forgotten.cancel();
                Err(StreamableHttpError::SessionExpired)
            }
            (answer, _) => answer,
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        self.client.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, HttpError> {
        let max = MESSAGE_BYTES_MAX;
        self.get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_header, custom_headers, max).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<BoxedSseResponse, HttpError> {
        let has_session = session_id.is_some();
        let getting = self.client.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            max_sse_event_size,
        );
        let answer = getting.await;
        match &answer {
            Ok(_) => self.takes_get.store(true, Ordering::Relaxed),
            Err(StreamableHttpError::Client(error))
                if has_session
                    && error.status() == Some(StatusCode::NOT_FOUND)
                    && self.takes_get.load(Ordering::Relaxed) =>
            {
                self.forgotten.cancel();
            }
            Err(_) => {}
        }
        answer
    }
}

/// The events that answer a request, with an error in place of one that is too large.
fn answered(events: BoxedSseResponse, id: RequestId) -> BoxedSseResponse {
    let answer = move |event: Result<Sse, SseError>| match event {
        Err(SseError::Body(why)) if why.to_string().contains(OVERSIZED) => {
            let message = format!("an answer of more than {MESSAGE_BYTES_MAX} bytes, which is not read");
            let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": TOO_LARGE, "message": message}});
            Ok(Sse { data: Some(error.to_string()), ..Sse::default() })
        }
        other => other,
    };
    events.map(answer).boxed()
}
