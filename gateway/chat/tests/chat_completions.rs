//! Chat completions: requests, answers, and the HTTP shell against a local server with scripted byte-wise answers.

mod common;

use std::{
    io::Write,
    sync::{Arc, Mutex, Once, atomic::Ordering},
    time::Duration,
};

use chat_models::{
    ChatModel, Request,
    auth::Key,
    chat_completions::{ChatCompletions, Options},
    http::{Endpoint, Http, KeyHeader},
    names::NameMap,
    provider::Provider,
};
use common::{
    request,
    server::{Act, STREAM_HEAD, serve, status, streamed},
    tool,
};
use gateway_core::vocab::{
    ErrorCode, FailureKind, Message, ModelEvent, Part, Role, StopReason, ToolCall, ToolResult, Usage,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::sync::CancellationToken;

const KEY: &str = "sk-planted-0123456789";

/// `timer.set` beside a `timer_set`: distinguished by a hash.
const DOTTED: &str = "timer_set_1932e4";

fn render(request: &Request, options: &Options) -> (Value, NameMap) {
    let rendered = ChatCompletions::new(options.clone()).render(request);
    (rendered.body.to_value().expect("JSON"), rendered.names)
}

fn conversation() -> Request {
    let tools = [
        tool("timer.set", json!({"seconds": {"type": "integer"}}), &["seconds"], &[]),
        tool("timer_set", json!({}), &[], &[]),
    ];
    let mut request = request("Set a timer", &tools.map(Arc::new).into());
    request.system = Some("Be brief.".into());
    request.max_tokens = Some(50);
    let call = ToolCall { id: "c1".into(), name: "timer.set".into(), arguments: json!({"seconds": 5}) };
    let second = ToolCall { id: "c2".into(), ..call.clone() };
    let result = |id: &str, result| Part::ToolResult { call_id: id.into(), result };
    request.messages.extend([
        Message {
            role: Role::Assistant,
            parts: vec![Part::Text { text: "Well.".into() }, Part::ToolCall { call }, Part::ToolCall { call: second }],
        },
        Message { role: Role::Tool, parts: vec![result("c1", ToolResult::said("Timer set."))] },
        Message { role: Role::Tool, parts: vec![result("c2", ToolResult::failed(ErrorCode::Timeout, "late", true))] },
    ]);
    request
}

#[test]
fn a_request_is_rendered_as_the_api_has_it() {
    let (body, names) = render(&conversation(), &Options::new("m"));
    assert_eq!(body["model"], "m");
    assert_eq!(body["stream"], true);
    assert_eq!(body["max_tokens"], 50);
    let system = body["messages"][0]["content"].as_str().expect("a text");
    assert!(system.starts_with("Be brief."), "{system}");
    assert!(system.contains("Wednesday, 2026-05-13 14:30, UTC+02:00"), "{system}");
    assert_eq!(
        body["messages"].as_array().expect("a list")[1..],
        [
            json!({"role": "user", "content": "Set a timer"}),
            json!({"role": "assistant", "content": "Well.", "tool_calls": [
                {"id": "c1", "type": "function",
                    "function": {"name": DOTTED, "arguments": "{\"seconds\":5}"}},
                {"id": "c2", "type": "function",
                    "function": {"name": DOTTED, "arguments": "{\"seconds\":5}"}},
            ]}),
            json!({"role": "tool", "tool_call_id": "c1", "content": "Timer set."}),
            json!({"role": "tool", "tool_call_id": "c2", "content":
                "{\"error\":{\"code\":\"TIMEOUT\",\"message\":\"late\",\"retryable\":true}}"}),
        ]
    );
    assert_eq!(body["tools"][0]["function"]["name"], DOTTED);
    assert_eq!(body["tools"][1]["function"]["name"], "timer_set");
    assert_eq!(body["tools"][0]["function"]["parameters"]["required"], json!(["seconds"]));
    assert_eq!(names.tool("timer_set"), Some("timer_set"));
    let none = render(&request("x", &Arc::from([])), &Options::new("m")).0;
    assert_eq!(none.get("tools"), None);
}

fn names() -> NameMap {
    render(&conversation(), &Options::new("m")).1
}

fn sse(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn stop(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn text_answer() -> String {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}});
    let chunks = [
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": "Grüß "})),
        delta(json!({"content": "Gott"})),
        stop("stop"),
        usage,
    ];
    sse(&chunks) + "data: [DONE]\n\n"
}

