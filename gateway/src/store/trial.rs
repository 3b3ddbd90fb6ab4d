//! Tests whether the store has room, and whether it can commit.

use super::{Disk, Error, keys::user_key};

/// Puts a record and leaves it uncommitted, so that nothing reaches the disk.
pub(super) fn room(disk: &Disk, bytes: usize) -> Result<u64, Error> {
    disk.change(|opened| {
        let mut txn = opened.env.write_txn()?;
        let key = user_key("", u64::MAX)?;
        opened.notes.put(&mut txn, &key, &vec![0; bytes])?;
        txn.abort();
        Ok(0)
    })
}

/// Commits a record and its removal in one transaction.
pub(super) fn write(disk: &Disk) -> Result<u64, Error> {
    disk.change(|opened| {
        let mut txn = opened.env.write_txn()?;
        let key = user_key("", u64::MAX)?;
        opened.notes.put(&mut txn, &key, &[])?;
        opened.notes.delete(&mut txn, &key)?;
        txn.commit()?;
        Ok(0)
    })
}
