//! Histograms of durations for `/metrics`: of the stages of turns, of the wait for recognition, of calls of tools.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use gateway_core::vocab::ErrorCode;
use tools::{ledger::CallMeter, source::Source};

/// Upper bounds of the buckets in microseconds: from a call on this box to an answer that nobody waits for.
pub(crate) const BOUNDS_US: [u64; 15] = [
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    120_000_000,
];

/// Durations, counted by bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Histogram {
    /// Those above each bound's predecessor, up to that bound.
    pub(crate) buckets: [u64; BOUNDS_US.len()],
    /// All, also those above the last bound.
    pub(crate) count: u64,
    /// Of all, in microseconds.
    pub(crate) sum_us: u64,
}

impl Histogram {
    fn add(&mut self, us: u64) {
        if let Some(bucket) = BOUNDS_US.iter().position(|bound| us <= *bound).and_then(|at| self.buckets.get_mut(at)) {
            *bucket += 1;
        }
        self.count += 1;
        self.sum_us = self.sum_us.saturating_add(us);
    }
}

/// Series by the values of their labels. Labels are names of this program, so that there are few.
type Series<L> = Mutex<BTreeMap<L, Histogram>>;

/// All histograms.
#[derive(Default)]
pub(crate) struct Histograms {
    /// From the last voiced sample, or from a typed text, by stage.
    stages: Series<&'static str>,
    /// The wait of final decodes for a thread.
    asr_queue: Series<()>,
    /// Calls of tools, by kind of their source and outcome.
    tool_calls: Series<(&'static str, &'static str)>,
}

fn lock<L>(series: &Series<L>) -> MutexGuard<'_, BTreeMap<L, Histogram>> {
    series.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Histograms {
    pub(crate) fn stage(&self, stage: &'static str, us: u64) {
        lock(&self.stages).entry(stage).or_default().add(us);
    }

    pub(crate) fn asr_queue(&self, us: u64) {
        lock(&self.asr_queue).entry(()).or_default().add(us);
    }

    pub(crate) fn tool_call(&self, source: &'static str, outcome: &'static str, us: u64) {
        lock(&self.tool_calls).entry((source, outcome)).or_default().add(us);
    }

    /// By stage.
    pub(crate) fn stages(&self) -> BTreeMap<&'static str, Histogram> {
        lock(&self.stages).clone()
    }

    /// Of all final decodes.
    pub(crate) fn asr_queues(&self) -> Histogram {
        lock(&self.asr_queue).get(&()).copied().unwrap_or_default()
    }

    /// By kind of source, and outcome.
    pub(crate) fn tool_calls(&self) -> BTreeMap<(&'static str, &'static str), Histogram> {
        lock(&self.tool_calls).clone()
    }
}

impl CallMeter for Histograms {
    fn called(&self, source: &Source, error: Option<ErrorCode>, took_us: u64) {
        let source = match source {
            Source::BuiltIn => "built_in",
            Source::Device(_) => "device",
            Source::App(_) => "app",
            Source::Mcp(_) => "mcp",
            Source::Capability(_) => "capability",
        };
        let outcome = match error {
            None => "ok",
            Some(ErrorCode::ToolNotFound) => "tool_not_found",
            Some(ErrorCode::InvalidArguments) => "invalid_arguments",
            Some(ErrorCode::PermissionDenied) => "permission_denied",
            Some(ErrorCode::RateLimited) => "rate_limited",
            Some(ErrorCode::ApprovalDenied) => "approval_denied",
            Some(ErrorCode::ApprovalExpired) => "approval_expired",
            Some(ErrorCode::AppNotAvailable) => "app_not_available",
            Some(ErrorCode::HttpError) => "http_error",
            Some(ErrorCode::Timeout) => "timeout",
            Some(ErrorCode::Cancelled) => "cancelled",
            Some(ErrorCode::ExecutionError) => "execution_error",
        };
        self.tool_call(source, outcome, took_us);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_counted_in_their_buckets() {
        let histograms = Histograms::default();
        for us in [0, 1_000, 1_001, 120_000_000, 120_000_001, u64::MAX] {
            histograms.stage("final", us);
        }
        let stages = histograms.stages();
        let Histogram { buckets, count, sum_us } = stages["final"];
        assert_eq!((buckets[0], buckets[1], buckets[14], count, sum_us), (2, 1, 1, 6, u64::MAX));
        assert_eq!(histograms.asr_queues(), Histogram::default());
    }
}
