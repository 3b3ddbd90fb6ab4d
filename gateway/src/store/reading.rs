//! Long reads, on threads of their own, so that they do not delay the sessions' packets.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::Semaphore;

use super::{Error, Store};
use crate::runtime::on_own_thread;

/// Reads that run at once: a small box has cores left for speech.
const READS_MAX: usize = 2;
/// Reads that run or wait: at 100 ms each, the last one waits for some seconds.
const READS_WAITING_MAX: usize = 64;

#[derive(Clone)]
pub(super) struct Readers {
    running: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    refused: Arc<AtomicU64>,
}

impl Default for Readers {
    fn default() -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self { running: places(READS_MAX), waiting: places(READS_WAITING_MAX), refused: Arc::default() }
    }
}

impl Store {
    /// For reads that may take longer than a fraction of a millisecond: searches and exports.
    ///
    /// # Errors
    /// That of `work`, or too many such reads wait.
    pub async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Error> {
        let Ok(place) = self.readers.waiting.clone().try_acquire_owned() else {
            self.readers.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Error::Busy);
        };
        let running = self.readers.running.clone().acquire_owned().await.map_err(|_| Error::Closed)?;
        let store = self.clone();
        let reading = on_own_thread(move || {
            // Held until the work ends, which continues even if its caller has gone.
            let _held = (place, running);
            work(&store)
        });
        // A panic, or the end of the process.
        reading.await.map_err(|_| Error::Unknown)?
    }

    /// Long reads that run or wait, and those refused since the start.
    pub fn reads(&self) -> (usize, u64) {
        let Readers { waiting, refused, .. } = &self.readers;
        (READS_WAITING_MAX - waiting.available_permits(), refused.load(Ordering::Relaxed))
    }

    /// Takes all places of reads that run, until the result is dropped.
    #[cfg(test)]
    pub(crate) fn occupy_readers(&self) -> tokio::sync::OwnedSemaphorePermit {
        self.readers.running.clone().try_acquire_many_owned(READS_MAX as u32).expect("no read runs")
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, sync::mpsc::sync_channel};

    use super::*;

    #[tokio::test]
    async fn a_long_read_does_not_keep_the_tasks_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let (send, receive) = sync_channel(1);
        let reading = store.read(move |_| Ok(receive.recv().unwrap()));
        // On the same thread as the read's caller.
        let (read, ()) = tokio::join!(reading, async { send.send(7).unwrap() });
        assert_eq!(read.unwrap(), 7);
        assert!(matches!(store.read::<()>(|_| panic!("on purpose")).await, Err(Error::Unknown)));
    }

    #[tokio::test]
    async fn reads_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let busy = store.occupy_readers();
        let mut waiting = Vec::new();
        for _ in 0..READS_WAITING_MAX {
            let mut read = Box::pin(store.read(|_| Ok(())));
            assert!(futures_util::poll!(&mut read).is_pending());
            waiting.push(read);
        }
        assert!(matches!(pin!(store.read(|_| Ok(()))).await, Err(Error::Busy)));
        assert_eq!(store.reads(), (READS_WAITING_MAX, 1));
        drop(busy);
        for read in waiting {
            read.await.unwrap();
        }
        store.read(|_| Ok(())).await.unwrap();
    }
}
