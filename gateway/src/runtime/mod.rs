//! Tasks and threads: the only place that spawns.

pub mod compute;
pub mod drive;

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

/// Sleeps until then, or for ever.
pub async fn sleep_until(wake: Option<tokio::time::Instant>) {
    match wake {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
