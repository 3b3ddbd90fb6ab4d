//! Persistent data: LMDB with rkyv values. Reads run on the caller's thread and never
//! wait for writes; one thread commits writes in groups.

mod check;
mod conversations;
mod copy;
mod disk;
#[cfg(feature = "fuzzing")]
mod fuzzing;
mod guard;
mod keys;
mod migrations;
pub(crate) mod names;
mod opened;
mod queue;
mod reading;
mod records;
mod rows;
pub(crate) mod schema;
pub(crate) mod settings;
mod snapshot;
mod table;
mod trial;
mod whole;
mod writer;

use std::{io::ErrorKind, path::Path};

use tokio::sync::oneshot;

pub use check::{DamagedRow, check};
pub use conversations::Conversation;
pub use copy::Scope;
pub use disk::Disk;
pub use records::{DeviceRecord, MessageRecord, NoteRecord};
pub use rows::{KINDS, Kind, Row, RowsWithin};
pub(crate) use schema::SCHEMA;
pub(crate) use snapshot::{Contents, contents, copy_closed, without_pairings};
pub use writer::Write;

use guard::Reply;
pub(crate) use opened::open_environment;
pub(crate) use whole::complete;
use writer::{Job, Writer};

use crate::runtime::readers::Readers;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system has no room, or the store has reached its configured size.
    #[error("the store is full ({0}); free some disk space or raise `store.size_max_mib`")]
    Full(String),
    /// The file system takes nothing: it was mounted read-only, by an operator or by the kernel after a fault of the disk.
    #[error("the store cannot be written to ({0}); mount the disk of the data folder for writing, or replace it")]
    ReadOnly(String),
    /// LMDB reports something else.
    #[error("the store failed: {0}")]
    Lmdb(heed::Error),
    /// The file as a whole, not a record in it.
    #[error(
        "the store's file is damaged ({0}): put one from a backup in its place, or move it away to begin with nothing"
    )]
    Broken(heed::MdbError),
    /// A stored value does not validate.
    #[error("the store holds a damaged record in `{database}`")]
    Damaged {
        /// Name of the database within the store.
        database: &'static str,
    },
    /// The folder belongs to another version of the gateway.
    #[error("the store has schema version {found}, this gateway reads up to {expected}; use the gateway that wrote it")]
    Schema {
        /// The folder's version.
        found: u32,
        /// This program's version.
        expected: u32,
    },
    /// A store that nobody may change is of an older version.
    #[error(
        "the store has schema version {found}, older than {expected}: use the gateway that wrote it, or start this one once"
    )]
    Older {
        /// The folder's version.
        found: u32,
        /// This program's version.
        expected: u32,
    },
    /// A name is too long to be a key.
    #[error("the name `{0}` is longer than 64 bytes")]
    NameTooLong(String),
    /// A key or value is too long.
    #[error("a record of {bytes} bytes is too large for `{database}`; at most {max} are accepted")]
    TooLarge {
        /// Name of the database within the store.
        database: &'static str,
        /// How many there are.
        bytes: usize,
        /// How many there may be.
        max: usize,
    },
    /// Rows would be more, or larger together, than they may be.
    #[error("the records of `{database}` would be too many, or too large together")]
    TooMuch {
        /// Name of the database within the store.
        database: &'static str,
    },
    /// The file was closed for an exchange and cannot be opened again.
    #[error("the store cannot be opened again: {0}; restart the gateway")]
    Lost(String),
    /// A user has the maximum number of these.
    #[error("as many {what} are kept as there may be ({max}); remove some")]
    TooMany {
        /// Their name for people.
        what: &'static str,
        /// How many there may be.
        max: u64,
    },
    /// No two devices have one name.
    #[error("another device is called `{0}`; `lorgnette devices list` shows them")]
    NameTaken(String),
    /// As many users have devices, or a task, as may.
    #[error(
        "this gateway serves {0} users, and as many are there already; `lorgnette users list` shows them, \
         `lorgnette users erase NAME --devices` and `lorgnette devices revoke` make room, and so does a greater \
         `limits.users`"
    )]
    TooManyUsers(usize),
    /// Too many writes wait.
    #[error("the store is busy: too many writes are waiting")]
    Busy,
    /// The device was revoked while it was being paired.
    #[error("this device was revoked meanwhile")]
    Revoked,
    /// Everything of the user is being erased.
    #[error("everything of this user is being erased; try again in a minute")]
    Erasing,
    /// The write was interrupted by a bug.
    #[error("the store failed in the middle of this write; whether it is stored is not known")]
    Unknown,
    /// The writer has stopped.
    #[error("the store is closed")]
    Closed,
    /// The folder cannot be used.
    #[error("cannot use the data folder {path}: {source}")]
    Folder {
        /// The data folder.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
}

