//! A table of named timers, so that the cause of each wake-up is known.

/// A set of named deadlines in microseconds on the monotonic clock.
#[derive(Clone, Debug)]
pub(crate) struct Timers<const N: usize> {
    deadlines: [Option<u64>; N],
}

impl<const N: usize> Timers<N> {
    pub(crate) const fn new() -> Self {
        Self { deadlines: [None; N] }
    }

    pub(crate) fn arm(&mut self, index: usize, at_us: u64) {
        if let Some(deadline) = self.deadlines.get_mut(index) {
            *deadline = Some(at_us);
        }
    }

    pub(crate) fn disarm(&mut self, index: usize) {
        if let Some(deadline) = self.deadlines.get_mut(index) {
            *deadline = None;
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        self.deadlines.get(index).copied().flatten()
    }

    /// The earliest deadline and its index; among equal ones the first in the table.
    pub(crate) fn next(&self) -> Option<(u64, usize)> {
        self.deadlines.iter().enumerate().filter_map(|(index, deadline)| deadline.map(|at_us| (at_us, index))).min()
    }

    pub(crate) fn clear(&mut self) {
        self.deadlines = [None; N];
    }
}
