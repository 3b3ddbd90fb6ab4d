//! Async I/O for compute threads: the thread blocks until the result is there or nobody wants it any more.

use std::{
    future::Future,
    io,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::{
    runtime::{Builder, Runtime},
    time::{MissedTickBehavior, interval},
};

/// How often it is looked whether the result is still wanted: a wearer who interrupts notices nothing of it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A runtime of its own with one thread, so that it can be started and dropped anywhere.
pub(crate) struct IoRuntime(Option<Runtime>);

impl IoRuntime {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system cannot start it.
    pub(crate) fn start(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build()?;
        Ok(Self(Some(runtime)))
    }

    /// Waits for `work`; `None`: it was given up. Not for the threads of a runtime.
    pub(crate) fn run<T>(&self, given_up: &AtomicBool, work: impl Future<Output = T>) -> Option<T> {
        self.0.as_ref()?.block_on(async {
            tokio::select! {
                biased;
                () = is_set(given_up) => None,
                done = work => Some(done),
            }
        })
    }
}

async fn is_set(flag: &AtomicBool) {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !flag.load(Ordering::Relaxed) {
        looks.tick().await;
    }
}

impl Drop for IoRuntime {
    fn drop(&mut self) {
        // It may be dropped by a task, which must not wait.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, sync::Arc, thread};

    use super::*;

    #[test]
    fn what_is_given_up_is_not_waited_for() {
        let runtime = IoRuntime::start("test").unwrap();
        let flag = Arc::new(AtomicBool::new(false));
        assert_eq!(runtime.run(&flag, async { 7 }), Some(7));
        thread::scope(|scope| {
            scope.spawn(|| flag.store(true, Ordering::Relaxed));
            assert_eq!(runtime.run(&flag, pending::<()>()), None);
        });
        assert_eq!(runtime.run(&flag, async { 7 }), None, "it is not even begun");
    }

    #[tokio::test]
    async fn it_may_end_anywhere() {
        drop(IoRuntime::start("test").unwrap());
    }
}
