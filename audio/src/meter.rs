//! Counts of a model's inferences, and how long they took.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Inferences that count for the percentiles: the latest ones.
pub const RECENT_MAX: usize = 256;

/// Counts the inferences of one model, over all threads.
#[derive(Debug)]
pub struct Meter {
    since: Instant,
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    count: u64,
    failed: u64,
    total_us: u64,
    recent_us: VecDeque<u64>,
    last: Option<Instant>,
}

/// What a meter has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Inferences that ended well.
    pub count: u64,
    /// Those that failed. One that was cancelled is counted nowhere.
    pub failed: u64,
    /// Time of all that ended well, in microseconds.
    pub total_us: u64,
    /// Half of the latest [`RECENT_MAX`] that ended well took at most so many microseconds.
    pub p50_us: Option<u64>,
    /// 95 of 100 of them did.
    pub p95_us: Option<u64>,
    /// Time since the last one ended, well or not.
    pub last_age: Option<Duration>,
    /// Time since the meter was made, when its model was loaded.
    pub age: Duration,
}

impl Usage {
    /// Mean time of those that ended well, in microseconds.
    pub fn mean_us(&self) -> Option<u64> {
        self.total_us.checked_div(self.count)
    }
}

/// An inference under way. Dropped without an end, it is not counted.
pub struct Running<'m> {
    meter: &'m Meter,
    began: Instant,
}

impl Default for Meter {
    fn default() -> Self {
        Self { since: now(), counted: Mutex::default() }
    }
}

#[expect(clippy::disallowed_methods, reason = "the cost of inferences is measured, nothing is decided by it")]
fn now() -> Instant {
    Instant::now()
}

impl Meter {
    /// Begins to measure an inference.
    pub fn begin(&self) -> Running<'_> {
        Running { meter: self, began: now() }
    }

    /// Measures `work`.
    ///
    /// # Errors
    /// Those of `work`, which count as failures.
    pub fn measure<T, E>(&self, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        self.measure_unless(|_| false, work)
    }

    /// As [`measure`](Self::measure); an error for which `is_cancelled` is true is not counted.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn measure_unless<T, E>(
        &self,
        is_cancelled: impl FnOnce(&E) -> bool,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let running = self.begin();
        let done = work();
        match &done {
            Err(error) if is_cancelled(error) => {}
            done => running.end(done.is_ok()),
        }
        done
    }

    /// What was counted so far.
    pub fn read(&self) -> Usage {
        let counted = self.lock();
        let mut recent: Vec<u64> = counted.recent_us.iter().copied().collect();
        recent.sort_unstable();
        // Nearest rank.
        let at = |percent: usize| recent.get((recent.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        Usage {
            count: counted.count,
            failed: counted.failed,
            total_us: counted.total_us,
            p50_us: at(50),
            p95_us: at(95),
            last_age: counted.last.map(|last| last.elapsed()),
            age: self.since.elapsed(),
        }
    }

    fn add(&self, took: Duration, is_well: bool) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let mut counted = self.lock();
        counted.last = Some(now());
        if !is_well {
            counted.failed += 1;
            return;
        }
        counted.count += 1;
        counted.total_us = counted.total_us.saturating_add(us);
        if counted.recent_us.len() == RECENT_MAX {
            counted.recent_us.pop_front();
        }
        counted.recent_us.push_back(us);
    }

    /// Nothing that can panic runs under the lock, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running<'_> {
    /// It has ended; `is_well`: with a result.
    pub fn end(self, is_well: bool) {
        self.meter.add(self.began.elapsed(), is_well);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inferences_are_counted_by_their_end() {
        let meter = Meter::default();
        assert_eq!((meter.read().count, meter.read().p50_us, meter.read().last_age), (0, None, None));
        assert_eq!(meter.measure(|| Ok::<_, String>(7)), Ok(7));
        assert_eq!(meter.measure(|| Err::<(), _>("broken")), Err("broken"));
        assert_eq!(meter.measure_unless(|_| true, || Err::<(), _>("cancelled")), Err("cancelled"));
        let _abandoned = meter.begin();
        let usage = meter.read();
        assert_eq!((usage.count, usage.failed), (1, 1));
        assert!(usage.last_age.is_some_and(|age| age <= usage.age), "{usage:?}");
    }

    #[test]
    fn the_mean_is_of_all_and_percentiles_are_of_the_latest() {
        let meter = Meter::default();
        for _ in 0..RECENT_MAX {
            meter.add(Duration::from_secs(9), true);
        }
        for us in 1..=RECENT_MAX as u64 {
            meter.add(Duration::from_micros(us), true);
        }
        let usage = meter.read();
        assert_eq!((usage.p50_us, usage.p95_us), (Some(128), Some(244)));
        assert_eq!(usage.count, 2 * RECENT_MAX as u64);
        assert_eq!(usage.mean_us(), Some((RECENT_MAX as u64 * 9_000_000 + 128 * 257) / (2 * RECENT_MAX as u64)));
        assert_eq!(Usage::default().mean_us(), None);
    }
}
