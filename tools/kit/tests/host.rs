//! The kit against a host that implements the gateway's side of the protocol.

#[path = "../examples/reminders/main.rs"]
#[allow(dead_code)]
mod reminders;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use futures_util::{SinkExt as _, StreamExt as _};
use mini_app_kit::{App, Call, Layout, Reply, Session, Tool, ToolError, Transcript};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_tungstenite::{WebSocketStream, accept_async, tungstenite::Message};

type Store = Arc<Mutex<BTreeMap<String, Value>>>;

/// A gateway's socket and storage on one port; connections are passed to the test as they arrive.
struct Host {
    address: SocketAddr,
    sockets: mpsc::Receiver<Socket>,
}

struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    async fn next(&mut self) -> Value {
        loop {
            match self.0.next().await.unwrap().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Close(_) => panic!("closed"),
                _ => {}
            }
        }
    }

    /// The next message of this type.
    async fn find(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next().await;
            if message["type"] == kind {
                return message;
            }
        }
    }

    async fn tell(&mut self, message: Value) {
        self.0.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn accept(&mut self) -> Value {
        let init = self.next().await;
        self.tell(json!({"type": "tpa_connection_ack", "sessionId": init["sessionId"], "settings": []})).await;
        init
    }
}

impl Host {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sockets, receiver) = mpsc::channel(8);
        let store = Store::default();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut head = [0; 64];
                let read = stream.peek(&mut head).await.unwrap();
                if String::from_utf8_lossy(&head[..read]).contains("/app-ws") {
                    let socket = accept_async(stream).await.unwrap();
                    sockets.send(Socket(socket)).await.unwrap();
                } else {
                    tokio::spawn(keep(stream, store.clone()));
                }
            }
        });
        Self { address, sockets: receiver }
    }

    fn url(&self) -> String {
        format!("ws://{}/gw/app-ws", self.address)
    }

    fn request(&self, kind: &str) -> Value {
        json!({"type": kind, "sessionId": "s-1", "userId": "ann@example.com", "mentraOSWebsocketUrl": self.url(),
            "augmentOSWebsocketUrl": self.url(), "timestamp": "2026-11-21T21:47:25.555Z"})
    }

    /// Starts the app for a wearer.
    async fn begin(&mut self, app: SocketAddr) -> Socket {
        let asked = tokio::spawn(post(app, "/webhook", self.request("session_request")));
        let mut socket = self.sockets.recv().await.unwrap();
        let init = socket.accept().await;
        assert_eq!(
            (&init["type"], &init["sessionId"], &init["packageName"]),
            (&json!("tpa_connection_init"), &json!("s-1"), &json!("com.example.test"))
        );
        assert_eq!(asked.await.unwrap(), (200, json!({"status": "success"})));
        socket
    }
}

/// The simple storage, for one request.
async fn keep(mut stream: TcpStream, store: Store) {
    let (head, body) = read(&mut stream).await;
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
    assert!(head.contains("authorization: bearer com.example."), "{head}");
    let rest = path.strip_prefix("/gw/api/sdk/simple-storage/ann%40example%2ecom").unwrap();
    let answer = {
        let mut kept = store.lock().unwrap();
        match method.as_str() {
            "get" => json!({"success": true, "data": *kept}),
            "put" => {
                kept.insert(rest.trim_start_matches('/').to_owned(), body["value"].clone());
                json!({"success": true})
            }
            _ => {
                kept.remove(rest.trim_start_matches('/'));
                json!({"success": true})
            }
        }
    };
    let body = answer.to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
}

/// Headers in lower case, and the JSON body.
async fn read(stream: &mut TcpStream) -> (String, Value) {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if body.len() >= length.parse().unwrap() {
                return (head, serde_json::from_str(body).unwrap_or_default());
            }
        }
        assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "{text}");
    }
}

async fn send(app: SocketAddr, request: String) -> (u16, Value) {
    let mut stream = TcpStream::connect(app).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let (head, body) = read(&mut stream).await;
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
}

async fn post(app: SocketAddr, path: &'static str, body: Value) -> (u16, Value) {
    post_with(app, path, "", body).await
}

