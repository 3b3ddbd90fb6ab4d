//! A streamed answer of `POST /chat/completions` as model events. Pure; everything is bounded.

use gateway_core::vocab::{FailureKind, ModelEvent, StopReason, ToolCall, Usage};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};

use crate::{names::NameMap, sse::Events};

/// Longest text of an answer in bytes: about an hour of speech.
const TEXT_BYTES_MAX: usize = 256 * 1024;
/// Most tool calls in one answer: far more than any sensible answer, few enough to run.
const CALLS_MAX: usize = 32;
/// Longest arguments of one call in bytes.
const ARGUMENTS_BYTES_MAX: usize = 256 * 1024;

/// An incremental parser of one answer. It gives exactly one `Done` or `Failed`, as the last event.
#[derive(Debug)]
pub struct Parser {
    names: NameMap,
    events: Events,
    calls: Vec<Call>,
    text_bytes: usize,
    stop: Option<StopReason>,
    usage: Usage,
    finished: bool,
}

#[derive(Debug, Default)]
struct Call {
    index: u64,
    id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<Counts>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    /// `message` where a server does not stream.
    #[serde(default, alias = "message")]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    #[serde(default)]
    name: Option<String>,
    /// A piece of JSON text; a few servers send the object itself.
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    prompt_tokens: u32,
    #[serde(default)]
    completion_tokens: u32,
    #[serde(default)]
    prompt_tokens_details: CacheCounts,
}

#[derive(Default, Deserialize)]
struct CacheCounts {
    #[serde(default)]
    cached_tokens: u32,
}

type Outcome = Result<(), (FailureKind, String)>;

impl Parser {
    /// A parser for the answer to the request that `names` was rendered with.
    pub fn new(names: NameMap) -> Self {
        Self {
            names,
            events: Events::default(),
            calls: Vec::new(),
            text_bytes: 0,
            stop: None,
            usage: Usage::default(),
            finished: false,
        }
    }

