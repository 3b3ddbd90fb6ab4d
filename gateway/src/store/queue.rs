//! The writer's queue: bounded, and counted.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
    mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
};

use super::Error;

/// Jobs that wait, and those refused since the start.
#[derive(Default)]
struct Load {
    waiting: AtomicUsize,
    refused: AtomicU64,
}

/// Where jobs are put.
pub(super) struct Queue<T> {
    jobs: SyncSender<T>,
    load: Arc<Load>,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self { jobs: self.jobs.clone(), load: self.load.clone() }
    }
}

/// The writer's end.
pub(super) struct Jobs<T> {
    jobs: Receiver<T>,
    load: Arc<Load>,
}

/// A queue of at most so many jobs.
pub(super) fn bounded<T>(waiting_max: usize) -> (Queue<T>, Jobs<T>) {
    let (sender, jobs) = sync_channel(waiting_max);
    let load = Arc::<Load>::default();
    (Queue { jobs: sender, load: load.clone() }, Jobs { jobs, load })
}

impl<T> Queue<T> {
    /// Puts a job, if there is room.
    pub(super) fn put(&self, job: T) -> Result<(), Error> {
        // Before it is queued: it may be taken at once.
        self.load.waiting.fetch_add(1, Ordering::Relaxed);
        self.jobs.try_send(job).map_err(|error| {
            self.load.waiting.fetch_sub(1, Ordering::Relaxed);
            match error {
                TrySendError::Full(_) => {
                    self.load.refused.fetch_add(1, Ordering::Relaxed);
                    Error::Busy
                }
                TrySendError::Disconnected(_) => Error::Closed,
            }
        })
    }

    /// Puts a job, and waits for room.
    pub(super) fn put_when_there_is_room(&self, job: T) {
        self.load.waiting.fetch_add(1, Ordering::Relaxed);
        if self.jobs.send(job).is_err() {
            self.load.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Jobs that wait, and those refused since the start.
    pub(super) fn load(&self) -> (usize, u64) {
        (self.load.waiting.load(Ordering::Relaxed), self.load.refused.load(Ordering::Relaxed))
    }
}

impl<T> Jobs<T> {
    /// Waits for a job; `None`: nobody can put one any more.
    pub(super) fn next(&self) -> Option<T> {
        self.jobs.recv().ok().inspect(|_| self.taken())
    }

    /// A job that waits already.
    pub(super) fn waiting(&self) -> Option<T> {
        self.jobs.try_recv().ok().inspect(|_| self.taken())
    }

    fn taken(&self) {
        self.load.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