fn call_answer() -> String {
    let call = |index: u32, id: &str, name: &str, arguments: &str| {
        delta(json!({"tool_calls": [{"index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": arguments}}]}))
    };
    let piece = |index: u32, arguments: &str| {
        delta(json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
    };
    let chunks = [
        call(0, "c1", DOTTED, ""),
        piece(0, "{\"sec"),
        call(1, "", "timer_set", ""),
        piece(0, "onds\": 5}"),
        stop("tool_calls"),
    ];
    sse(&chunks) + "data: [DONE]\n\n"
}

/// All events of an answer, with adjacent texts joined.
fn parse(chunks: &[&[u8]]) -> Vec<ModelEvent> {
    let mut parser = ChatCompletions::new(Options::new("m")).parser(names());
    let mut events = Vec::new();
    for chunk in chunks {
        events.extend(parser.push(chunk));
    }
    events.extend(parser.finish());
    join(events)
}

fn join(events: Vec<ModelEvent>) -> Vec<ModelEvent> {
    let mut out: Vec<ModelEvent> = Vec::new();
    for event in events {
        match (out.last_mut(), event) {
            (Some(ModelEvent::Text(text)), ModelEvent::Text(more)) => text.push_str(&more),
            (_, event) => out.push(event),
        }
    }
    out
}

fn done(stop: StopReason, input: u32, output: u32) -> ModelEvent {
    let usage = Usage { input, output, ..Usage::default() };
    ModelEvent::Done { stop, usage }
}

fn greeting() -> Vec<ModelEvent> {
    vec![ModelEvent::Text("Grüß Gott".into()), done(StopReason::End, 7, 2)]
}

#[test]
fn every_split_of_an_answer_reads_the_same() {
    let text = text_answer();
    let calls = call_answer();
    let expected = [
        // The provider repeated an id of the conversation, and omitted one.
        ModelEvent::ToolCall(ToolCall {
            id: "call_2".into(),
            name: "timer.set".into(),
            arguments: json!({"seconds": 5}),
        }),
        ModelEvent::ToolCall(ToolCall { id: "call_3".into(), name: "timer_set".into(), arguments: json!({}) }),
        done(StopReason::ToolCalls, 0, 0),
    ];
    for at in 0..text.len() {
        let (one, two) = text.as_bytes().split_at(at);
        assert_eq!(parse(&[one, two]), greeting(), "{at}");
    }
    for at in 0..calls.len() {
        let (one, two) = calls.as_bytes().split_at(at);
        assert_eq!(parse(&[one, two]), expected, "{at}");
    }
}