impl From<heed::Error> for Error {
    fn from(error: heed::Error) -> Self {
        match &error {
            heed::Error::Mdb(heed::MdbError::MapFull) => Self::Full("its map is full".to_owned()),
            heed::Error::Io(io) if io.kind() == ErrorKind::ReadOnlyFilesystem => Self::ReadOnly(io.to_string()),
            heed::Error::Io(io) if io.raw_os_error() == Some(28) => Self::Full(io.to_string()),
            // LMDB's error for a partial write.
            heed::Error::Io(io) if io.raw_os_error() == Some(5) => {
                Self::Full(format!("{io}: the disk is full, or broken"))
            }
            heed::Error::Mdb(
                broken @ (heed::MdbError::Corrupted | heed::MdbError::PageNotFound | heed::MdbError::Invalid),
            ) => Self::Broken(*broken),
            _ => Self::Lmdb(error),
        }
    }
}

/// Handle to the store; cheap to clone.
#[derive(Clone)]
pub struct Store {
    disk: Disk,
    writer: Writer,
    readers: Readers,
}

impl Store {
    /// Whether nothing was ever stored in `folder`.
    pub fn is_empty(folder: &Path) -> bool {
        !std::fs::metadata(folder.join("data.mdb")).is_ok_and(|file| file.len() > 0)
    }

    /// Opens the store in `folder`, or creates it.
    ///
    /// # Errors
    /// The folder cannot be used, or another schema version wrote it.
    pub fn open(folder: &Path, size_max_mib: usize) -> Result<Self, Error> {
        let disk = Disk::open(folder, size_max_mib)?;
        let writer = Writer::start(disk.clone())?;
        Ok(Self { disk, writer, readers: Readers::default() })
    }

    /// Writes durably: returns when the commit is on disk. The number is the record's new id,
    /// if it has one.
    ///
    /// # Errors
    /// Nothing was written.
    pub async fn write(&self, write: Write) -> Result<u64, Error> {
        self.answered(|reply| self.writer.submit(write, reply)).await
    }

    /// As [`write`](Self::write); `reply` is called on the store's thread. Writes take effect in
    /// the order in which they were submitted.
    ///
    /// # Errors
    /// Nothing was queued and `reply` is not called.
    pub fn submit(&self, write: Write, reply: impl FnOnce(Result<u64, Error>) + Send + 'static) -> Result<(), Error> {
        self.writer.submit(write, Box::new(reply))
    }

    /// Waits until everything submitted before is on disk, so that reads see it.
    ///
    /// # Errors
    /// The writer has stopped, or too many writes wait.
    pub async fn settled(&self) -> Result<(), Error> {
        self.answered(|reply| self.writer.send(Job::Flush(reply))).await.map(drop)
    }

    /// Whether a record of so many bytes fits: tested by a put that is not committed.
    ///
    /// # Errors
    /// It does not fit, or the store is closed.
    pub(crate) async fn try_room(&self, bytes: usize) -> Result<(), Error> {
        self.answered(|reply| self.writer.send(Job::TryRoom(bytes, reply))).await.map(drop)
    }

    /// Whether a commit works: tested by a record that is put and removed in one transaction.
    ///
    /// # Errors
    /// It does not.
    pub(crate) async fn try_write(&self) -> Result<(), Error> {
        self.answered(|reply| self.writer.send(Job::TryWrite(reply))).await.map(drop)
    }

