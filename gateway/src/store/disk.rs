//! The LMDB environment, its keys, and every read.

use std::{
    ops::Bound::Included,
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use gateway_core::vocab::ScheduleEntry;
use heed::{
    CommitOrAbort, Database, Env, EnvOpenOptions, WithoutTls,
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
    rows::{self, Tables},
};

/// Version of the layout below.
const SCHEMA: u32 = 1;
/// Longest user or device name, in bytes: it is part of every key.
const NAME_BYTES_MAX: usize = 64;

/// The environment while it is open.
pub(super) struct Opened {
    pub(super) env: Env<WithoutTls>,
    pub(super) devices: Database<'static, Str, Bytes>,
    pub(super) messages: Database<'static, Bytes, Bytes>,
    pub(super) entries: Database<'static, Bytes, Bytes>,
    pub(super) notes: Database<'static, Bytes, Bytes>,
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
}

impl Disk {
    pub(super) fn open(folder: &Path, size_max_mib: usize) -> Result<Self, Error> {
        copy::clean(folder)?;
        let opened = RwLock::new(Some(Opened::open(folder, size_max_mib)?));
        Ok(Self(Arc::new(Place { folder: folder.to_path_buf(), size_max_mib, opened })))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0.folder
    }

    pub(super) fn size_max_mib(&self) -> usize {
        self.0.size_max_mib
    }

    /// Does something with the open environment, which stays open meanwhile.
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
        // The old file is opened again where it could not be exchanged.
        let exchanged = exchange();
        *opened = Some(Opened::open(&self.0.folder, self.0.size_max_mib)?);
        exchanged
    }

    /// All paired devices by fingerprint, revoked ones included.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn devices(&self) -> Result<Vec<(String, DeviceRecord)>, Error> {
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            let mut out = Vec::new();
            for row in opened.devices.iter(&txn)? {
                let (id, bytes) = row?;
                out.push((id.to_owned(), read::<DeviceRecord>("devices", bytes)?));
            }
            Ok(out)
        })
    }

    /// One device.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn device(&self, id: &str) -> Result<Option<DeviceRecord>, Error> {
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            opened.devices.get(&txn, id)?.map(|bytes| read("devices", bytes)).transpose()
        })
    }

    /// The last `limit` messages of a user, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn messages(&self, user: &str, limit: usize) -> Result<Vec<MessageRecord>, Error> {
        let mut out: Vec<MessageRecord> = self.with(|opened| {
            let newest = opened.newest(&opened.messages, "messages", user, limit)?;
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
            for row in opened.messages.range(&txn, &(Included(from.as_slice()), Included(last.as_slice())))?.take(limit)
            {
                let (key, bytes) = row?;
                out.push((id_of(key), read("messages", bytes)?));
            }
            Ok(out)
        })
    }

    /// Timers and reminders of a user by id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn entries(&self, user: &str) -> Result<Vec<ScheduleEntry>, Error> {
        let newest: Vec<(u64, EntryRecord)> =
            self.with(|opened| opened.newest(&opened.entries, "entries", user, usize::MAX))?;
        Ok(newest.into_iter().rev().map(|(id, record)| record.into_entry(id)).collect())
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
            for row in opened.notes.rev_prefix_iter(&txn, &prefix)? {
                let (key, bytes) = row?;
                let note = read::<NoteRecord>("notes", bytes)?;
                if keep(&note) {
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
            opened.notes.get(&txn, &user_key(user, id)?)?.map(|bytes| read("notes", bytes)).transpose()
        })
    }
}

impl Opened {
    pub(super) fn open(folder: &Path, size_max_mib: usize) -> Result<Self, Error> {
        let folder_error = |source| Error::Folder { path: folder.display().to_string(), source };
        std::fs::create_dir_all(folder).map_err(folder_error)?;
        let env = open_environment(folder, size_max_mib)?;
        let txn = env.write_txn()?;
        let committed = env.create_databases_and_commit(txn, |opener, txn| -> Result<_, Error> {
            let meta = opener.create_database::<Str, Bytes>(txn, Some("meta"))?;
            let devices = opener.create_database::<Str, Bytes>(txn, Some("devices"))?;
            let messages = opener.create_database::<Bytes, Bytes>(txn, Some("messages"))?;
            let entries = opener.create_database::<Bytes, Bytes>(txn, Some("entries"))?;
            let notes = opener.create_database::<Bytes, Bytes>(txn, Some("notes"))?;
            let rows = rows::open(|name| Ok(opener.create_database::<Bytes, Bytes>(txn, Some(name))?))?;
            Ok(CommitOrAbort::<_, ()>::Commit((meta, devices, messages, entries, notes, rows)))
        })?;
        let CommitOrAbort::Commit((meta, devices, messages, entries, notes, rows)) = committed else {
            return Err(Error::Closed);
        };
        let mut txn = env.write_txn()?;
        match meta.get(&txn, "schema")? {
            None => meta.put(&mut txn, "schema", &SCHEMA.to_le_bytes())?,
            Some(bytes) => {
                let found = bytes.try_into().map(u32::from_le_bytes).unwrap_or(0);
                if found != SCHEMA {
                    return Err(Error::Schema { found, expected: SCHEMA });
                }
            }
        }
        txn.commit()?;
        Ok(Self { env, devices, messages, entries, notes, rows: Tables(rows) })
    }

    /// Waits until the file is unmapped.
    pub(super) fn close(self) {
        self.env.prepare_for_closing().wait();
    }

    fn newest<T>(
        &self,
        database: &Database<Bytes, Bytes>,
        name: &'static str,
        user: &str,
        limit: usize,
    ) -> Result<Vec<(u64, T)>, Error>
    where
        T: Archive,
        T::Archived:
            for<'a> CheckBytes<HighValidator<'a, rancor::Error>> + Deserialize<T, HighDeserializer<rancor::Error>>,
    {
        let txn = self.env.read_txn()?;
        let prefix = user_prefix(user)?;
        let mut out = Vec::new();
        for row in database.rev_prefix_iter(&txn, &prefix)?.take(limit) {
            let (key, bytes) = row?;
            out.push((id_of(key), read(name, bytes)?));
        }
        Ok(out)
    }
}

/// The one place where the store's file is mapped.
#[allow(unsafe_code, reason = "LMDB maps its file; see SAFETY")]
fn open_environment(folder: &Path, size_max_mib: usize) -> Result<Env<WithoutTls>, Error> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.max_dbs(32).map_size(size_max_mib.saturating_mul(1024 * 1024));
    // SAFETY: the map is undefined when another program changes the file under it. The folder is
    // the gateway's own (0700), LMDB's lock file keeps writers apart, and the control socket's
    // lock keeps a second gateway out of the folder.
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

pub(super) fn read<T>(database: &'static str, bytes: &[u8]) -> Result<T, Error>
where
    T: Archive,
    T::Archived: for<'a> CheckBytes<HighValidator<'a, rancor::Error>> + Deserialize<T, HighDeserializer<rancor::Error>>,
{
    rkyv::from_bytes::<T, rancor::Error>(bytes).map_err(|_| Error::Damaged { database })
}
