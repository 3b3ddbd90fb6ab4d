//! Rows of bytes by owner and key, for tools and apps; each kind has a database of its own.
//!
//! The module that owns a kind defines the form of its bytes.

use heed::RwTxn;

use super::{
    Error,
    keys::{id_of, user_prefix},
    table::Table,
};

/// Longest key of a row: LMDB's keys have at most 511 bytes, and the owner's name comes first.
const KEY_BYTES_MAX: usize = 440;
/// Longest value of a row: a page of a result or a setting, not a file.
const VALUE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Key of the last assigned number; it sorts after all numbers of the owner.
pub(super) const COUNTER: &[u8] = b"\xff";

/// Rows that may be dropped with each new one.
const TRIM_MAX: usize = 8;

/// A kind of rows. The owner is a user unless the kind says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Finished calls, by number.
    Ledger,
    /// Intents of calls and their outcomes, by call.
    Intents,
    /// Tools that a user has switched off.
    Switches,
    /// A user's choices between tools that understand the same sentences.
    Preferences,
    /// The last known tools of apps and servers, and the revision of the catalogue; no owner is a user.
    Catalogue,
    /// Installed mini-apps; the owner is the package.
    Apps,
    /// A mini-app's storage for a user, by package and key.
    AppStorage,
    /// A user's settings of a mini-app, by package.
    AppSettings,
    /// A user's running mini-apps, by package.
    AppSessions,
    /// Names of a user's sessions with mini-apps, by package.
    AppSessionNames,
    /// The state of device sessions that outlives the process, by device.
    DeviceSessions,
    /// Sound for a user that mini-apps have asked for and that has not ended, by package and request.
    AppSounds,
    /// A user's use of models, by day.
    Spending,
    /// A user's conversations, by number.
    Conversations,
    /// Facts about a user, by number.
    Facts,
    /// A user's standing instructions, by number.
    Instructions,
    /// Runs of a user's programs, by number.
    Runs,
    /// A user's routines, by name.
    Routines,
    /// Volume and pace of speech that a user has set, by device.
    Speaking,
}

impl Kind {
    /// Whether the owner of these rows is a user: then erasing the user erases them.
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
            | Self::DeviceSessions
            | Self::AppSounds
            | Self::Spending
            | Self::Conversations
            | Self::Facts
            | Self::Instructions
            | Self::Runs
            | Self::Routines
            | Self::Speaking => true,
            Self::Catalogue | Self::Apps => false,
        }
    }
}

/// All kinds and the names of their databases.
pub const KINDS: [(Kind, &str); 19] = [
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
    (Kind::DeviceSessions, "device-sessions"),
    (Kind::Runs, "runs"),
    (Kind::Routines, "routines"),
    (Kind::AppSounds, "app-sounds"),
    (Kind::Speaking, "speaking"),
];

/// One database for each kind.
#[derive(Clone)]
pub(super) struct Tables(pub(super) [Table; KINDS.len()]);

