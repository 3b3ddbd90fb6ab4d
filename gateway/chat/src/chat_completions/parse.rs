//! Parses a streamed answer of `POST /chat/completions`. Pure.
//!
//! Sources: the OpenAI API reference ("Chat completion chunk"), the types of OpenAI's SDK, and known deviations of
//! compatible servers; where these matter the code names the server.

use gateway_core::vocab::{FailureKind, StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::thoughts::Thoughts;
use crate::{
    dialect::{self, Answer, Dialect, Outcome},
    failure,
};

/// The dialect: chunks of a choice, ended by `[DONE]`.
#[derive(Debug, Default)]
pub struct Chunks {
    /// The answer's call that each delta belongs to.
    calls: Vec<Seen>,
    thoughts: Thoughts,
}

#[derive(Debug)]
struct Seen {
    index: u64,
    id: String,
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
    /// `message` from a server that does not stream.
    #[serde(default, alias = "message")]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    /// A text; Mistral's thinking models send a list of parts.
    #[serde(default)]
    content: Option<Value>,
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
    /// A piece of JSON text; some servers send the object itself.
    #[serde(default)]
    arguments: Option<Value>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    prompt_tokens: Option<u32>,
    #[serde(default)]
    completion_tokens: Option<u32>,
    /// Null from some servers, as are possibly all of these.
    #[serde(default)]
    prompt_tokens_details: Option<CacheCounts>,
}

#[derive(Deserialize)]
struct CacheCounts {
    #[serde(default)]
    cached_tokens: Option<u32>,
}

impl Dialect for Chunks {
    fn handle_event(&mut self, data: &[u8], answer: &mut Answer) -> Outcome {
        if data.trim_ascii() == b"[DONE]" {
            return answer.complete_at_done();
        }
        self.handle_chunk(dialect::json(data)?, answer)
    }

    fn handle_document(&mut self, document: &[u8], answer: &mut Answer) -> Outcome {
        self.handle_chunk(dialect::json(document)?, answer)
    }
}

impl Chunks {
    fn handle_chunk(&mut self, chunk: Chunk, answer: &mut Answer) -> Outcome {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(failure::in_stream(&error));
        }
        if let Some(usage) = chunk.usage {
            let cached = usage.prompt_tokens_details.and_then(|details| details.cached_tokens);
            answer.usage = Usage {
                input: usage.prompt_tokens.unwrap_or_default(),
                cached: cached.unwrap_or_default(),
                output: usage.completion_tokens.unwrap_or_default(),
            };
        }
        // Only one choice is requested.
        let Some(choice) = chunk.choices.into_iter().flatten().next() else {
            return Ok(());
        };
        if let Some(delta) = choice.delta {
            for text in delta.content.into_iter().flat_map(texts) {
                answer.push_text(self.thoughts.push(&text))?;
            }
            if let Some(refusal) = delta.refusal {
                answer.push_text(refusal)?;
            }
            for call in delta.tool_calls.into_iter().flatten() {
                self.handle_call(call, answer)?;
            }
        }
        match choice.finish_reason.as_deref() {
            None | Some("") => {}
            Some(reason) => {
                answer.push_text(self.thoughts.end())?;
                answer.stop = Some(stop(reason)?);
            }
        }
        Ok(())
    }

    fn handle_call(&mut self, delta: CallDelta, answer: &mut Answer) -> Outcome {
        let new_id = delta.id.as_deref().filter(|id| !id.is_empty());
        let known = match delta.index {
            // Some servers number every call 0 and distinguish them by id.
            Some(index) => self
                .calls
                .iter()
                .rposition(|seen| seen.index == index && new_id.is_none_or(|id| seen.id.is_empty() || seen.id == id)),
            None if new_id.is_some() => None,
            None => self.calls.len().checked_sub(1),
        };
        // Gemini behind Google's compatible address, and proxies in front of it, number every call 0 or not at all, and
        // send no ids; but each of their calls arrives whole.
        let nameless = new_id.is_none() && brings_a_call(&delta);
        let known = known.filter(|at| !(nameless && answer.is_whole(*at)));
        let position = match known {
            Some(position) => position,
            None => {
                let position = answer.open_call()?;
                self.calls.push(Seen { index: delta.index.unwrap_or_default(), id: String::new() });
                position
            }
        };
        if let (Some(id), Some(seen)) = (new_id, self.calls.get_mut(position)) {
            seen.id = id.to_owned();
        }
        answer.change_call(position, |call| {
            if let Some(id) = new_id {
                call.id = id.to_owned();
            }
            let Some(function) = delta.function else {
                return;
            };
            if let Some(name) = function.name.filter(|name| !name.is_empty()) {
                // Some servers repeat the name in every delta, so it replaces.
                call.name = name;
            }
            match function.arguments {
                Some(Value::String(piece)) => call.arguments.push_str(&piece),
                Some(object @ Value::Object(_)) => call.arguments = object.to_string(),
                _ => {}
            }
        })
    }
}

/// Whether a delta begins a call: it has a name and arguments.
fn brings_a_call(delta: &CallDelta) -> bool {
    delta.function.as_ref().is_some_and(|function| {
        let has_arguments = match &function.arguments {
            Some(Value::String(piece)) => !piece.is_empty(),
            arguments => arguments.as_ref().is_some_and(Value::is_object),
        };
        has_arguments && function.name.as_ref().is_some_and(|name| !name.is_empty())
    })
}

/// The texts of a content for the wearer, without thoughts and other parts.
fn texts(content: Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(parts) => {
            let text = |part: &Value| (part["type"] == "text").then(|| part["text"].as_str().map(str::to_owned))?;
            parts.iter().filter_map(text).collect()
        }
        _ => Vec::new(),
    }
}

/// The first four are OpenAI's; the others are from OpenRouter, vLLM, DeepSeek, Zhipu and Mistral.
fn stop(reason: &str) -> Result<StopReason, failure::Failure> {
    Ok(match reason {
        "tool_calls" | "function_call" => StopReason::ToolCalls,
        "length" | "model_length" => StopReason::Length,
        "content_filter" | "sensitive" => StopReason::Filtered,
        "error" | "abort" | "insufficient_system_resource" | "network_error" => {
            return Err((FailureKind::Transient, format!("the provider broke off: {reason}")));
        }
        _ => StopReason::End,
    })
}
