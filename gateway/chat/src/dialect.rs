//! Common part of all providers' parsers: limits, assembly of tool calls, and the single last event.
//!
//! A provider implements [`Dialect`]; [`Parser`] makes a [`Parse`] of it.

use gateway_core::vocab::{FailureKind, ModelEvent, StopReason, ToolCall, Usage};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value};

use crate::{
    failure::{Failure, bug},
    names::NameMap,
    provider::Parse,
    sse::Events,
};

/// Longest text of an answer in bytes: about an hour of speech.
const TEXT_BYTES_MAX: usize = 256 * 1024;
/// Longest thoughts of an answer in bytes; they stay in the conversation from then on.
pub(crate) const THINKING_BYTES_MAX: usize = 1024 * 1024;
/// Most tool calls in one answer: far more than any sensible answer, few enough to run.
const CALLS_MAX: usize = 32;
/// Longest arguments of one call in bytes, and longest id and name.
const ARGUMENTS_BYTES_MAX: usize = 256 * 1024;

/// Result of an event. The first failure is the last event of the answer.
pub type Outcome = Result<(), Failure>;

/// One provider's answer format. Splitting bytes into events and enforcing limits happen outside.
pub trait Dialect: Send {
    /// The data of one server-sent event.
    fn handle_event(&mut self, data: &[u8], answer: &mut Answer) -> Outcome;

    /// The whole body of an answer that was not streamed.
    fn handle_document(&mut self, document: &[u8], answer: &mut Answer) -> Outcome;
}

/// Parses a server's JSON. Errors contain only the position: serde's message quotes the input, which may be private.
pub fn json<T: DeserializeOwned>(data: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(data)
        .map_err(|error| bug(format!("an event of the answer is malformed at column {}", error.column())))
}

/// A tool call, as far as received.
#[derive(Debug, Default)]
pub struct PartialCall {
    /// The provider's id; empty if it has none.
    pub id: String,
    /// The id was made by [`Answer::unique_call_id`].
    pub id_is_ours: bool,
    /// The provider's name of the tool.
    pub name: String,
    /// JSON text; empty for no arguments.
    pub arguments: String,
    /// The provider has ended the call.
    pub ended: bool,
}

impl PartialCall {
    /// Whether nothing is missing: the provider says so, or the arguments are a complete object.
    fn is_whole(&self) -> bool {
        let arguments = self.arguments.trim();
        let framed = arguments.starts_with('{') && arguments.ends_with('}');
        self.ended || (framed && serde_json::from_str::<IgnoredAny>(arguments).is_ok())
    }
}

/// An answer, as far as received.
#[derive(Debug)]
pub struct Answer {
    names: NameMap,
    out: Vec<ModelEvent>,
    text_bytes: usize,
    thinking_bytes: usize,
    calls: Vec<PartialCall>,
    /// The stop reason, once received.
    pub stop: Option<StopReason>,
    /// Token counts, as far as received.
    pub usage: Usage,
    finished: bool,
}

impl Answer {
    fn new(names: NameMap) -> Self {
        Self {
            names,
            out: Vec::new(),
            text_bytes: 0,
            thinking_bytes: 0,
            calls: Vec::new(),
            stop: None,
            usage: Usage::default(),
            finished: false,
        }
    }

    /// Adds text for the wearer.
    pub fn push_text(&mut self, text: String) -> Outcome {
        self.text_bytes = self.text_bytes.saturating_add(text.len());
        if self.text_bytes > TEXT_BYTES_MAX {
            return Err(bug(format!("the answer is longer than {TEXT_BYTES_MAX} bytes")));
        }
        if !text.is_empty() {
            self.out.push(ModelEvent::Text(text));
        }
        Ok(())
    }

    /// Adds a thought that the provider wants sent back.
    pub fn push_thinking(&mut self, provider: &str, data: Value) -> Outcome {
        self.thinking_bytes = self.thinking_bytes.saturating_add(data.to_string().len());
        if self.thinking_bytes > THINKING_BYTES_MAX {
            return Err(bug(format!("the thoughts of the answer are longer than {THINKING_BYTES_MAX} bytes")));
        }
        self.out.push(ModelEvent::Thinking { provider: provider.to_owned(), data });
        Ok(())
    }

    /// Begins a tool call; returns its position.
    pub fn open_call(&mut self) -> Result<usize, Failure> {
        if self.calls.len() >= CALLS_MAX {
            return Err(bug(format!("the answer holds more than {CALLS_MAX} tool calls")));
        }
        self.calls.push(PartialCall::default());
        Ok(self.calls.len() - 1)
    }

    /// The canonical id of a call, for a thought that names it before the call is complete.
    pub fn unique_call_id(&mut self, id: &str) -> String {
        self.names.unique_call_id(id)
    }

    /// Whether the answer contains anything besides thoughts.
    pub fn has_said(&self) -> bool {
        self.text_bytes > 0 || !self.calls.is_empty()
    }

    /// How many calls have been opened; the next one gets this position.
    pub fn calls_len(&self) -> usize {
        self.calls.len()
    }

    /// Whether nothing of the call at a position is missing.
    pub fn is_whole(&self, position: usize) -> bool {
        self.calls.get(position).is_some_and(PartialCall::is_whole)
    }

