//! Parses a streamed answer of `POST /responses`. Pure.
//!
//! Source: the OpenAI API reference, "Streaming events". Compatible servers omit events and numbers; whatever was not
//! streamed is taken from the finished item, and what that lacks from the finished response.

use gateway_core::vocab::{FailureKind, StopReason, Usage};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    dialect::{self, Answer, Dialect, Outcome},
    failure::{self, bug},
    responses::PROVIDER,
};

/// Most items of one answer.
const ITEMS_MAX: usize = 256;

/// The dialect: items that are opened, extended and finished.
#[derive(Debug, Default)]
pub struct Items {
    slots: Vec<Slot>,
    /// The item of the latest text.
    speaking: Option<usize>,
}

/// An item of the answer.
#[derive(Debug, Default)]
struct Slot {
    index: u64,
    id: String,
    /// Its call in the answer.
    call: Option<usize>,
    /// Its text was streamed.
    told: bool,
    done: bool,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(default)]
    item_id: Option<String>,
    #[serde(default)]
    delta: Option<Value>,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default)]
    item: Option<Item>,
    #[serde(default)]
    response: Option<Response>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    code: Option<Value>,
    #[serde(default)]
    message: Option<Value>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default)]
    content: Option<Vec<Content>>,
    #[serde(default)]
    summary: Option<Value>,
    #[serde(default)]
    encrypted_content: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    output: Option<Vec<Item>>,
    #[serde(default)]
    usage: Option<Counts>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    input_tokens: u32,
    #[serde(default)]
    output_tokens: u32,
    #[serde(default)]
    input_tokens_details: Option<CacheCounts>,
}

#[derive(Deserialize)]
struct CacheCounts {
    #[serde(default)]
    cached_tokens: Option<u32>,
}

impl Dialect for Items {
    fn handle_event(&mut self, data: &[u8], answer: &mut Answer) -> Outcome {
        if data.trim_ascii() == b"[DONE]" {
            // From servers that translate chat completions.
            return answer.complete_at_done();
        }
        let event: Event = dialect::json(data)?;
        match event.kind.as_str() {
            "response.output_text.delta" | "response.refusal.delta" => self.handle_text(&event, answer),
            "response.function_call_arguments.delta" => {
                let piece = event.delta.as_ref().and_then(Value::as_str).unwrap_or_default();
                let call = self.call(&event, answer)?;
                answer.change_call(call, |call| call.arguments.push_str(piece))
            }
            "response.function_call_arguments.done" => {
                let call = self.call(&event, answer)?;
                answer.change_call(call, |call| call.ended = true)?;
                set_arguments(call, event.arguments, answer)
            }
            "response.output_item.added" | "response.output_item.done" => {
                let done = event.kind.ends_with("done");
                let Some(item) = &event.item else {
                    return Ok(());
                };
                let id = item.id.clone().or_else(|| event.item_id.clone());
                let slot = self.slot(event.output_index, id.as_deref())?;
                event.item.map_or(Ok(()), |item| self.handle_item(slot, item, done, answer))
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                let Some(mut response) = event.response else {
                    return Ok(());
                };
                // Some give the status only in the event's name.
                let said = event.kind.strip_prefix("response.").filter(|status| *status != "done");
                response.status = response.status.or_else(|| said.map(str::to_owned));
                self.handle_response(response, answer)
            }
            "error" | "response.error" => {
                let flat = json!({"code": event.code, "message": event.message});
                Err(failure::in_stream(event.error.as_ref().filter(|error| error.is_object()).unwrap_or(&flat)))
            }
            // An error of a proxy, in the form of a body.
            "" => event.error.filter(|error| !error.is_null()).map_or(Ok(()), |error| Err(failure::in_stream(&error))),
            // Progress, plain-text thoughts, the provider's own tools, and events of later versions.
            _ => Ok(()),
        }
    }

    fn handle_document(&mut self, document: &[u8], answer: &mut Answer) -> Outcome {
        self.handle_response(dialect::json(document)?, answer)
    }
}

impl Items {
    /// The item of an event, created if unknown. The number has precedence over the id: some servers change ids from
    /// event to event.
    fn slot(&mut self, index: Option<u64>, id: Option<&str>) -> Result<usize, failure::Failure> {
        let known = match (index, id) {
            (Some(index), _) => self.slots.iter().position(|slot| slot.index == index),
            (None, Some(id)) => self.slots.iter().position(|slot| slot.id == id),
            // Without either, a finished item is complete, and the next event belongs to another.
            (None, None) => self.slots.iter().rposition(|slot| !slot.done),
        };
        if let Some(known) = known {
            return Ok(known);
        }
        if self.slots.len() >= ITEMS_MAX {
            return Err(bug(format!("the answer holds more than {ITEMS_MAX} items")));
        }
        let next = self.slots.iter().map(|slot| slot.index.saturating_add(1)).max().unwrap_or_default();
        let id = id.unwrap_or_default().to_owned();
        self.slots.push(Slot { index: index.unwrap_or(next), id, ..Slot::default() });
        Ok(self.slots.len() - 1)
    }

