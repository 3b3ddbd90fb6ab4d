//! A table of the log: rows in the order of their numbers, and the blocks by which queries pass over most of them.

#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{
    ops::{
        Bound::{self, Excluded, Included},
        RangeInclusive,
    },
    sync::{Mutex, MutexGuard, PoisonError},
};

use heed::{Database, RoTxn, RwTxn, types::Bytes};
use tools::inspection::logs::{LogCursor, LogLevel};

use super::{Error, blocks::Blocks, row};

/// Behind the places of all rows.
const NOWHERE: LogCursor = LogCursor(u128::MAX);

/// A table of lines or of turns.
pub(super) struct Table {
    /// For everything that is no query by time or level.
    pub(super) rows: Database<'static, Bytes, Bytes>,
    blocks: Mutex<Blocks>,
    /// By queries.
    #[cfg(test)]
    looked_at: AtomicUsize,
}

impl Table {
    /// Of its rows nothing is known before [`Table::know`].
    pub(super) fn new(rows: Database<'static, Bytes, Bytes>) -> Self {
        Self {
            rows,
            blocks: Mutex::default(),
            #[cfg(test)]
            looked_at: AtomicUsize::default(),
        }
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There is a row with this key. Queries find no row that the table does not know of.
    pub(super) fn know(&self, key: &[u8]) {
        self.blocks().add(key);
    }

    /// Puts a row.
    pub(super) fn put(&self, txn: &mut RwTxn<'_>, key: &[u8], value: &[u8]) -> Result<(), Error> {
        // Before the commit, since a query sees the row right after it. If that fails, a block promises more than it has.
        self.know(key);
        Ok(self.rows.put(txn, key, value)?)
    }

    /// Forgets blocks whose rows were deleted, by the transaction of the only writer.
    pub(super) fn forget_deleted(&self, txn: &RoTxn<'_>) -> Result<(), Error> {
        // Without a row every block is empty. A damaged key tells nothing.
        let first = self.rows.first(txn)?.map_or(Some(NOWHERE), |(key, _)| row::place(key));
        if let Some(first) = first {
            self.blocks().forget_before(first);
        }
        Ok(())
    }

    /// Hands out the rows before a place, the newest first, until `take` returns false. Blocks are passed over of whose times
    /// and most severe level `can_hold` says that they hold nothing wanted.
    pub(super) fn newest_first(
        &self,
        txn: &RoTxn<'_>,
        before: Option<LogCursor>,
        can_hold: impl Fn(&RangeInclusive<i64>, LogLevel) -> bool,
        mut take: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        // After the transaction has begun: whatever it sees is known by now.
        let ranges = self.blocks().ranges(before.unwrap_or(NOWHERE), can_hold);
        for places in ranges {
            let (start, end) = (places.start.0.to_be_bytes(), places.end.0.to_be_bytes());
            let range: (Bound<&[u8]>, Bound<&[u8]>) = (Included(&start), Excluded(&end));
            for pair in self.rows.rev_range(txn, &range)? {
                let (key, value) = pair?;
                #[cfg(test)]
                self.looked_at.fetch_add(1, Ordering::Relaxed);
                if !take(key, value) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn looked_at(&self) -> usize {
        self.looked_at.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn blocks_known(&self) -> usize {
        self.blocks().count()
    }
}