    /// Changes the call at a position returned by [`Answer::open_call`]. No effect at any other.
    pub fn change_call(&mut self, position: usize, change: impl FnOnce(&mut PartialCall)) -> Outcome {
        let Some(call) = self.calls.get_mut(position) else {
            return Ok(());
        };
        change(call);
        let longest = call.id.len().max(call.name.len()).max(call.arguments.len());
        if longest > ARGUMENTS_BYTES_MAX {
            return Err(bug(format!("the arguments of a tool call are longer than {ARGUMENTS_BYTES_MAX} bytes")));
        }
        Ok(())
    }

    /// The stream has ended with `[DONE]`. Proxies send that after a broken connection, too: an answer without a stop
    /// reason is complete only if it says something and all of its calls are whole.
    pub fn complete_at_done(&mut self) -> Outcome {
        let broke_off = |words: &str| Err((FailureKind::Transient, format!("the provider ended the answer {words}")));
        if self.stop.is_none() {
            // LM Studio ends this way if the conversation is longer than the model's context.
            if !self.has_said() {
                return broke_off("without a word");
            }
            if !self.calls.iter().all(PartialCall::is_whole) {
                return broke_off("within a tool call");
            }
        }
        self.complete();
        Ok(())
    }

    /// The provider has ended the answer. Calls are emitted only now, since an incomplete answer may contain an
    /// incomplete call.
    pub fn complete(&mut self) {
        if self.finished {
            return;
        }
        let mut stop = self.stop.unwrap_or(StopReason::End);
        let calls = std::mem::take(&mut self.calls);
        // A truncated answer may contain an incomplete call, so none is emitted.
        if matches!(stop, StopReason::End | StopReason::ToolCalls) && !calls.is_empty() {
            stop = StopReason::ToolCalls;
            let mut whole = Vec::new();
            for call in calls {
                match arguments(&call.arguments) {
                    Some(arguments) => {
                        let id = if call.id_is_ours { call.id } else { self.names.unique_call_id(&call.id) };
                        // A name that was never offered is kept; the executor reports it.
                        let name = self.names.tool(&call.name).unwrap_or(&call.name).to_owned();
                        let arguments = self.names.arguments_for_tool(&name, arguments);
                        whole.push(ModelEvent::ToolCall(ToolCall { id, name, arguments }));
                    }
                    None => {
                        let name: String = call.name.chars().take(80).collect();
                        self.fail(bug(format!("the arguments of the tool call '{name}' are no JSON object")));
                        return;
                    }
                }
            }
            self.out.extend(whole);
        } else if stop == StopReason::ToolCalls {
            stop = StopReason::End;
        }
        self.finished = true;
        let usage = self.usage;
        self.out.push(ModelEvent::Done { stop, usage });
    }

    fn fail(&mut self, (kind, message): Failure) {
        if !std::mem::replace(&mut self.finished, true) {
            self.out.push(ModelEvent::Failed { kind, message });
        }
    }
}

fn arguments(text: &str) -> Option<Value> {
    if text.trim().is_empty() {
        return Some(Value::Object(Map::new()));
    }
    serde_json::from_str(text).ok().filter(Value::is_object)
}

/// An incremental parser of one answer in a dialect.
#[derive(Debug)]
pub struct Parser<D> {
    dialect: D,
    events: Events,
    answer: Answer,
}

impl<D: Dialect> Parser<D> {
    /// A parser for the answer to the request that `names` was rendered with.
    pub fn new(dialect: D, names: NameMap) -> Self {
        Self { dialect, events: Events::default(), answer: Answer::new(names) }
    }

    fn handle_all(&mut self, all: Vec<Vec<u8>>) {
        for data in all {
            if self.answer.finished {
                break;
            }
            if let Err(failure) = self.dialect.handle_event(&data, &mut self.answer) {
                self.answer.fail(failure);
            }
        }
    }
}

impl<D: Dialect> Parse for Parser<D> {
    fn push(&mut self, bytes: &[u8]) -> Vec<ModelEvent> {
        let mut data = Vec::new();
        let taken = self.events.push(bytes, &mut data);
        self.handle_all(data);
        if let Err(error) = taken {
            self.answer.fail(bug(error.to_string()));
        }
        std::mem::take(&mut self.answer.out)
    }

    fn push_document(&mut self, document: &[u8]) -> Vec<ModelEvent> {
        if let Err(failure) = self.dialect.handle_document(document, &mut self.answer) {
            self.answer.fail(failure);
        }
        if self.answer.stop.is_some() {
            self.answer.complete();
        }
        self.answer.fail(bug("the document is no answer of this provider's"));
        std::mem::take(&mut self.answer.out)
    }

    fn finish(&mut self) -> Vec<ModelEvent> {
        let mut data = Vec::new();
        let taken = self.events.finish(&mut data);
        // A truncated event is dropped: the answer is then incomplete, not malformed.
        data.retain(|data| data.trim_ascii() == b"[DONE]" || serde_json::from_slice::<IgnoredAny>(data).is_ok());
        self.handle_all(data);
        if let Err(error) = taken {
            self.answer.fail(bug(error.to_string()));
        }
        if self.answer.stop.is_some() {
            self.answer.complete();
        }
        self.answer.fail((FailureKind::Transient, "the connection ended in the middle of the answer".to_owned()));
        std::mem::take(&mut self.answer.out)
    }

    fn is_finished(&self) -> bool {
        self.answer.finished
    }
}
