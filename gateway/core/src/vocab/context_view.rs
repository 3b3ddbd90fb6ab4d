//! A view of the conversation for a single model request: the canonical messages with some inserted, omitted or
//! replaced. The stored conversation is unchanged.
//!
//! Nothing is ever inserted between a tool call and its results: some providers reject such a request, and for the
//! others a result without its call is an error too. Positions are those of the canonical messages, regardless of
//! earlier changes, so that the order of the changes does not matter.

use alloc::vec::Vec;

use super::message::{Message, Part};

/// Messages with changes for one request.
#[derive(Clone, Debug)]
pub struct ContextView {
    slots: Vec<Slot>,
    /// Messages after the last one.
    tail: Vec<Message>,
}

#[derive(Clone, Debug)]
struct Slot {
    before: Vec<Message>,
    /// `None`: omitted.
    message: Option<Message>,
    /// First message of the group of calls and results that this one belongs to; its own position if it belongs to
    /// none.
    first: usize,
    /// One past the last message of the group.
    end: usize,
}

/// Why a change was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no such position.
    NoSuchPlace,
    /// It would separate a call from its results.
    PartsAPair,
}

impl ContextView {
    /// A view without changes.
    pub fn new(messages: Vec<Message>) -> Self {
        let groups = groups(&messages);
        let slots = messages.into_iter().zip(groups);
        let slots = slots
            .map(|(message, (first, end))| Slot { before: Vec::new(), message: Some(message), first, end })
            .collect();
        Self { slots, tail: Vec::new() }
    }

    /// Inserts a message before the one at this position; one past the last message appends. If that would be between a
    /// call and its results, it is inserted before the call.
    ///
    /// # Errors
    /// The position is beyond the end.
    pub fn insert_before(&mut self, place: usize, message: Message) -> Result<(), Refused> {
        if place == self.slots.len() {
            self.tail.push(message);
            return Ok(());
        }
        let first = self.slots.get(place).ok_or(Refused::NoSuchPlace)?.first;
        self.slots.get_mut(first).ok_or(Refused::NoSuchPlace)?.before.push(message);
        Ok(())
    }

    /// Omits a message. A call and its results are omitted together.
    ///
    /// # Errors
    /// There is no such position.
    pub fn delete_at(&mut self, place: usize) -> Result<(), Refused> {
        let slot = self.slots.get(place).ok_or(Refused::NoSuchPlace)?;
        let (first, end) = (slot.first, slot.end);
        for slot in self.slots.get_mut(first..end).unwrap_or_default() {
            slot.message = None;
        }
        Ok(())
    }

    /// Replaces a message. Calls and results must be the same as before, by their ids.
    ///
    /// # Errors
    /// There is no such position, or the message has other calls or results.
    pub fn replace_at(&mut self, place: usize, message: Message) -> Result<(), Refused> {
        let slot = self.slots.get_mut(place).ok_or(Refused::NoSuchPlace)?;
        let kept = slot.message.as_ref().ok_or(Refused::NoSuchPlace)?;
        if !ids(kept).eq(ids(&message)) {
            return Err(Refused::PartsAPair);
        }
        slot.message = Some(message);
        Ok(())
    }

    /// The messages of the request.
    pub fn into_messages(self) -> Vec<Message> {
        let mut messages = Vec::with_capacity(self.slots.len() + self.tail.len());
        for slot in self.slots {
            messages.extend(slot.before);
            messages.extend(slot.message);
        }
        messages.extend(self.tail);
        messages
    }
}

/// Calls (`true`) and results of a message, in order.
fn ids(message: &Message) -> impl Iterator<Item = (bool, &str)> {
    message.parts.iter().filter_map(|part| match part {
        Part::ToolCall { call } => Some((true, call.id.as_str())),
        Part::ToolResult { call_id, .. } => Some((false, call_id.as_str())),
        _ => None,
    })
}

/// For each message the range of positions, end exclusive, that must stay together with it.
fn groups(messages: &[Message]) -> Vec<(usize, usize)> {
    let mut groups: Vec<(usize, usize)> = (0..messages.len()).map(|at| (at, at + 1)).collect();
    for (at, message) in messages.iter().enumerate() {
        let calls = || ids(message).filter(|(call, _)| *call).map(|(_, id)| id);
        if calls().next().is_none() {
            continue;
        }
        let answers = |other: &Message| ids(other).any(|(call, id)| !call && calls().any(|called| called == id));
        let Some(last) = (at..messages.len()).rev().find(|later| messages.get(*later).is_some_and(answers)) else {
            continue;
        };
        // Overlapping groups are merged.
        let first = groups.get(at).map_or(at, |(first, _)| *first);
        let end = groups.get(last).map_or(last + 1, |(_, end)| (*end).max(last + 1));
        for group in groups.get_mut(first..end).unwrap_or_default() {
            *group = (first, end);
        }
    }
    groups
}

#[cfg(test)]
#[path = "context_view_tests.rs"]
mod tests;
