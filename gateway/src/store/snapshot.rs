//! Copies of the store for backups: as it is at one moment, in a folder of their own.

use std::{collections::BTreeMap, path::Path};

use super::{Disk, Error, Scope, Store, copy, opened::Opened, schema, table::Damage};

/// What a store has in it.
pub(crate) struct Contents {
    /// Version of its stored forms.
    pub(crate) schema: u32,
    /// Rows by table, of the tables that have any.
    pub(crate) rows: BTreeMap<String, u64>,
    /// How many of them are damaged.
    pub(crate) damaged: usize,
}

impl Store {
    /// Copies the store into a folder that has none, with everything that was confirmed before. Writes go on meanwhile and
    /// are not in the copy. Without `pairings` it has neither devices nor their sessions.
    ///
    /// # Errors
    /// The copy cannot be written, or the store is closed.
    pub(crate) async fn snapshot(&self, to: &Path, pairings: bool) -> Result<(), Error> {
        self.settled().await?;
        let to = to.to_path_buf();
        self.read(move |store| store.disk.with(|opened| write_copy(opened, &to, store.disk.size_max_mib(), pairings)))
            .await
    }
}

fn write_copy(from: &Opened, to: &Path, size_max_mib: usize, pairings: bool) -> Result<(), Error> {
    let left_out = (!pairings).then_some(&Scope::Pairings);
    copy::into(to, size_max_mib, |new| copy::copy(from, new, left_out, || ())).map(drop)
}

/// As [`Store::snapshot`], of a folder that no gateway uses. The store stays of the version that it has.
///
/// # Errors
/// It is of another version than this program's, or it cannot be copied.
pub(crate) fn copy_closed(from: &Path, to: &Path, size_max_mib: usize, pairings: bool) -> Result<(), Error> {
    let opened = Opened::open(from, size_max_mib, &Damage::default())?;
    let copied = match schema::version(&opened) {
        Ok(Some(schema::SCHEMA)) => write_copy(&opened, to, size_max_mib, pairings),
        Ok(Some(found)) if found > schema::SCHEMA => Err(Error::Schema { found, expected: schema::SCHEMA }),
        Ok(found) => Err(Error::Older { found: found.unwrap_or_default(), expected: schema::SCHEMA }),
        Err(error) => Err(error),
    };
    opened.close();
    copied
}

/// What the store of a folder has in it that nobody uses.
///
/// # Errors
/// It cannot be read.
pub(crate) fn contents(folder: &Path, size_max_mib: usize) -> Result<Contents, Error> {
    let opened = Opened::open(folder, size_max_mib, &Damage::default())?;
    let read = || {
        let txn = opened.env.read_txn()?;
        let mut rows = BTreeMap::new();
        for table in opened.tables() {
            let count = table.raw.len(&txn)?;
            if count > 0 {
                rows.insert(table.name.to_owned(), count);
            }
        }
        drop(txn);
        let (schema, damaged) = (schema::version(&opened)?.unwrap_or_default(), opened.damaged_rows()?.len());
        Ok(Contents { schema, rows, damaged })
    };
    let contents = read();
    opened.close();
    contents
}

/// Removes all pairings from the store of a folder that nobody uses, so that not a byte of them is left.
///
/// # Errors
/// It cannot be copied.
pub(crate) fn without_pairings(folder: &Path, size_max_mib: usize) -> Result<(), Error> {
    let disk = Disk::open(folder, size_max_mib)?;
    let removed = disk.erase(&Scope::Pairings);
    disk.close();
    removed.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{DeviceRecord, Kind, NoteRecord, Write};

    async fn filled(folder: &Path) -> Store {
        let store = Store::open(folder, 16).unwrap();
        let note = NoteRecord { text: "the okapi".into(), created_wall_ms: 1 };
        let device = DeviceRecord {
            key: [7; 32],
            name: "zebra".into(),
            user: "ann".into(),
            model: "G1".into(),
            paired_wall_ms: 1,
            revoked: false,
        };
        let session = Write::PutRow {
            kind: Kind::DeviceSessions,
            owner: "ann".into(),
            key: b"quagga".to_vec(),
            value: b"{}".to_vec(),
        };
        for write in
            [Write::AddNote { user: "ann".into(), note }, Write::PutDevice { id: "ab".into(), device }, session]
        {
            store.write(write).await.unwrap();
        }
        store
    }

    fn has(folder: &Path, word: &[u8]) -> bool {
        std::fs::read(folder.join("data.mdb")).unwrap().windows(word.len()).any(|bytes| bytes == word)
    }

    #[tokio::test]
    async fn a_copy_has_what_was_written_before_it_and_nothing_after() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let store = filled(&at("store")).await;
        store.snapshot(&at("copy"), true).await.unwrap();
        let late = NoteRecord { text: "too late".into(), created_wall_ms: 2 };
        store.write(Write::AddNote { user: "ann".into(), note: late }).await.unwrap();
        let found = contents(&at("copy"), 16).unwrap();
        assert_eq!((found.schema, found.damaged), (schema::SCHEMA, 0));
        let rows: Vec<_> = found.rows.iter().map(|(table, rows)| (table.as_str(), *rows)).collect();
        assert_eq!(rows, [("device-sessions", 1), ("devices", 1), ("notes", 1)]);
        let copy = Store::open(&at("copy"), 16).unwrap();
        assert_eq!(copy.disk().notes("ann", 9, |_| true).unwrap().len(), 1);
        copy.close().await.unwrap();
        store.close().await.unwrap();
        // The same of a store that nobody uses.
        copy_closed(&at("store"), &at("closed"), 16, true).unwrap();
        assert_eq!(contents(&at("closed"), 16).unwrap().rows["notes"], 2);
    }

    #[tokio::test]
    async fn a_copy_without_pairings_has_no_byte_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let store = filled(&at("store")).await;
        store.snapshot(&at("live"), false).await.unwrap();
        store.snapshot(&at("with"), true).await.unwrap();
        store.close().await.unwrap();
        copy_closed(&at("store"), &at("closed"), 16, false).unwrap();
        assert!(has(&at("with"), b"zebra") && has(&at("with"), b"quagga"));
        without_pairings(&at("with"), 16).unwrap();
        for copy in ["live", "closed", "with"] {
            assert!(has(&at(copy), b"the okapi"), "{copy}");
            assert!(!has(&at(copy), b"zebra") && !has(&at(copy), b"quagga"), "{copy}");
        }
    }

    #[tokio::test]
    async fn a_store_of_an_older_version_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (store, copy) = (folder.path().join("store"), folder.path().join("copy"));
        let opened = Opened::open(&store, 16, &Damage::default()).unwrap();
        let mut txn = opened.env.write_txn().unwrap();
        opened.meta.put(&mut txn, "schema", &1_u32.to_le_bytes()).unwrap();
        txn.commit().unwrap();
        opened.close();
        let refused = copy_closed(&store, &copy, 16, true).unwrap_err();
        assert!(matches!(refused, Error::Older { found: 1, .. }), "{refused}");
        assert_eq!(contents(&store, 16).unwrap().schema, 1);
    }
}
