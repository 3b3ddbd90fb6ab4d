//! Long reads of the store, at the places of `runtime::readers`; they fail with the store's errors.

use super::{Error, Store};
use crate::runtime::readers::Unread;

impl Store {
    /// For reads that may take longer than a fraction of a millisecond: searches and exports.
    ///
    /// # Errors
    /// That of `work`, or too many such reads wait.
    pub async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Error> {
        let store = self.clone();
        match self.readers.read(move || work(&store)).await {
            Ok(read) => read,
            Err(Unread::Busy) => Err(Error::Busy),
            Err(Unread::Failed) => Err(Error::Unknown),
        }
    }

    /// Long reads that run or wait, and those refused since the start.
    pub fn reads(&self) -> (usize, u64) {
        self.readers.load()
    }

    /// Takes all places of reads that run, until the result is dropped.
    #[cfg(test)]
    pub(crate) fn occupy_readers(&self) -> tokio::sync::OwnedSemaphorePermit {
        self.readers.occupy()
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, sync::mpsc::sync_channel};

    use super::*;
    use crate::runtime::readers::READS_WAITING_MAX;

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
