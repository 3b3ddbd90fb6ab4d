//! A program's computing time: processor time of the thread that runs it. It stands still while the program waits for
//! its calls, and while other programs have the processor.

use std::{cell::Cell, time::Duration};

use rustix::time::{ClockId, clock_gettime};

/// Counts computing time up to a limit. Begins without one.
#[derive(Debug)]
pub struct ComputeClock {
    /// What the thread's clock says when the time is used up.
    end: Cell<Duration>,
}

impl Default for ComputeClock {
    fn default() -> Self {
        Self { end: Cell::new(Duration::MAX) }
    }
}

impl ComputeClock {
    /// So much is left from now on, if less is not left anyway.
    pub fn limit(&self, left: Duration) {
        self.end.set(self.end.get().min(computed().saturating_add(left)));
    }

    /// Whether the time is used up; it stays so.
    pub fn is_over(&self) -> bool {
        computed() >= self.end.get()
    }
}

/// Processor time of this thread since its start.
fn computed() -> Duration {
    // The kernel's times of a thread are never negative.
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}