    /// Whether the last event was given.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Takes the next bytes of the event stream.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<ModelEvent> {
        let mut data = Vec::new();
        let taken = self.events.push(bytes, &mut data);
        let mut out = self.handle_all(data);
        if let Err(error) = taken {
            self.fail(FailureKind::Bug, error.to_string(), &mut out);
        }
        out
    }

    /// The connection has ended.
    pub fn finish(&mut self) -> Vec<ModelEvent> {
        let mut data = Vec::new();
        let taken = self.events.finish(&mut data);
        // What the cut left of an event is no event: the answer is incomplete, not malformed.
        let whole =
            |data: &Vec<u8>| data.trim_ascii() == b"[DONE]" || serde_json::from_slice::<IgnoredAny>(data).is_ok();
        data.retain(whole);
        let mut out = self.handle_all(data);
        if let Err(error) = taken {
            self.fail(FailureKind::Bug, error.to_string(), &mut out);
        }
        if self.stop.is_some() {
            self.complete(&mut out);
        }
        let cut = "the connection ended in the middle of the answer";
        self.fail(FailureKind::Transient, cut.into(), &mut out);
        out
    }

    /// A whole answer in one JSON document, from a server that does not stream.
    pub fn push_document(&mut self, document: &[u8]) -> Vec<ModelEvent> {
        let mut out = self.handle_all(vec![document.to_vec()]);
        if self.stop.is_some() {
            self.complete(&mut out);
        }
        let message = "the answer is no chat completion";
        self.fail(FailureKind::Bug, message.into(), &mut out);
        out
    }

    fn handle_all(&mut self, all: Vec<Vec<u8>>) -> Vec<ModelEvent> {
        let mut out = Vec::new();
        for data in all {
            if self.finished {
                break;
            }
            if data.trim_ascii() == b"[DONE]" {
                self.stop.get_or_insert(StopReason::End);
                self.complete(&mut out);
            } else if let Err((kind, message)) = self.handle(&data, &mut out) {
                self.fail(kind, message, &mut out);
            }
        }
        out
    }

    fn handle(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Outcome {
        let bug = |message: String| (FailureKind::Bug, message);
        // serde's message quotes the input, which may be private: only the place is kept.
        let chunk: Chunk = serde_json::from_slice(data)
            .map_err(|error| bug(format!("an event of the answer is malformed at column {}", error.column())))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(stream_error(&error));
        }
        if let Some(usage) = chunk.usage {
            self.usage = Usage {
                input: usage.prompt_tokens,
                cached: usage.prompt_tokens_details.cached_tokens,
                output: usage.completion_tokens,
            };
        }
        // Only one answer is ever asked for.
        let Some(choice) = chunk.choices.into_iter().flatten().next() else {
            return Ok(());
        };
        if let Some(delta) = choice.delta {
            for text in [delta.content, delta.refusal].into_iter().flatten() {
                self.text_bytes = self.text_bytes.saturating_add(text.len());
                if self.text_bytes > TEXT_BYTES_MAX {
                    return Err(bug(format!("the answer is longer than {TEXT_BYTES_MAX} bytes")));
                }
                if !text.is_empty() {
                    out.push(ModelEvent::Text(text));
                }
            }
            for call in delta.tool_calls.into_iter().flatten() {
                self.handle_call(call)?;
            }
        }
        match choice.finish_reason.as_deref() {
            None | Some("") => {}
            Some("tool_calls" | "function_call") => self.stop = Some(StopReason::ToolCalls),
            Some("length") => self.stop = Some(StopReason::Length),
            Some("content_filter") => self.stop = Some(StopReason::Filtered),
            Some(_) => self.stop = Some(StopReason::End),
        }
        Ok(())
    }

    fn handle_call(&mut self, delta: CallDelta) -> Outcome {
        let bug = |message: String| (FailureKind::Bug, message);
        let new_id = delta.id.as_deref().filter(|id| !id.is_empty());
        let position = match delta.index {
            // Some servers number every call 0 and tell them apart by id.
            Some(index) => self
                .calls
                .iter()
                .rposition(|call| call.index == index && new_id.is_none_or(|id| call.id.is_empty() || call.id == id)),
            None if new_id.is_some() => None,
            None => self.calls.len().checked_sub(1),
        };
        let position = match position {
            Some(position) => position,
            None if self.calls.len() >= CALLS_MAX => {
                return Err(bug(format!("the answer holds more than {CALLS_MAX} tool calls")));
            }
            None => {
                self.calls.push(Call { index: delta.index.unwrap_or_default(), ..Call::default() });
                self.calls.len() - 1
            }
        };
        let Some(call) = self.calls.get_mut(position) else {
            return Ok(());
        };
        if let Some(id) = new_id {
            call.id = id.to_owned();
        }
        let Some(function) = delta.function else {
            return Ok(());
        };
        if let Some(name) = function.name.filter(|name| !name.is_empty()) {
            // Repeated in every delta by some servers, so it replaces.
            call.name = name;
        }
        match function.arguments {
            Some(Value::String(piece)) => call.arguments.push_str(&piece),
            Some(object @ Value::Object(_)) => call.arguments = object.to_string(),
            _ => {}
        }
        if call.arguments.len() > ARGUMENTS_BYTES_MAX || call.name.len() > ARGUMENTS_BYTES_MAX {
            return Err(bug(format!("the arguments of a tool call are longer than {ARGUMENTS_BYTES_MAX} bytes")));
        }
        Ok(())
    }

    fn complete(&mut self, out: &mut Vec<ModelEvent>) {
        if self.finished {
            return;
        }
        let mut stop = self.stop.unwrap_or(StopReason::End);
        let calls = std::mem::take(&mut self.calls);
        // An answer that was cut short may hold half a call: better none.
        if matches!(stop, StopReason::End | StopReason::ToolCalls) && !calls.is_empty() {
            stop = StopReason::ToolCalls;
            let mut whole = Vec::new();
            for call in calls {
                match arguments(&call.arguments) {
                    Some(arguments) => whole.push(ModelEvent::ToolCall(ToolCall {
                        id: self.names.unique_call_id(&call.id),
                        // A name that was never offered stays as it is: the executor says so.
                        name: self.names.tool(&call.name).unwrap_or(&call.name).to_owned(),
                        arguments,
                    })),
                    None => {
                        let name: String = call.name.chars().take(80).collect();
                        let message = format!("the arguments of the tool call '{name}' are no JSON object");
                        self.fail(FailureKind::Bug, message, out);
                        return;
                    }
                }
            }
            out.extend(whole);
        } else if stop == StopReason::ToolCalls {
            stop = StopReason::End;
        }
        self.finished = true;
        let usage = self.usage;
        out.push(ModelEvent::Done { stop, usage });
    }

    fn fail(&mut self, kind: FailureKind, message: String, out: &mut Vec<ModelEvent>) {
        if !std::mem::replace(&mut self.finished, true) {
            out.push(ModelEvent::Failed { kind, message });
        }
    }
}

fn arguments(text: &str) -> Option<Value> {
    if text.trim().is_empty() {
        return Some(Value::Object(Map::new()));
    }
    serde_json::from_str(text).ok().filter(Value::is_object)
}

fn stream_error(error: &Value) -> (FailureKind, String) {
    let code = ["code", "type"].iter().find_map(|key| match error.get(*key)? {
        Value::String(code) => Some(code.clone()),
        Value::Number(code) => Some(code.to_string()),
        _ => None,
    });
    let kind = match code.as_deref() {
        Some("rate_limit_exceeded" | "insufficient_quota" | "429") => FailureKind::Limited,
        Some("content_filter") => FailureKind::Refused,
        Some("invalid_api_key" | "authentication_error" | "401" | "403") => FailureKind::Auth,
        Some("invalid_request_error" | "400") => FailureKind::Bug,
        _ => FailureKind::Transient,
    };
    (kind, format!("the provider broke off: {}", error_text(error)))
}

/// The words of a provider's error, bounded.
pub(super) fn error_text(error: &Value) -> String {
    const ERROR_CHARS_MAX: usize = 200;
    let message = error.get("message").unwrap_or(error);
    let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
    text.chars().filter(|c| !c.is_control()).take(ERROR_CHARS_MAX).collect()
}
