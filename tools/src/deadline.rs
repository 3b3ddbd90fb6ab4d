//! When a call has to end. The deadline of a program stands still while the wearer is asked about one of its calls.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// When a call has to end. Clones share the time that does not count.
#[derive(Clone, Debug)]
pub struct Deadline {
    /// Without the time that does not count.
    at: Instant,
    /// `None`: all time counts.
    held: Option<Arc<watch::Sender<Held>>>,
}

/// Time that does not count.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Questions that are open.
    asking: usize,
    /// Since when at least one is.
    since: Option<Instant>,
    /// In total, before that.
    total: Duration,
}

/// The deadline stands still while this is held.
#[derive(Debug)]
pub(crate) struct Suspended(Option<Arc<watch::Sender<Held>>>);

impl Deadline {
    /// A deadline that never stands still.
    pub(crate) fn fixed(after: Duration) -> Self {
        Self { at: Instant::now() + after, held: None }
    }

    /// A deadline that can be [suspended](Self::suspend).
    pub(crate) fn suspendable(after: Duration) -> Self {
        Self { held: Some(Arc::default()), ..Self::fixed(after) }
    }

    /// The earlier one of this deadline and one of a shorter span that begins now. It stands still together with this
    /// one.
    #[must_use]
    pub fn within(&self, span: Duration) -> Self {
        let held = self.held();
        let now = held.since.unwrap_or_else(Instant::now);
        let counted = now.checked_sub(held.total).unwrap_or(now);
        Self { at: self.at.min(counted + span), held: self.held.clone() }
    }

    /// The time that is left; it does not shrink while the wearer is asked.
    pub fn left(&self) -> Duration {
        let held = self.held();
        (self.at + held.total).saturating_duration_since(held.since.unwrap_or_else(Instant::now))
    }

    /// Returns when it has passed.
    pub async fn passed(&self) {
        let Some(held) = &self.held else {
            return sleep_until(self.at).await;
        };
        let mut changes = held.subscribe();
        loop {
            let Held { since, total, .. } = *changes.borrow_and_update();
            if since.is_some() {
                drop(changes.changed().await);
                continue;
            }
            tokio::select! {
                biased;
                _ = changes.changed() => {}
                () = sleep_until(self.at + total) => return,
            }
        }
    }

    /// Lets it stand still.
    pub(crate) fn suspend(&self) -> Suspended {
        if let Some(held) = &self.held {
            held.send_modify(|held| {
                held.asking += 1;
                held.since.get_or_insert_with(Instant::now);
            });
        }
        Suspended(self.held.clone())
    }

    fn held(&self) -> Held {
        self.held.as_ref().map(|held| *held.borrow()).unwrap_or_default()
    }
}

impl Drop for Suspended {
    fn drop(&mut self) {
        let Some(held) = &self.0 else { return };
        held.send_modify(|held| {
            held.asking = held.asking.saturating_sub(1);
            if held.asking == 0
                && let Some(since) = held.since.take()
            {
                held.total += since.elapsed();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn it_stands_still_while_anybody_is_asked() {
        let deadline = Deadline::suspendable(10 * SECOND);
        advance(4 * SECOND).await;
        let first = deadline.suspend();
        advance(3 * SECOND).await;
        // Questions that overlap do not count twice.
        let second = deadline.suspend();
        advance(50 * SECOND).await;
        drop(first);
        advance(7 * SECOND).await;
        assert_eq!(deadline.left(), 6 * SECOND);
        assert!(deadline.passed().now_or_never().is_none());
        let sooner = deadline.within(2 * SECOND);
        assert_eq!((sooner.left(), deadline.within(99 * SECOND).left()), (2 * SECOND, 6 * SECOND));
        drop(second);
        let began = Instant::now();
        sooner.passed().await;
        assert_eq!((began.elapsed(), deadline.left()), (2 * SECOND, 4 * SECOND));
        // A question that begins while somebody waits for the end.
        let asking = async {
            advance(SECOND).await;
            let _asked = deadline.suspend();
            advance(20 * SECOND).await;
        };
        tokio::join!(deadline.passed(), asking);
        assert_eq!((began.elapsed(), deadline.left()), (26 * SECOND, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_fixed_one_never_stands_still() {
        let deadline = Deadline::fixed(SECOND);
        let _suspended = deadline.suspend();
        advance(SECOND).await;
        assert_eq!(deadline.left(), Duration::ZERO);
        deadline.passed().await;
    }
}