async fn post_with(app: SocketAddr, path: &str, headers: &str, body: Value) -> (u16, Value) {
    let body = body.to_string();
    let head = format!("POST {path} HTTP/1.1\r\nhost: app\r\n{headers}content-length: {}\r\n\r\n", body.len());
    send(app, head + &body).await
}

async fn get(app: SocketAddr, path: &str) -> (u16, Value) {
    send(app, format!("GET {path} HTTP/1.1\r\nhost: app.example:80\r\n\r\n")).await
}

#[derive(Deserialize, JsonSchema)]
struct Words {
    /// What the wearer hears.
    words: String,
}

async fn draw(call: Call, words: Words) -> Result<Reply, ToolError> {
    call.session()?.show(Layout::text(words.words))?;
    Ok(Reply::Handled)
}

async fn store(call: Call, words: Words) -> Result<String, ToolError> {
    let storage = call.session()?.storage();
    storage.set("a b", &words.words).await?;
    let kept = storage.all().await?;
    storage.remove("a b").await?;
    Ok(format!("{} and {:?}", kept["a%20b"], storage.get("a%20b").await?))
}

async fn fail(_: Call, words: Words) -> Result<Value, ToolError> {
    if words.words == "panic" {
        panic!("on purpose");
    }
    Err(ToolError::new("The list is full."))
}

async fn speak(call: Call, words: Words) -> Result<Value, ToolError> {
    call.session()?.speak(&words.words).await?;
    Ok(json!({"spoken": true}))
}

fn app() -> App {
    App::new("com.example.test", "Test")
        .tool(Tool::new("draw", "Draws.", draw).phrase("draw {words}").draws())
        .tool(Tool::new("store", "Keeps.", store))
        .tool(Tool::new("fail", "Fails.", fail).read_only())
        .tool(Tool::new("speak", "Speaks.", speak))
        .tool(Tool::new("recall", "Tells the last words.", recall))
}

async fn recall(call: Call, _words: Words) -> Result<String, ToolError> {
    let said = call.conversation.iter().map(|said| format!("{}: {}", said.role, said.content));
    Ok(said.collect::<Vec<_>>().join(", "))
}

async fn serve(app: App) -> SocketAddr {
    serve_while(app).await.0
}

async fn serve_while(app: App) -> (SocketAddr, tokio::task::JoinHandle<()>) {
    let bound = app.bind("127.0.0.1:0").await.unwrap();
    (bound.address(), tokio::spawn(bound.serve()))
}

fn call(tool: &str, words: &str) -> Value {
    json!({"toolId": tool, "toolParameters": {"words": words}, "userId": "ann@example.com",
        "timestamp": "2026-11-21T21:47:25.395Z", "activeSession": null})
}

#[tokio::test]
async fn a_session_from_webhook_to_stop() {
    let mut host = Host::start().await;
    let app = serve(app()).await;
    assert_eq!(post(app, "/tool", call("draw", "hi")).await.1["status"], "error", "nothing to draw on yet");
    let mut socket = host.begin(app).await;
    assert_eq!(
        get(app, "/health").await,
        (200, json!({"status": "healthy", "app": "com.example.test", "activeSessions": 1}))
    );

    let handled = json!({"status": "success", "reply": "GIVE_APP_CONTROL_OF_TOOL_RESPONSE"});
    assert_eq!(post(app, "/tool", call("draw", "hi")).await, (200, handled));
    let event = socket.find("display_event").await;
    assert_eq!(event["layout"], json!({"layoutType": "text_wall", "text": "hi"}));
    assert_eq!((&event["view"], &event["packageName"]), (&json!("main"), &json!("com.example.test")));

    let kept = post(app, "/tool", call("store", "milk")).await;
    assert_eq!(kept, (200, json!({"status": "success", "reply": "milk and None"})));

    let spoken = tokio::spawn(post(app, "/tool", call("speak", "Hi & bye")));
    let asked = socket.find("audio_play_request").await;
    assert_eq!(asked["audioUrl"], format!("https://{}/gw/api/tts?text=Hi+%26+bye", host.address));
    socket.tell(json!({"type": "audio_play_response", "requestId": "other", "success": false})).await;
    socket.tell(json!({"type": "audio_play_response", "requestId": asked["requestId"], "success": true})).await;
    assert_eq!(spoken.await.unwrap().1["reply"], json!({"spoken": true}));

    let refused = tokio::spawn(post(app, "/tool", call("speak", "Hi")));
    let asked = socket.find("audio_play_request").await;
    let no =
        json!({"type": "audio_play_response", "requestId": asked["requestId"], "success": false, "error": "hushed"});
    socket.tell(no).await;
    assert_eq!(refused.await.unwrap().1["message"], "it was not spoken: hushed");

    assert_eq!(post(app, "/webhook", host.request("stop_request")).await.0, 200);
    while let Some(Ok(message)) = socket.0.next().await {
        assert!(message.is_close(), "{message}");
    }
    assert_eq!(get(app, "/health").await.1["activeSessions"], 0);
}

