//! Tool calls of one step: each gets exactly one result.

use alloc::{boxed::Box, string::String, vec::Vec};
use serde_json::json;

use super::pictures::{self, ImagePolicy};
use crate::{
    limits::{TOOL_MARGIN_MS, TOOL_MS_DEFAULT, TOOL_MS_MAX},
    output::ToolActivityState,
    vocab::{Attachment, ErrorCode, Message, Part, Role, ToolCall, ToolResult},
};

/// Number of failures of an identical call after which it is not tried again, although the errors are retryable.
const RETRIES_MAX: usize = 2;

/// A call and its result.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) call: ToolCall,
    pub(super) result: Option<ToolResult>,
    /// Longest wait for its result.
    limit_us: u64,
    /// Since when its limit counts; `None`: it waits for another call that changes something.
    began_us: Option<u64>,
    /// Whether it changes something: such calls run one after another.
    changes: bool,
}

impl Pending {
    /// A call that begins now.
    pub(super) fn new(call: ToolCall, now_us: u64) -> Self {
        let limit_us = limit_us(None);
        Self { call, result: None, limit_us, began_us: Some(now_us), changes: false }
    }

    /// When its result counts as missing; `None`: it has one, or waits for another call.
    pub(super) fn deadline_us(&self) -> Option<u64> {
        let began_us = self.began_us.filter(|_| self.result.is_none())?;
        Some(began_us.saturating_add(self.limit_us))
    }

    /// Whether its tool declares a longer time-out than the default.
    pub(super) fn is_long(&self) -> bool {
        self.limit_us > limit_us(None)
    }

    /// The wearer was asked for so long: that does not count.
    pub(super) fn extend(&mut self, us: u64) {
        self.began_us = self.began_us.map(|began_us| began_us.saturating_add(us));
    }

    /// Whether it changes something and has no result yet.
    fn is_open_change(&self) -> bool {
        self.result.is_none() && self.changes
    }
}

/// How long a result is waited for, for a tool with this time-out.
fn limit_us(timeout_ms: Option<u32>) -> u64 {
    let limit_ms = timeout_ms.unwrap_or(TOOL_MS_DEFAULT).min(TOOL_MS_MAX).saturating_add(TOOL_MARGIN_MS);
    u64::from(limit_ms).saturating_mul(1_000)
}

/// One request to the model: its text and its calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    pub(super) text: String,
    pub(super) calls: Vec<Pending>,
    /// The order of text and calls, with the thinking before each.
    order: Vec<Slot>,
}

#[derive(Clone, Debug)]
enum Slot {
    /// Opaque data of the provider.
    Thinking(Box<Part>),
    /// The whole text of the step.
    Text,
    /// A call, by its index.
    Call(usize),
}

impl Step {
    pub(super) fn push_text(&mut self, text: &str) {
        self.text.push_str(text);
        if !self.order.iter().any(|slot| matches!(slot, Slot::Text)) {
            // Providers want text before calls.
            let before = self.order.iter().position(|slot| matches!(slot, Slot::Call(_))).unwrap_or(self.order.len());
            self.order.insert(before, Slot::Text);
        }
    }

    pub(super) fn push_call(&mut self, pending: Pending) {
        self.order.push(Slot::Call(self.calls.len()));
        self.calls.push(pending);
    }

    /// Adds a part of the model's thinking; keeps at most `most` of them.
    pub(super) fn push_thinking(&mut self, part: Part, most: usize) {
        if self.order.iter().filter(|slot| matches!(slot, Slot::Thinking(_))).count() < most {
            self.order.push(Slot::Thinking(Box::new(part)));
        }
    }

    /// The results so far.
    pub(super) fn results(&self) -> impl Iterator<Item = &ToolResult> {
        self.calls.iter().filter_map(|pending| pending.result.as_ref())
    }

    /// Whether a call waits for its result.
    pub(super) fn is_waiting(&self) -> bool {
        self.calls.iter().any(|pending| pending.result.is_none())
    }

    /// The waiting call with this id.
    pub(super) fn waiting(&mut self, call_id: &str) -> Option<&mut Pending> {
        self.calls.iter_mut().find(|pending| pending.call.id == call_id && pending.result.is_none())
    }

    /// What the tool of a call declares: its time-out, and whether it changes something. Then it runs when the calls
    /// before it that change something have their results.
    pub(super) fn declare(&mut self, call_id: &str, changes: bool, timeout_ms: Option<u32>) {
        let Some(at) = self.calls.iter().position(|pending| pending.call.id == call_id) else {
            return;
        };
        let waits = changes && self.calls.iter().take(at).any(Pending::is_open_change);
        if let Some(pending) = self.calls.get_mut(at) {
            pending.limit_us = limit_us(timeout_ms);
            pending.changes = changes;
            pending.began_us = pending.began_us.filter(|_| !waits);
        }
    }

    /// A call has its result: the next one that waited for it begins.
    pub(super) fn go_on(&mut self, now_us: u64) {
        if let Some(next) = self.calls.iter_mut().find(|pending| pending.is_open_change()) {
            next.began_us = next.began_us.or(Some(now_us));
        }
    }

