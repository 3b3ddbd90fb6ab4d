//! Tool calls of a turn as the glasses know them: by a number on the display, or as calls that the glasses run
//! themselves.

use device_protocol::{Down, ToolState, down as message, limits};
use gateway_core::{
    output::ToolActivityState,
    vocab::{ErrorCode, ToolCall, ToolResult, Turn},
};

use super::{photos::Called, session::Session};
use crate::{mailbox::CallDevice, text::crop, transport::LinkError};

/// Calls whose numbers are kept at once: those of the current turn and of a few that were interrupted.
const NUMBERS_MAX: usize = 128;

impl Session {
    pub(super) fn activity(
        &mut self,
        turn: Turn,
        call_id: String,
        label: &str,
        state: ToolActivityState,
    ) -> Result<(), LinkError> {
        let call = self.number_of(&call_id);
        let state = match state {
            ToolActivityState::Started => ToolState::Started,
            ToolActivityState::Finished => ToolState::Finished,
            ToolActivityState::Failed => ToolState::Failed,
            ToolActivityState::Cancelled => ToolState::Cancelled,
        };
        if state != ToolState::Started {
            self.numbers.remove(&call_id);
        }
        let activity = message::ToolActivity { call, label: crop(label, limits::LABEL_BYTES_MAX), state };
        self.send(Some(turn), Down::ToolActivity(activity)).map(drop)
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
        self.numbered = self.numbered.wrapping_add(1);
        self.numbered
    }

    pub(super) fn call_device(&mut self, call: CallDevice) -> Result<(), LinkError> {
        self.cancel_calls()?;
        let CallDevice { turn, call: ToolCall { id, name, arguments }, deadline, cancel, reply } = call;
        if let Some(result) = self.call_own(&name, &arguments) {
            drop(reply.send(result));
            return Ok(());
        }
        // A call from outside the turn may have any id.
        let number = if turn.is_none() { self.next_number() } else { self.number_of(&id) };
        let text = arguments.to_string();
        let fits = text.len() <= limits::ARGUMENTS_BYTES_MAX && self.room.holds(text.len() + name.len());
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
        self.send(turn, Down::ToolCall(frame))?;
        self.calls.insert(number, Called::new(reply, cancel, turn, &arguments));
        Ok(())
    }

    /// Informs the glasses which of their calls are no longer wanted. Calls without a waiter are forgotten.
    pub(super) fn cancel_calls(&mut self) -> Result<(), LinkError> {
        let cancelled = |(call, called): (&u32, &mut Called)| called.take_cancelled().then(|| (*call, called.turn()));
        let cancelled: Vec<(u32, Option<Turn>)> = self.calls.iter_mut().filter_map(cancelled).collect();
        self.calls.retain(|_, called| called.is_wanted());
        for (call, turn) in cancelled {
            self.send(turn, Down::ToolCancel(message::ToolCancel { call }))?;
        }
        Ok(())
    }
}
