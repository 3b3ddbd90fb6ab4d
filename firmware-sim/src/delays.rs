//! How long sound is on its way, over many glasses: from the end of a packet to its acknowledgement.

use std::sync::atomic::{AtomicU64, Ordering};

/// Milliseconds that are told apart: what takes longer counts as the last one.
const MS_MAX: usize = 5_000;

/// Counts delays by the millisecond. Any number of glasses may share it.
#[derive(Debug)]
pub struct Delays(Vec<AtomicU64>);

impl Default for Delays {
    fn default() -> Self {
        Self((0..=MS_MAX).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Delays {
    /// Counts a delay of so many microseconds.
    pub fn note(&self, us: u64) {
        let ms = usize::try_from(us / 1_000).unwrap_or(MS_MAX).min(MS_MAX);
        if let Some(count) = self.0.get(ms) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Begins anew.
    pub fn clear(&self) {
        self.0.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// Milliseconds within which this share of them was over, from 0 to 1; `None`: none was counted.
    pub fn quantile_ms(&self, share: f64) -> Option<u64> {
        let wanted = ((share * self.count() as f64).ceil() as u64).max(1);
        let mut sum = 0;
        let within = self.0.iter().position(|count| {
            sum += count.load(Ordering::Relaxed);
            sum >= wanted
        });
        within.map(|ms| ms as u64 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_from_the_counts() {
        let delays = Delays::default();
        assert_eq!((delays.count(), delays.quantile_ms(0.5)), (0, None));
        for ms in 0..100 {
            delays.note(ms * 1_000 + 999);
        }
        assert_eq!(delays.count(), 100);
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|share| delays.quantile_ms(share)), [1, 50, 99, 100].map(Some));
        delays.note(u64::MAX);
        assert_eq!(delays.quantile_ms(1.0), Some(5_001));
        delays.clear();
        assert_eq!(delays.count(), 0);
    }
}
