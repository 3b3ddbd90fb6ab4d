//! Copies of the store, row by row: for erasing, where a copy of everything else takes the place of the file, and for
//! backups.
//!
//! Deleting in place is not enough: LMDB leaves deleted bytes in free pages and in the gaps of pages that live on. So
//! all rows but the erased ones are written, one by one, into a new file that never held anything else.

use std::{fs, io::ErrorKind, ops::Range, path::Path};

use heed::{RoTxn, RwTxn, WithoutTls};
use tools::{catalogue::StoredSet, source};

use super::{
    Error,
    keys::{id_of, owner_of, user_prefix},
    opened::Opened,
    records::DeviceRecord,
    rows::{KINDS, Kind},
    schema,
    table::{self, Damage, Table as Rows},
};

/// Bytes that are written in one transaction: keeps the list of changed pages short.
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a copy leaves out, so that it is erased.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum Scope {
    /// Everything of a user.
    User {
        user: String,
        /// Also the pairings of the user's devices.
        devices: bool,
    },
    /// A user's messages with these ids, and the conversation of this number; without one, all conversations.
    Conversations { user: String, id: Option<u64>, messages: Range<u64> },
    /// All pairings, and the sessions of paired devices.
    Pairings,
}

/// The tables that are not rows of a kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    Devices,
    Messages,
    Entries,
    Notes,
    Rows(Kind),
}

impl Scope {
    fn has(&self, table: Table, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        match self {
            Self::User { user, devices } => {
                let owned = || -> Result<bool, Error> { Ok(key.starts_with(&user_prefix(user)?)) };
                match table {
                    // A damaged device may belong to this user, and has to be paired again in any case.
                    Table::Devices => {
                        let device = table::unseal(key, value).and_then(table::decode::<DeviceRecord>);
                        Ok(*devices && device.is_none_or(|device| device.user == *user))
                    }
                    Table::Messages | Table::Entries | Table::Notes => owned(),
                    Table::Rows(Kind::Catalogue) => {
                        // A damaged row may belong to this user, and only caches what a server offers.
                        let Some(value) = table::unseal(key, value) else { return Ok(true) };
                        let set = serde_json::from_slice::<StoredSet>(value);
                        Ok(set.is_ok_and(|set| set.scope == source::Scope::User(user.clone())))
                    }
                    Table::Rows(kind) => Ok(kind.is_of_user() && owner_of(key) == Some(user)),
                }
            }
            Self::Conversations { user, id, messages } => {
                let prefix = user_prefix(user)?;
                if !key.starts_with(&prefix) || key.len() != prefix.len() + size_of::<u64>() {
                    return Ok(false);
                }
                let number = id_of(key);
                Ok(match table {
                    Table::Messages => messages.contains(&number),
                    Table::Rows(Kind::Conversations) => id.is_none_or(|id| id == number),
                    _ => false,
                })
            }
            Self::Pairings => Ok(matches!(table, Table::Devices | Table::Rows(Kind::DeviceSessions))),
        }
    }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> Error + use<> {
    let path = path.display().to_string();
    move |source| Error::Folder { path, source }
}

/// Creates another store beside that of `folder`, and fills it. On failure, it is removed.
pub(super) fn beside<R>(
    folder: &Path,
    size_max_mib: usize,
    fill: impl FnOnce(&Opened) -> Result<R, Error>,
) -> Result<R, Error> {
    clean(folder)?;
    let filled = into(&folder.with_extension("new"), size_max_mib, fill);
    if filled.is_err() {
        clean(folder)?;
    }
    filled
}

/// Creates a store of the present version in a folder that has none, and fills it.
pub(super) fn into<R>(
    folder: &Path,
    size_max_mib: usize,
    fill: impl FnOnce(&Opened) -> Result<R, Error>,
) -> Result<R, Error> {
    let new = Opened::open(folder, size_max_mib, &Damage::default())?;
    let filled = schema::mark(&new).and_then(|()| fill(&new));
    new.close();
    filled
}

/// Replaces the old store by the one beside `folder`. Both are closed.
pub(super) fn exchange(folder: &Path) -> Result<(), Error> {
    let beside = folder.with_extension("new");
    fs::rename(beside.join("data.mdb"), folder.join("data.mdb")).map_err(failed(folder))?;
    // The new name is on the disk before anybody is told.
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder))
}

/// Removes the unfinished copy of an erasure or a migration that was killed.
pub(super) fn clean(folder: &Path) -> Result<(), Error> {
    let beside = folder.with_extension("new");
    remove(&beside).map_err(failed(&beside))
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Copies all rows but those of `scope`, as they are at one moment; `moves` is called for each. Returns how many are left
/// out.
pub(super) fn copy(old: &Opened, new: &Opened, scope: Option<&Scope>, moves: impl Fn()) -> Result<u64, Error> {
    let kinds = KINDS.iter().map(|(kind, _)| Table::Rows(*kind));
    let tables = [Table::Devices, Table::Messages, Table::Entries, Table::Notes].into_iter().chain(kinds);
    let mut erased = 0;
    let reading = old.env.read_txn()?;
    for (table, (from, to)) in tables.zip(old.tables().zip(new.tables())) {
        // Damaged rows are copied unchanged, so that they can still be repaired.
        copy_table((&reading, from), (new, to), |key, value| {
            moves();
            let has = scope.map_or(Ok(false), |scope| scope.has(table, key, value))?;
            erased += u64::from(has);
            Ok((!has).then(|| value.to_vec()))
        })?;
    }
    Ok(erased)
}

/// Copies the rows of a table, each with the stored value that `change` makes of its own, if any.
pub(super) fn copy_table(
    (reading, from): (&RoTxn<'_, WithoutTls>, &Rows),
    (new, to): (&Opened, &Rows),
    mut change: impl FnMut(&[u8], &[u8]) -> Result<Option<Vec<u8>>, Error>,
) -> Result<(), Error> {
    let mut writing: RwTxn<'_> = new.env.write_txn()?;
    let mut bytes = 0;
    for row in from.raw.iter(reading)? {
        let (key, value) = row?;
        let Some(value) = change(key, value)? else { continue };
        to.raw.put(&mut writing, key, &value)?;
        bytes += key.len() + value.len();
        if bytes >= BATCH_BYTES_MAX {
            writing.commit()?;
            writing = new.env.write_txn()?;
            bytes = 0;
        }
    }
    writing.commit()?;
    Ok(())
}
