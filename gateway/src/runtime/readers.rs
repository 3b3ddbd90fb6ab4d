//! Places for long reads, on threads of their own, so that they do not delay the sessions' packets. Few run at once,
//! more wait, and the rest are refused.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::Semaphore;

use super::on_own_thread;

/// Reads that run at once: a small box has cores left for speech.
pub(crate) const READS_MAX: usize = 2;
/// Reads that run or wait: at 100 ms each, the last one waits for some seconds.
pub(crate) const READS_WAITING_MAX: usize = 64;

/// The places of reads.
#[derive(Clone)]
pub(crate) struct Readers {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    refused: Arc<AtomicU64>,
}

/// Why a read was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Too many wait.
    Busy,
    /// It panicked, or the process ends.
    Failed,
}

impl Default for Readers {
    fn default() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { running: places(READS_MAX), waiting: places(READS_WAITING_MAX), refused: Arc::default() }
    }
}

impl Readers {
    /// Runs a read that may take longer than a fraction of a millisecond.
    ///
    /// # Errors
    /// Too many such reads wait, or it panicked.
    pub(crate) async fn read<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> Result<R, Unread> {
        let Ok(place) = self.waiting.clone().try_acquire_owned() else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Unread::Busy);
        };
        let running = self.running.clone().acquire_owned().await.map_err(|_closed| Unread::Failed)?;
        let reading = on_own_thread(move || {
            // Held until the work ends, which continues even if its caller has gone.
            let _held = (place, running);
            work()
        });
        reading.await.map_err(|_ended| Unread::Failed)
    }

    /// Reads that run or wait, and those refused since the start.
    pub(crate) fn load(&self) -> (usize, u64) {
        (READS_WAITING_MAX - self.waiting.available_permits(), self.refused.load(Ordering::Relaxed))
    }

    /// Takes all places of reads that run, until the result is dropped.
    #[cfg(test)]
    pub(crate) fn occupy(&self) -> tokio::sync::OwnedSemaphorePermit {
        self.running.clone().try_acquire_many_owned(READS_MAX as u32).expect("no read runs")
    }
}
