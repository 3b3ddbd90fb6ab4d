//! Renders a request of `POST /models/MODEL:streamGenerateContent`. Pure.
//!
//! Sources: the Gemini API reference and the types of `@google/genai`; for the Cloud Code backend seed material of this
//! project and the request types of google-gemini/gemini-cli (`packages/core/src/code_assist/converter.ts`).

use gateway_core::vocab::ToolResult;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    Request,
    body::Body,
    declarations::{Declarations, Style},
    names::Rule,
    provider::Rendered,
    schema::{Declaration, Subset},
    transcript::{self, AssistantPart, Rules, Turn, UserPart},
};

use super::{PROVIDER, spelling::spelled};

/// Most functions that a request may declare.
pub const TOOLS_MAX: usize = 128;
/// Replaces the signature of a call that this provider did not make, where the model requires one: without any it
/// answers 400, "Function call is missing a thought_signature in functionCall parts".
///
/// In `@google/genai` 2.32.0 signatures are opaque text (`Part.thoughtSignature`); this value does not occur there. The
/// value, and the rule that only the first of parallel calls has a signature, are from the Gemini API's page "Thought
/// signatures" (ai.google.dev/gemini-api/docs/thought-signatures, its FAQ). Google's own client uses it
/// (google-gemini/gemini-cli, `packages/core/src/core/geminiChat.ts`, `SYNTHETIC_THOUGHT_SIGNATURE`), and others report
/// that the service accepts it (strands-agents/sdk-python pull request 1298, vercel/ai issue 15550).
const NO_SIGNATURE: &str = "skip_thought_signature_validator";
/// Accepted picture types; others are left out.
const MEDIA_TYPES: [&str; 5] = ["image/jpeg", "image/png", "image/webp", "image/heic", "image/heif"];

/// Options of requests to one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The provider's model name, without `models/`.
    pub model: String,
    /// Sampling temperature; `None`: the provider's default.
    pub temperature: Option<f64>,
    /// Longest answer in tokens if a request does not set it; `None`: the provider's default.
    pub max_tokens: Option<u32>,
    /// Thinking budget in tokens before the answer; `None`: the provider's default. Thinking delays the spoken answer.
    pub thinking_tokens: Option<u32>,
    /// The model rejects calls without a signature, as models from `gemini-3` on do.
    pub wants_signatures: bool,
    /// Offers tools, at most [`TOOLS_MAX`] of them.
    pub tools: bool,
    /// The model accepts pictures.
    pub images: bool,
    /// The public API, or a backend that wraps it.
    pub flavour: Flavour,
    /// Further fields of the request; those of `generationConfig` are merged with the adapter's.
    pub extra: Map<String, Value>,
}

/// Backends with `generateContent`.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Flavour {
    /// The public API, with a key.
    #[default]
    Api,
    /// The envelope for OAuth bearers of coding assistants: the request inside another object, tools under two keys.
    CloudCode {
        /// The user's project.
        project: Option<String>,
    },
}

impl Options {
    /// Defaults for a model.
    pub fn new(model: impl Into<String>) -> Self {
        let model = model.into();
        let old = ["gemini-1", "gemini-2", "gemma"].iter().any(|family| model.starts_with(family));
        Self {
            wants_signatures: !old,
            model,
            temperature: None,
            max_tokens: None,
            thinking_tokens: None,
            tools: true,
            images: true,
            flavour: Flavour::Api,
            extra: Map::new(),
        }
    }
}

/// How tools are declared to this provider.
pub const STYLE: Style = Style { rule: Rule::Gemini, subset: Subset::Gemini, tools_max: TOOLS_MAX, declare };