#[tokio::test]
async fn a_lost_socket_comes_back_with_everything_it_listened_to() {
    let (heard, mut told) = mpsc::channel(8);
    let listening = move |session: Session| {
        let heard = heard.clone();
        async move {
            let mut transcripts = session.transcripts("en-US").unwrap();
            while let Some(transcript) = transcripts.next().await {
                heard.send(transcript).await.unwrap();
            }
        }
    };
    let mut host = Host::start().await;
    let app = serve(app().permission("MICROPHONE").on_session(listening)).await;
    let mut socket = host.begin(app).await;
    let mut list = json!([]);
    while list == json!([]) {
        list = socket.find("subscription_update").await["subscriptions"].clone();
    }
    assert_eq!(list, json!(["transcription:en-US"]));
    let said = |text: &str, is_final: bool| {
        json!({"type": "data_stream", "sessionId": "s-1", "streamType": "transcription:en-US",
            "data": {"type": "transcription", "text": text, "isFinal": is_final}})
    };
    socket.tell(json!({"type": "data_stream", "streamType": "transcription:de-DE", "data": {"text": "nein"}})).await;
    socket.tell(json!("nonsense")).await;
    socket.tell(said("buy", false)).await;
    assert_eq!(told.recv().await.unwrap(), Transcript { text: "buy".into(), is_final: false });

    // Without a close, as when the gateway is killed.
    drop(socket);
    let mut socket = host.sockets.recv().await.unwrap();
    assert_eq!(socket.accept().await["sessionId"], "s-1");
    assert_eq!(socket.find("subscription_update").await["subscriptions"], json!(["transcription:en-US"]));
    socket.tell(said("buy milk", true)).await;
    assert_eq!(told.recv().await.unwrap(), Transcript { text: "buy milk".into(), is_final: true });

    // A new session replaces the old one; a clean close ends it.
    let mut second = host.begin(app).await;
    assert!(matches!(socket.0.next().await, Some(Ok(Message::Close(_))) | None));
    second.0.close(None).await.unwrap();
    while second.0.next().await.is_some() {}
    // The session is removed right after its socket.
    while get(app, "/health").await.1["activeSessions"] != 0 {
        tokio::task::yield_now().await;
    }
    assert!(told.try_recv().is_err());
}

#[tokio::test]
async fn nothing_of_an_app_outlives_its_server() {
    let mut host = Host::start().await;
    let (app, serving) = serve_while(app()).await;
    let mut socket = host.begin(app).await;
    let mut idle = TcpStream::connect(app).await.unwrap();
    idle.write_all(b"GET /health HTTP/1.1\r\nhost: app\r\n\r\n").await.unwrap();
    assert_eq!(read(&mut idle).await.1["activeSessions"], 1);
    serving.abort();
    assert_eq!(idle.read(&mut [0; 8]).await.unwrap_or_default(), 0);
    while let Some(Ok(message)) = socket.0.next().await {
        assert!(message.is_close() || message.to_text().unwrap().contains("subscription_update"), "{message}");
    }
    assert!(TcpStream::connect(app).await.is_err());
}

#[tokio::test]
async fn an_app_that_is_refused_says_so() {
    let mut host = Host::start().await;
    let app = serve(app()).await;
    let asked = tokio::spawn(post(app, "/webhook", host.request("session_request")));
    let mut socket = host.sockets.recv().await.unwrap();
    socket.next().await;
    socket.tell(json!({"type": "tpa_connection_error", "code": "INVALID_API_KEY", "message": "wrong key"})).await;
    let (status, answer) = asked.await.unwrap();
    assert_eq!(status, 500);
    assert!(answer["message"].as_str().unwrap().contains("wrong key"), "{answer}");
    assert_eq!(get(app, "/health").await.1["activeSessions"], 0);
}