fn failure(events: &[ModelEvent]) -> (FailureKind, &str) {
    match events.last() {
        Some(ModelEvent::Failed { kind, message }) => (*kind, message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn bad_answers_are_named() {
    let call = |arguments: &str| {
        delta(json!({"tool_calls": [{"index": 0, "id": "x",
            "function": {"name": "timer_set", "arguments": arguments}}]}))
    };
    let many: Vec<Value> =
        (0..40).map(|index| delta(json!({"tool_calls": [{"index": index, "function": {"name": "t"}}]}))).collect();
    let long = delta(json!({"content": "x".repeat(200_000)}));
    let ended = |chunks: &[Value]| sse(chunks) + "data: [DONE]\n\n";
    let cases = [
        ("data: {oops\n\n".to_owned(), FailureKind::Bug, "malformed"),
        (sse(&[call("{\"a\": "), stop("tool_calls")]), FailureKind::Bug, "no JSON object"),
        (sse(&[call("[1]"), stop("tool_calls")]), FailureKind::Bug, "no JSON object"),
        (sse(&many), FailureKind::Bug, "more than 32"),
        (sse(&[long.clone(), long]), FailureKind::Bug, "longer than"),
        (sse(&[delta(json!({"content": "half"}))]), FailureKind::Transient, "middle"),
        (String::new(), FailureKind::Transient, "middle"),
        (
            sse(&[json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}})]),
            FailureKind::Limited,
            "slow down",
        ),
        ("x".repeat(chat_models::sse::LINE_BYTES_MAX + 1), FailureKind::Bug, "longer than"),
        (ended(&[]), FailureKind::Transient, "without a word"),
        (ended(&[call("")]), FailureKind::Transient, "within a tool call"),
        (ended(&[call("{\"a\": ")]), FailureKind::Transient, "within a tool call"),
        (ended(&[call("{}"), many[1].clone()]), FailureKind::Transient, "within a tool call"),
    ];
    for (stream, kind, words) in cases {
        let events = parse(&[stream.as_bytes()]);
        let (got, message) = failure(&events);
        assert_eq!(got, kind, "{message}");
        assert!(message.contains(words), "{message}");
        assert!(!events.iter().any(|event| matches!(event, ModelEvent::ToolCall(_))), "{events:?}");
    }
    // Complete calls need no reason to stop.
    assert_eq!(parse(&[ended(&[call("{}")]).as_bytes()]).last(), Some(&done(StopReason::ToolCalls, 0, 0)));
    // Truncated by length: an incomplete call is not a call.
    let short = sse(&[call("{\"a\": "), stop("length")]);
    assert_eq!(parse(&[short.as_bytes()]), [done(StopReason::Length, 0, 0)]);
    // Ollama ends an answer of calls with "stop".
    let stopped = parse(&[sse(&[call("{}"), stop("stop")]).as_bytes()]);
    assert_eq!(stopped.last(), Some(&done(StopReason::ToolCalls, 0, 0)));
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_prefix_and_any_bytes_end_exactly_once(
        cut in 0_usize..600,
        noise in proptest::collection::vec(any::<u8>(), 0..80),
        calls in any::<bool>(),
        flip in 0_usize..600,
    ) {
        let answer = if calls { call_answer() } else { text_answer() };
        let mut bytes = answer.into_bytes();
        bytes.truncate(cut);
        if let Some(byte) = bytes.get_mut(flip) {
            *byte ^= 0x15;
        }
        let events = parse(&[&bytes, &noise]);
        let last = |event: &ModelEvent| {
            matches!(event, ModelEvent::Done { .. } | ModelEvent::Failed { .. })
        };
        prop_assert_eq!(events.iter().filter(|event| last(event)).count(), 1);
        prop_assert!(events.last().is_some_and(last));
    }
}

fn model(url: &str, change: impl FnOnce(&mut Endpoint)) -> Http {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
        // One log for the whole process: subscribers per thread miss lines of other threads.
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
            .with_writer(Log::default)
            .finish();
        tracing::subscriber::set_global_default(subscriber).expect("the only subscriber");
    });
    let mut endpoint = Endpoint::new(url);
    endpoint.credentials = Some(Arc::new(KeyHeader::bearer(Key::new(KEY).expect("a key"))));
    endpoint.backoff = Duration::from_millis(1);
    change(&mut endpoint);
    Http::new(endpoint, provider()).expect("a model")
}

fn provider() -> Arc<dyn Provider> {
    Arc::new(ChatCompletions::new(Options::new("m")))
}

async fn ask(model: &Http) -> Vec<ModelEvent> {
    let (sender, mut receiver) = mpsc::channel(4);
    let collect = async {
        let mut events = Vec::new();
        while let Some(event) = receiver.recv().await {
            events.push(event);
        }
        join(events)
    };
    let stream = model.stream(conversation(), sender, CancellationToken::new());
    tokio::join!(stream, collect).1
}

