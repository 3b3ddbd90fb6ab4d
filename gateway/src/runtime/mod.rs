//! Tasks and threads: the only place that spawns.

pub(crate) mod compute;
pub mod drive;

use std::{future::Future, io};

use audio::scheduling::Scheduling;
use tokio::{runtime::Runtime, task::JoinHandle};
use tracing::Instrument as _;

/// Threads that carry the tasks. What takes long runs beside them: in [`compute`] and on recognition threads. More than a
/// small box has cores, since one that waits for the voice detector, on a thread of its own, carries nothing meanwhile.
const THREADS: usize = 4;

/// The runtime that a gateway runs on.
///
/// # Errors
/// The system gives no thread.
pub fn build() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .on_thread_start(|| Scheduling::Responsive.apply())
        .enable_all()
        .build()
}

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
