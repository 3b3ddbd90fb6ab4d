//! The app's web server: handles the gateway's requests.

use std::{convert::Infallible, net::SocketAddr, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body as _, Incoming},
    header::{CONTENT_TYPE, HOST, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::timeout,
};

use crate::{
    Error,
    app::{App, State},
    limits::{CONNECTIONS_MAX, REQUEST_BYTES_MAX, REQUEST_MS_MAX},
    session::Session,
    socket,
    target::Target,
    tool::{self, Call, Outcome, Said, ToolError},
};

/// Header with SHA-256 of the app's key.
const KEY_HEADER: &str = "x-app-api-key";

type Answer = (StatusCode, Value);

impl App {
    /// Binds an address, for example `127.0.0.1:7010`.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(self, address: &str) -> Result<Bound, Error> {
        let failed = |source| Error::Listen { address: address.to_owned(), source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        Ok(Bound { listener, local, state: Arc::new(State::new(self)) })
    }

    /// Serves on an address until the process ends.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn serve(self, address: &str) -> Result<(), Error> {
        self.bind(address).await?.serve().await;
        Ok(())
    }
}

/// An app bound to an address.
pub struct Bound {
    listener: TcpListener,
    local: SocketAddr,
    state: Arc<State>,
}

impl Bound {
    /// Where it listens; with port 0 the system has chosen the port.
    pub fn address(&self) -> SocketAddr {
        self.local
    }

    /// Serves until the future is dropped; connections and sessions end with it.
    pub async fn serve(self) {
        tracing::info!(app = self.state.app.package, address = %self.local, "serving");
        run(self.listener, self.local, self.state).await;
    }
}

/// Serves until the future is dropped; connections and sessions end with it.
async fn run(listener: TcpListener, local: SocketAddr, state: Arc<State>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let _sessions = EndAll(state.clone());
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed");
                continue;
            }
        };
        let state = state.clone();
        connections.spawn(async move {
            serve(stream, local, state).await;
            drop(place);
        });
    }
}

/// Ends all sessions on drop.
struct EndAll(Arc<State>);

impl Drop for EndAll {
    fn drop(&mut self) {
        self.0.end_all();
    }
}

