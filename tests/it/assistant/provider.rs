//! A scripted provider: one server with a branch per model, which answers in the protocol of the request.

use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::{Frame, Incoming},
    header::{HeaderName, HeaderValue},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::http;

/// A model's reaction to one request. [`Answer::Begins`] supports chat completions only.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A text, with its input and output tokens.
    Says(&'static str, u32, u32),
    /// A call of the tool of this name, with these arguments.
    Calls(&'static str, Value),
    /// No answer until the connection is closed.
    Hangs,
    /// This text, and nothing more until the connection is closed.
    Begins(&'static str),
    /// These bytes as the event stream.
    Streams(String),
    /// This status.
    Refuses(u16),
}

/// A request as received.
#[derive(Clone, Debug)]
pub struct Asked {
    pub branch: String,
    pub path: String,
    /// The query string; empty for none.
    pub query: String,
    /// By lower-case name.
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

#[derive(Default)]
struct State {
    scripts: BTreeMap<String, VecDeque<Answer>>,
    asked: Vec<Asked>,
}

/// Clones share one server, its scripts, and its record of requests.
#[derive(Clone)]
pub struct Provider {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    count: watch::Sender<usize>,
}

impl Provider {
    /// Starts it; every branch fails until it has an answer.
    pub async fn start() -> Self {
        let (listener, address) = http::bind().await;
        let provider = Self { address, state: Arc::default(), count: watch::Sender::new(0) };
        let server = provider.clone();
        http::serve(listener, move |request| {
            let server = server.clone();
            async move { server.answer(request).await }
        });
        provider
    }

    /// The base URL of a branch.
    pub fn url(&self, branch: &str) -> String {
        format!("http://{}/{branch}", self.address)
    }

    /// Queues the next answer of a branch.
    pub fn then(&self, branch: &str, answer: Answer) -> &Self {
        self.state.lock().unwrap().scripts.entry(branch.to_owned()).or_default().push_back(answer);
        self
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.lock().unwrap().asked.clone()
    }

    /// Waits for this many requests in all.
    pub async fn until(&self, count: usize) -> Asked {
        let mut seen = self.count.subscribe();
        let waited = tokio::time::timeout(crate::world::WAIT, seen.wait_for(|asked| *asked >= count));
        waited.await.unwrap_or_else(|_| panic!("{count} requests: {:#?}", self.asked())).expect("a server");
        self.asked()[count - 1].clone()
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<BoxBody<Bytes, Infallible>> {
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let header = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let headers = request.headers().iter().map(header).collect();
        let branch = path.split('/').nth(1).unwrap_or_default().to_owned();
        let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let answer = {
            let mut state = self.state.lock().unwrap();
            let (branch, path, body) = (branch.clone(), path.clone(), body.clone());
            state.asked.push(Asked { branch: branch.clone(), path, query, headers, body });
            state.scripts.get_mut(&branch).and_then(VecDeque::pop_front)
        };
        self.count.send_modify(|count| *count += 1);
        let (text, goes_on) = match answer.unwrap_or(Answer::Refuses(503)) {
            Answer::Refuses(status) => {
                let body = stream::iter([frame("{\"error\": {\"message\": \"down\"}}")]);
                let mut response = Response::new(BodyExt::boxed(StreamBody::new(body)));
                *response.status_mut() = StatusCode::from_u16(status).expect("a status");
                return response;
            }
            Answer::Hangs => (": wait\n\n".to_owned(), true),
            Answer::Streams(events) => (events, false),
            answer => (events(&path, &answer, &body), matches!(answer, Answer::Begins(_))),
        };
        let first = stream::iter([frame(&text)]);
        let mut response = Response::new(if goes_on {
            BodyExt::boxed(StreamBody::new(first.chain(stream::pending())))
        } else {
            BodyExt::boxed(StreamBody::new(first))
        });
        response.headers_mut().insert("content-type", "text/event-stream".parse().expect("a value"));
        response
    }
}

fn frame(text: &str) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(Bytes::from(text.to_owned())))
}

/// A tool's name in the form that the request uses.
fn exposed(wanted: &str, body: &Value) -> String {
    fn letters(name: &str) -> String {
        name.chars().filter(|letter| letter.is_ascii_alphanumeric()).collect()
    }
    names(body).into_iter().find(|name| letters(name) == letters(wanted)).unwrap_or_else(|| wanted.replace('.', "_"))
}

/// The names of the tools that a request offers, whatever its protocol.
pub fn names(body: &Value) -> Vec<String> {
    fn collect(tools: &Value, names: &mut Vec<String>) {
        for tool in tools.as_array().into_iter().flatten() {
            collect(&tool["functionDeclarations"], names);
            let name = tool["name"].as_str().or(tool["function"]["name"].as_str());
            names.extend(name.map(str::to_owned));
        }
    }
    let mut found = Vec::new();
    collect(&body["tools"], &mut found);
    found
}

/// The answer as a stream of the protocol that this path belongs to.
fn events(path: &str, answer: &Answer, body: &Value) -> String {
    let events = match path {
        path if path.ends_with("/chat/completions") => chat_completions(answer, body),
        path if path.ends_with("/messages") => anthropic(answer, body),
        path if path.ends_with("/responses") => responses(answer, body),
        _ => gemini(answer, body),
    };
    let line = |event: &Value| match event["type"].as_str() {
        Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
        None => format!("data: {event}\n\n"),
    };
    let is_whole = !matches!(answer, Answer::Begins(_));
    let end = if path.ends_with("/chat/completions") && is_whole { "data: [DONE]\n\n" } else { "" };
    events.iter().map(line).collect::<String>() + end
}

fn chat_completions(answer: &Answer, body: &Value) -> Vec<Value> {
    let choice =
        |delta: Value, reason: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    match answer {
        Answer::Says(text, input, output) => {
            let words = text.split_inclusive(' ').map(|word| choice(json!({"content": word}), Value::Null));
            let usage = json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output}});
            words.chain([choice(json!({}), json!("stop")), usage]).collect()
        }
        Answer::Calls(name, arguments) => {
            let function = json!({"name": exposed(name, body), "arguments": arguments.to_string()});
            let call = json!({"tool_calls": [{"index": 0, "id": "call_a", "type": "function", "function": function}]});
            vec![choice(call, Value::Null), choice(json!({}), json!("tool_calls"))]
        }
        Answer::Begins(text) => vec![choice(json!({"content": text}), Value::Null)],
        _ => Vec::new(),
    }
}

