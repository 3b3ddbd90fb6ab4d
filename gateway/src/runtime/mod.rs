//! Tasks, and threads that compute: the gateway spawns tasks in this module only. A part that has a thread of its own
//! (the store, the log, a recording) starts it by itself.

pub(crate) mod compute;
pub(crate) mod descriptors;
pub mod drive;
pub(crate) mod essential;
pub(crate) mod heap;
pub(crate) mod io;
pub(crate) mod readers;
pub(crate) mod restarts;

use std::future::Future;

use audio::scheduling::Scheduling;
use tokio::{runtime::Runtime, task::JoinHandle};
use tracing::Instrument as _;

/// Threads that run the tasks. Long work runs elsewhere: in [`compute`] and on recognition threads. More threads than a
/// small box has cores, since one that waits for the voice detector's own thread runs nothing meanwhile.
const THREADS: usize = 4;

/// The runtime of a gateway.
///
/// # Errors
/// The system cannot start a thread.
pub fn build() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .on_thread_start(|| Scheduling::Responsive.apply())
        .enable_all()
        .build()
}

/// Starts a task with the caller's span.
#[allow(clippy::disallowed_methods)] // the one place
pub fn spawn<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future.instrument(tracing::debug_span!("task", name)))
}

/// Starts a task with the caller's span. If it panics, `fell` is called in a task of its own.
pub(crate) fn spawn_or<F>(name: &'static str, future: F, fell: impl FnOnce() + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    let task = spawn(name, future);
    spawn(name, async move {
        if task.await.is_err_and(|error| error.is_panic()) {
            fell();
        }
    });
}

/// Runs blocking work on one of the runtime's blocking threads.
#[allow(clippy::disallowed_methods)] // the one place
pub(crate) fn on_own_thread<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    tokio::task::spawn_blocking(work)
}

/// Sleeps until then; `None`: indefinitely.
pub async fn sleep_until(wake: Option<tokio::time::Instant>) {
    match wake {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
