//! A fake mini-app that speaks the wire protocol and does nothing by itself: each test performs its steps.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use firmware_sim::Glasses;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use gateway::control::{Answer, Request, apps::AppsRequest};
use http_body_util::{BodyExt, Full};
use hyper::{Response, body::Incoming};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Notify,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, client::IntoClientRequest as _, protocol::CloseFrame},
};
use tools::apps::{
    log::{Entry, Fault},
    manifest::App,
};

use crate::{
    http,
    world::{USER, WAIT, World},
};

/// The key that the app was given.
pub const KEY: &str = "0123456789abcdef";

/// How its server answers webhooks.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Success, as the SDK does.
    Success,
    /// No answer.
    Never,
    /// With this status.
    Status(u16),
    /// A redirect to another address.
    Redirect(String),
    /// An endless body.
    Endless,
    /// Invalid JSON with a wrong content type.
    Garbage,
}

/// A request that its server received.
#[derive(Clone, Debug)]
pub struct Got {
    pub path: String,
    pub body: Bytes,
}

impl Got {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    fn is(&self, kind: &str) -> bool {
        self.path == kind || (self.path == "/webhook" && self.json()["type"] == kind)
    }
}

/// The server's answer under a path.
#[derive(Clone, Debug)]
pub enum File {
    Bytes(Vec<u8>),
    /// This status.
    Status(u16),
    /// A redirect.
    Elsewhere(String),
    /// An endless body.
    Endless,
}

#[derive(Default)]
struct Book {
    files: Mutex<BTreeMap<String, File>>,
    requests: Mutex<Vec<Got>>,
    came: Notify,
}

/// The app's server.
pub struct FakeApp {
    pub package: String,
    pub address: SocketAddr,
    book: Arc<Book>,
    answer: Arc<Mutex<Reply>>,
    task: tokio::task::JoinHandle<()>,
}

impl FakeApp {
    pub async fn start(package: &str) -> Self {
        Self::on(http::bind().await.0, package)
    }

    /// Starts on a port that was chosen before.
    pub fn on(listener: TcpListener, package: &str) -> Self {
        let address = listener.local_addr().unwrap();
        let (book, answer) = (Arc::new(Book::default()), Arc::new(Mutex::new(Reply::Success)));
        let (noted, told) = (book.clone(), answer.clone());
        let task = http::serve(listener, move |request| serve(request, noted.clone(), told.clone()));
        Self { package: package.into(), address, book, answer, task }
    }

    pub fn answers(&self, answer: Reply) {
        *self.answer.lock().unwrap() = answer;
    }

    /// Serves a file under a path; returns its URL.
    pub fn serves(&self, path: &str, file: File) -> String {
        self.book.files.lock().unwrap().insert(path.to_owned(), file);
        format!("http://{}{path}", self.address)
    }

    /// Its manifest, as installed in the gateway.
    pub fn manifest(&self) -> App {
        let digest = Sha256::digest(KEY.as_bytes());
        App {
            package: self.package.clone(),
            name: self.package.rsplit('.').next().unwrap_or_default().to_owned(),
            public_url: format!("http://{}", self.address),
            api_key_sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            permissions: vec!["MICROPHONE".into()],
            ..App::default()
        }
    }

    /// Number of requests of a kind: a path, or the type of a webhook.
    pub fn count(&self, kind: &str) -> usize {
        self.book.requests.lock().unwrap().iter().filter(|got| got.is(kind)).count()
    }

    /// Waits for the request of a kind with this number, from 0.
    pub async fn got(&self, kind: &str, number: usize) -> Got {
        let found = async {
            loop {
                let came = self.book.came.notified();
                let found = self.book.requests.lock().unwrap().iter().filter(|got| got.is(kind)).nth(number).cloned();
                match found {
                    Some(got) => return got,
                    None => came.await,
                }
            }
        };
        let found = tokio::time::timeout(WAIT, found).await;
        found.unwrap_or_else(|_| panic!("no {kind} {number}; got {:?}", self.book.requests.lock().unwrap()))
    }

