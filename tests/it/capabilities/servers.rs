//! The servers that the source's examples talk to: trains over HTTP, Slack over MCP.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::http;

/// The requests that a server got.
pub(super) type Book = Arc<Mutex<Vec<String>>>;

/// Both servers.
pub(super) struct Servers {
    pub(super) trains: SocketAddr,
    pub(super) slack: SocketAddr,
    /// Method and path of requests for trains.
    pub(super) asked: Book,
    /// Texts that were posted to Slack.
    pub(super) posted: Book,
    /// Function and parameters of calls of capabilities in JSON, as in `getSchedule {"station":"Central"}`.
    pub(super) called: Book,
}

impl Servers {
    pub(super) async fn start() -> Self {
        let (asked, posted, called) = (Book::default(), Book::default(), Book::default());
        let (trains, slack) = (trains(asked.clone(), called.clone()).await, slack(posted.clone()).await);
        Self { trains, slack, asked, posted, called }
    }

    /// A definition in JSON whose calls this server carries out.
    pub(super) fn carries_out(&self, mut definition: Value) -> Value {
        definition["endpoint"] = json!({"url": format!("http://{}/capability", self.trains)});
        definition
    }

    /// A file of the source with this server instead of the one on the Internet.
    pub(super) fn in_place(&self, source: &str) -> String {
        source.replace("https://api.trains.com", &format!("http://{}", self.trains))
    }

    /// The policy under which this capability reaches it.
    pub(super) fn policy(&self, capability: &str) -> String {
        let port = self.trains.port();
        format!(
            "[capabilities.policy.{capability}]\n\
             hosts = [{{ host = \"127.0.0.1\", scheme = \"http\", port = {port}, private = true }}]\n"
        )
    }
}

fn json_of(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let body = Full::new(Bytes::from(body.to_string()));
    Response::builder().status(status).header("content-type", "application/json").body(body).expect("a response")
}

/// Two trains, of which one leaves in the morning.
fn schedule() -> Value {
    let trip = |id: &str, hour: u32, destination: &str| json!({"id": id, "hour": hour, "minute": 5, "destination": destination, "platform": "4a"});
    json!([trip("t1", 8, "Bern"), trip("t2", 17, "Basel")])
}

/// Details of the first train, `t1`.
fn details() -> Value {
    json!({"id": "t1", "operator": "Alpine Rail", "stops": ["Thun", "Bern"]})
}

/// The answer to a call of a capability in JSON.
fn carried_out(function: &str, parameters: &Value) -> Value {
    let reply = match (function, parameters["trainId"].as_str()) {
        ("getSchedule", _) => schedule(),
        ("getTrainDetails", Some("t1")) => details(),
        ("getTrainDetails", _) => return json!({"status": "error", "message": "There is no such train."}),
        ("get_weather", _) => json!({"temperature": 18, "unit": parameters["unit"], "description": "fog"}),
        _ => json!("noted"),
    };
    json!({"status": "success", "reply": reply})
}

async fn trains(asked: Book, called: Book) -> SocketAddr {
    let (listener, address) = http::bind().await;
    http::serve(listener, move |request| {
        let (asked, called) = (asked.clone(), called.clone());
        async move {
            let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            let method = request.method().clone();
            if path == "/capability" {
                let body = request.into_body().collect().await.expect("a body").to_bytes();
                let call: Value = serde_json::from_slice(&body).expect("JSON");
                let function = call["function"].as_str().expect("a function");
                called.lock().unwrap().push(format!("{function} {}", call["parameters"]));
                return json_of(StatusCode::OK, &carried_out(function, &call["parameters"]));
            }
            asked.lock().unwrap().push(format!("{method} {path}"));
            match path.split('?').next().unwrap_or_default() {
                "/schedule" => json_of(StatusCode::OK, &schedule()),
                "/trains/t1" => json_of(StatusCode::OK, &details()),
                "/never" => std::future::pending().await,
                _ if method == Method::POST => json_of(StatusCode::CREATED, &json!({"id": "T-1"})),
                _ => json_of(StatusCode::NOT_FOUND, &json!({"error": "no such train"})),
            }
        }
    });
    address
}

/// As much of an MCP server as the source's example needs, with the names of the real one.
async fn slack(posted: Book) -> SocketAddr {
    let (listener, address) = http::bind().await;
    http::serve(listener, move |request| {
        let posted = posted.clone();
        async move {
            if request.method() != Method::POST {
                return json_of(StatusCode::METHOD_NOT_ALLOWED, &json!({}));
            }
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            let message: Value = serde_json::from_slice(&body).expect("JSON");
            let Some(id) = message.get("id") else { return json_of(StatusCode::ACCEPTED, &json!({})) };
            let result = match message["method"].as_str() {
                Some("initialize") => json!({"protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}}, "serverInfo": {"name": "slack", "version": "1"}}),
                Some("tools/list") => json!({"tools": slack_tools()}),
                Some("tools/call") => slack_called(&message["params"], &posted),
                _ => {
                    let error = json!({"code": -32601, "message": "Method not found"});
                    return json_of(StatusCode::OK, &json!({"jsonrpc": "2.0", "id": id, "error": error}));
                }
            };
            json_of(StatusCode::OK, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
        }
    });
    address
}

fn slack_tools() -> Value {
    let object =
        |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
    let text = json!({"type": "string"});
    json!([
        {"name": "slack_list_channels", "description": "Lists channels", "annotations": {"readOnlyHint": true},
            "inputSchema": {"type": "object", "properties": {}}},
        {"name": "slack_post_message", "description": "Posts a message",
            "inputSchema": object(json!({"channel": text, "text": text}), json!(["channel", "text"]))},
        {"name": "slack_get_channel_history", "description": "Recent messages", "annotations": {"readOnlyHint": true},
            "inputSchema": object(json!({"channel": text, "limit": {"type": "number"}}), json!(["channel"]))},
    ])
}

fn slack_called(parameters: &Value, posted: &Book) -> Value {
    let text = &parameters["arguments"]["text"];
    let answer = match parameters["name"].as_str() {
        Some("slack_list_channels") => json!([{"id": "C1", "name": "general"}, {"id": "C2", "name": "random"}]),
        Some("slack_get_channel_history") => json!([{"channel": "C1", "text": "Any trains?", "ts": "1"}]),
        _ => {
            posted.lock().unwrap().push(text.as_str().unwrap_or_default().to_owned());
            json!({"channel": "C1", "text": text, "ts": "2"})
        }
    };
    json!({"content": [{"type": "text", "text": answer.to_string()}]})
}
