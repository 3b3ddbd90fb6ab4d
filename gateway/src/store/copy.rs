//! Erasing: a copy of everything else takes the place of the file.
//!
//! Deleting in place is not enough: LMDB leaves deleted bytes in free pages and in the gaps of pages that live on. So
//! all rows but the erased ones are written, one by one, into a new file that never held anything else.

use std::{fs, io::ErrorKind, path::Path};

use heed::{Database, RwTxn, types::Bytes};
use tools::{catalogue::StoredSet, source};

use super::{
    Disk, Error,
    disk::{Opened, id_of, read, user_prefix},
    records::DeviceRecord,
    rows::{KINDS, Kind, owner_of},
};

/// Bytes that are written in one transaction: keeps the list of changed pages short.
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What is erased.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum Scope {
    /// Everything of a user; the pairings of the user's devices too, where `devices` says so.
    User {
        user: String,
        /// Also the devices, which must be paired again then.
        devices: bool,
    },
    /// A user's messages with these ids, and these conversations.
    Conversations {
        user: String,
        /// Numbers of the conversations.
        conversations: Vec<u64>,
        /// Runs of messages: first id, and the first that does not belong to it.
        messages: Vec<(u64, u64)>,
    },
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
                    Table::Devices => Ok(*devices && read::<DeviceRecord>("devices", value)?.user == *user),
                    Table::Messages | Table::Entries | Table::Notes => owned(),
                    Table::Rows(Kind::Catalogue) => {
                        let set = serde_json::from_slice::<StoredSet>(value);
                        Ok(set.is_ok_and(|set| set.scope == source::Scope::User(user.clone())))
                    }
                    Table::Rows(kind) => Ok(kind.is_of_user() && owner_of(key) == Some(user)),
                }
            }
            Self::Conversations { user, conversations, messages } => {
                let prefix = user_prefix(user)?;
                if !key.starts_with(&prefix) || key.len() != prefix.len() + size_of::<u64>() {
                    return Ok(false);
                }
                let id = id_of(key);
                Ok(match table {
                    Table::Messages => messages.iter().any(|(from, to)| (*from..*to).contains(&id)),
                    Table::Rows(Kind::Conversations) => conversations.contains(&id),
                    _ => false,
                })
            }
        }
    }
}

/// Copies all but `scope` and exchanges the files. The number of rows that are no longer there.
pub(super) fn without(disk: &Disk, scope: &Scope) -> Result<u64, Error> {
    let folder = disk.folder();
    let beside = folder.with_extension("new");
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |source| Error::Folder { path, source }
    };
    remove(&beside).map_err(failed(&beside))?;
    let new = Opened::open(&beside, disk.size_max_mib())?;
    let copied = disk.with(|old| copy(old, &new, scope));
    new.close();
    let erased = match copied {
        Ok(erased) => erased,
        Err(error) => {
            remove(&beside).map_err(failed(&beside))?;
            return Err(error);
        }
    };
    disk.exchange(|| {
        fs::rename(beside.join("data.mdb"), folder.join("data.mdb")).map_err(failed(folder))?;
        // The new name is on the disk before anybody is told.
        fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder))
    })?;
    remove(&beside).map_err(failed(&beside))?;
    Ok(erased)
}

/// Removes what an erasure that was killed has left.
pub(super) fn clean(folder: &Path) -> Result<(), Error> {
    let beside = folder.with_extension("new");
    remove(&beside).map_err(|source| Error::Folder { path: beside.display().to_string(), source })
}

fn remove(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn copy(old: &Opened, new: &Opened, scope: &Scope) -> Result<u64, Error> {
    let mut tables = vec![
        (Table::Devices, old.devices.remap_key_type::<Bytes>(), new.devices.remap_key_type::<Bytes>()),
        (Table::Messages, old.messages, new.messages),
        (Table::Entries, old.entries, new.entries),
        (Table::Notes, old.notes, new.notes),
    ];
    for ((kind, _), (from, to)) in KINDS.iter().zip(old.rows.0.iter().zip(&new.rows.0)) {
        tables.push((Table::Rows(*kind), *from, *to));
    }
    let mut erased = 0;
    for (table, from, to) in tables {
        erased += copy_table(old, new, (&from, &to), |key, value| scope.has(table, key, value))?;
    }
    Ok(erased)
}

fn copy_table(
    old: &Opened,
    new: &Opened,
    (from, to): (&Database<'static, Bytes, Bytes>, &Database<'static, Bytes, Bytes>),
    is_erased: impl Fn(&[u8], &[u8]) -> Result<bool, Error>,
) -> Result<u64, Error> {
    let reading = old.env.read_txn()?;
    let mut writing: RwTxn<'_> = new.env.write_txn()?;
    let (mut erased, mut bytes) = (0, 0);
    for row in from.iter(&reading)? {
        let (key, value) = row?;
        if is_erased(key, value)? {
            erased += 1;
            continue;
        }
        to.put(&mut writing, key, value)?;
        bytes += key.len() + value.len();
        if bytes >= BATCH_BYTES_MAX {
            writing.commit()?;
            writing = new.env.write_txn()?;
            bytes = 0;
        }
    }
    writing.commit()?;
    Ok(erased)
}
