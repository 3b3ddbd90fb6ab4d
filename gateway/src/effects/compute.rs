//! Named threads for work that would hold up the network: synthesis, model loading.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
};

type Job = Box<dyn FnOnce() + Send>;

/// A fixed pool with a bounded queue.
#[derive(Clone)]
pub struct Compute {
    queue: SyncSender<Job>,
}

/// The queue is full.
#[derive(Debug, thiserror::Error)]
#[error("too much work is waiting")]
pub struct Full;

impl Compute {
    /// Starts `threads` threads named `NAME-0`, `NAME-1`, …, in front of which `waiting_max` jobs
    /// may wait. Jobs start in the order in which they were given.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(name: &str, threads: usize, waiting_max: usize) -> std::io::Result<Self> {
        let (queue, jobs) = sync_channel::<Job>(waiting_max);
        let jobs = Arc::new(Mutex::new(jobs));
        for index in 0..threads {
            let jobs = jobs.clone();
            thread::Builder::new().name(format!("{name}-{index}")).spawn(move || work(&jobs))?;
        }
        Ok(Self { queue })
    }

    /// Queues a job.
    ///
    /// # Errors
    /// The queue is full; the job was dropped.
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<(), Full> {
        self.queue.try_send(Box::new(job)).map_err(|error| match error {
            TrySendError::Full(_) | TrySendError::Disconnected(_) => Full,
        })
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("a compute job panicked; the thread goes on");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panicking_job_leaves_the_thread_alive_and_the_queue_is_bounded() {
        let compute = Compute::start("test", 1, 1).unwrap();
        compute.submit(|| panic!("on purpose")).unwrap();
        let (started, has_started) = sync_channel(1);
        let (release, released) = sync_channel::<()>(1);
        // The queue has one place; the panicking job may still be in it.
        let mut blocker: Option<Job> = Some(Box::new(move || {
            started.send(()).unwrap();
            released.recv().unwrap();
        }));
        while let Some(job) = blocker.take() {
            if let Err(TrySendError::Full(job)) = compute.queue.try_send(job) {
                blocker = Some(job);
                thread::yield_now();
            }
        }
        has_started.recv().unwrap();
        compute.submit(|| {}).unwrap();
        assert!(compute.submit(|| {}).is_err());
        release.send(()).unwrap();
    }
}
