//! Steps with their durations.

use std::time::Instant;

use crate::process::Failure;

/// Runs `work`; prints its name before and its duration after it.
pub(crate) fn step<T>(name: &str, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    eprintln!("== {name}");
    let started = Instant::now();
    let outcome = work();
    let seconds = started.elapsed().as_secs_f64();
    let verdict = if outcome.is_ok() { "done" } else { "FAILED" };
    eprintln!("== {name}: {verdict} in {seconds:.1} s");
    outcome
}
