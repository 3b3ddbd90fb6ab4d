//! The store's place on the disk, and every read.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc, PoisonError, RwLock, RwLockWriteGuard, TryLockError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use gateway_core::vocab::ScheduleEntry;

use super::{
    Error,
    copy::{self, Scope},
    keys::{id_of, user_key, user_prefix},
    migrations,
    opened::{Opened, RESERVE_MIB},
    records::{DeviceRecord, EntryRecord, MessageRecord, NoteRecord},
    rows::{Kind, Row, full_key},
    table::{Damage, Pair},
    whole,
};

/// How often a thread that needs the environment for itself looks whether anybody still reads.
const ALONE_EVERY: Duration = Duration::from_millis(1);

/// Read access.
#[derive(Clone)]
pub struct Disk(Arc<Place>);

struct Place {
    folder: PathBuf,
    size_max_mib: usize,
    /// Every read holds this for reading; an erase takes it for the moment in which the file is swapped. Absent when
    /// the store was closed, and when the file could not be opened again.
    opened: RwLock<Option<Opened>>,
    damage: Damage,
    /// Rows that erasures have looked at.
    copied: AtomicU64,
}

/// Where a read of rows begins.
#[derive(Clone, Copy)]
enum End {
    First,
    Last,
}

impl Disk {
    pub(super) fn open(folder: &Path, size_max_mib: usize) -> Result<Self, Error> {
        copy::clean(folder)?;
        let damage = Damage::default();
        let opened = RwLock::new(Some(migrations::open(folder, size_max_mib, &damage)?));
        let copied = AtomicU64::new(0);
        Ok(Self(Arc::new(Place { folder: folder.to_path_buf(), size_max_mib, opened, damage, copied })))
    }

    /// Damaged rows that were found since the store was opened.
    pub fn damaged(&self) -> usize {
        self.0.damage.count()
    }

    /// Rows that erasures have looked at since the store was opened: while one is carried out, which may take minutes and
    /// answers nothing, this grows.
    pub fn copied(&self) -> u64 {
        self.0.copied.load(Ordering::Relaxed)
    }

    pub(super) fn size_max_mib(&self) -> usize {
        self.0.size_max_mib
    }

    /// Runs `work` with the environment, which stays open meanwhile.
    pub(super) fn with<R>(&self, act: impl FnOnce(&Opened) -> Result<R, Error>) -> Result<R, Error> {
        let opened = self.0.opened.read().unwrap_or_else(PoisonError::into_inner);
        act(opened.as_ref().ok_or(Error::Closed)?)
    }

    /// Closes the environment for good: reads answer [`Error::Closed`] from now on.
    pub(super) fn close(&self) {
        if let Some(opened) = self.alone().take() {
            opened.close();
        }
    }