fn anthropic(answer: &Answer, body: &Value) -> Vec<Value> {
    let (block, delta, stop) = match answer {
        Answer::Says(text, ..) => {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}), "end_turn")
        }
        Answer::Calls(name, arguments) => (
            json!({"type": "tool_use", "id": "toolu_a", "name": exposed(name, body), "input": {}}),
            json!({"type": "input_json_delta", "partial_json": arguments.to_string()}),
            "tool_use",
        ),
        _ => return Vec::new(),
    };
    vec![
        json!({"type": "message_start", "message": {"type": "message", "role": "assistant", "content": [],
            "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ]
}

fn gemini(answer: &Answer, body: &Value) -> Vec<Value> {
    let part = match answer {
        Answer::Says(text, ..) => json!({"text": text}),
        Answer::Calls(name, arguments) => json!({"functionCall": {"name": exposed(name, body), "args": arguments}}),
        _ => return Vec::new(),
    };
    let content = json!({"role": "model", "parts": [part]});
    let usage = json!({"promptTokenCount": 9, "candidatesTokenCount": 5});
    vec![json!({"candidates": [{"content": content, "finishReason": "STOP"}], "usageMetadata": usage})]
}

fn responses(answer: &Answer, body: &Value) -> Vec<Value> {
    let item = match answer {
        Answer::Says(text, ..) => {
            let part = json!({"type": "output_text", "text": text, "annotations": []});
            json!({"type": "message", "id": "msg_a", "role": "assistant", "status": "completed", "content": [part]})
        }
        Answer::Calls(name, arguments) => json!({"type": "function_call", "id": "fc_a", "call_id": "call_a",
            "name": exposed(name, body), "arguments": arguments.to_string(), "status": "completed"}),
        _ => return Vec::new(),
    };
    let mut events = vec![json!({"type": "response.created", "response": {"id": "resp_a", "status": "in_progress"}})];
    if let Answer::Says(text, ..) = answer {
        events.push(json!({"type": "response.output_text.delta", "item_id": "msg_a", "output_index": 0,
            "content_index": 0, "delta": text}));
    }
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    let usage = json!({"input_tokens": 9, "output_tokens": 5, "total_tokens": 14});
    events.push(json!({"type": "response.completed",
        "response": {"id": "resp_a", "status": "completed", "output": [item], "usage": usage}}));
    events
}