    /// Gives every call without a result a failure: each call must have a result.
    pub(super) fn give_up(&mut self, code: ErrorCode, message: &str) {
        for pending in &mut self.calls {
            if pending.result.is_none() {
                pending.result = Some(ToolResult::failed(code, message, false));
            }
        }
    }

    /// The messages of this step, with `text` as its text and images according to `images`.
    pub(super) fn messages(&self, text: &str, images: ImagePolicy) -> Vec<Message> {
        let mut parts = Vec::new();
        for slot in &self.order {
            match slot {
                Slot::Thinking(part) => parts.push(Part::clone(part)),
                Slot::Text if text.is_empty() => {}
                Slot::Text => parts.push(Part::Text { text: String::from(text) }),
                Slot::Call(index) => {
                    parts.extend(self.calls.get(*index).map(|pending| Part::ToolCall { call: pending.call.clone() }));
                }
            }
        }
        // Thinking alone is no message: it belongs to what follows it.
        if parts.iter().all(|part| matches!(part, Part::Thinking { .. })) {
            parts.clear();
        }
        let results = self.calls.iter().map(|pending| Part::ToolResult {
            call_id: pending.call.id.clone(),
            result: pending.result.as_ref().map(|result| kept(result, &pending.call.id, images)).unwrap_or_default(),
        });
        let mut messages = Vec::new();
        for (role, parts) in [(Role::Assistant, parts), (Role::Tool, results.collect())] {
            if !parts.is_empty() {
                messages.push(Message { role, parts });
            }
        }
        messages
    }
}

/// A result for the messages: images, sounds and resources are replaced by references.
fn kept(result: &ToolResult, call_id: &str, images: ImagePolicy) -> ToolResult {
    let reference = |attachment: &Attachment| {
        let (mime, data) = match attachment {
            Attachment::Image { mime, data } | Attachment::Audio { mime, data } => (mime, data),
            Attachment::Resource { block } => {
                let uri = block.pointer("/resource/uri").or_else(|| block.get("uri"));
                return Attachment::Resource { block: json!({"type": "resource_link", "uri": uri}) };
            }
        };
        let block = json!({"type": "left_out", "mimeType": mime, "base64Bytes": data.len(), "call": call_id});
        Attachment::Resource { block }
    };
    ToolResult {
        attachments: result.attachments.iter().map(reference).collect(),
        content: result.content.clone(),
        notes: result.notes.iter().cloned().chain(pictures::note(result, images).map(String::from)).collect(),
        data: result.data.clone(),
        say: result.say.clone(),
        show: result.show.clone(),
        handled_display: result.handled_display,
        follow_ups: result.follow_ups.clone(),
        error: result.error.clone(),
    }
}

/// What the glasses are told of a call that has ended with this error, or without one.
pub(super) fn state_after(error: Option<ErrorCode>) -> ToolActivityState {
    match error {
        None => ToolActivityState::Finished,
        Some(ErrorCode::Cancelled) => ToolActivityState::Cancelled,
        Some(_) => ToolActivityState::Failed,
    }
}

/// The failure for a call that need not run, since an identical one has failed before.
pub(super) fn repeated_failure(steps: &[Step], call: &ToolCall) -> Option<ToolResult> {
    let before = steps.iter().flat_map(|step| &step.calls);
    let same = before.filter(|pending| pending.call.name == call.name && pending.call.arguments == call.arguments);
    let errors: Vec<_> = same.filter_map(|pending| pending.result.as_ref()?.error.as_ref()).collect();
    let last = errors.last()?;
    if errors.len() < RETRIES_MAX && errors.iter().all(|error| error.retryable) {
        return None;
    }
    let message = "This very call has failed before. Do not repeat it: do something else, or tell the wearer.";
    Some(ToolResult::failed(last.code, message, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_stopped_has_not_failed() {
        assert_eq!(state_after(None), ToolActivityState::Finished);
        assert_eq!(state_after(Some(ErrorCode::Cancelled)), ToolActivityState::Cancelled);
        for code in [ErrorCode::Timeout, ErrorCode::ExecutionError, ErrorCode::ApprovalDenied] {
            assert_eq!(state_after(Some(code)), ToolActivityState::Failed, "{code:?}");
        }
    }

    #[test]
    fn of_many_thoughts_the_first_are_kept() {
        let mut step = Step::default();
        for number in 0..4 {
            step.push_thinking(Part::Thinking { provider: String::from("fake"), data: json!(number) }, 2);
        }
        let kept: Vec<_> = step
            .order
            .iter()
            .filter_map(|slot| match slot {
                Slot::Thinking(part) => Some(Part::clone(part)),
                Slot::Text | Slot::Call(_) => None,
            })
            .collect();
        let thought = |number: i32| Part::Thinking { provider: String::from("fake"), data: json!(number) };
        assert_eq!(kept, [thought(0), thought(1)]);
    }
}
