//! Calls to apps whose servers misbehave in every way.

use std::{collections::BTreeSet, io, sync::Mutex};

use futures_util::future::join_all;
use gateway_core::vocab::{ErrorCode, ToolFlags, ToolSpec};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::apps::{log::Entry, manifest::AppTool, post::CALLS_MAX};
use crate::{
    registry::Registry,
    test_support::{World, call, context},
};

const KEY_SHA256: &str = "7d1b07d40f4c1c1d5a8d2f1c3a0f6a0f8a2c1f9f3b2a1d0e9c8b7a6958473625";

/// What a server does with a request.
#[derive(Clone)]
enum Does {
    /// Answers with these bytes and keeps the connection.
    Answers(String),
    /// Sends a response that never ends.
    Streams(&'static str),
    /// Does not respond.
    Hangs,
    /// Closes the connection in the middle of the response.
    Breaks,
}

fn http(status: &str, headers: &str, body: &str) -> Does {
    Does::Answers(format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()))
}

fn json_answer(body: &Value) -> Does {
    http("200 OK", "content-type: application/json; charset=utf-8\r\n", &body.to_string())
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<(String, String)>>,
    connections: Mutex<usize>,
}

impl Seen {
    fn bodies(&self) -> Vec<Value> {
        self.requests.lock().unwrap().iter().map(|(_, body)| serde_json::from_str(body).unwrap()).collect()
    }
    fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

struct Server {
    url: String,
    seen: Arc<Seen>,
}

impl Server {
    async fn start(does: Does) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), does)
    }

    fn on(listener: TcpListener, does: Does) -> Self {
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Seen::default());
        let witness = seen.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *witness.connections.lock().unwrap() += 1;
                tokio::spawn(serve(stream, does.clone(), witness.clone()));
            }
        });
        Self { url, seen }
    }
}

async fn serve(mut stream: TcpStream, does: Does, seen: Arc<Seen>) -> io::Result<()> {
    while let Some(request) = request(&mut stream).await? {
        seen.requests.lock().unwrap().push(request);
        match &does {
            Does::Answers(answer) => stream.write_all(answer.as_bytes()).await?,
            Does::Streams(head) => {
                stream.write_all(head.as_bytes()).await?;
                loop {
                    stream.write_all(&[b' '; 4096]).await?;
                }
            }
            Does::Hangs => std::future::pending().await,
            Does::Breaks => return stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-le").await,
        }
    }
    Ok(())
}

/// Head and body of the next request.
async fn request(stream: &mut TcpStream) -> io::Result<Option<(String, String)>> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            if body.len() >= length.parse().unwrap() {
                return Ok(Some((head, body.to_owned())));
            }
        }
        if stream.read_buf(&mut read).await? == 0 {
            return Ok(None);
        }
    }
}

fn client() -> Arc<Client> {
    drop(rustls::crypto::ring::default_provider().install_default());
    Arc::new(Client::new().unwrap())
}

fn todo(url: &str) -> App {
    App {
        package: "com.example.todo".into(),
        name: "Todo".into(),
        public_url: url.into(),
        api_key_sha256: KEY_SHA256.into(),
        tools: vec![AppTool {
            local_name: "list.add".into(),
            spec: ToolSpec { name: "com.example.todo.list.add".into(), ..ToolSpec::default() },
        }],
        ..App::default()
    }
}

fn with_flags(mut app: App, flags: ToolFlags) -> App {
    app.tools[0].spec.flags = flags;
    app
}

struct Bench {
    runner: AppRunner,
    client: Arc<Client>,
    flags: ToolFlags,
    activated: bool,
    cancel: CancellationToken,
}

impl Bench {
    fn of(app: App) -> Self {
        let client = client();
        Self {
            flags: app.tools[0].spec.flags,
            runner: AppRunner::new(Arc::new(app), client.clone()),
            client,
            activated: false,
            cancel: CancellationToken::new(),
        }
    }

