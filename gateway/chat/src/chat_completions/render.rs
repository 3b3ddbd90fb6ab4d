//! A request in the shape of `POST /chat/completions`. Pure.
//!
//! Source: the OpenAI API reference, "Create chat completion"; Ollama, llama.cpp and vLLM take the
//! same.

use std::sync::Arc;

use gateway_core::vocab::{Message, Part, Role, Timestamp, ToolResult, ToolSpec};
use serde_json::{Map, Value, json};

use crate::{Request, names::NameMap};

/// How to ask one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The provider's name of the model.
    pub model: String,
    /// Sampling temperature; the provider's default where absent.
    pub temperature: Option<f64>,
    /// Field that carries the longest answer: `max_tokens`, or `max_completion_tokens` for models
    /// that think first.
    pub max_tokens_field: String,
    /// Asks for token counts; some servers refuse the field.
    pub include_usage: bool,
    /// Offers tools. Small local models cannot call any, and only lose the thread over them.
    pub tools: bool,
    /// Further fields of the body, for what only one server knows.
    pub extra: Map<String, Value>,
}

impl Options {
    /// Defaults for a model.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            temperature: None,
            max_tokens_field: "max_tokens".into(),
            include_usage: true,
            tools: true,
            extra: Map::new(),
        }
    }
}

/// The body of the request, and the names that its answer will use.
pub fn render(request: &Request, options: &Options) -> (Value, NameMap) {
    let mut names = NameMap::default();
    let offered = if options.tools { &request.tools[..] } else { &[] };
    let tools: Vec<Value> = offered
        .iter()
        .map(|tool| {
            json!({"type": "function", "function": {
                "name": names.insert(&tool.name),
                "description": tool.description,
                "parameters": tool.input_schema,
            }})
        })
        .collect();
    let mut messages = vec![json!({"role": "system", "content": system(request, offered)})];
    for message in &request.messages {
        push_message(message, &mut names, &mut messages);
    }
    let mut body = options.extra.clone();
    body.insert("model".into(), options.model.clone().into());
    body.insert("messages".into(), messages.into());
    body.insert("stream".into(), true.into());
    if options.include_usage {
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
    }
    if let Some(temperature) = options.temperature {
        body.insert("temperature".into(), temperature.into());
    }
    if let Some(max_tokens) = request.max_tokens {
        body.insert(options.max_tokens_field.clone(), max_tokens.into());
    }
    (Value::Object(body), names)
}

/// Standing instructions first and the clock last, so that a provider's prefix cache holds.
fn system(request: &Request, offered: &[Arc<ToolSpec>]) -> String {
    let mut parts = Vec::new();
    if !request.system.is_empty() {
        parts.push(request.system.clone());
    }
    let guidance = offered.iter().filter_map(|tool| tool.guidance.clone());
    parts.extend(guidance);
    parts.push(format!("The wearer's language is {}. Local time is {}.", request.language, local_time(request.now)));
    parts.join("\n\n")
}

fn local_time(now: Timestamp) -> String {
    let offset = jiff::tz::Offset::from_seconds(now.offset_s).unwrap_or(jiff::tz::Offset::UTC);
    jiff::Timestamp::from_millisecond(now.wall_ms)
        .unwrap_or_default()
        .to_zoned(offset.to_time_zone())
        .strftime("%A, %Y-%m-%d %H:%M, UTC%:z")
        .to_string()
}

fn push_message(message: &Message, names: &mut NameMap, out: &mut Vec<Value>) {
    let text = message.plain_text();
    let mut calls = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { .. } | Part::Thinking { .. } | Part::Image { .. } => {}
            Part::ToolCall { call } => {
                names.insert_call_id(&call.id);
                calls.push(json!({
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": names.insert(&call.name),
                        "arguments": call.arguments.to_string(),
                    },
                }));
            }
            Part::ToolResult { call_id, result } => out.push(json!({
                "role": "tool",
                "tool_call_id": call_id,
                "content": told(result),
            })),
        }
    }
    if !calls.is_empty() {
        let content = if text.is_empty() { Value::Null } else { text.into() };
        out.push(json!({"role": "assistant", "content": content, "tool_calls": calls}));
    } else if !text.is_empty() {
        let role = match message.role {
            Role::System => "system",
            Role::Assistant => "assistant",
            // The text of a tool message has no call to belong to.
            Role::User | Role::Tool => "user",
        };
        out.push(json!({"role": role, "content": text}));
    }
}

fn told(result: &ToolResult) -> String {
    match &result.error {
        Some(error) => json!({"error": error}).to_string(),
        None if result.content.is_empty() => result.data.as_ref().map_or_else(|| "done".to_owned(), Value::to_string),
        None => result.content.clone(),
    }
}
