//! Tool calls of one step: each gets exactly one result.

use alloc::{string::String, vec::Vec};

use crate::vocab::{ErrorCode, Message, Part, Role, ToolCall, ToolResult};

/// A call and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) call: ToolCall,
    pub(super) result: Option<ToolResult>,
    pub(super) deadline_us: u64,
}

/// One request to the model: what it said and what it wanted done.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    pub(super) text: String,
    /// What the model thought before; opaque.
    pub(super) thinking: Vec<Part>,
    pub(super) calls: Vec<Pending>,
}

impl Step {
    /// Whether a call waits for its result.
    pub(super) fn is_waiting(&self) -> bool {
        self.calls.iter().any(|pending| pending.result.is_none())
    }

    /// The call that waits under this id.
    pub(super) fn waiting(&mut self, call_id: &str) -> Option<&mut Pending> {
        self.calls.iter_mut().find(|pending| pending.call.id == call_id && pending.result.is_none())
    }

    /// Gives every call without a result one, so that no call is ever an orphan.
    pub(super) fn give_up(&mut self, code: ErrorCode, message: &str) {
        for pending in &mut self.calls {
            if pending.result.is_none() {
                pending.result = Some(ToolResult::failed(code, message, false));
            }
        }
    }

    /// The messages of this step, with `text` for what was said in it.
    pub(super) fn messages(&self, text: &str) -> Vec<Message> {
        let mut parts = Vec::new();
        if !text.is_empty() {
            parts.push(Part::Text { text: String::from(text) });
        }
        let mut results = Vec::new();
        for pending in &self.calls {
            parts.push(Part::ToolCall { call: pending.call.clone() });
            results.push(Part::ToolResult {
                call_id: pending.call.id.clone(),
                result: pending.result.clone().unwrap_or_default(),
            });
        }
        // Thinking alone is no message: it belongs to what follows from it.
        if !parts.is_empty() {
            parts.splice(0..0, self.thinking.iter().cloned());
        }
        let mut messages = Vec::new();
        for (role, parts) in [(Role::Assistant, parts), (Role::Tool, results)] {
            if !parts.is_empty() {
                messages.push(Message { role, parts });
            }
        }
        messages
    }
}
