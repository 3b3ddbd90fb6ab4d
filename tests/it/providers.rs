//! The four model providers against independent implementations: a mock of all of them, and the types of their official
//! SDKs.

mod aimock;
mod lifecycle;
mod types;

use std::{sync::Arc, time::Duration};

use chat_models::{
    ChatModel, Request, Tools, anthropic, chat_completions, gemini,
    http::{Endpoint, Http},
    provider::Provider,
    responses,
};
use gateway_core::vocab::{Message, ModelEvent, Role, ToolSpec};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Name, path of the base URL, protocol.
fn all() -> [(&'static str, &'static str, Arc<dyn Provider>); 4] {
    [
        ("chat", "/v1", Arc::new(chat_completions::ChatCompletions::new(chat_completions::Options::new("m")))),
        ("responses", "/v1", Arc::new(responses::Responses::new(responses::Options::new("m")))),
        ("anthropic", "/v1", Arc::new(anthropic::Anthropic::new(anthropic::Options::new("m")))),
        ("gemini", "/v1beta", Arc::new(gemini::Gemini::new(gemini::Options::new("gemini-2.5-flash")))),
    ]
}

fn tool(name: &str) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.to_owned(),
        description: format!("The tool {name}."),
        input_schema: json!({
            "type": "object",
            "properties": {"seconds": {"type": "integer"}, "label": {"type": "string", "enum": ["tea", "egg"]}},
            "required": ["seconds"],
            "additionalProperties": false,
        }),
        ..ToolSpec::default()
    })
}

fn request(messages: Vec<Message>) -> Request {
    // The same for every provider, and different from the tool's own name.
    let tools: Tools = [tool("timer/set")].into();
    Request { system: Some("Be brief.".into()), messages, tools, max_tokens: Some(500), ..Request::default() }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn model(url: &str, provider: Arc<dyn Provider>, change: impl FnOnce(&mut Endpoint)) -> Http {
    // Only the first call in a process counts.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut endpoint = Endpoint::new(url);
    endpoint.backoff = Duration::from_millis(1);
    endpoint.retries = 1;
    change(&mut endpoint);
    Http::new(endpoint, provider).expect("a model")
}

async fn ask(model: &Http, request: Request) -> Vec<ModelEvent> {
    let (sender, mut receiver) = mpsc::channel(16);
    let collect = async {
        let mut events = Vec::new();
        while let Some(event) = receiver.recv().await {
            events.push(event);
        }
        events
    };
    tokio::join!(model.stream(request, sender, CancellationToken::new()), collect).1
}
