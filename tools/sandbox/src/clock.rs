//! A program's computing time: it stands still while the program waits for its calls.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// Counts computing time up to a limit.
#[derive(Debug)]
pub struct ComputeClock {
    left: Cell<Duration>,
    running_since: Cell<Option<Instant>>,
    over: Cell<bool>,
}

impl ComputeClock {
    /// A clock that stands still.
    pub fn new(limit: Duration) -> Self {
        Self { left: Cell::new(limit), running_since: Cell::new(None), over: Cell::new(false) }
    }

    /// Sets the time that is left.
    pub fn limit(&self, limit: Duration) {
        self.left.set(limit);
    }

    /// Sets the time that is left from now on, if less is wanted.
    pub fn limit_now(&self, limit: Duration) {
        let running = self.running_since.get().map_or(Duration::ZERO, |since| since.elapsed());
        self.left.set(self.left.get().min(running.saturating_add(limit)));
    }

    /// Runs from now on.
    pub fn start(&self) {
        self.running_since.set(Some(Instant::now()));
    }

    /// Stands still from now on.
    pub fn stop(&self) {
        if let Some(since) = self.running_since.take() {
            self.left.set(self.left.get().saturating_sub(since.elapsed()));
        }
    }

    /// Whether the time is used up; it stays so.
    pub fn is_over(&self) -> bool {
        let running = self.running_since.get().map_or(Duration::ZERO, |since| since.elapsed());
        if running >= self.left.get() {
            self.over.set(true);
        }
        self.over.get()
    }
}
