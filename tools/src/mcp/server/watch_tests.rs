//! Sessions that watch resources: what they watch ends with them, and what they were refused they do not have.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gateway_core::vocab::ClientClass;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Request, StatusCode};
use serde_json::{Value, json};

use super::{Approver, Http, Hub, Limits, Who};
use crate::{
    executor::Executor,
    mcp::{client::Pool, config},
    registry::Registry,
    test_support::World,
};

/// What one session may watch, and all sessions of one server: as many as these.
const EACH: usize = 64;
const SESSIONS: usize = 4;

/// The door, with one server behind it, `files`, that is configured and cannot run.
fn door() -> Http {
    let servers = json!({ "mcpServers": { "files": { "command": "/no/such/program" } } }).to_string();
    let registry = Arc::new(Registry::new());
    let pool = Pool::start(config::check_file(&servers, &|_| None).unwrap(), None, &registry);
    let executor = Executor::new(registry, World::usual().ports());
    Http::new(Hub::new(executor, pool, |_| None, 0), Limits::default())
}

/// One session of a client.
struct Client<'a> {
    http: &'a Http,
    id: String,
}

impl<'a> Client<'a> {
    /// A session of a client that has not said that it is initialized.
    async fn open(http: &'a Http) -> Self {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let (status, id, _) = send(http, Method::POST, None, &message).await;
        assert_eq!(status, StatusCode::OK);
        Self { http, id: id.expect("a session") }
    }

    async fn initialized(&self) {
        let message = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let (status, ..) = send(self.http, Method::POST, Some(&self.id), &message).await;
        assert_eq!(status, StatusCode::ACCEPTED);
    }

    /// Whether it was accepted.
    async fn ask(&self, method: &str, uri: &str) -> Result<(), Value> {
        let message = json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": { "uri": uri } });
        let (_, _, answer) = send(self.http, Method::POST, Some(&self.id), &message).await;
        let answer = answer.expect("an answer");
        if answer["result"].is_object() { Ok(()) } else { Err(answer["error"].clone()) }
    }

    async fn subscribe(&self, uri: &str) -> Result<(), Value> {
        self.ask("resources/subscribe", uri).await
    }

    /// Watches as much as it may, which nobody else watches.
    async fn watch_all(&self, name: usize) {
        for number in 0..EACH {
            self.subscribe(&uri(name, number)).await.unwrap();
        }
        let error = self.subscribe("files+test://one-more").await.unwrap_err();
        assert_eq!(error["message"], format!("at most {EACH} subscriptions"));
    }

    async fn end(self) {
        let (status, ..) = send(self.http, Method::DELETE, Some(&self.id), &Value::Null).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
        settle().await;
    }
}

fn uri(session: usize, number: usize) -> String {
    format!("files+test://{session}/{number}")
}

/// Status, session and answer of a request.
async fn send(
    http: &Http,
    method: Method,
    session: Option<&str>,
    message: &Value,
) -> (StatusCode, Option<String>, Option<Value>) {
    let who =
        Who { user: "ada".to_owned(), class: ClientClass::Internal, approves: Approver::Client, is_operator: false };
    let mut request = Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session).header("mcp-protocol-version", "2025-11-25");
    }
    let reply = http.answer(who, request.body(Full::new(Bytes::from(message.to_string()))).unwrap()).await;
    let status = reply.status();
    let session = reply.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    let events = str::from_utf8(&body).unwrap().lines().filter_map(|line| line.strip_prefix("data:"));
    let answer =
        events.filter_map(|event| serde_json::from_str::<Value>(event).ok()).find(|event| event["id"].is_u64());
    (status, session, answer)
}

/// Waits until nothing has anything to do: only then the clock of a test goes on.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_never_initialized_leaves_nothing_watched() {
    let http = door();
    for name in 0..SESSIONS {
        let client = Client::open(&http).await;
        client.watch_all(name).await;
        client.end().await;
    }
    let client = Client::open(&http).await;
    assert_eq!(client.subscribe("files+test://new").await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn what_a_session_was_refused_it_neither_has_nor_takes_from_others_when_it_ends() {
    let http = door();
    let mut clients = Vec::new();
    for name in 0..SESSIONS {
        let client = Client::open(&http).await;
        client.initialized().await;
        client.watch_all(name).await;
        clients.push(client);
    }
    let late = Client::open(&http).await;
    late.initialized().await;
    for _ in 0..2 {
        let error = late.subscribe("files+test://wanted").await.unwrap_err();
        assert_eq!(error["message"], "too many subscriptions");
    }
    // What is watched already, one more may watch.
    late.subscribe(&uri(1, 0)).await.unwrap();
    clients[0].ask("resources/unsubscribe", &uri(0, 0)).await.unwrap();
    settle().await;
    clients[0].subscribe("files+test://wanted").await.unwrap();
    late.end().await;
    let last = Client::open(&http).await;
    assert!(last.subscribe("files+test://new").await.is_err(), "what others watch was taken from them");
    // It makes room for exactly one.
    clients[0].ask("resources/unsubscribe", "files+test://wanted").await.unwrap();
    settle().await;
    last.subscribe("files+test://new").await.unwrap();
    assert!(last.subscribe("files+test://newer").await.is_err());
}
