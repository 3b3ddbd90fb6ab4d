//! The LMDB environment, its keys, and every read.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
    thread,
    time::Duration,
};

use gateway_core::vocab::ScheduleEntry;
use heed::{
    CommitOrAbort, Database, Env, EnvOpenOptions, RoTxn, WithoutTls,
    types::{Bytes, Str},
};
use rkyv::{
    Archive, Deserialize,
    api::high::{HighDeserializer, HighValidator},
    bytecheck::CheckBytes,
    rancor,
};

use super::{
    Error, copy,
    records::{DeviceRecord, EntryRecord, MessageRecord, NoteRecord},
    rows::{self, KINDS, Tables},
    schema,
    table::{Damage, Table},
    whole,
};
use crate::private::make_folder;

/// Longest user or device name, in bytes: it is part of every key.
const NAME_BYTES_MAX: usize = 64;

/// Tries to open the store again after it was closed for an exchange, and the time between two: five seconds in all,
/// during which nothing is read or written.
const REOPEN_TRIES_MAX: usize = 20;
const REOPEN_EVERY: Duration = Duration::from_millis(250);
/// Bytes beyond the store's size that only revocations may use: enough for thousands of them.
const RESERVE_MIB: usize = 1;

/// The environment while it is open.
pub(super) struct Opened {
    pub(super) env: Env<WithoutTls>,
    pub(super) meta: Database<'static, Str, Bytes>,
    pub(super) devices: Table,
    pub(super) messages: Table,
    pub(super) entries: Table,
    pub(super) notes: Table,
    pub(super) rows: Tables,
}

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
}

impl Disk {
    pub(super) fn open(folder: &Path, size_max_mib: usize) -> Result<Self, Error> {
        copy::clean(folder)?;
        let damage = Damage::default();
        let opened = RwLock::new(Some(schema::open(folder, size_max_mib, &damage)?));
        Ok(Self(Arc::new(Place { folder: folder.to_path_buf(), size_max_mib, opened, damage })))
    }

    /// Damaged rows that were found since the store was opened.
    pub fn damaged(&self) -> usize {
        self.0.damage.count()
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0.folder
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
        let mut opened = self.0.opened.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = opened.take() {
            opened.close();
        }
    }

    /// Closes the environment, has `exchange` put another file in its place, and opens that. No read is under way
    /// meanwhile.
    pub(super) fn exchange(&self, exchange: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let mut opened = self.0.opened.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = opened.take() {
            old.close();
        }
        // If the exchange failed, the old file is opened again.
        let exchanged = exchange();
        *opened = Some(reopened(REOPEN_EVERY, || Opened::open(&self.0.folder, self.0.size_max_mib, &self.0.damage))?);
        exchanged
    }

    /// Runs `work` while the store may exceed its size by the reserve.
    pub(super) fn with_reserve<R>(&self, act: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
        self.resize(self.0.size_max_mib + RESERVE_MIB)?;
        let result = act();
        self.resize(self.0.size_max_mib)?;
        result
    }

    /// Opens the environment again with another size. Pages in use stay in use.
    fn resize(&self, size_max_mib: usize) -> Result<(), Error> {
        let mut opened = self.0.opened.write().unwrap_or_else(PoisonError::into_inner);
        opened.take().ok_or(Error::Closed)?.close();
        *opened = Some(reopened(REOPEN_EVERY, || Opened::open(&self.0.folder, size_max_mib, &self.0.damage))?);
        Ok(())
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

    /// One device.
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
    pub fn messages_from(&self, user: &str, first: u64, limit: usize) -> Result<Vec<(u64, MessageRecord)>, Error> {
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

    /// One note.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn note(&self, user: &str, id: u64) -> Result<Option<NoteRecord>, Error> {
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            opened.notes.get_record(&txn, &user_key(user, id)?)
        })
    }
}

impl Opened {
    /// Opens the environment and creates missing tables. Does not check the version.
    pub(super) fn open(folder: &Path, size_max_mib: usize, damage: &Damage) -> Result<Self, Error> {
        let folder_error = |source| Error::Folder { path: folder.display().to_string(), source };
        make_folder(folder).map_err(folder_error)?;
        let env = open_environment(folder, size_max_mib)?;
        whole::complete(&env, folder, size_max_mib.saturating_add(RESERVE_MIB))?;
        let txn = env.write_txn()?;
        let committed = env.create_databases_and_commit(txn, |opener, txn| -> Result<_, Error> {
            let meta = opener.create_database::<Str, Bytes>(txn, Some("meta"))?;
            let devices = opener.create_database(txn, Some("devices"))?;
            let messages = opener.create_database(txn, Some("messages"))?;
            let entries = opener.create_database(txn, Some("entries"))?;
            let notes = opener.create_database(txn, Some("notes"))?;
            let rows = rows::open(|name| Ok(opener.create_database(txn, Some(name))?))?;
            Ok(CommitOrAbort::<_, ()>::Commit((meta, devices, messages, entries, notes, rows)))
        })?;
        let CommitOrAbort::Commit((meta, devices, messages, entries, notes, rows)) = committed else {
            return Err(Error::Closed);
        };
        let table = |raw, name| Table::new(raw, name, damage);
        let (devices, messages) = (table(devices, "devices"), table(messages, "messages"));
        let (entries, notes) = (table(entries, "entries"), table(notes, "notes"));
        let mut names = KINDS.iter().map(|(_, name)| *name);
        let rows = Tables(rows.map(|raw| table(raw, names.next().unwrap_or_default())));
        Ok(Self { env, meta, devices, messages, entries, notes, rows })
    }

