//! The simulator's clock: microseconds since power-on, from tokio's monotonic time.

use std::time::Duration;

use tokio::time::Instant;

/// The session clock of one pair of glasses. Copies show the same time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that shows 0 now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Microseconds since the start.
    pub fn now_us(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The instant at which this clock shows `at_us`.
    pub fn instant(&self, at_us: u64) -> Instant {
        self.origin + Duration::from_micros(at_us)
    }
}
