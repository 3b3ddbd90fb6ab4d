//! Delays of frames, told from one process to the other.

use anyhow::{Context as _, Result};

use super::common::aims::Aims;

/// Aim for the delay of a frame at 99 %, in milliseconds.
const FRAME_MS_MAX: u64 = 40;

/// How frames fared, as the second process tells it.
pub struct Frames {
    /// Those that were timed.
    pub count: u64,
    /// Milliseconds within which half of them and 99 % were acknowledged.
    pub median_ms: u64,
    pub p99_ms: u64,
    /// Sessions that were lost or in violation.
    pub lost: u64,
}

impl Frames {
    pub fn tell(&self) -> String {
        format!("{} {} {} {}", self.count, self.median_ms, self.p99_ms, self.lost)
    }

    pub fn read(line: &str) -> Result<Self> {
        let mut numbers = line.split_whitespace().map(str::parse::<u64>);
        let mut next = || -> Result<u64> { Ok(numbers.next().context("four numbers")??) };
        Ok(Self { count: next()?, median_ms: next()?, p99_ms: next()?, lost: next()? })
    }

    /// Prints them, with their aims.
    pub fn report(&self, aims: &mut Aims) {
        let Self { count, median_ms, p99_ms, lost } = *self;
        println!("delay of {count} frames: {median_ms} ms at the median, {p99_ms} ms at 99 %");
        let is_met = count > 0 && p99_ms <= FRAME_MS_MAX;
        aims.note(is_met, format!("frames at 99 %: {p99_ms} ms, aim {FRAME_MS_MAX}"));
        aims.note(lost == 0, format!("{lost} sessions lost or in violation, aim none"));
    }
}
