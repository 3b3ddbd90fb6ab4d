//! The only place that spawns: everything that runs beside a device's task.

pub mod books;
pub mod compute;
pub mod context;
pub mod intents;
pub mod memory;
pub mod ports;
pub mod preferences;
pub mod prepare;
pub mod questions;
pub mod summary;
pub mod work;

use std::future::Future;

use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// Starts a task that carries the caller's span.
#[allow(clippy::disallowed_methods)] // the one place
pub fn spawn<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future.instrument(tracing::debug_span!("task", name)))
}

/// Runs work that blocks, at start-up, on a thread of the runtime's own.
#[allow(clippy::disallowed_methods)] // the one place
pub fn on_own_thread<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    tokio::task::spawn_blocking(work)
}
