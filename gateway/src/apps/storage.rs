//! `simple-storage`: what an app stores for a user.

use serde_json::{Map, Value};

use super::host::Host;
use crate::store::{self, Kind, RowsWithin, Store, Write};

/// Bytes of one value as JSON, as MentraOS documents it.
const VALUE_BYTES_MAX: usize = 100_000;
/// Bytes of everything that one app stores for one user, as MentraOS documents it.
const TOTAL_BYTES_MAX: usize = 1_000_000;
/// Bytes of a key: the store's own limit leaves room for the package.
const KEY_BYTES_MAX: usize = 256;
/// Keys of one app and user.
const KEYS_MAX: usize = 4_096;

/// Why something was not stored.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A key or a value is not acceptable, and why.
    Value(String),
    /// It would exceed the app's total.
    Total,
    /// The store failed; with its error.
    Store(String),
}

impl From<store::Error> for Refusal {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::TooMuch { .. } => Self::Total,
            error => Self::Store(error.to_string()),
        }
    }
}

pub(super) fn prefix(package: &str) -> Vec<u8> {
    [package.as_bytes(), b"\0"].concat()
}

fn full_key(package: &str, key: &str) -> Vec<u8> {
    [package.as_bytes(), b"\0", key.as_bytes()].concat()
}

pub(super) fn stored(store: &Store, user: &str, prefix: &[u8]) -> Result<Map<String, Value>, store::Error> {
    let rows = store.disk().rows(Kind::AppStorage, user, prefix, KEYS_MAX)?;
    let entry = |(key, value): (Vec<u8>, Vec<u8>)| {
        let key = String::from_utf8(key.get(prefix.len()..)?.to_vec()).ok()?;
        Some((key, serde_json::from_slice(&value).ok()?))
    };
    Ok(rows.into_iter().filter_map(entry).collect())
}

/// Values as an app's rows.
///
/// # Errors
/// A key or a value is not acceptable, or there are too many.
pub(super) fn rows(user: &str, package: &str, values: Map<String, Value>) -> Result<RowsWithin, Refusal> {
    let mut rows = Vec::with_capacity(values.len());
    for (key, value) in values {
        if key.is_empty() || key.len() > KEY_BYTES_MAX || key.contains('\0') {
            return Err(Refusal::Value(format!("a key has 1 to {KEY_BYTES_MAX} bytes")));
        }
        let value = value.to_string();
        if value.len() > VALUE_BYTES_MAX {
            return Err(Refusal::Value(format!("the value of `{key}` has more than {VALUE_BYTES_MAX} bytes")));
        }
        rows.push((key.into_bytes(), value.into_bytes()));
    }
    // More of them than may be stored at all need not wait for the store.
    if rows.len() > KEYS_MAX {
        return Err(Refusal::Total);
    }
    Ok(RowsWithin {
        kind: Kind::AppStorage,
        owner: user.to_owned(),
        prefix: prefix(package),
        rows,
        rows_max: KEYS_MAX,
        bytes_max: TOTAL_BYTES_MAX,
    })
}

impl Host {
    /// Everything that an app stores for a user.
    ///
    /// # Errors
    /// The store fails.
    pub async fn stored(&self, user: &str, package: &str) -> Result<Map<String, Value>, Refusal> {
        let (user, prefix) = (user.to_owned(), prefix(package));
        Ok(self.store.read(move |store| stored(store, &user, &prefix)).await?)
    }

    /// Adds values to the stored ones; all of them or none.
    ///
    /// # Errors
    /// A key or a value is not acceptable, the total is exceeded, or the store fails.
    pub async fn put(&self, user: &str, package: &str, values: Map<String, Value>) -> Result<(), Refusal> {
        let rows = rows(user, package, values)?;
        self.store.write(Write::PutRows(rows)).await?;
        Ok(())
    }

    /// Removes one key, or all.
    ///
    /// # Errors
    /// The store fails.
    pub(crate) async fn drop_stored(&self, user: &str, package: &str, key: Option<&str>) -> Result<(), Refusal> {
        let (kind, owner) = (Kind::AppStorage, user.to_owned());
        let write = match key {
            Some(key) if key.len() > KEY_BYTES_MAX => return Ok(()),
            Some(key) => Write::RemoveRow { kind, owner, key: full_key(package, key) },
            None => Write::ClearRows { kind, owner, prefix: prefix(package) },
        };
        self.store.write(write).await?;
        Ok(())
    }
}
