//! The LMDB environment with its tables: opened, opened again, opened for reading where the disk is read-only.

use std::{path::Path, thread, time::Duration};

use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, WithoutTls, types::Bytes, types::Str};
use rkyv::{
    Archive, Deserialize,
    api::high::{HighDeserializer, HighValidator},
    bytecheck::CheckBytes,
    rancor,
};

use super::{
    Error,
    keys::{id_of, user_prefix},
    records::DeviceRecord,
    rows::{self, KINDS, Tables},
    table::{Damage, Table},
    whole,
};
use crate::private::make_folder;

/// Tries to open the store again after it was closed, and the time between two: five seconds in all, during which nothing
/// is read or written.
const REOPEN_TRIES_MAX: usize = 20;
const REOPEN_EVERY: Duration = Duration::from_millis(250);
/// Bytes beyond the store's size that only revocations may use: enough for thousands of them.
pub(super) const RESERVE_MIB: usize = 1;

/// A table as LMDB opens it.
type Raw<'e> = Database<'e, Bytes, Bytes>;
/// All of them: the store's version, the tables with forms of their own, and the rows of each kind.
type RawTables<'e> = (Raw<'e>, [Raw<'e>; 4], [Raw<'e>; KINDS.len()]);

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

impl Opened {
    /// Opens the environment and creates missing tables. Does not check the version.
    pub(super) fn open(folder: &Path, size_max_mib: usize, damage: &Damage) -> Result<Self, Error> {
        let folder_error = |source| Error::Folder { path: folder.display().to_string(), source };
        make_folder(folder).map_err(folder_error)?;
        let env = open_environment(folder, size_max_mib, EnvFlags::empty())?;
        whole::complete(&env, folder, size_max_mib.saturating_add(RESERVE_MIB))?;
        let txn = env.write_txn()?;
        let made = env.create_databases_and_commit(txn, |opener, txn| {
            let tables = raw_tables(|name| Ok(opener.create_database(txn, Some(name))?))?;
            Ok::<_, Error>(CommitOrAbort::<_, ()>::Commit(tables))
        })?;
        Ok(Self::of(&env, made.commit().ok_or(Error::Closed)?, damage))
    }

    /// Opens an environment that has all tables, for reading only: the disk may be read-only.
    fn open_to_read(folder: &Path, size_max_mib: usize, damage: &Damage) -> Result<Self, Error> {
        let env = open_environment(folder, size_max_mib, EnvFlags::READ_ONLY)?;
        whole::complete(&env, folder, size_max_mib.saturating_add(RESERVE_MIB))?;
        let txn = env.read_txn()?;
        let found = env.open_databases_and_commit(txn, |opener, txn| {
            let tables =
                raw_tables(|name| opener.open_database(txn, Some(name))?.ok_or(Error::Damaged { database: name }))?;
            Ok::<_, Error>(CommitOrAbort::<_, ()>::Commit(tables))
        })?;
        Ok(Self::of(&env, found.commit().ok_or(Error::Closed)?, damage))
    }

    /// Opens a store again that was closed: for reading only where the disk is read-only. Retries, since a lack of
    /// descriptors or memory is temporary.
    ///
    /// # Errors
    /// [`Error::Lost`].
    pub(super) fn again(folder: &Path, size_max_mib: usize, damage: &Damage) -> Result<Self, Error> {
        reopened(REOPEN_EVERY, || match Self::open(folder, size_max_mib, damage) {
            Err(Error::ReadOnly(_)) => Self::open_to_read(folder, size_max_mib, damage),
            opened => opened,
        })
    }

    fn of(env: &Env<WithoutTls>, (meta, named, rows): RawTables<'static>, damage: &Damage) -> Self {
        let table = |raw, name| Table::new(raw, name, damage);
        let [devices, messages, entries, notes] = named;
        let mut names = KINDS.iter().map(|(_, name)| *name);
        Self {
            env: env.clone(),
            meta: meta.remap_key_type(),
            devices: table(devices, "devices"),
            messages: table(messages, "messages"),
            entries: table(entries, "entries"),
            notes: table(notes, "notes"),
            rows: Tables(rows.map(|raw| table(raw, names.next().unwrap_or_default()))),
        }
    }

    /// Whether nothing can be written, because the disk was read-only when this was opened.
    pub(super) fn is_read_only(&self) -> bool {
        self.env.flags().is_ok_and(|flags| flags.is_some_and(|flags| flags.contains(EnvFlags::READ_ONLY)))
    }

    /// Whether LMDB has given the environment up, for reads as well: it could not write a root page.
    pub(super) fn is_given_up(&self) -> bool {
        matches!(self.env.read_txn(), Err(heed::Error::Mdb(heed::MdbError::Panic)))
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
    pub(super) fn newest<T>(&self, table: &Table, user: &str, limit: usize) -> Result<Vec<(u64, T)>, Error>
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

/// Opens each table by its name.
fn raw_tables<'e>(mut open: impl FnMut(&'static str) -> Result<Raw<'e>, Error>) -> Result<RawTables<'e>, Error> {
    let meta = open("meta")?;
    let named = [open("devices")?, open("messages")?, open("entries")?, open("notes")?];
    Ok((meta, named, rows::open(open)?))
}

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

/// The one place where a file of LMDB is mapped.
#[allow(unsafe_code, reason = "LMDB maps its file; see SAFETY")]
pub(crate) fn open_environment(folder: &Path, size_max_mib: usize, flags: EnvFlags) -> heed::Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.max_dbs(32).map_size(size_max_mib.saturating_mul(1024 * 1024));
    // SAFETY: the map is undefined when another program changes the file under it. The folder is
    // the gateway's own (0700), LMDB's lock file keeps writers apart, and the lock of the data
    // folder keeps a second gateway out of it. READ_ONLY, the only flag given, weakens none of it.
    unsafe { options.flags(flags).open(folder) }
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
