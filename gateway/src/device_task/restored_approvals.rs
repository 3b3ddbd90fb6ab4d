//! Calls about which the wearer was being asked when the process died, and is asked again.

use gateway_core::vocab::ToolCall;
use tools::{executor::Executor, journal::LeftQuestion};

/// Those that were not made again yet.
#[derive(Default)]
pub(super) struct RestoredApprovals(Vec<LeftQuestion>);

impl RestoredApprovals {
    /// These calls are to be made only if their tools are as they were.
    pub(super) fn of(questions: Vec<LeftQuestion>) -> Self {
        Self(questions)
    }

    pub(super) fn calls(&self) -> Vec<ToolCall> {
        self.0.iter().map(|question| question.asked.call.clone()).collect()
    }

    /// The question about this call, which is made now.
    pub(super) fn take(&mut self, call: &ToolCall) -> Option<LeftQuestion> {
        let at = self.0.iter().position(|question| question.asked.call == *call)?;
        Some(self.0.swap_remove(at))
    }

    /// The wearer is asked about none of them any more.
    pub(super) fn give_up(&mut self, executor: &Executor, user: &str) {
        for question in std::mem::take(&mut self.0) {
            executor.give_up(user, &question);
        }
    }
}