#[tokio::test]
async fn answers_stream_over_one_connection() {
    let answers = vec![streamed(&text_answer(), 1), streamed(&text_answer(), 7), streamed(&call_answer(), 1000)];
    let server = serve(answers).await;
    let model = model(&server.url, |endpoint| {
        endpoint.headers.push(("x-extra".into(), "secret-extra".into()));
    });
    assert_eq!(ask(&model).await, greeting());
    assert_eq!(ask(&model).await, greeting());
    assert_eq!(ask(&model).await.len(), 3);
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    let requests = server.requests.lock().expect("unpoisoned");
    assert!(requests[0].starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
    assert!(requests[0].contains(&format!("authorization: Bearer {KEY}\r\n")));
    assert!(requests[0].contains("x-extra: secret-extra\r\n"));
    let body = requests[0].split_once("\r\n\r\n").expect("a body").1;
    let body: Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body, render(&conversation(), &Options::new("m")).0);
}

#[tokio::test]
async fn statuses_become_kinds_and_only_some_are_tried_again() {
    let quoted = format!("{{\"error\": {{\"message\": \"bad key {KEY} and secret-extra\"}}}}");
    let quota = "{\"error\": {\"message\": \"pay\", \"code\": \"insufficient_quota\"}}";
    let filter = "{\"error\": {\"message\": \"no\", \"code\": \"content_filter\"}}";
    let cases = [
        ("401 Unauthorized", quoted.as_str(), FailureKind::Auth, 1),
        ("403 Forbidden", "", FailureKind::Auth, 1),
        ("404 Not Found", "nothing here", FailureKind::Bug, 1),
        ("400 Bad Request", filter, FailureKind::Refused, 1),
        ("302 Found", "", FailureKind::Bug, 1),
        ("429 Too Many Requests", "{}", FailureKind::Limited, 3),
        ("429 Too Many Requests", quota, FailureKind::Limited, 1),
        ("500 Internal Server Error", "<html>", FailureKind::Transient, 3),
        ("503 Service Unavailable", "[1]", FailureKind::Transient, 3),
    ];
    for (line, body, kind, attempts) in cases {
        let server = serve(vec![status(line, "location: http://127.0.0.1:1/\r\n", body)]).await;
        let model = model(&server.url, |endpoint| {
            endpoint.headers.push(("x-extra".into(), "secret-extra".into()));
        });
        let events = ask(&model).await;
        assert_eq!(events.len(), 1, "{line}");
        let (got, message) = failure(&events);
        assert_eq!(got, kind, "{line}: {message}");
        assert!(message.contains(&line[..3]), "{message}");
        assert!(!message.contains("planted") && !message.contains("secret-extra"), "{message}");
        let asked = server.requests.lock().expect("unpoisoned").len();
        assert_eq!(asked, attempts, "{line}");
    }
}

#[tokio::test]
async fn an_overloaded_server_is_asked_again() {
    let busy = status("429 Too Many Requests", "retry-after: 0\r\n", "{}");
    let broken = status("500 Internal Server Error", "", "");
    let server = serve(vec![busy, broken, streamed(&text_answer(), 50)]).await;
    assert_eq!(ask(&model(&server.url, |_| {})).await, greeting());
}

#[tokio::test]
async fn a_cut_after_the_first_token_is_not_tried_again() {
    let answer = text_answer();
    let middle = answer.find("Gott").expect("the second piece of text");
    let mut cut = streamed(&answer[..middle], 20);
    cut.pop();
    cut.push(Act::Close);
    let server = serve(vec![cut]).await;
    let events = ask(&model(&server.url, |_| {})).await;
    assert_eq!(failure(&events).0, FailureKind::Transient);
    assert!(matches!(&events[0], ModelEvent::Text(_)), "{events:?}");
    assert_eq!(server.requests.lock().expect("unpoisoned").len(), 1);
}