/// The databases of all kinds, each made by `open` from its name.
pub(super) fn open<T>(mut open: impl FnMut(&'static str) -> Result<T, Error>) -> Result<[T; KINDS.len()], Error> {
    let opened: Vec<T> = KINDS.iter().map(|(_, name)| open(name)).collect::<Result<_, _>>()?;
    opened.try_into().map_err(|_| Error::Closed)
}

/// A row: its key without the owner, and its value.
pub type Row = (Vec<u8>, Vec<u8>);

/// A row's number and its value, without the latter if it is damaged.
pub(super) type NumberedRow = (u64, Option<Vec<u8>>);

/// Rows that are added or replaced together, all or none.
#[derive(Clone, Debug)]
pub struct RowsWithin {
    /// What they are rows of.
    pub kind: Kind,
    /// A user, unless the kind says otherwise.
    pub owner: String,
    /// The prefix of their keys.
    pub prefix: Vec<u8>,
    /// Keys without the prefix, and values.
    pub rows: Vec<Row>,
    /// How many rows with this prefix there may be afterwards.
    pub rows_max: usize,
    /// Bytes of these, keys without the prefix and values together.
    pub bytes_max: usize,
}

impl Tables {
    pub(super) fn of(&self, kind: Kind) -> &Table {
        let at = KINDS.iter().position(|(other, _)| *other == kind).unwrap_or_default();
        &self.0[at]
    }

    pub(super) fn put(
        &self,
        txn: &mut RwTxn<'_>,
        kind: Kind,
        owner: &str,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Error> {
        let table = self.of(kind);
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::TooLarge { database: table.name, bytes: value.len(), max: VALUE_BYTES_MAX });
        }
        table.put(txn, &full_key(table.name, owner, key)?, value)
    }

    /// Puts several rows if all rows with the prefix stay within the limits.
    pub(super) fn put_within(&self, txn: &mut RwTxn<'_>, rows: &RowsWithin) -> Result<(), Error> {
        let RowsWithin { kind, owner, prefix, rows, rows_max, bytes_max } = rows;
        let table = self.of(*kind);
        for (key, value) in rows {
            self.put(txn, *kind, owner, &[prefix.as_slice(), key].concat(), value)?;
        }
        let prefix = full_key(table.name, owner, prefix)?;
        let (mut count, mut bytes) = (0, 0);
        for row in table.prefix(txn, &prefix)? {
            let (key, value) = row?;
            count += 1;
            bytes += key.len() - prefix.len() + value.len();
        }
        if count > *rows_max || bytes > *bytes_max {
            return Err(Error::TooMuch { database: table.name });
        }
        Ok(())
    }

    /// The number under which the row was put: the owner's [next](Table::next_number).
    pub(super) fn append(&self, txn: &mut RwTxn<'_>, kind: Kind, owner: &str, value: &[u8]) -> Result<u64, Error> {
        let id = self.of(kind).next_number(txn, &user_prefix(owner)?, 1)?;
        self.put(txn, kind, owner, &id.to_be_bytes(), value)?;
        Ok(id)
    }

    /// Puts a row under the owner's next number. No number is assigned twice, even after the last row was removed.
    pub(super) fn add(&self, txn: &mut RwTxn<'_>, kind: Kind, owner: &str, value: &[u8]) -> Result<u64, Error> {
        let table = self.of(kind);
        let behind = self.last_assigned(txn, kind, owner)?.saturating_add(1);
        let id = table.next_number(txn, &user_prefix(owner)?, behind)?;
        self.put(txn, kind, owner, &id.to_be_bytes(), value)?;
        table.put(txn, &full_key(table.name, owner, COUNTER)?, &id.to_be_bytes())?;
        Ok(id)
    }

    /// The highest number under which a row of an owner was ever added, also where it was removed since; 0: none was.
    pub(super) fn last_assigned(&self, txn: &RwTxn<'_>, kind: Kind, owner: &str) -> Result<u64, Error> {
        let table = self.of(kind);
        let counter = value_or_none(table.get(txn, &full_key(table.name, owner, COUNTER)?))?;
        // Where the counter is damaged, its value or its key, the numbers in use are known from the rows.
        let last = self.last(txn, kind, owner)?.map_or(0, |(id, _)| id);
        Ok(counter.map_or(0, |counter| id_of(&counter)).max(last))
    }

    /// An owner's row with the highest number, of those that were added and can be read.
    pub(super) fn last(&self, txn: &RwTxn<'_>, kind: Kind, owner: &str) -> Result<Option<(u64, Vec<u8>)>, Error> {
        let (table, prefix) = (self.of(kind), user_prefix(owner)?);
        let bytes = prefix.len() + size_of::<u64>();
        let mut rows = table.prefix_backwards(txn, &prefix)?;
        let last = rows.find(|row| !matches!(row, Ok((key, _)) if key.len() != bytes));
        Ok(last.transpose()?.map(|(key, value)| (id_of(key), value.to_vec())))
    }

    /// An owner's row with the lowest number, of those that were added, damaged or not, and how many there are.
    pub(super) fn first(
        &self,
        txn: &RwTxn<'_>,
        kind: Kind,
        owner: &str,
    ) -> Result<(usize, Option<NumberedRow>), Error> {
        let (table, prefix) = (self.of(kind), user_prefix(owner)?);
        let mut keys = table.keys(txn, &prefix)?;
        keys.retain(|key| key.len() == prefix.len() + size_of::<u64>());
        let first = keys.first().map(|key| Ok::<_, Error>((id_of(key), value_or_none(table.get(txn, key))?)));
        Ok((keys.len(), first.transpose()?))
    }

    /// Drops an owner's numbered rows up to this number.
    pub(super) fn trim(&self, txn: &mut RwTxn<'_>, kind: Kind, owner: &str, last: u64) -> Result<(), Error> {
        let table = self.of(kind);
        // Usually there is one, since rows are added one by one.
        let old: Vec<Vec<u8>> = {
            let rows = table.raw.prefix_iter(txn, &user_prefix(owner)?)?.take(TRIM_MAX);
            let keys = rows.map(|row| row.map(|(key, _)| key.to_vec())).collect::<Result<Vec<_>, _>>()?;
            keys.into_iter().filter(|key| id_of(key) <= last).collect()
        };
        for key in &old {
            table.delete(txn, key)?;
        }
        Ok(())
    }

    pub(super) fn remove(&self, txn: &mut RwTxn<'_>, kind: Kind, owner: &str, key: &[u8]) -> Result<bool, Error> {
        let table = self.of(kind);
        table.delete(txn, &full_key(table.name, owner, key)?)
    }

    /// How many were removed.
    pub(super) fn clear(&self, txn: &mut RwTxn<'_>, kind: Kind, owner: &str, prefix: &[u8]) -> Result<u64, Error> {
        let table = self.of(kind);
        table.clear(txn, &full_key(table.name, owner, prefix)?)
    }
}

/// A value, or that it is damaged.
fn value_or_none(value: Result<Option<&[u8]>, Error>) -> Result<Option<Vec<u8>>, Error> {
    match value {
        Ok(value) => Ok(value.map(<[u8]>::to_vec)),
        Err(Error::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A row's key behind its owner's name.
pub(super) fn full_key(database: &'static str, owner: &str, key: &[u8]) -> Result<Vec<u8>, Error> {
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
