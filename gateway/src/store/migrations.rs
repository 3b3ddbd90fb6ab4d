//! Brings the stored forms of older versions to the present one.

use std::path::Path;

use super::{
    Error, copy,
    opened::Opened,
    schema::{SCHEMA, mark, version},
    table::{self, Damage},
};

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