async fn serve(stream: TcpStream, local: SocketAddr, state: Arc<State>) {
    let service = service_fn(move |request| {
        let state = state.clone();
        async move { Ok::<_, Infallible>(answer(request, local, &state).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(Duration::from_millis(REQUEST_MS_MAX));
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection broke");
    }
}

async fn answer(request: Request<Incoming>, local: SocketAddr, state: &Arc<State>) -> Response<Full<Bytes>> {
    let (status, body) = route(request, local, state).await;
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

async fn route(request: Request<Incoming>, local: SocketAddr, state: &Arc<State>) -> Answer {
    match (request.method(), request.uri().path()) {
        (&Method::POST, "/tool") => {
            let sent = request.headers().get(KEY_HEADER).and_then(|key| key.to_str().ok());
            // Hashes are compared, so the time of the comparison reveals nothing about the key.
            if state.key_sha256().is_some_and(|key| sent != Some(key.as_str())) {
                return error(StatusCode::UNAUTHORIZED, "the app's key is missing or wrong");
            }
            match body(request).await {
                Ok(call) => run_tool(call, state).await,
                Err(answer) => answer,
            }
        }
        (&Method::GET, "/tool") => (StatusCode::OK, json!({"status": "success", "reply": "Hello, world!"})),
        (&Method::POST, "/webhook") => match body(request).await {
            Ok(webhook) => run_webhook(&webhook, state).await,
            Err(answer) => answer,
        },
        (&Method::GET, "/health") => {
            let health = json!({"status": "healthy", "app": state.app.package, "activeSessions": state.count()});
            (StatusCode::OK, health)
        }
        (&Method::GET, "/app_config.json" | "/tpa_config.json") => {
            let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
            let url = host.map_or_else(|| format!("http://{local}"), |host| format!("http://{host}"));
            (StatusCode::OK, state.app.manifest(&url))
        }
        _ => error(StatusCode::NOT_FOUND, "there are POST /tool, POST /webhook, GET /health and GET /app_config.json"),
    }
}

fn error(status: StatusCode, message: impl Into<String>) -> Answer {
    (status, json!({"status": "error", "message": message.into()}))
}

/// The JSON of a request, within the limits of size and time.
async fn body(request: Request<Incoming>) -> Result<Value, Answer> {
    let too_large = || error(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large or was cut off");
    if request.body().size_hint().lower() > REQUEST_BYTES_MAX as u64 {
        return Err(too_large());
    }
    let collected = Limited::new(request.into_body(), REQUEST_BYTES_MAX).collect();
    match timeout(Duration::from_millis(REQUEST_MS_MAX), collected).await {
        Ok(Ok(body)) => serde_json::from_slice(&body.to_bytes())
            .map_err(|why| error(StatusCode::BAD_REQUEST, format!("the request is no JSON: {why}"))),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err(error(StatusCode::REQUEST_TIMEOUT, "the request took too long")),
    }
}

/// What was said last, in both formats; empty if the gateway does not send it.
fn conversation(call: &mut Value) -> Vec<Said> {
    let place = if call.get("toolId").is_some() { "/conversationHistory" } else { "/context/conversationHistory" };
    let said = call.pointer_mut(place).map(Value::take).unwrap_or_default();
    serde_json::from_value(said).unwrap_or_default()
}

async fn run_tool(mut call: Value, state: &State) -> Answer {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    // Both formats are accepted; the response uses the format of the request.
    let published = call.get("toolId").is_some();
    let (name, user, arguments) = if published {
        let arguments = call.get_mut("toolParameters").map(Value::take);
        (text(call.get("toolId")), text(call.get("userId")), arguments)
    } else {
        let arguments = call.get_mut("arguments").map(Value::take);
        (text(call.get("name")), text(call.pointer("/context/userId")), arguments)
    };
    let Some(tool) = state.app.tools.iter().find(|tool| tool.name == name) else {
        return error(StatusCode::NOT_FOUND, "the app has no such tool");
    };
    let session = state.session(&user);
    let conversation = conversation(&mut call);
    let running = AssertUnwindSafe(tool.run(Call { user, conversation, session }, arguments.unwrap_or_default()));
    let outcome = running.catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(tool = name, "a tool panicked");
        Outcome::Refused(ToolError::new("Sorry, that went wrong in the app."))
    });
    if let Outcome::Misfit(why) = &outcome {
        tracing::warn!(
            tool = name,
            why,
            "the arguments do not fit; was the app installed again after its last change?"
        );
    }
    (StatusCode::OK, if published { tool::published(outcome) } else { tool::mcp(outcome) })
}

async fn run_webhook(webhook: &Value, state: &Arc<State>) -> Answer {
    let text = |key: &str| webhook.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (Some(user), Some(id)) = (text("userId"), text("sessionId")) else {
        return error(StatusCode::BAD_REQUEST, "userId and sessionId are needed");
    };
    match text("type") {
        Some("session_request") => {
            let Some(url) = text("mentraOSWebsocketUrl").or_else(|| text("augmentOSWebsocketUrl")) else {
                return error(StatusCode::BAD_REQUEST, "mentraOSWebsocketUrl is needed");
            };
            match begin(user, id, url, state).await {
                Ok(()) => (StatusCode::OK, json!({"status": "success"})),
                Err(why) => {
                    tracing::warn!(%why, "no session came about");
                    error(StatusCode::INTERNAL_SERVER_ERROR, format!("Failed to connect: {why}"))
                }
            }
        }
        Some("stop_request") => {
            if let Some(session) = state.session(user) {
                session.end();
            }
            (StatusCode::OK, json!({"status": "success"}))
        }
        _ => error(StatusCode::BAD_REQUEST, "Unknown webhook request type"),
    }
}

/// Opens the socket; the session then runs in its own task. The gateway may call a tool as soon as it has acknowledged the
/// socket, so that the session is known before.
async fn begin(user: &str, id: &str, url: &str, state: &Arc<State>) -> Result<(), Error> {
    let target = Target::parse(url, state.app.gateway.as_deref())?;
    let (session, out) = Session::new(user, id, &state.app.package, &state.app.key, target);
    if !state.enter(&session) {
        return Err(Error::TooMuch("too many wearers use this app at once".to_owned()));
    }
    let opened = socket::open(&session, false).await.inspect_err(|_| {
        session.end();
        state.leave(&session);
    })?;
    if let Some(handler) = state.on_session(session.clone()) {
        let session = session.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = handler => {}
                () = session.ended() => {}
            }
        });
    }
    let state = state.clone();
    tokio::spawn(async move {
        socket::run(&session, opened, out).await;
        session.end();
        state.leave(&session);
    });
    Ok(())
}
