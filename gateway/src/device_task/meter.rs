//! Rate limit of a device: two token buckets that refill over two seconds.

use crate::{limits::Traffic, transport::LinkError};

/// Seconds of the allowed rate that may arrive in one burst: a replay after a lost link.
const BURST_S: u64 = 2;

/// One device's allowance.
pub(super) struct Meter {
    frames: Bucket,
    bytes: Bucket,
    at_us: u64,
}

struct Bucket {
    /// In millionths, so that a refill of microseconds is exact.
    level: u64,
    per_s: u64,
}

impl Bucket {
    fn new(per_s: u32) -> Self {
        let per_s = u64::from(per_s);
        Self { level: per_s * BURST_S * 1_000_000, per_s }
    }

    fn refill(&mut self, elapsed_us: u64) {
        let full = self.per_s * BURST_S * 1_000_000;
        self.level = self.level.saturating_add(elapsed_us.saturating_mul(self.per_s)).min(full);
    }

    fn take(&mut self, amount: u64) -> bool {
        let cost = amount.saturating_mul(1_000_000);
        let enough = self.level >= cost;
        self.level = self.level.saturating_sub(cost);
        enough
    }
}

impl Meter {
    pub(super) fn new(traffic: Traffic, now_us: u64) -> Self {
        let Traffic { frames_per_s_max, bytes_per_s_max } = traffic;
        Self { frames: Bucket::new(frames_per_s_max), bytes: Bucket::new(bytes_per_s_max), at_us: now_us }
    }

    /// Counts one frame.
    ///
    /// # Errors
    /// The device exceeds its rate.
    pub(super) fn count(&mut self, bytes: usize, now_us: u64) -> Result<(), LinkError> {
        let elapsed_us = now_us.saturating_sub(self.at_us);
        self.at_us = now_us;
        self.frames.refill(elapsed_us);
        self.bytes.refill(elapsed_us);
        if !self.frames.take(1) {
            return Err(LinkError::Flooding("the allowed frames a second"));
        }
        if !self.bytes.take(bytes as u64) {
            return Err(LinkError::Flooding("the allowed bytes a second"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAFFIC: Traffic = Traffic { frames_per_s_max: 100, bytes_per_s_max: 10_000 };

    #[test]
    fn a_steady_stream_passes_and_a_flood_does_not() {
        let mut meter = Meter::new(TRAFFIC, 0);
        for frame in 0..10_000_u64 {
            meter.count(90, frame * 10_000).unwrap();
        }
        let mut meter = Meter::new(TRAFFIC, 0);
        let passed = (0..1_000).take_while(|_| meter.count(10, 0).is_ok()).count();
        assert_eq!(passed, 200);
        let mut meter = Meter::new(TRAFFIC, 0);
        assert!(matches!(meter.count(20_001, 0), Err(LinkError::Flooding(_))));
    }
}
