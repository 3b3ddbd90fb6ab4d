//! Renders a request of `POST /v1/messages`. Pure.
//!
//! Source: the Messages API reference and the types of `@anthropic-ai/sdk`.

use std::sync::Arc;

use gateway_core::vocab::ToolSpec;
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

use super::PROVIDER;

/// The API version of requests and answers.
const VERSION: &str = "2023-06-01";
/// Accepted picture types; others are left out.
const MEDIA_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
/// Feature that OAuth bearers need in `anthropic-beta`: `OAUTH_API_BETA_HEADER` in `lib/credentials` of
/// `@anthropic-ai/sdk` 1.12.0.
pub const OAUTH_BETA: &str = "oauth-2025-04-20";
/// Smallest thinking budget that the API accepts, in tokens.
pub const THINKING_TOKENS_MIN: u32 = 1024;

/// Options of requests to one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The provider's model name.
    pub model: String,
    /// Sampling temperature; `None`: the provider's default.
    pub temperature: Option<f64>,
    /// Longest answer in tokens if a request does not set it; the API requires a number.
    pub max_tokens: u32,
    /// Thinking budget in tokens before the answer; `None`: no thinking. Thinking delays the spoken answer.
    pub thinking_tokens: Option<u32>,
    /// Sets cache marks at the end of what repeats in every request.
    pub cache: bool,
    /// Offers tools.
    pub tools: bool,
    /// The model accepts pictures.
    pub images: bool,
    /// The public API, or a backend that wraps it.
    pub flavour: Flavour,
    /// Further fields of the body.
    pub extra: Map<String, Value>,
}

/// Backends with the Messages API.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Flavour {
    /// The public API, with a key.
    #[default]
    Api,
    /// The envelope for OAuth bearers of coding assistants: another query, feature headers, system blocks first, and a
    /// user id in the metadata.
    ClaudeCode {
        /// Value of `anthropic-beta`: comma-separated features, including the OAuth one.
        beta: String,
        /// System blocks before all others, if the backend requires any.
        system: Vec<String>,
        /// `metadata.user_id`.
        user_id: Option<String>,
    },
}

impl Options {
    /// Defaults for a model.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            temperature: None,
            max_tokens: 1024,
            thinking_tokens: None,
            cache: true,
            tools: true,
            images: true,
            flavour: Flavour::Api,
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
    let rules = Rules { provider: PROVIDER, images: options.images, system_inside: false, user_first: true };
    let mut messages = Vec::new();
    for turn in transcript::turns(&request.messages, &rules, &mut names) {
        push_turn(&turn, &mut messages);
    }
    go_on(&mut messages);
    if options.cache {
        mark_last(messages.last_mut().and_then(|message| message["content"].as_array_mut()));
    }
    let max_tokens = request.max_tokens.unwrap_or(options.max_tokens).max(1);
    let mut body = options.extra.clone();
    body.insert("model".into(), options.model.clone().into());
    body.insert("system".into(), system(request, &declared.offered, options).into());
    body.insert("stream".into(), true.into());
    // With thinking enabled, a turn with calls cannot be continued if its thoughts are missing or another provider's.
    if let Some(tokens) = options.thinking_tokens.filter(|_| may_think(&messages)) {
        let tokens = tokens.max(THINKING_TOKENS_MIN);
        body.insert("thinking".into(), json!({"type": "enabled", "budget_tokens": tokens}));
        body.insert("max_tokens".into(), max_tokens.saturating_add(tokens).into());
    } else {
        body.insert("max_tokens".into(), max_tokens.into());
        if let Some(temperature) = options.temperature {
            body.insert("temperature".into(), temperature.into());
        }
    }
    body.insert("messages".into(), messages.into());
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    let mut path = "/messages".to_owned();
    if let Flavour::ClaudeCode { beta, user_id, .. } = &options.flavour {
        path.push_str("?beta=true");
        if !beta.is_empty() {
            headers.push(("anthropic-beta", beta.clone()));
        }
        if let Some(user_id) = user_id {
            body.insert("metadata".into(), json!({"user_id": user_id}));
        }
    }
    let body = Body::object(body, declared.json.as_ref().map(|json| ("tools", json.as_bytes())));
    Rendered { path, headers, body, names, tools: declared.offered.len() }
}

