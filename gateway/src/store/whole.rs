//! A store whose end is missing: a file system that was damaged or full has cut it off.

use std::{fs::OpenOptions, path::Path};

use heed::{Env, MdbError, WithoutTls};

use super::Error;

/// The file with all data.
const FILE: &str = "data.mdb";

/// Adds zeros to a file that lacks its end, up to `size_max_mib`: to read a mapped page that is not in the file would
/// kill the process. Where such a page belongs to a table, LMDB says that the table is damaged.
pub(crate) fn complete(env: &Env<WithoutTls>, folder: &Path, size_max_mib: usize) -> Result<(), Error> {
    let pages = env.info().last_page_number.saturating_add(1) as u64;
    let bytes = pages.saturating_mul(u64::from(env.unnamed_database_stat().page_size));
    let there = env.real_disk_size()?;
    if there >= bytes {
        return Ok(());
    }
    let path = folder.join(FILE);
    tracing::warn!(store = %path.display(), missing = bytes - there, "the end of the store's file is missing");
    if bytes > (size_max_mib as u64).saturating_mul(1024 * 1024) {
        return Err(Error::Broken(MdbError::Corrupted));
    }
    let grown = OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(bytes));
    grown.map_err(|source| Error::Folder { path: path.display().to_string(), source })
}

/// Whether the file can be opened for writing.
///
/// # Errors
/// It cannot: [`Error::ReadOnly`] where the disk is the reason.
pub(super) fn try_writable(folder: &Path) -> Result<(), Error> {
    let path = folder.join(FILE);
    // The lock of the store is on another file: closing this one releases nothing.
    OpenOptions::new().write(true).open(path).map(drop).map_err(|error| heed::Error::Io(error).into())
}