    /// The environment while nobody reads. It polls instead of queueing for the lock: a queued writer would block all
    /// new reads until the longest running one ends, which may be a copy of the whole store.
    fn alone(&self) -> RwLockWriteGuard<'_, Option<Opened>> {
        loop {
            match self.0.opened.try_write() {
                Ok(opened) => return opened,
                Err(TryLockError::Poisoned(opened)) => return opened.into_inner(),
                Err(TryLockError::WouldBlock) => thread::park_timeout(ALONE_EVERY),
            }
        }
    }

    /// Runs `work`, which writes, with the environment. One that was opened for reading is opened again before, if its disk
    /// can be written to by now; one that LMDB gives up is opened again afterwards, so that reads go on.
    pub(super) fn change<R>(&self, act: impl FnOnce(&Opened) -> Result<R, Error>) -> Result<R, Error> {
        if self.with(|opened| Ok(opened.is_read_only()))? {
            whole::try_writable(&self.0.folder)?;
            tracing::info!("the disk of the store can be written to again");
            self.open_again(self.0.size_max_mib, || Ok(()))?;
        }
        let changed = self.with(act);
        if let Err(error) = &changed
            && self.with(|opened| Ok(opened.is_given_up()))?
        {
            tracing::error!(%error, "a write to the store failed at its root; opening it again");
            self.open_again(self.0.size_max_mib, || Ok(()))?;
        }
        changed
    }

    /// Copies all but `scope` and exchanges the files. Returns the number of erased rows.
    pub(super) fn erase(&self, scope: &Scope) -> Result<u64, Error> {
        let Place { folder, size_max_mib, copied, .. } = &*self.0;
        let count = || {
            copied.fetch_add(1, Ordering::Relaxed);
        };
        let erased =
            self.with(|old| copy::beside(folder, *size_max_mib, |new| copy::copy(old, new, Some(scope), count)))?;
        self.open_again(*size_max_mib, || copy::exchange(folder))?;
        copy::clean(folder)?;
        Ok(erased)
    }

    /// Runs `work` while the store may exceed its size by the reserve.
    pub(super) fn with_reserve<R>(&self, act: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
        self.open_again(self.0.size_max_mib + RESERVE_MIB, || Ok(()))?;
        let result = act();
        self.open_again(self.0.size_max_mib, || Ok(()))?;
        result
    }

    /// Closes the environment, runs `meanwhile`, during which no read is under way, and opens it with this size, also if
    /// that failed. Pages in use stay in use.
    fn open_again(&self, size_max_mib: usize, meanwhile: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let mut opened = self.alone();
        opened.take().ok_or(Error::Closed)?.close();
        let done = meanwhile();
        *opened = Some(Opened::again(&self.0.folder, size_max_mib, &self.0.damage)?);
        done
    }

    /// All paired devices by fingerprint, revoked ones included.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn devices(&self) -> Result<Vec<(String, DeviceRecord)>, Error> {
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            opened.devices_in(&txn)
        })
    }

    /// A pairing, revoked or not; `None`: the device was never paired, or its row is damaged.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn device(&self, id: &str) -> Result<Option<DeviceRecord>, Error> {
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            opened.devices.get_record(&txn, id.as_bytes())
        })
    }

    /// The last `limit` messages of a user, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn messages(&self, user: &str, limit: usize) -> Result<Vec<MessageRecord>, Error> {
        let mut out: Vec<MessageRecord> = self.with(|opened| {
            let newest = opened.newest(&opened.messages, user, limit)?;
            Ok(newest.into_iter().map(|(_, message)| message).collect())
        })?;
        out.reverse();
        Ok(out)
    }

    /// At most `limit` of a user's messages from this id on, oldest first, with their ids.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn messages_from(
        &self,
        user: &str,
        first: u64,
        limit: usize,
    ) -> Result<Vec<(u64, MessageRecord)>, Error> {
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            let (from, last) = (user_key(user, first)?, user_key(user, u64::MAX)?);
            let mut out = Vec::new();
            for row in opened.messages.range(&txn, (&from, &last))? {
                let (key, value) = row?;
                out.extend(opened.messages.record(key, value).map(|message| (id_of(key), message)));
                if out.len() >= limit {
                    break;
                }
            }
            Ok(out)
        })
    }

    /// A user's messages with these ids.
    pub(super) fn messages_between(&self, user: &str, ids: Range<u64>) -> Result<Vec<MessageRecord>, Error> {
        let Some(last) = ids.end.checked_sub(1).filter(|last| *last >= ids.start) else { return Ok(Vec::new()) };
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            let (from, last) = (user_key(user, ids.start)?, user_key(user, last)?);
            let mut out = Vec::new();
            for row in opened.messages.range(&txn, (&from, &last))? {
                let (key, value) = row?;
                out.extend(opened.messages.record(key, value));
            }
            Ok(out)
        })
    }

    /// Timers and reminders of a user by id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn entries(&self, user: &str) -> Result<Vec<ScheduleEntry>, Error> {
        let newest: Vec<(u64, EntryRecord)> = self.with(|opened| opened.newest(&opened.entries, user, usize::MAX))?;
        Ok(newest.into_iter().rev().map(|(id, record)| record.into_entry(id)).collect())
    }

    /// Users that have timers or reminders.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn scheduled(&self) -> Result<Vec<String>, Error> {
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            opened.entries.owners(&txn)
        })
    }

    /// The newest notes of a user, newest first, that `keep` accepts.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn notes(
        &self,
        user: &str,
        limit: usize,
        keep: impl Fn(&NoteRecord) -> bool,
    ) -> Result<Vec<(u64, NoteRecord)>, Error> {
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            let prefix = user_prefix(user)?;
            let mut out = Vec::new();
            for row in opened.notes.prefix_backwards(&txn, &prefix)? {
                let (key, value) = row?;
                if let Some(note) = opened.notes.record::<NoteRecord>(key, value)
                    && keep(&note)
                {
                    out.push((id_of(key), note));
                    if out.len() >= limit {
                        break;
                    }
                }
            }
            Ok(out)
        })
    }

    /// A note of the user; `None`: there is none of this id, or its row is damaged.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn note(&self, user: &str, id: u64) -> Result<Option<NoteRecord>, Error> {
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            opened.notes.get_record(&txn, &user_key(user, id)?)
        })
    }

    /// One row's value.
    ///
    /// # Errors
    /// The row is damaged, or the store cannot be read.
    pub fn row(&self, kind: Kind, owner: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.with(|opened| {
            let table = opened.rows.of(kind);
            let txn = opened.env.read_txn()?;
            Ok(table.get(&txn, &full_key(table.name, owner, key)?)?.map(<[u8]>::to_vec))
        })
    }

    /// An owner's rows whose key begins with `prefix`, in the order of their keys, at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn rows(&self, kind: Kind, owner: &str, prefix: &[u8], limit: usize) -> Result<Vec<Row>, Error> {
        self.rows_from(End::First, (kind, owner), prefix, limit)
    }

    /// As [`rows`](Self::rows), from the last key backwards.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn rows_backwards(
        &self,
        kind: Kind,
        owner: &str,
        prefix: &[u8],
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        self.rows_from(End::Last, (kind, owner), prefix, limit)
    }

    fn rows_from(&self, end: End, (kind, owner): (Kind, &str), prefix: &[u8], limit: usize) -> Result<Vec<Row>, Error> {
        self.with(|opened| {
            let table = opened.rows.of(kind);
            let txn = opened.env.read_txn()?;
            let prefix = full_key(table.name, owner, prefix)?;
            let own = |row: Result<Pair<'_>, Error>| {
                row.map(|(key, value)| (key.get(owner.len() + 1..).unwrap_or_default().to_vec(), value.to_vec()))
            };
            match end {
                End::First => table.prefix(&txn, &prefix)?.take(limit).map(own).collect(),
                End::Last => table.prefix_backwards(&txn, &prefix)?.take(limit).map(own).collect(),
            }
        })
    }

    /// Keys of an owner's rows, at most `limit`, also of damaged ones: where a row says something by being there.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn keys(&self, kind: Kind, owner: &str, limit: usize) -> Result<Vec<Vec<u8>>, Error> {
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            let prefix = user_prefix(owner)?;
            let keys = opened.rows.of(kind).keys(&txn, &prefix)?;
            Ok(keys.into_iter().take(limit).map(|key| key.get(prefix.len()..).unwrap_or_default().to_vec()).collect())
        })
    }

    /// Everybody who owns rows of a kind, damaged ones included.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn owners(&self, kind: Kind) -> Result<Vec<String>, Error> {
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            opened.rows.of(kind).owners(&txn)
        })
    }

    /// An owner's rows that were added under numbers, in their order, at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn numbered(&self, kind: Kind, owner: &str, limit: usize) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        // One more for the counter.
        let rows = self.rows(kind, owner, b"", limit.saturating_add(1))?;
        let numbered = rows.into_iter().filter(|(key, _)| key.len() == size_of::<u64>());
        Ok(numbered.map(|(key, value)| (id_of(&key), value)).take(limit).collect())
    }
}
