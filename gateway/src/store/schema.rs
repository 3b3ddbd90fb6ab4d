//! The version of the stored forms, and migrations of older ones.
//!
//! | version | form |
//! |---|---|
//! | 1 | values without a checksum |
//! | 2 | a checksum behind each value |

use std::path::Path;

use super::{
    Error, copy,
    opened::Opened,
    table::{self, Damage},
};

/// The version that this program writes.
pub(crate) const SCHEMA: u32 = 2;
/// Its keys: stored twice, since nothing else can be read without it.
const KEYS: [&str; 2] = ["schema", "schema-again"];

/// Opens the store in a folder, and migrates it to the present version.
///
/// # Errors
/// The folder cannot be used, or a newer version wrote it.
pub(super) fn open(folder: &Path, size_max_mib: usize, damage: &Damage) -> Result<Opened, Error> {
    let opened = Opened::open(folder, size_max_mib, damage)?;
    match version(&opened)? {
        None => mark(&opened)?,
        Some(SCHEMA) => {}
        Some(1) => {
            migrate_1(folder, size_max_mib, opened)?;
            return Opened::open(folder, size_max_mib, damage);
        }
        Some(found) => return Err(Error::Schema { found, expected: SCHEMA }),
    }
    Ok(opened)
}

/// The version of an open store; `None`: nothing was ever stored in it.
pub(super) fn version(opened: &Opened) -> Result<Option<u32>, Error> {
    let txn = opened.env.read_txn()?;
    let [first, again] = KEYS.map(|key| opened.meta.get(&txn, key));
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
    match (first?.map(number), again?.map(number)) {
        // One of them may be damaged.
        (Some(SCHEMA), _) | (_, Some(SCHEMA)) => Ok(Some(SCHEMA)),
        (first, again) => Ok(first.or(again)),
    }
}

/// Marks a store as of the present version.
pub(super) fn mark(opened: &Opened) -> Result<(), Error> {
    let mut txn = opened.env.write_txn()?;
    for key in KEYS {
        opened.meta.put(&mut txn, key, &SCHEMA.to_le_bytes())?;
    }
    Ok(txn.commit()?)
}

/// From version 1 to 2. A copy replaces the old file in one step: a migration that is killed starts again, and none
/// needs free space within the store's size.
fn migrate_1(folder: &Path, size_max_mib: usize, old: Opened) -> Result<(), Error> {
    tracing::info!(store = %folder.display(), "bringing the store to version 2");
    let copied = copy::beside(folder, size_max_mib, |new| {
        let reading = old.env.read_txn()?;
        old.tables().zip(new.tables()).try_for_each(|(from, to)| {
            copy::copy_table((&reading, from), (new, to), |key, value| Ok(Some(table::seal(key, value))))
        })
    });
    old.close();
    copied?;
    copy::exchange(folder)?;
    copy::clean(folder)
}
