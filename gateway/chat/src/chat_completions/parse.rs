//! A streamed answer of `POST /chat/completions`. Pure.

use gateway_core::vocab::{StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    answer::{self, Answer, Dialect, Outcome},
    failure,
};

/// The dialect: chunks of a choice, ended by `[DONE]`.
#[derive(Debug, Default)]
pub struct Chunks {
    /// Which call a delta belongs to, in the order of the answer's calls.
    calls: Vec<Seen>,
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
    /// Null from some servers.
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
            answer.complete();
            return Ok(());
        }
        self.handle_chunk(answer::json(data)?, answer)
    }

    fn handle_document(&mut self, document: &[u8], answer: &mut Answer) -> Outcome {
        self.handle_chunk(answer::json(document)?, answer)
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
                input: usage.prompt_tokens,
                cached: cached.unwrap_or_default(),
                output: usage.completion_tokens,
            };
        }
        // Only one answer is ever asked for.
        let Some(choice) = chunk.choices.into_iter().flatten().next() else {
            return Ok(());
        };
        if let Some(delta) = choice.delta {
            for text in [delta.content, delta.refusal].into_iter().flatten() {
                answer.push_text(text)?;
            }
            for call in delta.tool_calls.into_iter().flatten() {
                self.handle_call(call, answer)?;
            }
        }
        match choice.finish_reason.as_deref() {
            None | Some("") => {}
            Some("tool_calls" | "function_call") => answer.stop = Some(StopReason::ToolCalls),
            Some("length") => answer.stop = Some(StopReason::Length),
            Some("content_filter") => answer.stop = Some(StopReason::Filtered),
            Some(_) => answer.stop = Some(StopReason::End),
        }
        Ok(())
    }

    fn handle_call(&mut self, delta: CallDelta, answer: &mut Answer) -> Outcome {
        let new_id = delta.id.as_deref().filter(|id| !id.is_empty());
        let known = match delta.index {
            // Some servers number every call 0 and tell them apart by id.
            Some(index) => self
                .calls
                .iter()
                .rposition(|seen| seen.index == index && new_id.is_none_or(|id| seen.id.is_empty() || seen.id == id)),
            None if new_id.is_some() => None,
            None => self.calls.len().checked_sub(1),
        };
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
                // Repeated in every delta by some servers, so it replaces.
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
