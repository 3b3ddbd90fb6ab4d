//! Tool calls as the glasses know them: by a number on the display, or as calls that the glasses run themselves.

use std::collections::{BTreeMap, BTreeSet};

use device_protocol::{Down, ToolState, down as message, limits, up};
use gateway_core::{
    output::ToolActivityState,
    vocab::{ErrorCode, ToolCall, ToolError, ToolResult},
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{link::SessionLink, photos::Called};
use crate::{
    mailbox::CallDevice,
    text::crop,
    transport::{LinkError, ToolFailure},
};

/// Calls whose numbers are kept at once: those of the current turn and of a few that were interrupted.
const NUMBERS_MAX: usize = 128;
/// Calls of which is known that their photos are to be stored: more than a session makes in the time that a photo takes over
/// a link that is slow, or lost for a while.
const KEEPING_MAX: usize = 1_024;

/// Calls of a session, numbered for its device.
pub(super) struct DeviceCalls {
    /// Calls that the glasses have not answered, by number.
    open: BTreeMap<u32, Called>,
    /// Numbers of running calls, by id.
    numbers: BTreeMap<String, u32>,
    /// The latest calls whose photos are stored for the wearer, by number. A photo may come when nobody waits for its call any
    /// more: one of a call that is not among these is not stored.
    keeping: BTreeSet<u32>,
    /// The last number assigned.
    last_number: u32,
    /// Where failures of tools are reported with their reasons.
    failures: Option<mpsc::Sender<ToolFailure>>,
}

impl DeviceCalls {
    /// None yet. `failures`: where failures of tools are reported with their reasons.
    pub(super) fn new(failures: Option<mpsc::Sender<ToolFailure>>) -> Self {
        Self { open: BTreeMap::new(), numbers: BTreeMap::new(), keeping: BTreeSet::new(), last_number: 0, failures }
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
        self.open.insert(number, Called::new(reply, cancel, turn));
        self.note_keeping(number, &arguments);
        Ok(())
    }

    /// With `"keep": false` in its arguments, the photos of a call are looked at but not stored.
    fn note_keeping(&mut self, call: u32, arguments: &Value) {
        if arguments.get("keep") == Some(&Value::Bool(false)) {
            self.keeping.remove(&call);
            return;
        }
        self.keeping.insert(call);
        if self.keeping.len() > KEEPING_MAX {
            self.keeping.pop_first();
        }
    }

    /// Whether the photos of a call are stored for the wearer, also when it has ended.
    pub(super) fn keeps_photos(&self, call: u32) -> bool {
        self.keeping.contains(&call)
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
    use std::time::Duration;

    use device_protocol::{
        Buttons, Codecs, DisplayKind, Sensors,
        up::{Capabilities, Screen},
    };
    use serde_json::json;
    use tokio::sync::oneshot;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{device_task::incoming::Incoming, transport::memory};

    /// Glasses with no more than tools.
    fn capabilities() -> Capabilities {
        let display = Screen {
            kind: DisplayKind::Pixels,
            width_px: 0,
            height_px: 0,
            columns: 0,
            rows: 0,
            colour_bits: 1,
            captions: false,
        };
        Capabilities {
            codecs_up: Codecs::EMPTY,
            codecs_down: Codecs::EMPTY,
            audio_up_hz: 0,
            audio_down_hz: 0,
            display,
            speakers: 0,
            buttons: Buttons::EMPTY,
            sensors: Sensors::EMPTY,
            echo_cancelled: false,
            tools: 0,
            frame_bytes_max: 0,
            heartbeat_ms: 0,
            image_bytes_max: 0,
            hardware: 0,
            lc3_frame_us: 0,
            lc3_frame_bytes: 0,
        }
    }

    #[test]
    fn whether_photos_of_a_call_are_stored_is_known_when_nobody_waits_for_it_any_more() {
        let (link, _ends) = memory::link();
        let mut link = SessionLink::new((&link, 0), &capabilities(), Incoming::default(), 1_000, false);
        let mut calls = DeviceCalls::new(None);
        for arguments in [json!({"keep": false}), json!({}), json!({"keep": true})] {
            let (reply, answer) = oneshot::channel();
            let call = ToolCall { id: String::new(), name: "camera.photo".to_owned(), arguments };
            let deadline = Duration::from_secs(20);
            let call = CallDevice { turn: None, call, deadline, cancel: CancellationToken::new(), reply };
            assert!(calls.call(call, &mut link).is_ok());
            // The deadline passes.
            drop(answer);
        }
        assert!(calls.cancel(&mut link).is_ok());
        assert!((1..=3).all(|call| calls.open(call).is_none()));
        assert_eq!([1, 2, 3].map(|call| calls.keeps_photos(call)), [false, true, true]);
        assert!(!calls.keeps_photos(4), "a call that this session does not know");
    }

    #[test]
    fn the_calls_whose_photos_are_stored_are_bounded() {
        let mut calls = DeviceCalls::new(None);
        for _ in 0..=KEEPING_MAX {
            let call = calls.next_number();
            calls.note_keeping(call, &json!({}));
        }
        assert_eq!((calls.keeping.len(), calls.keeps_photos(1), calls.keeps_photos(2)), (KEEPING_MAX, false, true));
        calls.note_keeping(2, &json!({"keep": false}));
        assert!(!calls.keeps_photos(2));
    }

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