#[tokio::test]
async fn a_tool_is_told_what_was_said_where_the_gateway_sends_it() {
    let app = serve(app()).await;
    let said = json!([{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello.", "more": 1}]);
    for (said, wanted) in [(said, "user: Hi., assistant: Hello."), (json!([]), ""), (json!("x"), ""), (json!(null), "")]
    {
        let mut published = call("recall", "x");
        published["conversationHistory"] = said.clone();
        assert_eq!(post(app, "/tool", published).await.1["reply"], wanted);
        let context = json!({"userId": "ann", "sessionId": "s", "conversationHistory": said});
        let mcp = json!({"name": "recall", "arguments": {"words": "x"}, "context": context});
        assert_eq!(post(app, "/tool", mcp).await.1["content"], wanted);
    }
    assert_eq!(post(app, "/tool", call("recall", "x")).await.1["reply"], "");
}

#[tokio::test]
async fn calls_in_both_shapes_and_what_is_wrong_with_them() {
    let app = serve(app()).await;
    let mcp = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments, "context": {"userId": "ann", "sessionId": "s"}});
    let failed = |code: &str, message: &str| json!({"success": false, "error": {"code": code, "message": message, "retryable": false}});
    let (_, answer) = post(app, "/tool", mcp("fail", json!({"words": "x"}))).await;
    assert_eq!(answer, failed("EXECUTION_ERROR", "The list is full."));
    let (_, answer) = post(app, "/tool", mcp("fail", json!({}))).await;
    assert_eq!(answer, failed("INVALID_ARGUMENTS", "missing field `words`"));
    let (_, answer) = post(app, "/tool", call("fail", "x")).await;
    assert_eq!(answer, json!({"status": "error", "message": "The list is full."}));
    let (status, answer) = post(app, "/tool", call("fail", "panic")).await;
    assert_eq!((status, &answer["status"]), (200, &json!("error")));
    for (wrong, status) in [(call("fly", ""), 404), (json!({}), 404), (json!(null), 404)] {
        assert_eq!(post(app, "/tool", wrong).await.0, status);
    }
    assert_eq!(send(app, "POST /tool HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\n{".into()).await.0, 400);
    assert_eq!(send(app, "POST /tool HTTP/1.1\r\nhost: a\r\ncontent-length: 9999999\r\n\r\n".into()).await.0, 413);
    assert_eq!(post(app, "/webhook", json!({"type": "x", "userId": "a", "sessionId": "b"})).await.0, 400);
    assert_eq!(post(app, "/webhook", json!({"type": "session_request"})).await.0, 400);
    assert_eq!(get(app, "/tool").await.1["reply"], "Hello, world!");
    assert_eq!(get(app, "/elsewhere").await.0, 404);
}

#[tokio::test]
async fn an_app_with_a_key_is_called_by_nobody_else() {
    let app = serve(app().key("secret")).await;
    // SHA-256 of "secret", by sha256sum.
    let right = "x-app-api-key: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\r\n";
    for (header, status) in [("", 401), ("x-app-api-key: secret\r\n", 401), (right, 200)] {
        assert_eq!(post_with(app, "/tool", header, call("fail", "x")).await.0, status, "{header}");
    }
}

#[tokio::test]
async fn a_key_is_told_to_the_allowed_gateway_only() {
    let host = Host::start().await;
    let app = serve(app().key("secret").gateway("ws://127.0.0.1:1")).await;
    let (status, answer) = post(app, "/webhook", host.request("session_request")).await;
    assert_eq!(status, 500);
    assert!(answer["message"].as_str().unwrap().contains("cannot be used"), "{answer}");
}

#[tokio::test]
async fn the_manifest_of_the_example_is_the_one_beside_it() {
    let written: Value = serde_json::from_str(include_str!("../examples/reminders/app_config.json")).unwrap();
    assert_eq!(reminders::app().manifest("http://127.0.0.1:7010"), written);
    let app = serve(reminders::app()).await;
    assert_eq!(get(app, "/app_config.json").await.1["publicUrl"], "http://app.example:80");
}
