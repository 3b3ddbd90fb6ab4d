//! A page of lines, filled with those that are wanted.

use tools::inspection::logs::{LogCursor, LogEntry, LogPage};

use super::row::{self, Wanted};

/// A page that is being filled.
#[derive(Default)]
pub(super) struct Page {
    limit: usize,
    bytes_max: usize,
    entries: Vec<LogEntry>,
    bytes: usize,
    last: Option<LogCursor>,
    /// There is a line that does not fit.
    is_full: bool,
}

impl Page {
    pub(super) fn new(limit: usize, bytes_max: usize) -> Self {
        Self { limit, bytes_max, ..Self::default() }
    }

    /// Takes the line if it is wanted; false: it is wanted, and there is no room.
    pub(super) fn take(&mut self, wanted: &Wanted<'_>, key: &[u8], value: &[u8]) -> bool {
        let Some((place, level)) = row::parts(key).filter(|(place, level)| wanted.fits_key(*place, *level)) else {
            return true;
        };
        let Some(row) = row::read(value).filter(|row| wanted.fits(row)) else { return true };
        let entry = row::entry(place, level, row);
        // As JSON, with the time in words.
        let bytes = serde_json::to_string(&entry).map_or(0, |json| json.len() + 24);
        // A page has at least one line.
        let fits = self.entries.len() < self.limit && self.bytes + bytes <= self.bytes_max;
        if !self.entries.is_empty() && !fits {
            self.is_full = true;
            return false;
        }
        self.bytes += bytes;
        self.last = Some(place);
        self.entries.push(entry);
        true
    }

    pub(super) fn finish(self) -> LogPage {
        let Self { entries, last, is_full, .. } = self;
        LogPage { logs: entries, cursor: last.filter(|_| is_full) }
    }
}
