//! Tool calls as the glasses know them: by a number on the display, or as calls that the glasses run themselves.

use std::collections::BTreeMap;

use device_protocol::{Down, ToolState, down as message, limits, up};
use gateway_core::{
    output::ToolActivityState,
    vocab::{ErrorCode, ToolCall, ToolError, ToolResult},
};
use tokio::sync::mpsc;

use super::{link::SessionLink, photos::Called};
use crate::{
    mailbox::CallDevice,
    text::crop,
    transport::{LinkError, ToolFailure},
};

/// Calls whose numbers are kept at once: those of the current turn and of a few that were interrupted.
const NUMBERS_MAX: usize = 128;

/// Calls of a session, numbered for its device.
pub(super) struct DeviceCalls {
    /// Calls that the glasses have not answered, by number.
    open: BTreeMap<u32, Called>,
    /// Numbers of running calls, by id.
    numbers: BTreeMap<String, u32>,
    /// The last number assigned.
    last_number: u32,
    /// Where failures of tools are reported with their reasons.
    failures: Option<mpsc::Sender<ToolFailure>>,
}

impl DeviceCalls {
    /// None yet. `failures`: where failures of tools are reported with their reasons.
    pub(super) fn new(failures: Option<mpsc::Sender<ToolFailure>>) -> Self {
        Self { open: BTreeMap::new(), numbers: BTreeMap::new(), last_number: 0, failures }
    }

    /// What the display is told of a call of the turn.
    pub(super) fn activity<'a>(
        &mut self,
        call_id: &str,
        label: &'a str,
        state: ToolActivityState,
    ) -> message::ToolActivity<'a> {
        let call = self.number_of(call_id);
        let state = match state {
            ToolActivityState::Started => ToolState::Started,
            ToolActivityState::Finished => ToolState::Finished,
            ToolActivityState::Failed => ToolState::Failed,
            ToolActivityState::Cancelled => ToolState::Cancelled,
        };
        if state != ToolState::Started {
            self.numbers.remove(call_id);
        }
        message::ToolActivity { call, label: crop(label, limits::LABEL_BYTES_MAX), state }
    }

    /// The number of a turn's call in this session, used for the sign on the display and for tools of the glasses.
    fn number_of(&mut self, call_id: &str) -> u32 {
        if let Some(known) = self.numbers.get(call_id) {
            return *known;
        }
        let number = self.next_number();
        if self.numbers.len() >= NUMBERS_MAX {
            self.numbers.pop_first();
        }
        self.numbers.insert(call_id.to_owned(), number);
        number
    }

    /// Counted, not derived from how many run: a number must not be reused while another call still has it.
    fn next_number(&mut self) -> u32 {
        self.last_number = self.last_number.wrapping_add(1);
        self.last_number
    }

    /// Has the glasses run one of their tools.
    ///
    /// # Errors
    /// The link is gone, or too slow.
    pub(super) fn call(&mut self, call: CallDevice, link: &mut SessionLink) -> Result<(), LinkError> {
        let CallDevice { turn, call: ToolCall { id, name, arguments }, deadline, cancel, reply } = call;
        // A call from outside the turn may have any id.
        let number = if turn.is_none() { self.next_number() } else { self.number_of(&id) };
        let text = arguments.to_string();
        let fits = text.len() <= limits::ARGUMENTS_BYTES_MAX && link.frame_limits.holds(text.len() + name.len());
        if !fits || name.len() > limits::NAME_BYTES_MAX {
            let text = "the arguments are too large for the glasses";
            drop(reply.send(ToolResult::failed(ErrorCode::InvalidArguments, text, false)));
            return Ok(());
        }
        let frame = message::ToolCall {
            call: number,
            name: &name,
            arguments: &text,
            deadline_ms: u32::try_from(deadline.as_millis()).unwrap_or(u32::MAX),
        };
        link.send(turn, Down::ToolCall(frame))?;
        self.open.insert(number, Called::new(reply, cancel, turn, &arguments));
        Ok(())
    }

    /// Informs the glasses which of their calls are no longer wanted. Calls without a waiter are forgotten.
    ///
    /// # Errors
    /// The link is gone, or too slow.
    pub(super) fn cancel(&mut self, link: &mut SessionLink) -> Result<(), LinkError> {
        for (call, called) in &mut self.open {
            if called.take_cancelled() {
                link.send(called.turn(), Down::ToolCancel(message::ToolCancel { call: *call }))?;
            }
        }
        self.open.retain(|_, called| called.is_wanted());
        Ok(())
    }

    /// A call that the glasses have not answered.
    pub(super) fn open(&mut self, call: u32) -> Option<&mut Called> {
        self.open.get_mut(&call)
    }

    /// The glasses have run one of their tools.
    pub(super) fn answered(&mut self, result: &up::ToolResult<'_>) {
        let Some(called) = self.open.remove(&result.call) else {
            tracing::debug!(call = result.call, "a device tool answered twice or too late");
            return;
        };
        let code = match result.error {
            "unknown_tool" => ErrorCode::ToolNotFound,
            "invalid_arguments" => ErrorCode::InvalidArguments,
            "cancelled" => ErrorCode::Cancelled,
            _ => ErrorCode::ExecutionError,
        };
        let error = (!result.ok).then(|| ToolError { code, message: result.content.to_owned(), retryable: false });
        let data = serde_json::from_str(result.data).ok();
        called.answer(ToolResult { content: result.content.to_owned(), data, error, ..ToolResult::default() });
    }

    /// Reports why a call failed, if a receiver is set.
    pub(super) fn tell_failure(&self, call_id: &str, result: &ToolResult) {
        let (Some(failures), Some(call), Some(error)) =
            (&self.failures, self.numbers.get(call_id).copied(), &result.error)
        else {
            return;
        };
        // If the channel is full, the failure is reported without its reason.
        drop(failures.try_send(ToolFailure { call, why: error.message.clone() }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_its_number_until_it_ends_and_no_other_call_gets_it() {
        let mut calls = DeviceCalls::new(None);
        let mut number = |id: &str, state| calls.activity(id, "", state).call;
        assert_eq!(number("a", ToolActivityState::Started), 1);
        assert_eq!(number("b", ToolActivityState::Started), 2);
        assert_eq!(number("a", ToolActivityState::Finished), 1);
        assert_eq!(number("a", ToolActivityState::Started), 3);
        assert_eq!(number("b", ToolActivityState::Failed), 2);
    }
}
