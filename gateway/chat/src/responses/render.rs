//! Renders a request of `POST /responses`. Pure.
//!
//! Source: the OpenAI API reference, "Create a model response", and the types of OpenAI's own SDK.

use serde_json::{Map, Value, json};

use crate::{
    Request,
    body::Body,
    declarations::{Declarations, Style},
    names::Rule,
    provider::Rendered,
    responses::PROVIDER,
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
    /// Reasoning effort of the model (`minimal`, `low`, `medium`, `high`). Its thoughts are then returned encrypted and
    /// sent again with the next request. Models without reasoning reject this.
    pub reasoning_effort: Option<String>,
    /// Offers tools.
    pub tools: bool,
    /// The model accepts pictures.
    pub images: bool,
    /// Allows one call at a time in the answer to tool results, as the backend for ChatGPT's OAuth requires.
    pub serial_follow_ups: bool,
    /// Sends the longest answer; the backend for ChatGPT's OAuth rejects the field.
    pub length: bool,
    /// Further fields of the body, for server-specific features.
    pub extra: Map<String, Value>,
}

impl Options {
    /// Defaults for a model.
    pub fn new(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            temperature: None,
            reasoning_effort: None,
            tools: true,
            images: true,
            serial_follow_ups: false,
            length: true,
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
    let rules = Rules { provider: PROVIDER, images: options.images, system_inside: true, user_first: false };
    let turns = transcript::turns(&request.messages, &rules, &mut names);
    let is_follow_up = matches!(turns.last(), Some(Turn::Results(_)));
    let mut input = Vec::new();
    for turn in &turns {
        push_turn(turn, &mut input);
    }
    let mut body = options.extra.clone();
    body.insert("model".into(), options.model.clone().into());
    body.insert("instructions".into(), transcript::instructions(request, &declared.offered).into());
    body.insert("input".into(), input.into());
    body.insert("stream".into(), true.into());
    body.insert("store".into(), false.into());
    if declared.json.is_some() {
        body.insert("tool_choice".into(), "auto".into());
        let parallel = !(options.serial_follow_ups && is_follow_up);
        body.insert("parallel_tool_calls".into(), parallel.into());
    }
    if let Some(effort) = &options.reasoning_effort {
        body.insert("reasoning".into(), json!({"effort": effort}));
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    if let Some(temperature) = options.temperature {
        body.insert("temperature".into(), temperature.into());
    }
    if let Some(max_tokens) = request.max_tokens.filter(|_| options.length) {
        // Smaller values are rejected.
        const TOKENS_MIN: u32 = 16;
        body.insert("max_output_tokens".into(), max_tokens.max(TOKENS_MIN).into());
    }
    let body = Body::object(body, declared.json.as_ref().map(|json| ("tools", json.as_bytes())));
    Rendered { path: "/responses".into(), headers: Vec::new(), body, names, tools: declared.offered.len() }
}

fn declare(tool: Declaration) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        // Strict schemas allow no optional properties, which foreign tools have.
        "strict": false,
    })
}

fn push_turn(turn: &Turn<'_>, input: &mut Vec<Value>) {
    match turn {
        Turn::System(text) => input.push(json!({"role": "developer", "content": text})),
        Turn::User(parts) => {
            let content = transcript::only_text(parts).map_or_else(|| content(parts), Value::from);
            input.push(json!({"role": "user", "content": content}));
        }
        Turn::Assistant(parts) => input.extend(parts.iter().filter_map(said)),
        Turn::Results(all) => input.extend(all.iter().map(|outcome| {
            json!({
                "type": "function_call_output",
                "call_id": outcome.id,
                "output": transcript::told(outcome.result),
            })
        })),
    }
}

fn said(part: &AssistantPart<'_>) -> Option<Value> {
    Some(match part {
        AssistantPart::Thinking(item) => return is_whole(item).then(|| (*item).clone()),
        AssistantPart::Text(text) => json!({"role": "assistant", "content": text}),
        AssistantPart::Call(call) => json!({
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments.to_string(),
        }),
    })
}

/// A thought as this adapter stores it; the API rejects anything else.
fn is_whole(item: &Value) -> bool {
    let is = |key: &str, test: fn(&Value) -> bool| item.get(key).is_some_and(test);
    item["type"] == "reasoning"
        && is("id", Value::is_string)
        && is("summary", Value::is_array)
        && is("encrypted_content", Value::is_string)
}

fn content(parts: &[UserPart<'_>]) -> Value {
    parts
        .iter()
        .map(|part| match part {
            UserPart::Text(text) => json!({"type": "input_text", "text": text}),
            UserPart::Image { mime, data } => {
                json!({"type": "input_image", "image_url": format!("data:{mime};base64,{data}"), "detail": "auto"})
            }
        })
        .collect()
}
