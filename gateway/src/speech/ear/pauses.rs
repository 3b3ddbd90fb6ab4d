//! Which pause a score is about.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// Numbers pauses and the voice between them, so that the score of an ended pause is recognised as stale, both before
/// and after it is computed.
#[derive(Clone, Default)]
pub(super) struct Pauses(Arc<AtomicU32>);

impl Pauses {
    /// Begins a new pause or voice segment and returns its number. Wraps after years.
    pub(super) fn begin(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    pub(super) fn is_present(&self, number: u32) -> bool {
        self.0.load(Ordering::Relaxed) == number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_of_a_pause_that_is_over_is_stale() {
        let pauses = Pauses::default();
        let (beside, first) = (pauses.clone(), pauses.begin());
        assert!(beside.is_present(first));
        let voice = pauses.begin();
        assert!(!beside.is_present(first));
        let second = pauses.begin();
        assert!(beside.is_present(second) && !beside.is_present(first) && !beside.is_present(voice));
    }
}