    /// Used bytes of the store's maximum.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn used(&self) -> Result<(u64, u64), Error> {
        self.disk.with(|opened| {
            let most = (self.disk.size_max_mib() as u64).saturating_mul(1024 * 1024);
            Ok((opened.env.real_disk_size()?, most))
        })
    }

    /// Erases: everything else is copied to a new file, which replaces the old one, so that no erased byte is left.
    /// Writes wait meanwhile; reads wait only during the exchange of the files.
    ///
    /// # Errors
    /// The old file is still in place.
    pub async fn erase(&self, scope: Scope) -> Result<(), Error> {
        self.erase_found(move |_| Ok(scope)).await
    }

    /// Erases a user's conversation of this number with its messages, in the same way; without a number, all of them. What
    /// was submitted before belongs to it. `forget` is called if it is the current one, when the erasure begins: what is
    /// submitted from then on is no part of it, and must not be made of it.
    ///
    /// # Errors
    /// The old file is still in place.
    pub async fn erase_conversations(
        &self,
        user: &str,
        id: Option<u64>,
        forget: impl FnOnce() + Send + 'static,
    ) -> Result<(), Error> {
        let user = user.to_owned();
        let found = move |disk: &Disk| {
            let latest = disk.latest_conversation(&user)?;
            if id.is_none() || latest.is_some_and(|latest| Some(latest.id) == id) {
                forget();
            }
            conversations::scope(disk, user, id)
        };
        self.erase_found(found).await
    }

    async fn erase_found(
        &self,
        scope: impl FnOnce(&Disk) -> Result<Scope, Error> + Send + 'static,
    ) -> Result<(), Error> {
        self.answered(|reply| self.writer.send(Job::Erase(Box::new(scope), reply))).await.map(drop)
    }

    /// Ends the writer after what was submitted before, and closes the file, so that it may be opened again in this
    /// process. Reads and writes afterwards fail with [`Error::Closed`], those of all handles.
    ///
    /// # Errors
    /// It is closed already, or no thread can be started.
    pub async fn close(&self) -> Result<(), Error> {
        self.answered(|reply| self.writer.close(reply)).await.map(drop)
    }

    /// Waits for the answer to a job that is submitted with this reply.
    async fn answered(&self, submit: impl FnOnce(Reply) -> Result<(), Error>) -> Result<u64, Error> {
        let (reply, answer) = oneshot::channel();
        submit(Box::new(move |result| drop(reply.send(result))))?;
        answer.await.map_err(|_| Error::Closed)?
    }

    /// Whether writes for this user are allowed; otherwise they fail with [`Error::Erasing`].
    pub fn bar(&self, user: &str, barred: bool) {
        self.writer.bar(user, barred);
    }

    /// Whether writes for this user fail, since everything of the user is being erased.
    pub(crate) fn is_barred(&self, user: &str) -> bool {
        self.writer.is_barred(user)
    }

    /// Writes that wait, and those refused since the start because too many waited.
    pub fn load(&self) -> (usize, u64) {
        self.writer.load()
    }

    /// Whether the writer runs.
    pub(crate) fn is_running(&self) -> bool {
        self.writer.is_running()
    }

    /// For short reads; [`read`](Self::read) is for longer ones.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }
}

#[cfg(test)]
pub(crate) mod damage_tests;

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, thread};

    use super::*;

    fn note(text: &str) -> Write {
        Write::AddNote { user: "ann".into(), note: NoteRecord { text: text.into(), created_wall_ms: 0 } }
    }

    #[test]
    fn reads_go_on_while_a_change_waits_for_a_long_read() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(folder.path(), 16).unwrap();
        let (reads, waits, done) = (Barrier::new(2), Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            scope.spawn(|| {
                let long = disk.with(|_| {
                    reads.wait();
                    done.wait();
                    Ok(())
                });
                long.unwrap();
            });
            reads.wait();
            scope.spawn(|| {
                waits.wait();
                disk.with_reserve(|| Ok(())).unwrap();
            });
            waits.wait();
            // More than enough for the change to begin to wait.
            for _ in 0..20_000 {
                assert!(disk.devices().unwrap().is_empty());
            }
            done.wait();
        });
        assert!(disk.devices().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_closed_store_answers_nothing_and_opens_again_in_the_same_process() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let other = store.clone();
        assert!(Store::open(folder.path(), 16).is_err(), "a process opens a file once");
        // Earlier submissions are written, although nobody waits for them.
        for text in ["one", "two"] {
            store.submit(note(text), |_| ()).unwrap();
        }
        store.close().await.unwrap();
        assert!(matches!(other.write(note("late")).await, Err(Error::Closed)));
        assert!(matches!(other.settled().await, Err(Error::Closed)));
        assert!(matches!(other.erase(Scope::User { user: "ann".into(), devices: true }).await, Err(Error::Closed)));
        assert!(matches!(other.disk().notes("ann", 9, |_| true), Err(Error::Closed)));
        assert!(matches!(other.disk().rows(Kind::Spending, "ann", b"", 9), Err(Error::Closed)));
        assert!(matches!(other.close().await, Err(Error::Closed)));
        // Handles of the closed store still exist.
        for round in 0..3 {
            let again = Store::open(folder.path(), 16).unwrap();
            let notes = again.disk().notes("ann", 9, |_| true).unwrap();
            assert_eq!(notes.len(), 2 + round);
            again.write(note("three")).await.unwrap();
            again.close().await.unwrap();
        }
    }
}
