//! The stored log: a ring of lines of level INFO and above, and one of records of turns, which hold no words of a wearer.
//! A layer of `tracing` hands
//! them to a thread that stores them in groups; programs of an operator read them.

mod blocks;
mod counts;
mod disk;
mod dropped;
mod opened;
mod page;
mod row;
mod table;
mod tap;
mod writer;

use std::{
    ops::RangeInclusive,
    path::Path,
    sync::{
        Arc,
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
};

use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tools::inspection::logs::{
    LINES_MAX, LogCursor, LogEntry, LogFilter, LogPage, LogQuery, LogScope, LogStats, PAGE_BYTES_MAX,
};

pub use self::tap::layer;
use self::{
    disk::Disk,
    opened::Ring,
    writer::{Job, Reply, WAITING_MAX, Writer},
};
use crate::runtime::{
    on_own_thread,
    readers::{Readers, Unread},
};

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// LMDB reports it.
    #[error("the stored log failed: {0}")]
    Lmdb(#[from] heed::Error),
    /// The folder cannot be used.
    #[error("cannot use the folder of the log {path}: {source}")]
    Folder {
        /// The log's folder in the data folder.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It has the form in which a version before kept it.
    #[error("the stored log has the form of a version before")]
    Former,
    /// Too many reads or jobs wait.
    #[error("the stored log is busy: too many requests are waiting")]
    Busy,
    /// It was interrupted by a bug.
    #[error("the stored log failed in the middle of this")]
    Unknown,
    /// The gateway stops.
    #[error("the stored log is closed")]
    Closed,
}

/// Handle to the log; cheap to clone.
#[derive(Clone)]
pub struct Logs {
    disk: Disk,
    jobs: Arc<SyncSender<Job>>,
    readers: Readers,
    groups: Arc<watch::Sender<u64>>,
    thread: Arc<JoinHandle<()>>,
}

impl Logs {
    /// Opens the log in `folder`, creating it if missing, and stores the process's own log there from now on.
    ///
    /// # Errors
    /// The folder cannot be used, or the system starts no thread.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let logs = Self::open_with(folder, Ring::default())?;
        tap::attach(&logs.jobs);
        Ok(logs)
    }

    fn open_with(folder: &Path, ring: Ring) -> Result<Self, Error> {
        let (disk, next) = Disk::open(folder, ring)?;
        let groups = Arc::new(watch::Sender::new(0));
        let (jobs, waiting) = sync_channel(WAITING_MAX);
        let writer = Writer { disk: disk.clone(), groups: groups.clone(), next };
        let started = thread::Builder::new().name("log".to_owned()).spawn(move || writer.run(&waiting));
        let thread = started.map_err(|source| Error::Folder { path: "thread of the log".to_owned(), source })?;
        Ok(Self { disk, jobs: Arc::new(jobs), readers: Readers::default(), groups, thread: Arc::new(thread) })
    }

    /// Whether the writer runs: without it nothing is stored, and no user can be erased.
    pub(crate) fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }

    async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Disk) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Error> {
        let disk = self.disk.clone();
        match self.readers.read(move || work(&disk)).await {
            Ok(read) => read,
            Err(Unread::Busy) => Err(Error::Busy),
            Err(Unread::Failed) => Err(Error::Unknown),
        }
    }

    /// A page of lines, newest first. What came within the last second may be missing.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn query(&self, mut query: LogQuery) -> Result<LogPage, Error> {
        query.limit = query.limit.clamp(1, LINES_MAX);
        self.read(move |disk| disk.query(&query, PAGE_BYTES_MAX)).await
    }

    /// Lines after a place, oldest first, at most `limit`, and the place of the last one that was looked at.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn after(
        &self,
        place: LogCursor,
        filter: LogFilter,
        limit: usize,
    ) -> Result<(Vec<LogEntry>, LogCursor), Error> {
        self.read(move |disk| disk.after(place, &filter, limit)).await
    }

    /// The place of the newest line.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn end(&self) -> Result<LogCursor, Error> {
        Ok(self.disk.ends()?.map_or(LogCursor(0), |(_, newest)| newest))
    }

    /// Stores the record of a turn that ended then, in milliseconds since the Unix epoch; dropped where too much waits.
    pub(super) fn turn(&self, wall_ms: i64, device: String, json: String) {
        if self.jobs.try_send(Job::Turn(wall_ms, row::Turn { device, json })).is_err() {
            tracing::debug!("the record of a turn is not stored");
        }
    }

    /// The records of the latest turns that ended at these times, in milliseconds since the Unix epoch, oldest first.
    ///
    /// # Errors
    /// The log cannot be read.
    pub async fn turns(&self, ended_wall_ms: RangeInclusive<i64>, count: usize) -> Result<Vec<Value>, Error> {
        self.read(move |disk| disk.turns(&ended_wall_ms, count)).await
    }

    /// Changes whenever lines were stored.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.groups.subscribe()
    }

    /// What is stored, in numbers.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn stats(&self) -> Result<LogStats, Error> {
        let ends = self.disk.ends()?.map(|(oldest, newest)| (row::wall_ms(oldest), row::wall_ms(newest)));
        let (oldest_wall_ms, newest_wall_ms) = ends.unzip();
        // Behind the reading, which may have opened the file again.
        let stats = self.disk.counts().stats();
        Ok(LogStats { oldest_wall_ms, newest_wall_ms, dropped: dropped::count(), ..stats })
    }

    /// The same of the lines that are shown to a user, counted one by one.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(crate) async fn stats_of(&self, scope: LogScope) -> Result<LogStats, Error> {
        let stats = self.read(move |disk| disk.stats_of(&scope)).await?;
        Ok(LogStats { dropped: dropped::count(), ..stats })
    }

    /// Drops lines, so that no byte of them is left in the file; returns how many.
    ///
    /// # Errors
    /// Nothing was dropped.
    pub async fn clear(&self, filter: LogFilter, scope: LogScope) -> Result<u64, Error> {
        self.job(|reply| Job::Clear(filter, scope, reply)).await
    }

    /// The same with everything about a user and the user's devices: lines that carry one of them, those in whose text the
    /// user's name stands as a value or in quotes, and those in whose text a device stands.
    ///
    /// # Errors
    /// Nothing was dropped.
    pub async fn erase(&self, user: &str, devices: Vec<String>) -> Result<u64, Error> {
        let user = user.to_owned();
        self.job(|reply| Job::Erase(user, devices, reply)).await
    }

    /// Waits until everything logged before is stored, so that reads see it.
    ///
    /// # Errors
    /// It is closed, or too many jobs wait.
    pub async fn settled(&self) -> Result<(), Error> {
        self.job(Job::Settle).await.map(drop)
    }

    /// Stores what was logged before, and closes the file.
    ///
    /// # Errors
    /// It is closed already.
    pub async fn close(&self) -> Result<(), Error> {
        tap::detach(&self.jobs);
        let ((reply, answer), jobs) = (oneshot::channel(), self.jobs.clone());
        // Waits for room where too much waits.
        let sent = on_own_thread(move || jobs.send(Job::Close(reply)).map_err(|_ended| Error::Closed));
        sent.await.map_err(|_ended| Error::Unknown)??;
        answer.await.map_err(|_ended| Error::Closed)?.map(drop)
    }

    async fn job(&self, job: impl FnOnce(Reply) -> Job) -> Result<u64, Error> {
        let (reply, answer) = oneshot::channel();
        self.jobs.try_send(job(reply)).map_err(|error| match error {
            TrySendError::Full(_) => Error::Busy,
            TrySendError::Disconnected(_) => Error::Closed,
        })?;
        answer.await.map_err(|_ended| Error::Closed)?
    }

    /// A log with more lines than a gateway keeps, for the measuring program. The process's own log does not go there.
    ///
    /// # Errors
    /// As of `open`.
    #[doc(hidden)]
    pub fn open_larger(folder: &Path, lines_max: u64) -> Result<Self, Error> {
        Self::open_with(folder, Ring { lines_max, bytes_max: usize::MAX, ..Ring::default() })
    }

    /// Stores lines as if they had been logged, for the measuring program.
    ///
    /// # Errors
    /// It is closed.
    #[doc(hidden)]
    pub async fn fill(&self, entries: impl IntoIterator<Item = LogEntry>) -> Result<(), Error> {
        for LogEntry { wall_ms, level, context, source, message } in entries {
            let row = row::Row { context, source, message, ..row::Row::default() };
            let mut job = Job::Line(row::Line { wall_ms, level, row });
            while let Err(TrySendError::Full(back)) = self.jobs.try_send(job) {
                job = back;
                self.settled().await.or_else(|error| if matches!(error, Error::Busy) { Ok(()) } else { Err(error) })?;
                tokio::task::yield_now().await;
            }
        }
        self.settled().await
    }
}

#[cfg(test)]
mod tests;
