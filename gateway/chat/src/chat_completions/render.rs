//! Renders a request of `POST /chat/completions`. Pure.
//!
//! Source: the OpenAI API reference, "Create chat completion"; Ollama, llama.cpp and vLLM accept the same.

use serde_json::{Map, Value, json};

use crate::{
    Request,
    body::Body,
    declarations::{Declarations, Style},
    names::Rule,
    provider::Rendered,
    schema::{Declaration, Subset},
    transcript::{self, AssistantPart, Rules, Turn, UserPart},
};

/// Options of requests to one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The provider's model name.
    pub model: String,
    /// Sampling temperature; `None`: the provider's default.
    pub temperature: Option<f64>,
    /// Field for the longest answer: `max_tokens`, or `max_completion_tokens` for thinking models.
    pub max_tokens_field: String,
    /// Requests token counts; some servers reject the field.
    pub include_usage: bool,
    /// Offers tools. Small local models cannot call any, and tools only confuse them.
    pub tools: bool,
    /// The model accepts pictures. Servers of text models reject them.
    pub images: bool,
    /// Accepts system messages within a conversation. OpenAI does; the templates of many local models allow them only
    /// at the start.
    pub system_inside: bool,
    /// Further fields of the body, for server-specific features.
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
            images: true,
            system_inside: false,
            extra: Map::new(),
        }
    }
}

/// How tools are declared to this provider.
pub const STYLE: Style = Style { rule: Rule::Strict, subset: Subset::JsonSchema, tools_max: usize::MAX, declare };

/// Renders the request, and the names that its answer will use.
pub fn render(request: &Request, options: &Options, declarations: &Declarations) -> Rendered {
    let declared = declarations.of(request, options.tools);
    let mut names = declared.names.clone();
    // No server returns thoughts in a form that it accepts again.
    let rules = Rules { provider: "", images: options.images, system_inside: options.system_inside, user_first: false };
    let mut messages = vec![json!({"role": "system", "content": transcript::instructions(request, &declared.offered)})];
    for turn in transcript::turns(&request.messages, &rules, &mut names) {
        push_turn(&turn, &mut messages);
    }
    let mut body = options.extra.clone();
    body.insert("model".into(), options.model.clone().into());
    body.insert("messages".into(), messages.into());
    body.insert("stream".into(), true.into());
    if options.include_usage {
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    if let Some(temperature) = options.temperature {
        body.insert("temperature".into(), temperature.into());
    }
    if let Some(max_tokens) = request.max_tokens {
        body.insert(options.max_tokens_field.clone(), max_tokens.into());
    }
    let body = Body::object(body, declared.json.as_ref().map(|json| ("tools", json.as_bytes())));
    Rendered { path: "/chat/completions".into(), headers: Vec::new(), body, names, tools: declared.offered.len() }
}

fn declare(tool: Declaration) -> Value {
    json!({"type": "function", "function": {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }})
}

fn push_turn(turn: &Turn<'_>, out: &mut Vec<Value>) {
    match turn {
        Turn::System(text) => out.push(json!({"role": "system", "content": text})),
        Turn::User(parts) => {
            let content = transcript::only_text(parts).map_or_else(|| content(parts), Value::from);
            out.push(json!({"role": "user", "content": content}));
        }
        Turn::Assistant(parts) => out.push(assistant(parts)),
        Turn::Results(all) => out.extend(all.iter().map(|outcome| {
            json!({
                "role": "tool",
                "tool_call_id": outcome.id,
                "content": transcript::told(outcome.result),
            })
        })),
    }
}

fn assistant(parts: &[AssistantPart<'_>]) -> Value {
    let mut text = String::new();
    let mut calls = Vec::new();
    for part in parts {
        match part {
            AssistantPart::Thinking(_) => {}
            AssistantPart::Text(piece) => text.push_str(piece),
            AssistantPart::Call(call) => calls.push(json!({
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments.to_string()},
            })),
        }
    }
    let content = if text.is_empty() { Value::Null } else { text.into() };
    if calls.is_empty() {
        return json!({"role": "assistant", "content": content});
    }
    json!({"role": "assistant", "content": content, "tool_calls": calls})
}

fn content(parts: &[UserPart<'_>]) -> Value {
    parts
        .iter()
        .map(|part| match part {
            UserPart::Text(text) => json!({"type": "text", "text": text}),
            UserPart::Image { mime, data } => {
                json!({"type": "image_url", "image_url": {"url": format!("data:{mime};base64,{data}")}})
            }
        })
        .collect()
}
