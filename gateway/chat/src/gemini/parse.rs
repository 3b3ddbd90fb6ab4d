//! Parses a streamed answer of `streamGenerateContent`. Pure.
//!
//! Sources: the Gemini API reference ("GenerateContentResponse", "FinishReason", "Thought signatures") and the types
//! of `@google/genai`.

use gateway_core::vocab::{FailureKind, StopReason, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    dialect::{self, Answer, Dialect, Outcome},
    failure::{self, Failure},
};

use super::PROVIDER;

/// Longest message of the provider that is passed on.
const WORDS_CHARS_MAX: usize = 200;

/// The dialect: pieces of a candidate, the last of which has the finish reason.
#[derive(Debug, Default)]
pub struct Candidates;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk {
    /// The Cloud Code backend adds an outer object.
    #[serde(default)]
    response: Option<Box<Chunk>>,
    #[serde(default)]
    candidates: Option<Vec<Candidate>>,
    #[serde(default)]
    prompt_feedback: Option<Feedback>,
    #[serde(default)]
    usage_metadata: Option<Counts>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(default)]
    text: Option<String>,
    /// The text is a summary of thoughts.
    #[serde(default)]
    thought: bool,
    #[serde(default)]
    thought_signature: Option<String>,
    #[serde(default)]
    function_call: Option<Function>,
}

#[derive(Deserialize)]
struct Function {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    args: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    #[serde(default)]
    block_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    #[serde(default)]
    prompt_token_count: Option<u32>,
    #[serde(default)]
    tool_use_prompt_token_count: Option<u32>,
    #[serde(default)]
    cached_content_token_count: Option<u32>,
    #[serde(default)]
    candidates_token_count: Option<u32>,
    #[serde(default)]
    thoughts_token_count: Option<u32>,
}

impl Dialect for Candidates {
    fn handle_event(&mut self, data: &[u8], answer: &mut Answer) -> Outcome {
        handle_chunk(dialect::json(data)?, answer)
    }

    /// One response, or the list of responses that would have been streamed.
    fn handle_document(&mut self, document: &[u8], answer: &mut Answer) -> Outcome {
        if document.trim_ascii_start().first() != Some(&b'[') {
            return self.handle_event(document, answer);
        }
        for chunk in dialect::json::<Vec<Chunk>>(document)? {
            handle_chunk(chunk, answer)?;
        }
        Ok(())
    }
}

fn handle_chunk(chunk: Chunk, answer: &mut Answer) -> Outcome {
    let chunk = match chunk.response {
        Some(inner) if chunk.candidates.is_none() => *inner,
        _ => chunk,
    };
    if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
        return Err(failure::in_stream(&error));
    }
    let counted = chunk.usage_metadata.is_some();
    if let Some(counts) = chunk.usage_metadata {
        count(&counts, answer);
    }
    if let Some(reason) = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason)
        && reason != "BLOCKED_REASON_UNSPECIFIED"
    {
        let message = format!("the provider refuses the question: {}", bounded(&reason));
        return Err((FailureKind::Refused, message));
    }
    // Only one candidate is requested.
    let Some(candidate) = chunk.candidates.into_iter().flatten().next() else {
        return Ok(());
    };
    for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
        handle_part(part, answer)?;
    }
    if let Some(reason) = candidate.finish_reason.filter(|reason| !reason.is_empty()) {
        finish(&reason, candidate.finish_message.as_deref().unwrap_or_default(), answer)?;
        // A stream has no end marker; once the counts have arrived nothing more follows.
        if counted {
            answer.complete();
        }
    }
    Ok(())
}

fn handle_part(part: Part, answer: &mut Answer) -> Outcome {
    let signature = part.thought_signature.filter(|signature| !signature.is_empty());
    if let Some(function) = part.function_call {
        let id = answer.unique_call_id(function.id.as_deref().unwrap_or_default());
        if let Some(signature) = signature {
            answer.push_thinking(PROVIDER, json!({"call": id, "thoughtSignature": signature}))?;
        }
        let position = answer.open_call()?;
        return answer.change_call(position, |call| {
            call.id = id;
            call.id_is_ours = true;
            call.name = function.name;
            call.arguments =
                function.args.filter(|args| !args.is_null()).map(|args| args.to_string()).unwrap_or_default();
        });
    }
    if let Some(signature) = signature {
        answer.push_thinking(PROVIDER, json!({"thoughtSignature": signature}))?;
    }
    match part.text {
        Some(text) if !part.thought => answer.push_text(text),
        _ => Ok(()),
    }
}

fn finish(reason: &str, message: &str, answer: &mut Answer) -> Outcome {
    answer.stop = Some(match reason {
        "STOP" | "FINISH_REASON_UNSPECIFIED" => StopReason::End,
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        // From backends that Vertex serves; the SDK lists it only among the reasons to block a prompt.
        | "MODEL_ARMOR" => StopReason::Filtered,
        // A complete call is run: the executor reports that there is no such tool.
        "UNEXPECTED_TOOL_CALL" if answer.calls_len() > 0 => StopReason::ToolCalls,
        "UNEXPECTED_TOOL_CALL" => return Err(bad_call("called a tool that was not offered", message)),
        "MALFORMED_FUNCTION_CALL" => return Err(bad_call("wrote a tool call that makes no sense", message)),
        "TOO_MANY_TOOL_CALLS" => return Err(bad_call("called too many tools", message)),
        _ if answer.has_said() => StopReason::End,
        _ => return Err((FailureKind::Transient, format!("the provider broke off: {}", bounded(reason)))),
    });
    Ok(())
}

/// Another attempt, with the tools then available, may succeed.
fn bad_call(what: &str, message: &str) -> Failure {
    let words = if message.is_empty() { String::new() } else { format!(": {}", bounded(message)) };
    (FailureKind::BadCall, format!("the model {what}{words}"))
}

/// Counts are cumulative: the last ones are used.
fn count(counts: &Counts, answer: &mut Answer) {
    let sum = |a: Option<u32>, b: Option<u32>| a.unwrap_or_default().saturating_add(b.unwrap_or_default());
    answer.usage = Usage {
        input: sum(counts.prompt_token_count, counts.tool_use_prompt_token_count),
        cached: counts.cached_content_token_count.unwrap_or_default(),
        output: sum(counts.candidates_token_count, counts.thoughts_token_count),
    };
}

fn bounded(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(WORDS_CHARS_MAX).collect()
}