    async fn call(&self, arguments: Value) -> ToolResult {
        let from = context();
        let context = RunContext {
            user: from.user,
            device: from.device,
            session: from.session,
            called_wall_ms: 0,
            turn: from.turn,
            deadline: Duration::from_millis(2_000),
            cancel: self.cancel.clone(),
            local_name: "list.add".into(),
            flags: self.flags,
            activated: self.activated,
            ports: World::usual().ports(),
            offered: Registry::new().snapshot("u", None),
            conversation: [PastMessage { role: "user", content: "a secret plan".into() }].into(),
            language: None,
            caller: None,
            program: None,
            calls: None,
        };
        self.runner.run(context, call("com.example.todo.list.add", arguments)).await
    }
}

#[tokio::test]
async fn the_published_shape() {
    let server = Server::start(json_answer(&json!({"status": "success", "reply": "Added milk"}))).await;
    let bench = Bench::of(todo(&server.url));
    let result = bench.call(json!({"item": "milk"})).await;
    assert_eq!((result.say.as_deref(), result.error), (Some("Added milk"), None));
    assert_eq!(
        server.seen.bodies(),
        [json!({
            "toolId": "list.add",
            "toolParameters": {"item": "milk"},
            "userId": "ada",
            "timestamp": "2026-11-21T22:20:00Z",
            "activeSession": null
        })]
    );
    let head = server.seen.requests.lock().unwrap()[0].0.clone();
    assert!(head.starts_with("post /tool http/1.1"), "{head}");
    assert!(head.contains(&format!("x-app-api-key: {KEY_SHA256}")), "{head}");

    bench.call(Value::Null).await;
    assert_eq!(server.seen.bodies()[1]["toolParameters"], json!({}));
    assert_eq!(*server.seen.connections.lock().unwrap(), 1, "the connection is used again");
    let log = bench.client.log();
    assert!(log.faults("com.example.todo").is_empty());
    let entries = log.of("com.example.todo");
    let [Entry::Event(event), Entry::Event(_)] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((event.user.as_str(), event.what.as_str()), ("ada", "list.add"));
    assert!(event.message.ends_with(r#" ms  {"item":"milk"}  ->  Added milk"#), "{}", event.message);
}

#[tokio::test]
async fn the_mcp_shape() {
    let server = Server::start(json_answer(&json!({"success": true, "content": "Added milk"}))).await;
    let app = App { shape: CallShape::Mcp, ..todo(&format!("{}/", server.url)) };
    let bench = Bench { activated: true, ..Bench::of(app) };
    assert_eq!(bench.call(json!({"item": "milk"})).await.say.as_deref(), Some("Added milk"));
    assert_eq!(
        server.seen.bodies(),
        [json!({
            "name": "list.add",
            "arguments": {"item": "milk"},
            "context": {
                "userId": "ada",
                "sessionId": "ada-com.example.todo",
                "timestamp": "2026-11-21T22:20:00Z",
                "activatedForTool": true
            }
        })]
    );
}

#[tokio::test]
async fn the_conversation_is_sent_to_apps_with_the_permission_and_is_in_no_log() {
    let server = Server::start(http("500 Internal Server Error", "", "")).await;
    for (shape, place) in [(CallShape::Published, ""), (CallShape::Mcp, "/context")] {
        for (permissions, is_sent) in [(vec!["CONVERSATION_HISTORY"], true), (vec!["ALL"], false), (vec![], false)] {
            let permissions = permissions.into_iter().map(str::to_owned).collect();
            let bench = Bench::of(App { shape, permissions, ..todo(&server.url) });
            bench.call(json!({"item": "milk"})).await;
            let body = server.seen.bodies().pop().unwrap();
            let sent = body.pointer(&format!("{place}/conversationHistory")).cloned();
            assert_eq!(sent, is_sent.then(|| json!([{"role": "user", "content": "a secret plan"}])), "{body}");
            assert_eq!(body.to_string().contains("secret plan"), is_sent, "{body}");
            let log = format!("{:?}", bench.client.log().of("com.example.todo"));
            assert!(log.contains("milk") && !log.contains("secret plan"), "{log}");
        }
    }
}

#[tokio::test]
async fn an_interruption_ends_what_may_be_ended() {
    let server = Server::start(Does::Hangs).await;
    let hints = |read_only, idempotent| ToolFlags { read_only, idempotent, ..ToolFlags::default() };
    for (flags, code) in [
        (hints(true, true), ErrorCode::Cancelled),
        (hints(false, false), ErrorCode::Timeout),
        (hints(false, true), ErrorCode::Timeout),
    ] {
        let bench = Bench::of(with_flags(todo(&server.url), flags));
        let before = server.seen.count();
        let interrupt = async {
            while server.seen.count() == before {
                tokio::task::yield_now().await;
            }
            bench.cancel.cancel();
        };
        let (result, ()) = tokio::join!(bench.call(json!({})), interrupt);
        assert_eq!(result.error.unwrap().code, code);
    }
    // A call that is waiting for a free slot is not started.
    let bench = Bench::of(todo(&server.url));
    let all = bench.runner.post.turns.acquire_many(CALLS_MAX as u32).await.unwrap();
    bench.cancel.cancel();
    assert_eq!(bench.call(json!({})).await.error.unwrap().code, ErrorCode::Cancelled);
    drop(all);
    assert_eq!(server.seen.count(), 3);
}

#[tokio::test]
async fn an_app_that_tells_its_key_is_not_believed() {
    let told = json!({"status": "success", "reply": {"headers": {"x-app-api-key": KEY_SHA256}, KEY_SHA256: 1}});
    let server = Server::start(json_answer(&told)).await;
    let result = Bench::of(todo(&server.url)).call(json!({})).await;
    assert!(result.data.is_some() && !format!("{result:?}").contains(KEY_SHA256), "{result:?}");
}

#[tokio::test]
async fn each_fault_has_its_code_its_sentence_and_its_place_in_the_log() {
    let ten_megabytes = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 10485760\r\n\r\n";
    let endless = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"status\":\"success\",\"reply\":\"";
    let json = "content-type: application/json\r\n";
    // What the server does, code, retryable for a tool that changes something and for one that does not, sentence.
    let table = [
        (http("200 OK", json, "{\"status\":"), ErrorCode::HttpError, [false, false], "couldn't understand"),
        (http("200 OK", json, "[1]"), ErrorCode::HttpError, [false, false], "couldn't understand"),
        (
            http("200 OK", "content-type: text/html\r\n", "<p>{}</p>"),
            ErrorCode::HttpError,
            [false, false],
            "couldn't understand",
        ),
        (http("200 OK", "", "{}"), ErrorCode::HttpError, [false, false], "couldn't understand"),
        (Does::Streams(ten_megabytes), ErrorCode::HttpError, [false, false], "too long"),
        (Does::Streams(endless), ErrorCode::HttpError, [false, false], "too long"),
        (Does::Hangs, ErrorCode::Timeout, [false, true], "didn't answer"),
        (Does::Breaks, ErrorCode::AppNotAvailable, [false, true], "didn't answer"),
        (
            http("500 Internal Server Error", json, "{\"status\":\"error\",\"message\":\"no list\"}"),
            ErrorCode::HttpError,
            [false, true],
            "reported a problem",
        ),
        (http("404 Not Found", "", "Cannot POST /tool"), ErrorCode::HttpError, [false, false], "reported a problem"),
        (http("429 Too Many Requests", "", ""), ErrorCode::RateLimited, [true, true], "busy"),
    ];
    for (at, (does, code, retryable, say)) in table.into_iter().enumerate() {
        let server = Server::start(does).await;
        for (read_only, retryable) in [false, true].into_iter().zip(retryable) {
            let flags = ToolFlags { read_only, ..ToolFlags::default() };
            let bench = Bench::of(with_flags(todo(&server.url), flags));
            let result = bench.call(json!({"item": "milk"})).await;
            let error = result.error.clone().unwrap();
            assert_eq!((error.code, error.retryable), (code, retryable), "row {at}: {}", error.message);
            assert!(result.say.as_deref().unwrap().contains(say), "row {at}: {:?}", result.say);
            let faults = bench.client.log().faults("com.example.todo");
            assert_eq!((faults.len(), faults[0].code, faults[0].what.as_str()), (1, code, "list.add"), "row {at}");
            assert!(
                faults[0].request.contains("/tool {\"toolId\":\"list.add\",\"toolParameters\":{\"item\":\"milk\"}")
            );
            let all = format!("{result:?} {faults:?}");
            assert!(!all.contains(KEY_SHA256), "row {at}: the key shows");
        }
        assert_eq!(server.seen.count(), 2, "row {at}: nothing is sent twice");
    }
}

#[tokio::test]
async fn an_app_that_claims_that_it_was_not_reached_is_called_once() {
    for code in ["APP_NOT_AVAILABLE", "CANCELLED"] {
        let claim =
            json!({"success": false, "error": {"code": code, "message": "Booked, not printed.", "retryable": true}});
        let server = Server::start(json_answer(&claim)).await;
        let result = Bench::of(todo(&server.url)).call(json!({"item": "milk"})).await;
        assert_eq!(result.error.map(|error| error.code), Some(ErrorCode::ExecutionError), "{code}");
        assert_eq!(server.seen.count(), 1, "{code}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed_wherever_they_lead() {
    let other = Server::start(json_answer(&json!({"status": "success", "reply": "stolen"}))).await;
    for status in ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent"] {
        for to in [format!("{}/tool", other.url), "/elsewhere".to_owned()] {
            let server = Server::start(http(status, &format!("location: {to}\r\n"), "")).await;
            let bench = Bench::of(todo(&server.url));
            let result = bench.call(json!({"item": "milk"})).await;
            let error = result.error.unwrap();
            assert_eq!((error.code, error.retryable), (ErrorCode::HttpError, false));
            assert!(error.message.contains(&to), "{}", error.message);
            assert_eq!((server.seen.count(), other.seen.count()), (1, 0));
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_has_done_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let bench = Bench::of(todo(&format!("http://{address}")));
    let error = bench.call(json!({})).await.error.unwrap();
    assert_eq!((error.code, error.retryable), (ErrorCode::AppNotAvailable, true));
    assert!(error.message.contains("refused") && error.message.contains("nothing was done"), "{}", error.message);
    let server = Server::on(
        TcpListener::bind(address).await.unwrap(),
        json_answer(&json!({"status": "success", "reply": "there"})),
    );
    assert_eq!(bench.call(json!({})).await.say.as_deref(), Some("there"));
    assert_eq!(server.seen.count(), 1);
}

#[tokio::test]
async fn an_address_that_is_none_is_told() {
    for url in ["", "not a url", "http://", "ftp://127.0.0.1:1"] {
        let result = Bench::of(todo(url)).call(json!({})).await;
        assert!(result.is_error() && result.say.is_some(), "{url}");
    }
}

#[tokio::test]
async fn many_calls_wait_their_turn() {
    // Responds only once the maximum number of concurrent calls has arrived.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let open = Arc::new(Semaphore::new(0));
    let present = Arc::new(Mutex::new((0_usize, 0_usize)));
    let (door, counted) = (open.clone(), present.clone());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (door, counted) = (door.clone(), counted.clone());
            tokio::spawn(async move {
                while let Ok(Some(_)) = request(&mut stream).await {
                    {
                        let mut now_and_most = counted.lock().unwrap();
                        now_and_most.0 += 1;
                        now_and_most.1 = now_and_most.1.max(now_and_most.0);
                        if now_and_most.0 == CALLS_MAX {
                            door.add_permits(1_000);
                        }
                    }
                    door.acquire().await.unwrap().forget();
                    counted.lock().unwrap().0 -= 1;
                    let Does::Answers(answer) = json_answer(&json!({"status": "success", "reply": "in"})) else {
                        return;
                    };
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    let bench = Bench::of(todo(&url));
    let calls = (0..CALLS_MAX * 3).map(|_| bench.call(json!({})));
    let said: BTreeSet<_> = join_all(calls).await.into_iter().map(|result| result.say).collect();
    assert_eq!(said, BTreeSet::from([Some("in".to_owned())]));
    assert_eq!(present.lock().unwrap().1, CALLS_MAX);
}
