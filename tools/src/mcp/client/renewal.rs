//! When a subscription that has ended is requested again.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use tokio::time::{Instant, sleep};

/// Maximum pause before an attempt to connect or to subscribe.
pub(super) const PAUSE_MS_MAX: u64 = 60_000;
/// Pause before a subscription is renewed for the first time.
const LOST_PAUSE_MS: u64 = 1_000;
/// After a connection or a subscription that lasted this long, pauses are short again.
pub(super) const STEADY_MS: u64 = 30_000;

/// Growing pauses of at most [`PAUSE_MS_MAX`], without end.
pub(super) fn pauses(first_ms: u64) -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(first_ms))
        .with_max_delay(Duration::from_millis(PAUSE_MS_MAX))
        .without_max_times()
        .with_jitter()
        .build()
}

/// The pauses of one subscription: a server that ends each one at once is not asked all the time.
pub(super) struct Renewal {
    pauses: ExponentialBackoff,
    opened: Option<Instant>,
}

impl Renewal {
    pub(super) fn new() -> Self {
        Self { pauses: pauses(LOST_PAUSE_MS), opened: None }
    }

    /// The server has accepted the subscription.
    pub(super) fn opened(&mut self) {
        self.opened = Some(Instant::now());
    }

    /// Waits until the subscription, which has ended or was refused, may be requested again.
    pub(super) async fn wait(&mut self) {
        if self.opened.take().is_some_and(|opened| opened.elapsed() >= Duration::from_millis(STEADY_MS)) {
            self.pauses = pauses(LOST_PAUSE_MS);
        }
        sleep(self.pauses.next().unwrap_or(Duration::from_millis(PAUSE_MS_MAX))).await;
    }
}
