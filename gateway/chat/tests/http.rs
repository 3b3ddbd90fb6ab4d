//! The HTTP shell: addresses, credential renewal, and retries. tests/chat_completions.rs covers deadlines, cancellation
//! and connection reuse.

mod common;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use chat_models::{
    ChatModel, Request, Watch,
    auth::Key,
    chat_completions::{ChatCompletions, Options},
    http::{Credentials, Endpoint, Headers, Http, KeyHeader, NoCredentials},
    provider::Provider,
    responses::{self, Responses},
};
use common::{
    request,
    server::{Act, STREAM_HEAD, Server, serve, status, streamed},
    tool,
};
use gateway_core::vocab::{FailureKind, ModelEvent};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const OK: &str =
    "data: {\"choices\": [{\"delta\": {\"content\": \"Hi\"}, \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";

fn model(url: &str, provider: impl Provider + 'static, change: impl FnOnce(&mut Endpoint)) -> Http {
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut endpoint = Endpoint::new(url);
    endpoint.backoff = Duration::from_millis(1);
    change(&mut endpoint);
    Http::new(endpoint, Arc::new(provider)).expect("a model")
}

fn chat() -> ChatCompletions {
    ChatCompletions::new(Options::new("m"))
}

async fn ask(model: &Http) -> Vec<ModelEvent> {
    let (sender, mut receiver) = mpsc::channel(64);
    model.stream(request("hello", &Arc::from([])), sender, CancellationToken::new()).await;
    let mut events = Vec::new();
    while let Some(event) = receiver.recv().await {
        events.push(event);
    }
    events
}

fn is_greeting(events: &[ModelEvent]) -> bool {
    matches!(events, [ModelEvent::Text(text), ModelEvent::Done { .. }] if text == "Hi")
}

