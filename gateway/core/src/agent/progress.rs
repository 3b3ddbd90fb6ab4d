//! What running calls are doing, on the display: one line for each, not more often than it can be read. Never spoken.

use alloc::string::String;

use super::{Active, Agent, calls::Step};
use crate::{
    context::Context,
    limits::{PROGRESS_CHARS_MAX, PROGRESS_MS_MIN},
    output::Output,
    timers::Timer,
    vocab::Turn,
};

/// A line that waits until it may be shown.
#[derive(Debug)]
pub(super) struct Progress {
    call_id: String,
    line: String,
}

impl Agent {
    /// A call is doing this now. Of lines that come faster than they may be shown, the last one is.
    pub(crate) fn handle_progress(&mut self, cx: &mut Context, turn: Turn, call_id: &str, line: &str) {
        let line: String = line.chars().filter(|c| !c.is_control()).take(PROGRESS_CHARS_MAX).collect();
        let Some(active) = self.current(turn).filter(|active| active.runs(call_id)) else {
            return;
        };
        if cx.display.is_none() || line.trim().is_empty() {
            return;
        }
        active.progress = Some(Progress { call_id: String::from(call_id), line });
        if !cx.armed(Timer::ProgressDue) {
            active.show_progress(cx);
        }
    }

    pub(crate) fn handle_progress_due(&mut self, cx: &mut Context) {
        if let Some(active) = &mut self.active {
            active.show_progress(cx);
        }
    }
}

impl Active {
    /// Shows the line that waits, unless its call has ended.
    fn show_progress(&mut self, cx: &mut Context) {
        let Some(Progress { call_id, line }) = self.progress.take() else {
            return;
        };
        if self.runs(&call_id) {
            cx.push(Output::ToolProgress { turn: self.turn, call_id, line });
            cx.arm(Timer::ProgressDue, PROGRESS_MS_MIN);
        }
    }

    /// Whether this call of the current step has no result yet.
    fn runs(&self, call_id: &str) -> bool {
        self.steps.last().is_some_and(|step: &Step| {
            step.calls.iter().any(|pending| pending.call.id == call_id && pending.result.is_none())
        })
    }
}
