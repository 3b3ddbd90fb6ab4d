//! A circuit breaker: what failed is not asked again for a while, so that a dead server costs one deadline and not one for
//! each sentence. After M. Nygard, "Release It!".

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rest after the first failure.
const REST_US: u64 = 30_000_000;
/// Longest rest: the rest doubles with each failure.
const REST_US_MAX: u64 = 300_000_000;

/// The state of one server or program. Times are those of [`crate::clock::mono_us`].
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Failures since the last answer.
    failures: u32,
    rests_until_us: u64,
    /// One request tries whether it answers again.
    trying: bool,
}

/// A request that may be sent. Dropped without an end, it tells nothing.
pub(super) struct Permit<'b> {
    breaker: &'b Breaker,
    tries: bool,
}

impl Breaker {
    /// Whether a request may be sent: always while it answers; after a rest one at a time.
    pub(super) fn permit(&self, now_us: u64) -> Option<Permit<'_>> {
        let mut state = self.lock();
        if state.failures > 0 && (state.trying || now_us < state.rests_until_us) {
            return None;
        }
        state.trying = state.failures > 0;
        Some(Permit { breaker: self, tries: state.trying })
    }

    /// A request that is sent in any case.
    pub(super) fn insist(&self) -> Permit<'_> {
        Permit { breaker: self, tries: false }
    }

    /// Microseconds of the present rest.
    pub(super) fn rest_us(&self, now_us: u64) -> Option<u64> {
        let state = self.lock();
        state.rests_until_us.checked_sub(now_us).filter(|rest| state.failures > 0 && *rest > 0)
    }

    /// No code that can panic runs under the lock, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// The server works: earlier failures are forgotten, and requests are permitted at once.
    pub(super) fn answered(self) {
        let mut state = self.breaker.lock();
        (state.failures, state.rests_until_us) = (0, 0);
    }

    /// It failed. Requests that were under way together count once.
    pub(super) fn failed(self, now_us: u64) {
        let mut state = self.breaker.lock();
        if now_us >= state.rests_until_us {
            let rest_us = REST_US.saturating_mul(1 << state.failures.min(16)).min(REST_US_MAX);
            state.failures = state.failures.saturating_add(1);
            state.rests_until_us = now_us.saturating_add(rest_us);
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.tries {
            self.breaker.lock().trying = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_rests_and_is_then_tried_by_one_request() {
        let breaker = Breaker::default();
        breaker.permit(0).unwrap().answered();
        let (one, other) = (breaker.permit(10).unwrap(), breaker.permit(10).unwrap());
        one.failed(1_000_000);
        other.failed(1_000_010);
        assert_eq!(breaker.rest_us(1_000_000), Some(REST_US), "two at once count once");
        assert!(breaker.permit(1_000_000 + REST_US - 1).is_none());
        let tried = breaker.permit(1_000_000 + REST_US).unwrap();
        assert!(breaker.permit(1_000_000 + REST_US).is_none(), "one tries");
        tried.failed(40_000_000);
        assert_eq!(breaker.rest_us(40_000_000), Some(2 * REST_US));
        // A try that was given up says nothing; the next one may follow at once.
        drop(breaker.permit(100_000_000).unwrap());
        breaker.permit(100_000_000).unwrap().answered();
        assert_eq!(breaker.rest_us(100_000_000), None);
        assert!(breaker.permit(100_000_000).is_some() && breaker.permit(100_000_000).is_some());
    }

    #[test]
    fn rests_have_an_end_and_insisting_is_always_possible() {
        let breaker = Breaker::default();
        let mut now_us = 0;
        for _ in 0..80 {
            breaker.insist().failed(now_us);
            let rest_us = breaker.rest_us(now_us).unwrap();
            assert!((REST_US..=REST_US_MAX).contains(&rest_us));
            now_us += rest_us;
        }
        assert_eq!(breaker.rest_us(now_us), None);
        breaker.insist().answered();
        assert!(breaker.permit(now_us).is_some());
    }
}
