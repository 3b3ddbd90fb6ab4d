//! Lists the damaged rows of a store that no gateway uses, and moves them to a file.

use std::{
    fs::OpenOptions,
    io::{BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;

use super::{
    Error, Store, conversations,
    keys::id_in_words,
    migrations,
    opened::Opened,
    records::{DeviceRecord, EntryRecord, MessageRecord, NoteRecord},
    rows::Kind,
    table::{Damage, Table, decode, unseal},
};

/// A row that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRow {
    /// Name in the store.
    pub table: &'static str,
    /// The owner and what the row is called, for people.
    pub id: String,
    /// Whether its checksum is wrong: the disk changed it. Otherwise its form is wrong: a fault of a program.
    pub bytes_changed: bool,
    key: Vec<u8>,
    stored: Vec<u8>,
}

/// Lists the damaged rows of the store in a folder. With `file`, which must not exist, they are written to it, one JSON
/// object per line, and removed from the store.
///
/// # Errors
/// The store or the file cannot be used; then the store is as before.
pub fn check(folder: &Path, size_max_mib: usize, aside: Option<&Path>) -> Result<Vec<DamagedRow>, Error> {
    if Store::is_empty(folder) {
        return Ok(Vec::new());
    }
    let opened = migrations::open(folder, size_max_mib, &Damage::default())?;
    let found = opened.damaged_rows();
    let result = match (found, aside) {
        (Ok(found), Some(aside)) if !found.is_empty() => opened.set_aside(&found, aside).map(|()| found),
        (found, _) => found,
    };
    opened.close();
    result
}

impl Opened {
    pub(super) fn damaged_rows(&self) -> Result<Vec<DamagedRow>, Error> {
        let txn = self.env.read_txn()?;
        let mut out = Vec::new();
        for table in self.tables() {
            for row in table.raw.iter(&txn)? {
                let (key, stored) = row?;
                let value = unseal(key, stored);
                if value.is_none_or(|value| !self.has_form(table, key, value)) {
                    let (table, id, bytes_changed) = (table.name, id_in_words(key), value.is_none());
                    out.push(DamagedRow { table, id, bytes_changed, key: key.to_vec(), stored: stored.to_vec() });
                }
            }
        }
        Ok(out)
    }

    /// Whether a value has the form of its table.
    fn has_form(&self, table: &Table, key: &[u8], value: &[u8]) -> bool {
        match table.name {
            name if name == self.devices.name => decode::<DeviceRecord>(value).is_some(),
            name if name == self.messages.name => decode::<MessageRecord>(value).is_some(),
            name if name == self.entries.name => decode::<EntryRecord>(value).is_some(),
            name if name == self.notes.name => decode::<NoteRecord>(value).is_some(),
            name if name == self.rows.of(Kind::Conversations).name => conversations::is_row(key, value),
            // The forms of the other tables belong to their owners.
            _ => true,
        }
    }

    fn set_aside(&self, rows: &[DamagedRow], path: &Path) -> Result<(), Error> {
        let failed = |source| Error::Folder { path: path.display().to_string(), source };
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
        let mut out = BufWriter::new(file);
        for row in rows {
            let (key, value) = (STANDARD.encode(&row.key), STANDARD.encode(&row.stored));
            let line = json!({"table": row.table, "key": key, "value": value});
            writeln!(out, "{line}").map_err(failed)?;
        }
        // Written to the file before they are removed.
        out.into_inner().map_err(|error| failed(error.into_error()))?.sync_all().map_err(failed)?;
        let mut txn = self.env.write_txn()?;
        for row in rows {
            if let Some(table) = self.tables().find(|table| table.name == row.table) {
                table.delete(&mut txn, &row.key)?;
            }
        }
        Ok(txn.commit()?)
    }
}
