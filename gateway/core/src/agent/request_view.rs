//! What is left out of one request to a model: long results of tools that are stale, and pictures that were withdrawn.
//! The stored conversation is unchanged.

use alloc::{format, string::String, vec::Vec};

use crate::{
    limits::{STALE_RESULT_BYTES_MIN, STALE_TURNS_MIN},
    vocab::{ContextView, Message, Part, Role, ToolCall, ToolResult},
};

/// A view of these messages without what need not, or must not, be sent. `turn`: index of this turn's first message.
pub(super) fn of(messages: Vec<Message>, turn: usize) -> ContextView {
    let stale: Vec<(usize, Message)> =
        (0..messages.len()).filter_map(|place| Some((place, without_stale(&messages, place, turn)?))).collect();
    let withdrawn = withdrawn(&messages, turn);
    let mut view = ContextView::new(messages);
    for (place, message) in stale {
        // It has the same calls and results as before.
        let _same = view.replace_at(place, message);
    }
    for place in withdrawn {
        let _there = view.delete_at(place);
    }
    view
}

/// The message at this place with notes in the place of stale results; `None`: it has none.
fn without_stale(messages: &[Message], place: usize, turn: usize) -> Option<Message> {
    let message = messages.get(place).filter(|message| message.role == Role::Tool)?;
    let turns = messages.get(place..turn).map_or(0, |since| since.iter().filter(|one| one.role == Role::User).count());
    let is_old = place < turn && turns.saturating_add(1) >= STALE_TURNS_MIN;
    let mut changed = false;
    let parts = message.parts.iter().map(|part| match part {
        Part::ToolResult { call_id, result } if !result.is_error() => {
            let bytes = size(result);
            let note = if bytes < STALE_RESULT_BYTES_MIN {
                None
            } else if is_repeated(messages, place, call_id) {
                Some(String::from("[Left out: the same call was made again; its result is below.]"))
            } else {
                is_old.then(|| format!("[Left out: an old result of {bytes} bytes.]"))
            };
            let Some(content) = note else { return part.clone() };
            changed = true;
            Part::ToolResult { call_id: call_id.clone(), result: ToolResult { content, ..ToolResult::default() } }
        }
        other => other.clone(),
    });
    let parts = parts.collect();
    changed.then_some(Message { role: message.role, parts })
}

/// Bytes of a result in a request.
fn size(result: &ToolResult) -> usize {
    match result.for_model() {
        text if text.trim().is_empty() => result.data.as_ref().map_or(0, |data| format!("{data}").len()),
        text => text.len(),
    }
}

/// Whether the call of this result was made again, with the same arguments, and has succeeded after it.
fn is_repeated(messages: &[Message], place: usize, call_id: &str) -> bool {
    let Some(call) = calls(messages).find(|call| call.id == call_id) else {
        return false;
    };
    let behind = messages.get(place.saturating_add(1)..).unwrap_or_default();
    calls(messages)
        .filter(|other| other.id != call.id && other.name == call.name && other.arguments == call.arguments)
        .any(|other| results(behind).any(|(id, result)| id == other.id && !result.is_error()))
}

/// Places of the pictures of this turn that a later result withdraws, or one of the same step.
fn withdrawn(messages: &[Message], turn: usize) -> Vec<usize> {
    let withdraws = |message: &Message| results(core::slice::from_ref(message)).any(|(_, it)| it.withdraws_pictures());
    let Some(last) = messages.iter().rposition(withdraws) else {
        return Vec::new();
    };
    // The pictures of a step follow its results.
    let until = last.saturating_add(1);
    let pictures = messages
        .iter()
        .enumerate()
        .filter(|(place, message)| *place >= turn && *place <= until && message.has_picture());
    pictures.map(|(place, _)| place).collect()
}

fn calls(messages: &[Message]) -> impl Iterator<Item = &ToolCall> {
    messages.iter().flat_map(|message| &message.parts).filter_map(|part| match part {
        Part::ToolCall { call } => Some(call),
        _ => None,
    })
}

fn results(messages: &[Message]) -> impl Iterator<Item = (&str, &ToolResult)> {
    messages.iter().flat_map(|message| &message.parts).filter_map(|part| match part {
        Part::ToolResult { call_id, result } => Some((call_id.as_str(), result)),
        _ => None,
    })
}