    fn handle_text(&mut self, event: &Event, answer: &mut Answer) -> Outcome {
        let at = self.slot(event.output_index, event.item_id.as_deref())?;
        let text = event.delta.as_ref().and_then(Value::as_str).unwrap_or_default();
        self.push_text(at, text, answer)
    }

    fn push_text(&mut self, at: usize, text: &str, answer: &mut Answer) -> Outcome {
        if text.is_empty() {
            return Ok(());
        }
        if let Some(slot) = self.slots.get_mut(at) {
            slot.told = true;
        }
        // A second message is a new paragraph.
        if self.speaking.replace(at).is_some_and(|before| before != at) {
            answer.push_text("\n\n".to_owned())?;
        }
        answer.push_text(text.to_owned())
    }

    /// The position of an event's call.
    fn call(&mut self, event: &Event, answer: &mut Answer) -> Result<usize, failure::Failure> {
        let at = self.slot(event.output_index, event.item_id.as_deref())?;
        self.call_at(at, answer)
    }

    fn call_at(&mut self, at: usize, answer: &mut Answer) -> Result<usize, failure::Failure> {
        let known = self.slots.get(at).and_then(|slot| slot.call);
        if let Some(call) = known {
            return Ok(call);
        }
        let call = answer.open_call()?;
        if let Some(slot) = self.slots.get_mut(at) {
            slot.call = Some(call);
        }
        Ok(call)
    }

    fn handle_item(&mut self, at: usize, item: Item, done: bool, answer: &mut Answer) -> Outcome {
        let Some(slot) = self.slots.get_mut(at) else {
            return Ok(());
        };
        if slot.done {
            return Ok(());
        }
        slot.done = done;
        let told = slot.told;
        match item.kind.as_str() {
            "message" if done && !told => {
                for content in item.content.into_iter().flatten() {
                    for text in [content.text, content.refusal].into_iter().flatten() {
                        self.push_text(at, &text, answer)?;
                    }
                }
                Ok(())
            }
            "function_call" => {
                let call = self.call_at(at, answer)?;
                let (id, name) = (item.call_id.or(item.id), item.name);
                answer.change_call(call, |call| {
                    call.id = id.unwrap_or_else(|| std::mem::take(&mut call.id));
                    call.name = name.unwrap_or_else(|| std::mem::take(&mut call.name));
                    call.ended |= done;
                })?;
                set_arguments(call, item.arguments, answer)
            }
            "reasoning" if done => thought(item).map_or(Ok(()), |item| answer.push_thinking(PROVIDER, item)),
            _ => Ok(()),
        }
    }

    fn handle_response(&mut self, response: Response, answer: &mut Answer) -> Outcome {
        if let Some(error) = response.error.filter(|error| !error.is_null()) {
            return Err(failure::in_stream(&error));
        }
        let Some(status) = response.status else {
            return Err(bug("the document is no answer of this provider's"));
        };
        for (index, item) in response.output.into_iter().flatten().enumerate() {
            let at = self.slot(Some(index as u64), item.id.as_deref())?;
            self.handle_item(at, item, true, answer)?;
        }
        if let Some(usage) = response.usage {
            let cached = usage.input_tokens_details.and_then(|details| details.cached_tokens);
            answer.usage =
                Usage { input: usage.input_tokens, cached: cached.unwrap_or_default(), output: usage.output_tokens };
        }
        let reason = response.incomplete_details.and_then(|details| details.reason);
        answer.stop = Some(match (status.as_str(), reason.as_deref()) {
            ("completed", _) => StopReason::End,
            ("incomplete", Some("content_filter")) => StopReason::Filtered,
            ("incomplete", _) => StopReason::Length,
            _ => return Err((FailureKind::Transient, "the provider gave up the answer".to_owned())),
        });
        answer.complete();
        Ok(())
    }
}

/// Complete arguments replace the pieces before; an item that was only opened has none yet.
fn set_arguments(call: usize, arguments: Option<Value>, answer: &mut Answer) -> Outcome {
    let arguments = match arguments {
        Some(Value::String(text)) if !text.is_empty() => text,
        Some(object @ Value::Object(_)) => object.to_string(),
        _ => return Ok(()),
    };
    answer.change_call(call, |call| call.arguments = arguments)
}

/// A reasoning item in the form that the provider accepts again. Nothing is stored there, so one without its encrypted
/// content would be rejected.
fn thought(item: Item) -> Option<Value> {
    let encrypted = item.encrypted_content.filter(|content| !content.is_empty())?;
    let mut thought = Map::new();
    thought.insert("type".into(), "reasoning".into());
    thought.insert("id".into(), item.id.unwrap_or_default().into());
    thought.insert("summary".into(), item.summary.filter(Value::is_array).unwrap_or_else(|| json!([])));
    thought.insert("encrypted_content".into(), encrypted.into());
    Some(Value::Object(thought))
}
