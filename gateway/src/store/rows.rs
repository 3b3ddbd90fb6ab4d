//! Rows of bytes by owner and key: what tools and apps keep, each kind in a database of its own.
//!
//! The owner of a kind gives the bytes their form; the store only keeps them in order.

use heed::{Database, RwTxn, types::Bytes};

use super::{
    Disk, Error,
    disk::{id_of, user_prefix},
};

/// Longest key of a row: LMDB's keys have at most 511 bytes, and the owner's name comes first.
pub(super) const KEY_BYTES_MAX: usize = 440;
/// Longest value of a row: a page of a result or a setting, not a file.
pub(super) const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Key of the last number that was given, behind all numbers of one owner.
const COUNTER: &[u8] = b"\xff";

/// Rows that are looked at for dropping with each new one.
const TRIM_MAX: usize = 8;

/// A kind of rows. The owner is a user unless the kind says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Calls that were made, by number.
    Ledger,
    /// Calls that are about to be made and their outcomes, by call.
    Intents,
    /// What a user has switched off and on.
    Switches,
    /// What a user has chosen between tools of several sides.
    Preferences,
    /// The last known tools of a source; the owner is the source.
    Catalogue,
    /// Installed mini-apps; the owner is the package.
    Apps,
    /// What a mini-app keeps for a user, by package and key.
    AppStorage,
    /// A user's settings of a mini-app, by package.
    AppSettings,
    /// Mini-apps that a user has running, by package.
    AppSessions,
    /// What a user's sessions of mini-apps are called, by package.
    AppSessionNames,
    /// What a user's models took, by day.
    Spending,
    /// A user's conversations, by number.
    Conversations,
    /// Facts about a user, by number.
    Facts,
    /// A user's standing instructions, by number.
    Instructions,
}

impl Kind {
    /// Whether an owner of these rows is a user, so that they go when everything of the user goes.
    pub fn is_of_user(self) -> bool {
        match self {
            Self::Ledger
            | Self::Intents
            | Self::Switches
            | Self::Preferences
            | Self::AppStorage
            | Self::AppSettings
            | Self::AppSessions
            | Self::AppSessionNames
            | Self::Spending
            | Self::Conversations
            | Self::Facts
            | Self::Instructions => true,
            Self::Catalogue | Self::Apps => false,
        }
    }
}

/// All kinds and the names of their databases.
pub const KINDS: [(Kind, &str); 14] = [
    (Kind::Ledger, "ledger"),
    (Kind::Intents, "intents"),
    (Kind::Switches, "switches"),
    (Kind::Preferences, "preferences"),
    (Kind::Catalogue, "catalogue"),
    (Kind::Apps, "apps"),
    (Kind::AppStorage, "app-storage"),
    (Kind::AppSettings, "app-settings"),
    (Kind::AppSessions, "app-sessions"),
    (Kind::AppSessionNames, "app-session-names"),
    (Kind::Spending, "spending"),
    (Kind::Conversations, "conversations"),
    (Kind::Facts, "facts"),
    (Kind::Instructions, "instructions"),
];

