//! The LMDB environment of the log: rings of lines and of turns, apart from the store, so that neither's size nor erasures depend on
//! the other's.

use std::{
    ops::{
        Bound::{self, Excluded, Unbounded},
        RangeInclusive,
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use rkyv::rancor;
use serde_json::Value;
use tools::inspection::logs::{LogCursor, LogEntry, LogFilter, LogPage, LogQuery, LogScope, LogStats};

use super::{
    Error,
    counts::{Counted, Counts},
    opened::{Opened, Ring, beside, copy, counted, empty, exchange, is_damage, open_or_begin_anew, remove},
    page::Page,
    row::{self, ArchivedRow, ArchivedTurn, Line, Turn, Wanted},
};

/// What is stored together.
#[derive(Default)]
pub(super) struct Group {
    pub(super) lines: Vec<Line>,
    /// Each with the time at which it ended, in milliseconds since the Unix epoch.
    pub(super) turns: Vec<(i64, Turn)>,
}

/// The environment; closed for the moment of an exchange, and at the end.
#[derive(Clone)]
pub(super) struct Disk(Arc<Place>);

struct Place {
    folder: PathBuf,
    ring: Ring,
    state: RwLock<State>,
    /// Of the file that is open, or was last. Changed only while the state is locked, so that both belong together.
    counts: Mutex<Counts>,
}

enum State {
    Open(Opened),
    /// It could not be opened again: whoever needs it next tries.
    Missing,
    Closed,
}

impl State {
    /// Whether it is to be opened again.
    fn is_lost(&self) -> bool {
        match self {
            Self::Open(opened) => opened.is_given_up(),
            Self::Missing => true,
            Self::Closed => false,
        }
    }
}

impl Disk {
    /// Opens the environment, creating it if missing, and counts its lines; and the number of the next one.
    pub(super) fn open(folder: &Path, ring: Ring) -> Result<(Self, u64), Error> {
        remove(&beside(folder))?;
        let (opened, counts, next) = open_or_begin_anew(folder)?;
        let (state, counts) = (RwLock::new(State::Open(opened)), Mutex::new(counts));
        let place = Place { folder: folder.to_path_buf(), ring, state, counts };
        Ok((Self(Arc::new(place)), next))
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.0.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn state_to_change(&self) -> RwLockWriteGuard<'_, State> {
        self.0.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, act: impl FnOnce(&Opened) -> Result<R, Error>) -> Result<R, Error> {
        let mut state = self.state();
        if state.is_lost() {
            drop(state);
            self.open_again()?;
            state = self.state();
        }
        match &*state {
            State::Open(opened) => act(opened),
            State::Missing | State::Closed => Err(Error::Closed),
        }
    }

    fn open_again(&self) -> Result<(), Error> {
        let mut state = self.state_to_change();
        // Another one may have opened it.
        if !state.is_lost() {
            return Ok(());
        }
        if let State::Open(given_up) = std::mem::replace(&mut *state, State::Missing) {
            given_up.close();
            tracing::warn!("a write to the log failed at its root; opening it again");
        }
        // It may be another file, or one that was begun anew. Numbers go on behind those of the old one.
        let (opened, counts, _) = open_or_begin_anew(&self.0.folder)?;
        *self.counts() = counts;
        *state = State::Open(opened);
        Ok(())
    }

    /// How many lines are stored.
    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes it for good.
    pub(super) fn close(&self) {
        if let State::Open(opened) = std::mem::replace(&mut *self.state_to_change(), State::Closed) {
            opened.close();
        }
    }

    /// The numbers of the lines that are shown to a user.
    pub(super) fn stats_of(&self, scope: &LogScope) -> Result<LogStats, Error> {
        let filter = LogFilter::default();
        let wanted = Wanted::new(&filter, scope);
        self.with(|opened| {
            let (mut counts, mut oldest, mut newest) = (Counts::default(), None, None);
            let txn = opened.env.read_txn()?;
            for pair in opened.lines.rows.iter(&txn)? {
                let (key, value) = pair?;
                let shown = row::read(value).filter(|row| wanted.fits(row)).and(row::parts(key));
                if let (Some((place, _)), Some(counted)) = (shown, counted(key, value)) {
                    counts.add(&counted);
                    oldest = oldest.or(Some(row::wall_ms(place)));
                    newest = Some(row::wall_ms(place));
                }
            }
            Ok(LogStats { oldest_wall_ms: oldest, newest_wall_ms: newest, ..counts.stats() })
        })
    }

    /// Stores a group durably, numbered from `next` on, and drops the oldest lines and turns beyond the ring.
    pub(super) fn append(&self, group: &Group, next: &mut u64) -> Result<(), Error> {
        self.with(|opened| {
            let (mut counts, mut number) = (self.counts().clone(), *next);
            let mut txn = opened.env.write_txn()?;
            for table in [&opened.lines, &opened.turns] {
                table.forget_deleted(&txn)?;
            }
            for Line { wall_ms, level, row } in &group.lines {
                let key = row::key(*wall_ms, number, *level);
                let value = rkyv::to_bytes::<rancor::Error>(row).map_err(|_| Error::Unknown)?;
                opened.lines.put(&mut txn, &key, &value)?;
                let bytes = key.len() + value.len();
                counts.add(&Counted { bytes, level: *level, source: &row.source, context: &row.context });
                number += 1;
            }
            for (wall_ms, turn) in &group.turns {
                let value = rkyv::to_bytes::<rancor::Error>(turn).map_err(|_| Error::Unknown)?;
                opened.turns.put(&mut txn, &row::key_of_turn(*wall_ms, number), &value)?;
                number += 1;
            }
            opened.trim(&mut txn, &mut counts, self.0.ring)?;
            // Also if the commit fails: its root may be on the disk all the same.
            *next = number;
            txn.commit()?;
            *self.counts() = counts;
            Ok(())
        })
    }

    /// Lines that are wanted, newest first.
    pub(super) fn query(&self, query: &LogQuery, bytes_max: usize) -> Result<LogPage, Error> {
        let LogQuery { filter, limit, cursor, scope } = query;
        let wanted = Wanted::new(filter, scope);
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            let mut page = Page::new(*limit, bytes_max);
            let can_hold = |times: &RangeInclusive<i64>, most_severe| wanted.fits_some(times, most_severe);
            opened.lines.newest_first(&txn, *cursor, can_hold, |key, value| page.take(&wanted, key, value))?;
            Ok(page.finish())
        })
    }

    /// Lines that are wanted after a place, oldest first, at most `limit`; and the place of the last one that was looked at.
    pub(super) fn after(
        &self,
        place: LogCursor,
        filter: &LogFilter,
        limit: usize,
    ) -> Result<(Vec<LogEntry>, LogCursor), Error> {
        // No level is so high.
        let mut start = place.0.to_be_bytes().to_vec();
        start.push(u8::MAX);
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            let range: (Bound<&[u8]>, Bound<&[u8]>) = (Excluded(&start), Unbounded);
            let (mut entries, mut last, wanted) = (Vec::new(), place, Wanted::new(filter, &LogScope::Everybody));
            for pair in opened.lines.rows.range(&txn, &range)? {
                let (key, value) = pair?;
                if let Some((place, level)) = row::parts(key) {
                    last = place;
                    let fitting = row::read(value).filter(|row| wanted.fits_key(place, level) && wanted.fits(row));
                    entries.extend(fitting.map(|row| row::entry(place, level, row)));
                }
                if entries.len() >= limit {
                    break;
                }
            }
            Ok((entries, last))
        })
    }

    /// The records of the latest turns that ended at these times, oldest first.
    pub(super) fn turns(&self, ended_wall_ms: &RangeInclusive<i64>, count: usize) -> Result<Vec<Value>, Error> {
        let can_hold = |times: &RangeInclusive<i64>, _| {
            times.start() <= ended_wall_ms.end() && ended_wall_ms.start() <= times.end()
        };
        let is_wanted =
            |key: &[u8]| row::place_of_turn(key).is_some_and(|place| ended_wall_ms.contains(&row::wall_ms(place)));
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            let mut found = Vec::new();
            opened.turns.newest_first(&txn, None, can_hold, |key, value| {
                if found.len() >= count {
                    return false;
                }
                let turn = row::read_turn(value).filter(|_| is_wanted(key));
                found.extend(turn.and_then(|turn| serde_json::from_str::<Value>(turn.json.as_str()).ok()));
                true
            })?;
            found.reverse();
            Ok(found)
        })
    }

    /// The places of the oldest and of the newest line.
    pub(super) fn ends(&self) -> Result<Option<(LogCursor, LogCursor)>, Error> {
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            let place =
                |pair: Option<(&[u8], &[u8])>| pair.and_then(|(key, _)| row::parts(key)).map(|(place, _)| place);
            Ok(place(opened.lines.rows.first(&txn)?).zip(place(opened.lines.rows.last(&txn)?)))
        })
    }

    /// Drops lines and turns for good: the others are copied into a new file, which replaces the old one. Returns how many
    /// lines were dropped.
    pub(super) fn without(
        &self,
        is_dropped: impl Fn(LogCursor, &[u8], &ArchivedRow) -> bool,
        is_turn_dropped: impl Fn(&ArchivedTurn) -> bool,
    ) -> Result<u64, Error> {
        let folder = &self.0.folder;
        let copied = self.with(|old| match copy(old, &beside(folder), is_dropped, is_turn_dropped) {
            // Whose lines are on a page that cannot be read is not known: none is kept.
            Err(error) if is_damage(&error) => empty(&beside(folder)),
            copied => copied,
        });
        let dropped = match copied {
            Ok(dropped) => dropped,
            Err(error) => {
                remove(&beside(folder))?;
                return Err(error);
            }
        };
        let mut state = self.state_to_change();
        match std::mem::replace(&mut *state, State::Missing) {
            State::Open(old) => old.close(),
            State::Missing => {}
            State::Closed => {
                *state = State::Closed;
                return Err(Error::Closed);
            }
        }
        let exchanged = exchange(folder);
        drop(state);
        // If the exchange failed, the old file is opened again.
        self.open_again()?;
        exchanged.map(|()| dropped)
    }
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