fn declare(tool: Declaration) -> Value {
    let empty = || json!({"type": "object", "properties": {}});
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters.unwrap_or_else(empty),
    })
}

/// The cache mark is after the constant part; the time of day comes after it.
fn system(request: &Request, offered: &[Arc<ToolSpec>], options: &Options) -> Vec<Value> {
    let front = match &options.flavour {
        Flavour::ClaudeCode { system, .. } => system.as_slice(),
        Flavour::Api => &[],
    };
    let standing = transcript::standing(request, offered);
    let mut blocks: Vec<Value> = front
        .iter()
        .map(String::as_str)
        .chain([standing.as_str()])
        .filter(|text| !text.trim().is_empty())
        .map(text_block)
        .collect();
    if options.cache {
        mark_last(Some(&mut blocks));
    }
    blocks.push(text_block(&transcript::moment(request)));
    blocks
}

fn push_turn(turn: &Turn<'_>, messages: &mut Vec<Value>) {
    let (role, blocks): (_, Vec<Value>) = match turn {
        // Does not occur, since `system_inside` is off.
        Turn::System(text) => ("user", vec![text_block(text)]),
        Turn::User(parts) => ("user", parts.iter().map(user_block).collect()),
        Turn::Assistant(parts) => ("assistant", parts.iter().filter_map(assistant_block).collect()),
        Turn::Results(all) => ("user", all.iter().map(result_block).collect()),
    };
    match messages.last_mut() {
        // Results and the wearer's following words are one message, in this order.
        Some(last) if last["role"] == role => {
            if let Some(content) = last["content"].as_array_mut() {
                content.extend(blocks);
            }
        }
        _ => messages.push(json!({"role": role, "content": blocks})),
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn user_block(part: &UserPart<'_>) -> Value {
    match part {
        UserPart::Text(text) => text_block(text),
        UserPart::Image { mime, data } if MEDIA_TYPES.contains(mime) => {
            json!({"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}})
        }
        UserPart::Image { .. } => text_block(transcript::UNSEEN),
    }
}

fn assistant_block(part: &AssistantPart<'_>) -> Option<Value> {
    Some(match part {
        AssistantPart::Text(text) => text_block(text),
        AssistantPart::Thinking(data) => return thought(data),
        AssistantPart::Call(call) => {
            json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments})
        }
    })
}

fn result_block(outcome: &transcript::Outcome<'_>) -> Value {
    let content = transcript::told(outcome.result);
    let mut block = json!({"type": "tool_result", "tool_use_id": outcome.id, "content": content});
    if outcome.result.is_error() {
        block["is_error"] = true.into();
    }
    block
}

/// A complete thought; the API rejects anything else.
fn thought(data: &Value) -> Option<Value> {
    let whole = match data.get("type")?.as_str()? {
        "thinking" => data.get("thinking")?.is_string() && !data.get("signature")?.as_str()?.is_empty(),
        "redacted_thinking" => data.get("data")?.is_string(),
        _ => false,
    };
    whole.then(|| data.clone())
}

/// The API requires the last message to be the user's.
fn go_on(messages: &mut Vec<Value>) {
    if messages.last().is_some_and(|last| last["role"] == "assistant") {
        messages.push(json!({"role": "user", "content": [text_block("Go on.")]}));
    }
}

/// With thinking enabled, the API requires an assistant turn that is being continued to begin with thoughts.
fn may_think(messages: &[Value]) -> bool {
    if messages.last().is_none_or(|last| last["content"][0]["type"] != "tool_result") {
        return true;
    }
    let turn = messages.iter().rev().find(|message| message["role"] == "assistant");
    turn.is_none_or(|turn| matches!(turn["content"][0]["type"].as_str(), Some("thinking" | "redacted_thinking")))
}

/// The next request repeats everything up to here.
fn mark_last(blocks: Option<&mut Vec<Value>>) {
    if let Some(Value::Object(block)) = blocks.and_then(|blocks| blocks.last_mut()) {
        block.insert("cache_control".into(), json!({"type": "ephemeral"}));
    }
}