/// One database for each kind.
#[derive(Clone)]
pub(super) struct Tables(pub(super) [Database<'static, Bytes, Bytes>; KINDS.len()]);

/// The databases of all kinds, each made by `open` from its name.
pub(super) fn open<T>(mut open: impl FnMut(&'static str) -> Result<T, Error>) -> Result<[T; KINDS.len()], Error> {
    let opened: Vec<T> = KINDS.iter().map(|(_, name)| open(name)).collect::<Result<_, _>>()?;
    opened.try_into().map_err(|_| Error::Closed)
}

/// A row: its key without the owner, and its value.
pub type Row = (Vec<u8>, Vec<u8>);

impl Tables {
    fn of(&self, kind: Kind) -> (&Database<'static, Bytes, Bytes>, &'static str) {
        let at = KINDS.iter().position(|(other, _)| *other == kind).unwrap_or_default();
        (&self.0[at], KINDS[at].1)
    }

    pub(super) fn put(
        &self,
        txn: &mut RwTxn<'_>,
        kind: Kind,
        owner: &str,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Error> {
        let (table, database) = self.of(kind);
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::TooLarge { database, bytes: value.len(), max: VALUE_BYTES_MAX });
        }
        Ok(table.put(txn, &full_key(database, owner, key)?, value)?)
    }

    /// The number under which the row was put: one more than the owner's last.
    pub(super) fn append(&self, txn: &mut RwTxn<'_>, kind: Kind, owner: &str, value: &[u8]) -> Result<u64, Error> {
        let prefix = user_prefix(owner)?;
        let last = self.of(kind).0.rev_prefix_iter(txn, &prefix)?.next().transpose()?;
        let id = last.map_or(1, |(key, _)| id_of(key) + 1);
        self.put(txn, kind, owner, &id.to_be_bytes(), value)?;
        Ok(id)
    }

    /// Puts a row under the owner's next number, which is never given twice, not even when the last row is gone.
    pub(super) fn add(&self, txn: &mut RwTxn<'_>, kind: Kind, owner: &str, value: &[u8]) -> Result<u64, Error> {
        let (table, database) = self.of(kind);
        let counter = full_key(database, owner, COUNTER)?;
        let last = table.get(txn, &counter)?.map_or(0, id_of);
        let id = last + 1;
        self.put(txn, kind, owner, &id.to_be_bytes(), value)?;
        table.put(txn, &counter, &id.to_be_bytes())?;
        Ok(id)
    }

    /// An owner's row with the highest number, of those that were added.
    pub(super) fn last(&self, txn: &RwTxn<'_>, kind: Kind, owner: &str) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let prefix = user_prefix(owner)?;
        for row in self.of(kind).0.rev_prefix_iter(txn, &prefix)? {
            let (key, value) = row?;
            if key.len() == prefix.len() + size_of::<u64>() {
                return Ok(Some((id_of(key), value.to_vec())));
            }
        }
        Ok(None)
    }

    /// An owner's row with the lowest number, and how many there are.
    pub(super) fn first(&self, txn: &RwTxn<'_>, kind: Kind, owner: &str) -> Result<(usize, Option<Row>), Error> {
        let prefix = user_prefix(owner)?;
        let mut count = 0;
        let mut first = None;
        for row in self.of(kind).0.prefix_iter(txn, &prefix)? {
            let (key, value) = row?;
            if key.len() == prefix.len() + size_of::<u64>() {
                count += 1;
                first.get_or_insert_with(|| (key.get(prefix.len()..).unwrap_or_default().to_vec(), value.to_vec()));
            }
        }
        Ok((count, first))
    }

    /// Drops an owner's numbered rows up to this number.
    pub(super) fn trim(&self, txn: &mut RwTxn<'_>, kind: Kind, owner: &str, last: u64) -> Result<(), Error> {
        let table = self.of(kind).0;
        let prefix = user_prefix(owner)?;
        // Mostly there is one, since rows come one by one.
        let old: Vec<Vec<u8>> = {
            let rows = table.prefix_iter(txn, &prefix)?.take(TRIM_MAX);
            let keys = rows.map(|row| row.map(|(key, _)| key.to_vec())).collect::<Result<Vec<_>, _>>()?;
            keys.into_iter().filter(|key| id_of(key) <= last).collect()
        };
        for key in &old {
            table.delete(txn, key)?;
        }
        Ok(())
    }

    pub(super) fn remove(&self, txn: &mut RwTxn<'_>, kind: Kind, owner: &str, key: &[u8]) -> Result<bool, Error> {
        let (table, database) = self.of(kind);
        Ok(table.delete(txn, &full_key(database, owner, key)?)?)
    }

    /// How many were removed.
    pub(super) fn clear(&self, txn: &mut RwTxn<'_>, kind: Kind, owner: &str, prefix: &[u8]) -> Result<u64, Error> {
        let (table, database) = self.of(kind);
        let prefix = full_key(database, owner, prefix)?;
        let mut keys = Vec::new();
        for row in table.prefix_iter(txn, &prefix)? {
            keys.push(row?.0.to_vec());
        }
        for key in &keys {
            table.delete(txn, key)?;
        }
        Ok(keys.len() as u64)
    }
}

impl Disk {
    /// One row's value.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn row(&self, kind: Kind, owner: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.with(|opened| {
            let (table, database) = opened.rows.of(kind);
            let txn = opened.env.read_txn()?;
            Ok(table.get(&txn, &full_key(database, owner, key)?)?.map(<[u8]>::to_vec))
        })
    }

    /// An owner's rows whose key begins with `prefix`, in the order of their keys, at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn rows(&self, kind: Kind, owner: &str, prefix: &[u8], limit: usize) -> Result<Vec<Row>, Error> {
        self.with(|opened| {
            let (table, database) = opened.rows.of(kind);
            let txn = opened.env.read_txn()?;
            let skip = owner.len() + 1;
            let prefix = full_key(database, owner, prefix)?;
            let mut out = Vec::new();
            for row in table.prefix_iter(&txn, &prefix)?.take(limit) {
                let (key, value) = row?;
                out.push((key.get(skip..).unwrap_or_default().to_vec(), value.to_vec()));
            }
            Ok(out)
        })
    }

    /// As [`rows`](Self::rows), from the last key backwards.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn rows_backwards(&self, kind: Kind, owner: &str, prefix: &[u8], limit: usize) -> Result<Vec<Row>, Error> {
        self.with(|opened| {
            let (table, database) = opened.rows.of(kind);
            let txn = opened.env.read_txn()?;
            let skip = owner.len() + 1;
            let prefix = full_key(database, owner, prefix)?;
            let mut out = Vec::new();
            for row in table.rev_prefix_iter(&txn, &prefix)?.take(limit) {
                let (key, value) = row?;
                out.push((key.get(skip..).unwrap_or_default().to_vec(), value.to_vec()));
            }
            Ok(out)
        })
    }

    /// Everybody who owns rows of a kind.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn owners(&self, kind: Kind) -> Result<Vec<String>, Error> {
        self.with(|opened| {
            let (table, database) = opened.rows.of(kind);
            let txn = opened.env.read_txn()?;
            let mut out: Vec<String> = Vec::new();
            for row in table.iter(&txn)? {
                let owner = owner_of(row?.0).ok_or(Error::Damaged { database })?;
                if out.last().is_none_or(|last| last != owner) {
                    out.push(owner.to_owned());
                }
            }
            Ok(out)
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

/// The owner in a key.
pub(super) fn owner_of(key: &[u8]) -> Option<&str> {
    let (length, rest) = key.split_first()?;
    std::str::from_utf8(rest.get(..usize::from(*length))?).ok()
}

fn full_key(database: &'static str, owner: &str, key: &[u8]) -> Result<Vec<u8>, Error> {
    if key.len() > KEY_BYTES_MAX {
        return Err(Error::TooLarge { database, bytes: key.len(), max: KEY_BYTES_MAX });
    }
    let mut full = user_prefix(owner)?;
    full.extend_from_slice(key);
    Ok(full)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, Write};

    #[tokio::test]
    async fn rows_are_kept_apart_by_kind_and_owner_and_come_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let put = |owner: &str, key: &str, value: &str| Write::PutRow {
            kind: Kind::AppStorage,
            owner: owner.into(),
            key: key.into(),
            value: value.into(),
        };
        for (owner, key, value) in [("an", "n\0b", "2"), ("an", "n\0a", "1"), ("an", "o\0a", "3"), ("ann", "a", "4")] {
            store.write(put(owner, key, value)).await.unwrap();
        }
        let values = |rows: Vec<Row>| -> Vec<String> {
            rows.into_iter().map(|(_, value)| String::from_utf8(value).unwrap()).collect()
        };
        let disk = store.disk();
        assert_eq!(values(disk.rows(Kind::AppStorage, "an", b"", 9).unwrap()), ["1", "2", "3"]);
        assert_eq!(values(disk.rows(Kind::AppStorage, "an", b"n\0", 9).unwrap()), ["1", "2"]);
        assert_eq!(values(disk.rows_backwards(Kind::AppStorage, "an", b"", 1).unwrap()), ["3"]);
        assert_eq!(disk.rows(Kind::AppStorage, "ann", b"", 9).unwrap(), [(b"a".to_vec(), b"4".to_vec())]);
        assert!(disk.rows(Kind::Ledger, "an", b"", 9).unwrap().is_empty());
        assert_eq!(disk.owners(Kind::AppStorage).unwrap(), ["an", "ann"]);

        let clear = Write::ClearRows { kind: Kind::AppStorage, owner: "an".into(), prefix: b"n\0".to_vec() };
        assert_eq!(store.write(clear).await.unwrap(), 2);
        assert_eq!(values(store.disk().rows(Kind::AppStorage, "an", b"", 9).unwrap()), ["3"]);
        let remove = || Write::RemoveRow { kind: Kind::AppStorage, owner: "an".into(), key: b"o\0a".to_vec() };
        assert_eq!(store.write(remove()).await.unwrap(), 1);
        assert_eq!(store.write(remove()).await.unwrap(), 0);
        assert!(store.disk().row(Kind::AppStorage, "an", b"o\0a").unwrap().is_none());
    }

    #[tokio::test]
    async fn appended_rows_are_numbered_and_too_long_keys_refused() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        for wanted in [1, 2, 3] {
            let append = Write::AppendRow { kind: Kind::Ledger, owner: "ann".into(), value: vec![7] };
            assert_eq!(store.write(append).await.unwrap(), wanted);
        }
        for wanted in [4, 5, 6] {
            let append =
                Write::AppendRowWithin { kind: Kind::Ledger, owner: "ann".into(), value: vec![7], rows_max: 3 };
            assert_eq!(store.write(append).await.unwrap(), wanted);
        }
        let kept = store.disk().rows(Kind::Ledger, "ann", b"", 9).unwrap();
        assert_eq!(kept.iter().map(|(key, _)| id_of(key)).collect::<Vec<_>>(), [4, 5, 6]);
        let key = vec![0; KEY_BYTES_MAX + 1];
        let long = Write::PutRow { kind: Kind::Ledger, owner: "ann".into(), key, value: vec![] };
        let error = store.write(long).await.unwrap_err();
        assert!(error.to_string().contains("441 bytes"), "{error}");
        assert_eq!(store.disk().rows(Kind::Ledger, "ann", b"", 9).unwrap().len(), 3);
    }
}
