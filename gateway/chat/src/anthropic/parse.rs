//! Parses a streamed answer of `POST /v1/messages`. Pure.
//!
//! Source: the Messages API's "Streaming messages" and the types of `@anthropic-ai/sdk`.

use gateway_core::vocab::StopReason;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    dialect::{self, Answer, Dialect, Outcome},
    failure::{self, Failure},
};

use super::PROVIDER;

/// The dialect: blocks that are opened, filled and closed.
#[derive(Debug, Default)]
pub struct Blocks {
    thought: Option<Thought>,
    /// Number of the answer's call that each block writes.
    calls: Vec<u64>,
}

#[derive(Debug)]
struct Thought {
    index: u64,
    words: String,
    signature: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        delta: End,
        #[serde(default)]
        usage: Option<Counts>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    /// The whole answer, from a server that does not stream.
    Message(Whole),
    /// Pings, and events of later versions.
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default)]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct End {
    #[serde(default)]
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Whole {
    #[serde(default)]
    content: Vec<Block>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    input_tokens: Option<u32>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u32>,
    #[serde(default)]
    cache_read_input_tokens: Option<u32>,
    #[serde(default)]
    output_tokens: Option<u32>,
}

impl Dialect for Blocks {
    fn handle_event(&mut self, data: &[u8], answer: &mut Answer) -> Outcome {
        let event = match dialect::json(data) {
            Ok(event) => event,
            Err(malformed) => return Err(bare_error(data).unwrap_or(malformed)),
        };
        match event {
            Event::MessageStart { message } => count(message.usage, answer),
            Event::ContentBlockStart { index, content_block } => self.handle_block(index, content_block, answer)?,
            Event::ContentBlockDelta { index, delta } => self.handle_delta(index, delta, answer)?,
            Event::ContentBlockStop { index } => {
                if let Some(thought) = self.thought.take_if(|thought| thought.index == index) {
                    thought.push_to(answer)?;
                }
            }
            Event::MessageDelta { delta, usage } => {
                count(usage, answer);
                stop(delta.stop_reason, answer);
            }
            Event::MessageStop => answer.complete(),
            Event::Error { error } => return Err(failure::in_stream(&error)),
            Event::Message(whole) => self.handle_whole(whole, answer)?,
            Event::Other => {}
        }
        Ok(())
    }

    fn handle_document(&mut self, document: &[u8], answer: &mut Answer) -> Outcome {
        self.handle_event(document, answer)
    }
}

impl Blocks {
    fn handle_whole(&mut self, whole: Whole, answer: &mut Answer) -> Outcome {
        count(whole.usage, answer);
        for (index, block) in (0..).zip(whole.content) {
            self.handle_block(index, block, answer)?;
            if let Some(thought) = self.thought.take() {
                thought.push_to(answer)?;
            }
        }
        stop(whole.stop_reason, answer);
        answer.stop.get_or_insert(StopReason::End);
        Ok(())
    }

    fn handle_block(&mut self, index: u64, block: Block, answer: &mut Answer) -> Outcome {
        match block {
            Block::Text { text } => answer.push_text(text),
            Block::ToolUse { id, name, input } => {
                let position = answer.open_call()?;
                self.calls.push(index);
                answer.change_call(position, |call| {
                    call.id = id;
                    call.name = name;
                    // The empty object of a call whose arguments are streamed in pieces.
                    if !matches!(&input, Value::Null) && input != json!({}) {
                        call.arguments = input.to_string();
                    }
                })
            }
            Block::Thinking { thinking, signature } => {
                self.thought = Some(Thought { index, words: thinking, signature });
                Ok(())
            }
            Block::RedactedThinking { data } => {
                answer.push_thinking(PROVIDER, json!({"type": "redacted_thinking", "data": data}))
            }
            Block::Other => Ok(()),
        }
    }

    fn handle_delta(&mut self, index: u64, delta: Delta, answer: &mut Answer) -> Outcome {
        let thought = self.thought.as_mut().filter(|thought| thought.index == index);
        match delta {
            Delta::Text { text } => answer.push_text(text),
            Delta::InputJson { partial_json } => {
                let Some(position) = self.calls.iter().rposition(|block| *block == index) else {
                    return Ok(());
                };
                answer.change_call(position, |call| call.arguments.push_str(&partial_json))
            }
            Delta::Thinking { thinking } => thought.map_or(Ok(()), |thought| thought.add(&thinking, "")),
            Delta::Signature { signature } => thought.map_or(Ok(()), |thought| thought.add("", &signature)),
            Delta::Other => Ok(()),
        }
    }
}

impl Thought {
    fn add(&mut self, words: &str, signature: &str) -> Outcome {
        self.words.push_str(words);
        self.signature.push_str(signature);
        if self.words.len() + self.signature.len() > dialect::THINKING_BYTES_MAX {
            return Err(failure::bug("a thought of the answer has no end"));
        }
        Ok(())
    }

    /// A thought without a signature could not be sent back.
    fn push_to(self, answer: &mut Answer) -> Outcome {
        if self.signature.is_empty() {
            return Ok(());
        }
        let data = json!({"type": "thinking", "thinking": self.words, "signature": self.signature});
        answer.push_thinking(PROVIDER, data)
    }
}

/// Proxies in front of the API report errors in the form of a body, without a type.
fn bare_error(data: &[u8]) -> Option<Failure> {
    #[derive(Deserialize)]
    struct Bare {
        error: Value,
    }
    let bare: Bare = serde_json::from_slice(data).ok()?;
    (!bare.error.is_null()).then(|| failure::in_stream(&bare.error))
}

/// Counts are cumulative, so the greatest is used: compatible servers leave the input at 0 either at the start or at
/// the end.
fn count(counts: Option<Counts>, answer: &mut Answer) {
    let Some(counts) = counts else {
        return;
    };
    let usage = &mut answer.usage;
    if let Some(input) = counts.input_tokens {
        let cached = counts.cache_read_input_tokens.unwrap_or_default();
        let created = counts.cache_creation_input_tokens.unwrap_or_default();
        usage.input = usage.input.max(input.saturating_add(cached).saturating_add(created));
        usage.cached = usage.cached.max(cached);
    }
    usage.output = usage.output.max(counts.output_tokens.unwrap_or_default());
}

fn stop(reason: Option<String>, answer: &mut Answer) {
    answer.stop = Some(match reason.as_deref() {
        None | Some("") => return,
        Some("tool_use") => StopReason::ToolCalls,
        Some("max_tokens" | "model_context_window_exceeded") => StopReason::Length,
        Some("refusal") => StopReason::Filtered,
        // `pause_turn` occurs only with the provider's own tools, which are never requested.
        Some(_) => StopReason::End,
    });
}