    /// All tables.
    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        [&self.devices, &self.messages, &self.entries, &self.notes].into_iter().chain(&self.rows.0)
    }

    /// All devices that can be read.
    pub(super) fn devices_in(&self, txn: &RoTxn<'_>) -> Result<Vec<(String, DeviceRecord)>, Error> {
        let mut out = Vec::new();
        for row in self.devices.iter(txn)? {
            let (key, value) = row?;
            let id = String::from_utf8_lossy(key).into_owned();
            out.extend(self.devices.record(key, value).map(|device| (id, device)));
        }
        Ok(out)
    }

    /// Waits until the file is unmapped.
    pub(super) fn close(self) {
        self.env.prepare_for_closing().wait();
    }

    /// The newest records of a user with their ids, newest first.
    fn newest<T>(&self, table: &Table, user: &str, limit: usize) -> Result<Vec<(u64, T)>, Error>
    where
        T: Archive,
        T::Archived:
            for<'a> CheckBytes<HighValidator<'a, rancor::Error>> + Deserialize<T, HighDeserializer<rancor::Error>>,
    {
        let txn = self.env.read_txn()?;
        let mut out = Vec::new();
        for row in table.prefix_backwards(&txn, &user_prefix(user)?)? {
            if out.len() >= limit {
                break;
            }
            let (key, value) = row?;
            out.extend(table.record(key, value).map(|record| (id_of(key), record)));
        }
        Ok(out)
    }
}

/// Opens the environment after an exchange. Retries, since a lack of descriptors or memory is temporary.
fn reopened(every: Duration, mut open: impl FnMut() -> Result<Opened, Error>) -> Result<Opened, Error> {
    let mut tries = 0;
    loop {
        match open() {
            Ok(opened) => return Ok(opened),
            Err(error) if tries >= REOPEN_TRIES_MAX => {
                tracing::error!(%error, "the store cannot be opened again");
                return Err(Error::Lost(error.to_string()));
            }
            Err(error) => tracing::warn!(%error, "the store could not be opened again; trying once more"),
        }
        tries += 1;
        thread::park_timeout(every);
    }
}

/// The one place where the store's file is mapped.
#[allow(unsafe_code, reason = "LMDB maps its file; see SAFETY")]
fn open_environment(folder: &Path, size_max_mib: usize) -> Result<Env<WithoutTls>, Error> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.max_dbs(32).map_size(size_max_mib.saturating_mul(1024 * 1024));
    // SAFETY: the map is undefined when another program changes the file under it. The folder is
    // the gateway's own (0700), LMDB's lock file keeps writers apart, and the lock of the data
    // folder keeps a second gateway out of it.
    Ok(unsafe { options.open(folder)? })
}

/// `[length][user]`: no user's keys are a prefix of another's.
pub(super) fn user_prefix(user: &str) -> Result<Vec<u8>, Error> {
    match u8::try_from(user.len()) {
        Ok(length) if user.len() <= NAME_BYTES_MAX => {
            let mut key = Vec::with_capacity(user.len() + 9);
            key.push(length);
            key.extend_from_slice(user.as_bytes());
            Ok(key)
        }
        _ => Err(Error::NameTooLong(user.to_owned())),
    }
}

/// `[length][user][id big endian]`: a user's records in the order of their ids.
pub(super) fn user_key(user: &str, id: u64) -> Result<Vec<u8>, Error> {
    let mut key = user_prefix(user)?;
    key.extend_from_slice(&id.to_be_bytes());
    Ok(key)
}

pub(super) fn id_of(key: &[u8]) -> u64 {
    key.last_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_cannot_be_opened_again_at_once_is_tried_again_and_lost_at_last() {
        let folder = tempfile::tempdir().unwrap();
        let busy = || Error::Folder { path: String::new(), source: std::io::Error::from_raw_os_error(24) };
        let mut tries = 0;
        let opened = reopened(Duration::ZERO, || {
            tries += 1;
            if tries < 3 { Err(busy()) } else { Opened::open(folder.path(), 16, &Damage::default()) }
        });
        opened.unwrap().close();
        assert_eq!(tries, 3);
        let lost = reopened(Duration::ZERO, || {
            tries += 1;
            Err(busy())
        });
        assert!(matches!(lost, Err(Error::Lost(_))) && tries == 3 + 1 + REOPEN_TRIES_MAX);
    }
}