fn first_lines(server: &Server) -> Vec<String> {
    let requests = server.requests.lock().expect("unpoisoned");
    requests.iter().map(|request| request.lines().next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn addresses_of_azure_and_of_proxies() {
    let server = serve(vec![streamed(OK, 100)]).await;
    let host = server.url.trim_end_matches("/v1/");
    let azure = format!("{host}/openai/deployments/gpt/?api-version=2024-10-21");
    let key = || Key::new("azure-planted-key").expect("a key");
    let model = model(&azure, chat(), |endpoint| {
        endpoint.credentials = Some(Arc::new(KeyHeader::named("api-key", key())));
    });
    assert!(is_greeting(&ask(&model).await));
    let proxy = format!("{host}/a/proxy/path");
    let responses = Responses::new(responses::Options::new("m"));
    // What comes is no answer in this dialect, and is asked for again.
    ask(&self::model(&proxy, responses, |_| {})).await;
    assert_eq!(
        first_lines(&server)[..2],
        [
            "POST /openai/deployments/gpt/chat/completions?api-version=2024-10-21 HTTP/1.1",
            "POST /a/proxy/path/responses HTTP/1.1"
        ]
    );
    assert!(server.requests.lock().expect("unpoisoned")[0].contains("api-key: azure-planted-key\r\n"));
}

/// A token that is renewed when it is rejected.
#[derive(Default)]
struct Renewing {
    count: AtomicUsize,
    told: Mutex<Vec<String>>,
    /// How often it can be renewed.
    renewals: usize,
}

#[async_trait]
impl Credentials for Renewing {
    async fn headers(&self) -> Result<Headers, NoCredentials> {
        let value = format!("Bearer planted-{}", self.count.load(Ordering::SeqCst));
        Ok(vec![("authorization".parse().expect("a name"), value.parse().expect("a value"))])
    }

    async fn handle_unauthorized(&self, sent: &Headers) -> bool {
        self.told.lock().expect("unpoisoned").push(sent[0].1.to_str().expect("text").to_owned());
        self.count.fetch_add(1, Ordering::SeqCst) < self.renewals
    }
}

#[tokio::test]
async fn a_refused_token_is_renewed_once() {
    let no = |quoted: &str| status("401 Unauthorized", "", &format!("{{\"error\": {{\"message\": \"no {quoted}\"}}}}"));
    let server = serve(vec![no("planted-0"), streamed(OK, 100)]).await;
    let renewing = Arc::new(Renewing { renewals: 9, ..Renewing::default() });
    let with = |url: &str, renewing: &Arc<Renewing>| {
        let renewing = renewing.clone();
        model(url, chat(), |endpoint| endpoint.credentials = Some(renewing))
    };
    assert!(is_greeting(&ask(&with(&server.url, &renewing)).await));
    let sent: Vec<bool> =
        (0..2).map(|n| server.requests.lock().expect("unpoisoned")[n].contains(&format!("planted-{n}\r\n"))).collect();
    assert_eq!(sent, [true, true]);
    assert_eq!(*renewing.told.lock().expect("unpoisoned"), ["Bearer planted-0"]);

    // Rejected repeatedly: two attempts, no more; and neither token is quoted.
    for (renewals, asked) in [(9, 2), (0, 1)] {
        let server = serve(vec![no("planted-0"), no("planted-0 planted-1")]).await;
        let renewing = Arc::new(Renewing { renewals, ..Renewing::default() });
        let events = ask(&with(&server.url, &renewing)).await;
        let [ModelEvent::Failed { kind: FailureKind::Auth, message }] = &events[..] else {
            panic!("{events:?}");
        };
        assert!(message.contains("no [hidden]") && !message.contains("planted"), "{message}");
        assert_eq!(first_lines(&server).len(), asked);
    }
}

struct Nobody;

#[async_trait]
impl Credentials for Nobody {
    async fn headers(&self) -> Result<Headers, NoCredentials> {
        Err(NoCredentials { kind: FailureKind::Auth, message: "log in first".into() })
    }
}

#[tokio::test]
async fn without_credentials_nothing_is_sent() {
    let server = serve(vec![streamed(OK, 100)]).await;
    let model = model(&server.url, chat(), |endpoint| endpoint.credentials = Some(Arc::new(Nobody)));
    let events = ask(&model).await;
    assert_eq!(events, [ModelEvent::Failed { kind: FailureKind::Auth, message: "log in first".into() }]);
    assert!(first_lines(&server).is_empty());
}

#[tokio::test]
async fn a_stream_that_says_nothing_is_asked_for_again() {
    let cut = vec![Act::Send(STREAM_HEAD.into()), Act::Chunks(vec![b": ping\n\n".to_vec()]), Act::Close];
    let server = serve(vec![cut, vec![Act::Close], streamed(OK, 100)]).await;
    assert!(is_greeting(&ask(&model(&server.url, chat(), |_| {})).await));
    let overloaded = "data: {\"error\": {\"type\": \"overloaded_error\", \"message\": \"busy\"}}\n\n";
    let server = serve(vec![streamed(overloaded, 100), streamed(OK, 100)]).await;
    assert!(is_greeting(&ask(&model(&server.url, chat(), |_| {})).await));
    // No retry if it is rejected for a reason.
    let refused = "data: {\"error\": {\"code\": \"content_filter\", \"message\": \"no\"}}\n\n";
    let server = serve(vec![streamed(refused, 100), streamed(OK, 100)]).await;
    let events = ask(&model(&server.url, chat(), |_| {})).await;
    assert!(matches!(events[..], [ModelEvent::Failed { kind: FailureKind::Refused, .. }]), "{events:?}");
}

#[tokio::test]
async fn a_server_that_wants_a_long_pause_is_left_alone() {
    let busy = status("429 Too Many Requests", "retry-after: 60\r\n", "{}");
    let server = serve(vec![busy, streamed(OK, 100)]).await;
    let events = ask(&model(&server.url, chat(), |_| {})).await;
    assert!(matches!(events[..], [ModelEvent::Failed { kind: FailureKind::Limited, .. }]), "{events:?}");
    assert_eq!(first_lines(&server).len(), 1);
}

#[tokio::test]
async fn an_endless_stream_of_nothing_is_given_up() {
    let noise = format!(": {}\n", "x".repeat(100_000)).into_bytes();
    let acts = vec![Act::Send(STREAM_HEAD.into()), Act::Chunks(vec![noise; 200]), Act::Hang];
    let server = serve(vec![acts]).await;
    let events = ask(&model(&server.url, chat(), |_| {})).await;
    let [ModelEvent::Failed { kind: FailureKind::Bug, message }] = &events[..] else {
        panic!("{events:?}");
    };
    assert!(message.contains("longer than"), "{message}");
}

/// The whole answer has a deadline, even if pings keep arriving.
#[tokio::test]
async fn pings_do_not_keep_an_answer_alive() {
    let begun = json!({"choices": [{"delta": {"content": "Hi"}}]});
    let acts = vec![
        Act::Send(STREAM_HEAD.into()),
        Act::Chunks(vec![format!("data: {begun}\n\n").into_bytes(), b": ping\n\n".to_vec()]),
        Act::Hang,
    ];
    let mut server = serve(vec![acts]).await;
    let model = model(&server.url, chat(), |endpoint| endpoint.answer_timeout = Duration::from_secs(2));
    let events = ask(&model).await;
    assert!(matches!(events[..], [ModelEvent::Text(_), ModelEvent::Failed { kind: FailureKind::Transient, .. }]));
    assert_eq!(server.hung_up.recv().await, Some(()));
}

#[tokio::test]
async fn whoever_watches_is_told_when_a_request_has_gone_out() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let witness = told.clone();
    let watch = Watch::new(move |tools| witness.lock().expect("unpoisoned").push(tools));
    let tools = ["timer.set", "timer.stop", "note.add"].map(|name| Arc::new(tool(name, json!({}), &[], &[])));
    let request = Request { watch, ..request("hello", &Arc::from(tools)) };
    let ask = async |url: &str, options: Options| {
        let (sender, mut receiver) = mpsc::channel(64);
        let model = model(url, ChatCompletions::new(options), |_| {});
        model.stream(request.clone(), sender, CancellationToken::new()).await;
        receiver.recv().await
    };
    // Nothing listens at the address.
    let nobody = { std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address") };
    let event = ask(&format!("http://{nobody}/v1"), Options::new("m")).await;
    assert!(matches!(event, Some(ModelEvent::Failed { .. })), "{event:?}");
    assert!(told.lock().expect("unpoisoned").is_empty());
    // Once for each attempt; the body is complete, and its length is sent first.
    let server = serve(vec![status("503 Service Unavailable", "", "{}"), streamed(OK, 100)]).await;
    assert_eq!(ask(&server.url, Options::new("m")).await, Some(ModelEvent::Text("Hi".into())));
    assert_eq!(*told.lock().expect("unpoisoned"), [3, 3]);
    let (head, body) = {
        let requests = server.requests.lock().expect("unpoisoned");
        let (head, body) = requests[1].split_once("\r\n\r\n").expect("a body");
        (head.to_owned(), body.to_owned())
    };
    assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
    let body: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(body["tools"].as_array().map(Vec::len), Some(3));
    // The number of declared tools counts, not the number of available ones.
    ask(&server.url, Options { tools: false, ..Options::new("m") }).await;
    assert_eq!(told.lock().expect("unpoisoned").last(), Some(&0));
}

#[tokio::test]
async fn a_connection_that_was_opened_ahead_carries_the_request() {
    let server = serve(vec![streamed(OK, 100)]).await;
    let model = model(&server.url, chat(), |_| {});
    assert!(model.preconnect().await);
    assert!(!model.preconnect().await, "one is enough");
    assert!(first_lines(&server).is_empty());
    assert!(is_greeting(&ask(&model).await));
    assert!(!model.preconnect().await, "the one that was used just now is open");
    assert!(is_greeting(&ask(&model).await));
    assert_eq!(first_lines(&server), ["POST /v1/chat/completions HTTP/1.1"; 2]);
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    // Nothing listens at the address: no connection is opened.
    let nobody = { std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address") };
    assert!(!self::model(&format!("http://{nobody}/v1"), chat(), |_| {}).preconnect().await);
}
