//! The number of lines that are not stored, since the start of the process.

use std::sync::atomic::{AtomicU64, Ordering};

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// So many since the start.
pub(super) fn count() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// More of them.
pub(super) fn add(lines: usize) {
    DROPPED.fetch_add(lines as u64, Ordering::Relaxed);
}