    /// The kinds of all requests, in order.
    pub fn history(&self) -> Vec<String> {
        let requests = self.book.requests.lock().unwrap();
        let name = |got: &Got| match got.json()["type"].as_str() {
            Some(kind) if got.path == "/webhook" => kind.to_owned(),
            _ => got.path.clone(),
        };
        requests.iter().map(name).collect()
    }
}

impl Drop for FakeApp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

async fn serve(request: hyper::Request<Incoming>, book: Arc<Book>, answer: Arc<Mutex<Reply>>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    // The installer checks its health, which is not part of its life cycle.
    if path != "/health" {
        book.requests.lock().unwrap().push(Got { path: path.clone(), body });
        book.came.notify_waiters();
    }
    let text = |status: u16, text: &str| {
        let body = Full::new(Bytes::copy_from_slice(text.as_bytes())).boxed();
        Response::builder().status(status).header("content-type", "application/json").body(body).unwrap()
    };
    let file = book.files.lock().unwrap().get(&path).cloned();
    match file {
        Some(File::Bytes(bytes)) => return Response::new(Full::new(Bytes::from(bytes)).boxed()),
        Some(File::Status(status)) => return text(status, r#"{"status":"error","message":"no"}"#),
        Some(File::Elsewhere(to)) => {
            let mut reply = text(302, "");
            reply.headers_mut().insert("location", to.parse().unwrap());
            return reply;
        }
        Some(File::Endless) => return Response::new(BodyExt::boxed(Forever)),
        None => {}
    }
    let answer = if path == "/webhook" { answer.lock().unwrap().clone() } else { Reply::Success };
    match answer {
        Reply::Success if path == "/tool" => text(200, r#"{"status":"success","reply":"Done by the app."}"#),
        Reply::Success => text(200, r#"{"status":"success"}"#),
        Reply::Never => std::future::pending().await,
        Reply::Status(status) => text(status, r#"{"status":"error","message":"no"}"#),
        Reply::Redirect(to) => {
            let mut reply = text(307, "");
            reply.headers_mut().insert("location", to.parse().unwrap());
            reply
        }
        Reply::Endless => Response::new(BodyExt::boxed(Forever)),
        Reply::Garbage => {
            let mut reply = text(200, "\u{0}<<<>>>");
            reply.headers_mut().insert("content-type", "image/png".parse().unwrap());
            reply
        }
    }
}

/// An endless body.
struct Forever;

impl hyper::body::Body for Forever {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<hyper::body::Frame<Bytes>, Infallible>>> {
        std::task::Poll::Ready(Some(Ok(hyper::body::Frame::data(Bytes::from_static(&[b'x'; 8_192])))))
    }
}

/// The app's side of its socket.
pub struct Socket {
    ws: WebSocketStream<TcpStream>,
    pub session: String,
    pub ack: Value,
    /// Whether it plays SDK 3.x, which knows more messages.
    third: bool,
}

/// The address of a WebSocket URL.
fn host_of(url: &str) -> &str {
    url.split("://").nth(1).and_then(|rest| rest.split('/').next()).expect("a host")
}

impl Socket {
    /// Connects without sending anything.
    pub async fn open(url: &str) -> WebSocketStream<TcpStream> {
        let stream = TcpStream::connect(host_of(url)).await.unwrap();
        tokio_tungstenite::client_async(url, stream).await.unwrap().0
    }

    /// Connects and sends the first frame; returns the first answer.
    pub async fn init(url: &str, session: &str, package: &str, key: &str) -> (WebSocketStream<TcpStream>, Value) {
        let mut ws = Self::open(url).await;
        let init = json!({
            "type": "tpa_connection_init", "sessionId": session, "packageName": package, "apiKey": key,
            "timestamp": "2026-11-21T21:47:25.587Z",
        });
        ws.send(Message::text(init.to_string())).await.unwrap();
        let Some(Ok(Message::Text(answer))) = ws.next().await else { panic!("no answer to the init") };
        (ws, serde_json::from_str(&answer).unwrap())
    }

    /// Connects as a session request says, and waits for the acknowledgement.
    pub async fn dial(request: &Value, package: &str) -> Self {
        let (url, session) =
            (request["mentraOSWebsocketUrl"].as_str().unwrap(), request["sessionId"].as_str().unwrap());
        let (ws, ack) = Self::init(url, session, package, KEY).await;
        assert_eq!(ack["type"], "tpa_connection_ack", "{ack}");
        Self { ws, session: session.into(), ack, third: false }
    }

    /// Connects as 3.x does: the session is named in the headers, not in the first frame.
    pub async fn dial_third(request: &Value, package: &str, key: &str, first: Value) -> (Self, Value) {
        let (url, session) =
            (request["mentraOSWebsocketUrl"].as_str().unwrap(), request["sessionId"].as_str().unwrap());
        let stream = TcpStream::connect(host_of(url)).await.unwrap();
        let mut upgrade = url.into_client_request().unwrap();
        let user = request["userId"].as_str().unwrap();
        for (name, value) in
            [("x-session-id", session), ("x-package-name", package), ("x-api-key", key), ("x-user-id", user)]
        {
            upgrade.headers_mut().insert(name, value.parse().unwrap());
        }
        let (mut ws, _) = tokio_tungstenite::client_async(upgrade, stream).await.unwrap();
        ws.send(Message::text(first.to_string())).await.unwrap();
        let Some(Ok(Message::Text(answer))) = ws.next().await else { panic!("no answer to the first frame") };
        let ack: Value = serde_json::from_str(&answer).unwrap();
        (Self { ws, session: session.into(), ack: ack.clone(), third: true }, ack)
    }

    pub async fn send_bytes(&mut self, bytes: Vec<u8>) {
        self.ws.send(Message::binary(bytes)).await.unwrap();
    }

    /// Wraps a socket that was opened separately.
    pub fn of(ws: WebSocketStream<TcpStream>) -> Self {
        Self { ws, session: String::new(), ack: Value::Null, third: false }
    }

    pub async fn send(&mut self, message: Value) {
        self.ws.send(Message::text(message.to_string())).await.unwrap();
    }

    pub async fn send_text(&mut self, text: String) -> bool {
        self.ws.send(Message::text(text)).await.is_ok()
    }

    pub async fn subscribe(&mut self, streams: &[&str]) {
        let message = json!({"type": "subscription_update", "sessionId": "", "subscriptions": streams});
        self.send(message).await;
    }

    /// The next frame that is not a ping.
    pub async fn next(&mut self) -> Option<Message> {
        loop {
            match tokio::time::timeout(WAIT, self.ws.next()).await.expect("a frame in time") {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(message)) => return Some(message),
                Some(Err(_)) | None => return None,
            }
        }
    }

    /// The next matching text frame. Others are skipped, but each must be of a known type.
    pub async fn find(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut seen = Vec::new();
        while let Some(message) = self.next().await {
            let Message::Text(text) = message else { continue };
            let message: Value = serde_json::from_str(&text).unwrap();
            known(&message, self.third);
            if wanted(&message) {
                return message;
            }
            seen.push(message);
        }
        panic!("{what} did not come: {seen:#?}");
    }

    pub async fn of_type(&mut self, kind: &str) -> Value {
        self.find(kind, |message| message["type"] == kind).await
    }

    pub async fn stream(&mut self, name: &str) -> Value {
        self.find(name, |message| message["type"] == "data_stream" && message["streamType"] == name).await
    }

    /// The next audio frame.
    pub async fn sound(&mut self) -> Bytes {
        loop {
            if let Message::Binary(bytes) = self.next().await.expect("sound") {
                return bytes;
            }
        }
    }

    /// The gateway's close frame; `None`: there was none.
    pub async fn closed(mut self) -> Option<CloseFrame> {
        loop {
            match self.next().await {
                Some(Message::Close(frame)) => return frame,
                Some(_) => {}
                None => return None,
            }
        }
    }

    /// Sends this frame again and again, until the gateway closes; returns its close frame. How fast the gateway reads is its own
    /// affair. What is sent behind the close may have the system discard that frame, so that it is looked for each time.
    pub async fn flood(mut self, frame: Message) -> Option<CloseFrame> {
        for _ in 0..1_000 {
            if let Some(Some(Ok(Message::Close(frame)))) = self.ws.next().now_or_never() {
                return frame;
            }
            if self.ws.send(frame.clone()).await.is_err() {
                break;
            }
        }
        self.closed().await
    }

    /// Sends a request and waits for its answer, so that all frames before were handled.
    pub async fn settled(&mut self) {
        self.send(json!({"type": "ping"})).await;
        self.of_type("pong").await;
    }

    /// As [`Self::settled`]; fails if a message of this type comes before.
    pub async fn settled_without(&mut self, kind: &str) {
        self.send(json!({"type": "ping"})).await;
        let found = self.find("pong", |message| message["type"] == "pong" || message["type"] == kind).await;
        assert_eq!(found["type"], "pong", "{found}");
    }

    /// Closes as the SDK does after a stop.
    pub async fn close(self) {
        drop(self.leave().await);
    }

    /// As [`Self::close`]; what still came before.
    pub async fn leave(mut self) -> Vec<Value> {
        drop(self.ws.close(None).await);
        let mut came = Vec::new();
        while let Some(Ok(message)) = self.ws.next().await {
            if let Message::Text(text) = message {
                came.push(serde_json::from_str(&text).unwrap());
            }
        }
        came
    }
}

/// Rule 6: only these types may be at the top level; 2.x treats anything else as an error.
fn known(message: &Value, third: bool) {
    const TYPES_THIRD: [&str; 5] =
        ["reconnect_ack", "reconnect_rejected", "photo_response", "audio_stream_ready", "stream_status"];
    const TYPES: [&str; 16] = [
        "app_direct_message_response",
        "tpa_connection_ack",
        "tpa_connection_error",
        "data_stream",
        "settings_update",
        "augmentos_settings_update",
        "device_state_update",
        "capabilities_update",
        "app_stopped",
        "permission_error",
        "audio_play_response",
        "rgb_led_control_response",
        "rtmp_stream_status",
        "managed_stream_status",
        "stream_status_check_response",
        "pong",
    ];
    let kind = message["type"].as_str().unwrap_or_default();
    assert!(TYPES.contains(&kind) || (third && TYPES_THIRD.contains(&kind)), "an SDK does not know this: {message}");
}

/// A gateway with an app, and glasses.
pub struct Stage {
    pub world: World,
    pub glasses: Glasses,
    pub app: FakeApp,
}

pub const PACKAGE: &str = "com.example.list";

impl Stage {
    pub async fn new() -> Self {
        Self::with(|app| app).await
    }

    pub async fn with(change: impl FnOnce(App) -> App) -> Self {
        Self::on(World::start().await, change).await
    }

    pub async fn on(world: World, change: impl FnOnce(App) -> App) -> Self {
        let glasses = world.glasses("ws", "glasses").await;
        let app = FakeApp::start(PACKAGE).await;
        world.gateway().admin().installed.add(change(app.manifest())).await.unwrap();
        Self { world, glasses, app }
    }

    /// Begins to start an app, in a task.
    pub fn starting(&self, package: &str) -> tokio::task::JoinHandle<Result<bool, String>> {
        let (apps, package) = (self.world.gateway().services().apps.clone(), package.to_owned());
        tokio::spawn(async move { apps.start(USER, &package, Duration::from_secs(20)).await })
    }

    /// Starts the app, up to the acknowledgement.
    pub async fn run(&self) -> Socket {
        let before = self.app.count("session_request");
        let starting = self.starting(PACKAGE);
        let request = self.app.got("session_request", before).await.json();
        let socket = Socket::dial(&request, PACKAGE).await;
        assert_eq!(starting.await.unwrap(), Ok(true));
        socket
    }

    /// The entries of `apps logs`, newest last.
    pub async fn log(&self) -> Vec<Entry> {
        let request = AppsRequest::Logs { package: PACKAGE.into() };
        match self.world.ask(Request::Apps { request }).await {
            Ok(Answer::AppLog { entries }) => entries,
            other => panic!("no log: {other:?}"),
        }
    }

    /// The logged faults of the app.
    pub async fn logs(&self) -> Vec<Fault> {
        let faults = self.log().await.into_iter().filter_map(|entry| match entry {
            Entry::Fault(fault) => Some(fault),
            Entry::Event(_) => None,
        });
        faults.collect()
    }

    pub fn base(&self) -> String {
        format!("http://{}", self.world.web())
    }
}
