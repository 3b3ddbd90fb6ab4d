//! Rows as nobody writes them, for `tests/fuzz` only.

use super::{Error, Store, table::seal};

/// Longest key that LMDB takes.
const KEY_BYTES_MAX: usize = 511;

impl Store {
    /// Replaces all rows of all tables by these: number of the table, key, value. Their checksums fit.
    pub(crate) fn replace_all(&self, rows: &[(usize, &[u8], &[u8])]) -> Result<(), Error> {
        self.disk().with(|opened| {
            let mut txn = opened.env.write_txn()?;
            let tables: Vec<_> = opened.tables().collect();
            for table in &tables {
                table.raw.clear(&mut txn)?;
            }
            for (table, key, value) in rows {
                let key = &key[..key.len().min(KEY_BYTES_MAX)];
                tables[table % tables.len()].raw.put(&mut txn, key, &seal(key, value))?;
            }
            Ok(txn.commit()?)
        })
    }
}
