//! The tasks and threads that run until the gateway stops: one that ends earlier is noticed.

use std::{
    future::Future,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::spawn;

/// Time between two looks at the threads: a thread that ended is noticed as fast as a supervisor restarts a process.
const THREADS_EVERY: Duration = Duration::from_secs(1);

/// Whether the threads of a kind run.
type AreRunning = Box<dyn Fn() -> bool + Send + Sync>;

/// What must run, and the first part of it that ended. A gateway without one of them serves nobody, or only some: it
/// ends, so that its supervisor starts it again.
#[derive(Default)]
pub(crate) struct EssentialTasks {
    stop: CancellationToken,
    threads: Mutex<Vec<(&'static str, AreRunning)>>,
    ended: OnceLock<&'static str>,
    noticed: CancellationToken,
}

impl EssentialTasks {
    /// Nothing runs yet. After `stop`, everything may end.
    pub(crate) fn new(stop: CancellationToken) -> Arc<Self> {
        Arc::new(Self { stop, ..Self::default() })
    }

    /// Starts a task that runs until the stop.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let watched = Watched { essential: self.clone(), name };
        spawn(name, async move {
            // Dropped at the end of the task, also when it panics.
            let _watched = watched;
            task.await;
        })
    }

    /// Watches threads that run until the stop.
    pub(crate) fn watch(&self, name: &'static str, are_running: impl Fn() -> bool + Send + Sync + 'static) {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push((name, Box::new(are_running)));
    }

    /// Names of the threads that are watched.
    pub(crate) fn watched(&self) -> Vec<&'static str> {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.iter().map(|(name, _)| *name).collect()
    }

    /// The first part that ended before the stop, if any.
    pub(crate) fn ended(&self) -> Option<&'static str> {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((name, _)) = threads.iter().find(|(_, are_running)| !are_running()) {
            self.report(name);
        }
        self.ended.get().copied()
    }

    /// Looks after the threads until one has ended, or until the stop.
    pub(crate) async fn look_after_threads(self: Arc<Self>) {
        while self.ended().is_none() {
            if self.stop.run_until_cancelled(tokio::time::sleep(THREADS_EVERY)).await.is_none() {
                return;
            }
        }
    }

    /// Waits for the first part that ends before the stop.
    pub(crate) async fn failed(&self) -> &'static str {
        self.noticed.cancelled().await;
        self.ended.get().copied().unwrap_or_default()
    }

    fn report(&self, name: &'static str) {
        if !self.stop.is_cancelled() && self.ended.set(name).is_ok() {
            tracing::error!(part = name, "a part that the gateway cannot do without has ended by itself");
            self.noticed.cancel();
        }
    }
}

/// Reports the end of a task.
struct Watched {
    essential: Arc<EssentialTasks>,
    name: &'static str,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.essential.report(self.name);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_or_returns_before_the_stop_is_noticed() {
        let essential = EssentialTasks::new(CancellationToken::new());
        assert!(essential.spawn("listen", async { panic!("on purpose") }).await.is_err());
        assert_eq!((essential.failed().await, essential.ended()), ("listen", Some("listen")));
        let essential = EssentialTasks::new(CancellationToken::new());
        essential.spawn("control", async {}).await.unwrap();
        assert_eq!(essential.failed().await, "control");
    }

    #[tokio::test]
    async fn what_ends_after_the_stop_is_not_reported() {
        let stop = CancellationToken::new();
        let essential = EssentialTasks::new(stop.clone());
        let task = essential.spawn("listen", stop.clone().cancelled_owned());
        stop.cancel();
        task.await.unwrap();
        assert_eq!(essential.ended(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_thread_that_ends_is_noticed() {
        let essential = EssentialTasks::new(CancellationToken::new());
        let running = Arc::new(AtomicBool::new(true));
        let state = running.clone();
        essential.watch("tts", move || state.load(Ordering::Relaxed));
        let looking = spawn("threads", essential.clone().look_after_threads());
        assert_eq!(essential.ended(), None);
        running.store(false, Ordering::Relaxed);
        assert_eq!(essential.failed().await, "tts");
        looking.await.unwrap();
    }
}