#[tokio::test]
async fn broken_json_and_whole_documents() {
    let server = serve(vec![streamed("data: {\"choices\": [{]}\n\n", 5)]).await;
    let events = ask(&model(&server.url, |_| {})).await;
    assert_eq!(failure(&events).0, FailureKind::Bug);
    let document = json!({
        "choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    });
    let json = "content-type: application/json\r\n";
    let server = serve(vec![status("200 OK", json, &document.to_string())]).await;
    let events = ask(&model(&server.url, |_| {})).await;
    assert_eq!(events, [ModelEvent::Text("Hi".into()), done(StopReason::End, 1, 1)]);
    let server = serve(vec![status("200 OK", json, "{\"hello\": 1}")]).await;
    let events = ask(&model(&server.url, |_| {})).await;
    assert_eq!(failure(&events).0, FailureKind::Bug);
}

#[tokio::test]
async fn nobody_there_and_nobody_answering() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    drop(listener);
    let events = ask(&model(&url, |_| {})).await;
    let (kind, message) = failure(&events);
    assert_eq!(kind, FailureKind::Transient);
    assert!(message.contains("cannot be reached"), "{message}");

    let deadline = |endpoint: &mut Endpoint| {
        endpoint.first_token_timeout = Duration::from_secs(1);
        endpoint.idle_timeout = Duration::from_secs(1);
    };
    for acts in [
        vec![Act::Hang],
        vec![Act::Send(STREAM_HEAD.into()), Act::Hang],
        vec![
            Act::Send(STREAM_HEAD.into()),
            Act::Chunks(vec![sse(&[delta(json!({"content": "x"}))]).into_bytes()]),
            Act::Hang,
        ],
    ] {
        let mut server = serve(vec![acts]).await;
        let events = ask(&model(&server.url, deadline)).await;
        assert_eq!(failure(&events).0, FailureKind::Transient);
        assert_eq!(server.hung_up.recv().await, Some(()));
        assert_eq!(server.requests.lock().expect("unpoisoned").len(), 1);
    }
}

#[tokio::test]
async fn cancelling_closes_the_connection_and_ends_without_a_last_event() {
    let acts = vec![
        Act::Send(STREAM_HEAD.into()),
        Act::Chunks(vec![sse(&[delta(json!({"content": "x"}))]).into_bytes()]),
        Act::Hang,
    ];
    let mut server = serve(vec![acts]).await;
    let model = Arc::new(model(&server.url, |_| {}));
    let (sender, mut receiver) = mpsc::channel(4);
    let cancel = CancellationToken::new();
    let running = tokio::spawn({
        let (model, cancel) = (model.clone(), cancel.clone());
        async move { model.stream(conversation(), sender, cancel).await }
    });
    assert_eq!(receiver.recv().await, Some(ModelEvent::Text("x".into())));
    cancel.cancel();
    running.await.expect("ends");
    assert_eq!(receiver.recv().await, None);
    assert_eq!(server.hung_up.recv().await, Some(()));
}

#[test]
fn bad_addresses_and_headers_are_refused() {
    for url in ["", "ftp://x/v1", "127.0.0.1:80", "file:///etc"] {
        let made = Http::new(Endpoint::new(url), provider());
        assert!(made.is_err(), "{url}");
    }
    let mut endpoint = Endpoint::new("http://127.0.0.1/v1");
    endpoint.headers.push(("x".into(), "secret\nvalue".into()));
    let error = Http::new(endpoint, provider()).err().expect("refused");
    assert!(!error.to_string().contains("secret"), "{error}");
}

/// Everything that the tests of this process have logged.
static LOGGED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

#[derive(Default)]
struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOGGED.lock().expect("unpoisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// At every level, including all libraries.
#[tokio::test]
async fn the_key_is_in_no_log() {
    let quoted = format!("{{\"error\": {{\"message\": \"bad key {KEY}\"}}}}");
    let server = serve(vec![status("500 Oops", "", &quoted), status("401 Unauthorized", "", &quoted)]).await;
    let model = model(&server.url, |_| {});
    let events = ask(&model).await;
    assert_eq!(failure(&events).0, FailureKind::Auth);
    let text = String::from_utf8_lossy(&LOGGED.lock().expect("unpoisoned")).into_owned();
    assert!(text.contains("the model failed"), "{text}");
    assert!(!text.contains("planted"), "{text}");
}