/// Renders the request, and the names that its answer will use.
pub fn render(request: &Request, options: &Options, declarations: &Declarations) -> Rendered {
    let declared = declarations.of(request, options.tools);
    let mut names = declared.names.clone();
    let rules = Rules { provider: PROVIDER, images: options.images, system_inside: false, user_first: true };
    let mut contents = Vec::new();
    for turn in transcript::turns(&request.messages, &rules, &mut names) {
        push_turn(&turn, options, &mut contents);
    }
    if contents.last().is_some_and(|last: &Value| last["role"] == "model") {
        contents.push(json!({"role": "user", "parts": [{"text": "Go on."}]}));
    }
    let mut body = options.extra.clone();
    body.insert("contents".into(), contents.into());
    let mut system = json!({"parts": [{"text": transcript::instructions(request, &declared.offered)}]});
    let is_cloud_code = matches!(options.flavour, Flavour::CloudCode { .. });
    if is_cloud_code {
        system["role"] = "user".into();
    }
    body.insert("systemInstruction".into(), system);
    let config = generation_config(request, options);
    if !config.is_empty() {
        body.insert("generationConfig".into(), config.into());
    }
    let tools = declared.json.as_ref().map(|json| {
        let twice = if is_cloud_code { format!(r#","function_declarations":{json}"#) } else { String::new() };
        format!(r#"[{{"functionDeclarations":{json}{twice}}}]"#)
    });
    let body = Body::object(body, tools.as_ref().map(|tools| ("tools", tools.as_bytes())));
    let (path, body) = match &options.flavour {
        Flavour::Api => (format!("/models/{}:streamGenerateContent?alt=sse", options.model), body),
        Flavour::CloudCode { project } => {
            let mut envelope = Map::new();
            envelope.insert("model".into(), options.model.clone().into());
            envelope.insert("user_prompt_id".into(), prompt_id(request).into());
            if let Some(project) = project {
                envelope.insert("project".into(), project.clone().into());
            }
            let body = Body::object(envelope, Some(("request", body.bytes())));
            ("/v1internal:streamGenerateContent?alt=sse".to_owned(), body)
        }
    };
    Rendered { path, headers: Vec::new(), body, names, tools: declared.offered.len() }
}

fn declare(tool: Declaration) -> Value {
    let mut function = json!({"name": tool.name, "description": tool.description});
    if let Some(parameters) = tool.parameters {
        function["parameters"] = spelled(parameters);
    }
    function
}

fn generation_config(request: &Request, options: &Options) -> Map<String, Value> {
    let mut config = match options.extra.get("generationConfig") {
        Some(Value::Object(config)) => config.clone(),
        _ => Map::new(),
    };
    if let Some(temperature) = options.temperature {
        config.insert("temperature".into(), temperature.into());
    }
    if let Some(max_tokens) = request.max_tokens.or(options.max_tokens) {
        config.insert("maxOutputTokens".into(), max_tokens.max(1).into());
    }
    if let Some(tokens) = options.thinking_tokens {
        config.insert("thinkingConfig".into(), json!({"thinkingBudget": tokens}));
    }
    config
}

fn push_turn(turn: &Turn<'_>, options: &Options, contents: &mut Vec<Value>) {
    let (role, parts): (_, Vec<Value>) = match turn {
        // Does not occur, since `system_inside` is off.
        Turn::System(text) => ("user", vec![json!({"text": text})]),
        Turn::User(parts) => ("user", parts.iter().map(user_part).collect()),
        Turn::Assistant(parts) => ("model", model_parts(parts, options)),
        Turn::Results(all) => ("user", all.iter().map(response).collect()),
    };
    match contents.last_mut() {
        // The wearer's words after results follow them in the same message.
        Some(last) if last["role"] == role => {
            if let Some(before) = last["parts"].as_array_mut() {
                before.extend(parts);
            }
        }
        _ => contents.push(json!({"role": role, "parts": parts})),
    }
}

fn user_part(part: &UserPart<'_>) -> Value {
    match part {
        UserPart::Text(text) => json!({"text": text}),
        UserPart::Image { mime, data } if MEDIA_TYPES.contains(mime) => {
            json!({"inlineData": {"mimeType": mime, "data": data}})
        }
        UserPart::Image { .. } => json!({"text": transcript::UNSEEN}),
    }
}

/// A signature is sent back on the part that it came with: for a call found by its canonical id, for a text by
/// following it.
fn model_parts(parts: &[AssistantPart<'_>], options: &Options) -> Vec<Value> {
    let mut out = Vec::new();
    let mut of_text = None;
    let mut first_call = true;
    for part in parts {
        match part {
            AssistantPart::Thinking(data) if data.get("call").is_none() => of_text = signature(data),
            AssistantPart::Thinking(_) => {}
            AssistantPart::Text(text) => {
                let mut part = json!({"text": text});
                if let Some(signature) = of_text.take() {
                    part["thoughtSignature"] = signature.into();
                }
                out.push(part);
            }
            AssistantPart::Call(call) => {
                let known = parts.iter().find_map(|part| match part {
                    AssistantPart::Thinking(data) if data.get("call")?.as_str()? == call.canonical => signature(data),
                    _ => None,
                });
                // Of parallel calls only the first has one.
                let missing = (options.wants_signatures && first_call).then_some(NO_SIGNATURE);
                first_call = false;
                let mut part = json!({"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}});
                if let Some(signature) = known.or(missing) {
                    part["thoughtSignature"] = signature.into();
                }
                out.push(part);
            }
        }
    }
    out
}

fn signature(data: &Value) -> Option<&str> {
    data.get("thoughtSignature")?.as_str().filter(|signature| !signature.is_empty())
}

fn response(outcome: &transcript::Outcome<'_>) -> Value {
    json!({"functionResponse": {"id": outcome.id, "name": outcome.name, "response": told(outcome.result)}})
}

/// `output` and `error` are keys with a meaning in the API.
fn told(result: &ToolResult) -> Value {
    match &result.error {
        Some(error) => transcript::failed(result, error),
        None => match &result.data {
            Some(data) if result.for_model().trim().is_empty() => json!({"output": data}),
            _ => json!({"output": transcript::told(result)}),
        },
    }
}

/// A prompt id in the form of a UUID: the same for every attempt at the same request.
fn prompt_id(request: &Request) -> String {
    let mut digest = Sha256::new();
    digest.update(request.now.wall_ms.to_be_bytes());
    digest.update(request.now.mono_us.to_be_bytes());
    let text = request.messages.last().map(gateway_core::vocab::Message::plain_text).unwrap_or_default();
    digest.update(text.as_bytes());
    let hex: String = digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let piece = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default();
    format!("{}-{}-4{}-a{}-{}", piece(0..8), piece(8..12), piece(13..16), piece(17..20), piece(20..32))
}
