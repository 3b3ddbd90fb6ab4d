//! The LMDB environment of the log: rings of lines and of turns, apart from the store, so that neither's size nor erasures depend on
//! the other's.

use std::{
    fs,
    io::ErrorKind,
    ops::Bound::{self, Excluded, Included, Unbounded},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};

use heed::{CommitOrAbort, Database, Env, EnvFlags, MdbError, RwTxn, WithoutTls, types::Bytes};
use rkyv::rancor;
use tools::inspection::logs::{LogCursor, LogEntry, LogFilter, LogPage, LogQuery, LogScope, LogStats};

use super::{
    Error,
    counts::{Counted, Counts},
    page::Page,
    row::{self, ArchivedRow, Line, Turn, Wanted},
};
use crate::{
    private,
    store::{complete, open_environment},
};

/// Size of the environment's map in MiB: twice the lines, for the pages that a commit writes anew and those that readers
/// still hold.
const MAP_MIB: usize = 64;
/// Bytes that are written in one transaction of a copy.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How much is kept: the oldest lines go first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    pub(super) lines_max: u64,
    /// Of keys and values of lines.
    pub(super) bytes_max: usize,
    /// Records of turns, of less than a kibibyte each.
    pub(super) turns_max: u64,
}

impl Default for Ring {
    /// Some weeks of a quiet gateway, and a size that an SD card does not notice.
    fn default() -> Self {
        Self { lines_max: 50_000, bytes_max: 16 * 1024 * 1024, turns_max: 10_000 }
    }
}

/// What is stored together.
#[derive(Default)]
pub(super) struct Group {
    pub(super) lines: Vec<Line>,
    /// Each with the time at which it ended, in milliseconds since the Unix epoch.
    pub(super) turns: Vec<(i64, Turn)>,
}

struct Opened {
    env: Env<WithoutTls>,
    lines: Database<'static, Bytes, Bytes>,
    turns: Database<'static, Bytes, Bytes>,
}

/// The environment; closed for the moment of an exchange, and at the end.
#[derive(Clone)]
pub(super) struct Disk(Arc<Place>);

struct Place {
    folder: PathBuf,
    ring: Ring,
    opened: RwLock<Option<Opened>>,
}

impl Disk {
    /// Opens the environment, creating it if missing. A damaged one is begun anew: a log is no reason not to start.
    pub(super) fn open(folder: &Path, ring: Ring) -> Result<Self, Error> {
        remove(&beside(folder))?;
        let opened = match Opened::open(folder) {
            Err(Error::Lmdb(heed::Error::Mdb(
                broken @ (MdbError::Corrupted | MdbError::PageNotFound | MdbError::Invalid | MdbError::VersionMismatch),
            ))) => {
                remove(folder)?;
                let opened = Opened::open(folder)?;
                tracing::warn!(%broken, "the file of the log was damaged: it is begun anew");
                opened
            }
            opened => opened?,
        };
        Ok(Self(Arc::new(Place { folder: folder.to_path_buf(), ring, opened: RwLock::new(Some(opened)) })))
    }

    fn with<R>(&self, act: impl FnOnce(&Opened) -> Result<R, Error>) -> Result<R, Error> {
        let opened = self.0.opened.read().unwrap_or_else(PoisonError::into_inner);
        act(opened.as_ref().ok_or(Error::Closed)?)
    }

    /// Closes it for good.
    pub(super) fn close(&self) {
        if let Some(opened) = self.0.opened.write().unwrap_or_else(PoisonError::into_inner).take() {
            opened.close();
        }
    }

    /// Counts all lines; and the number of the next one.
    pub(super) fn count(&self) -> Result<(Counts, u64), Error> {
        self.with(|opened| {
            let (mut counts, mut next) = (Counts::default(), 0);
            let txn = opened.env.read_txn()?;
            for pair in opened.lines.iter(&txn)? {
                let (key, value) = pair?;
                if let Some((place, _)) = row::parts(key) {
                    next = next.max(row::number(place).saturating_add(1));
                }
                if let Some(counted) = counted(key, value) {
                    counts.add(&counted);
                }
            }
            // Both are numbered alike.
            for pair in opened.turns.iter(&txn)? {
                next = next.max(row::number_of_turn(pair?.0).saturating_add(1));
            }
            Ok((counts, next))
        })
    }

    /// The numbers of the lines that are shown to a user.
    pub(super) fn stats_of(&self, scope: &LogScope) -> Result<LogStats, Error> {
        let filter = LogFilter::default();
        let wanted = Wanted::new(&filter, scope);
        self.with(|opened| {
            let (mut counts, mut oldest, mut newest) = (Counts::default(), None, None);
            let txn = opened.env.read_txn()?;
            for pair in opened.lines.iter(&txn)? {
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

    /// Stores a group durably, numbered from `next` on, and drops the oldest lines and turns beyond the ring. Returns how
    /// many lines are stored then.
    pub(super) fn append(&self, group: &Group, next: &mut u64, counts: &Counts) -> Result<Counts, Error> {
        self.with(|opened| {
            let (mut counts, mut number) = (counts.clone(), *next);
            let mut txn = opened.env.write_txn()?;
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
            txn.commit()?;
            *next = number;
            Ok(counts)
        })
    }

    /// Lines that are wanted, newest first.
    pub(super) fn query(&self, query: &LogQuery, bytes_max: usize) -> Result<LogPage, Error> {
        let LogQuery { filter, limit, cursor, scope } = query;
        let end = cursor.map(|LogCursor(place)| place.to_be_bytes());
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            let since = filter.since_wall_ms.map(row::beginning);
            let range: (Bound<&[u8]>, Bound<&[u8]>) = (
                since.as_ref().map_or(Unbounded, |since| Included(since.as_slice())),
                end.as_ref().map_or(Unbounded, |end| Excluded(end.as_slice())),
            );
            let mut page = Page::new(*limit, bytes_max);
            let wanted = Wanted::new(filter, scope);
            for pair in opened.lines.rev_range(&txn, &range)? {
                let (key, value) = pair?;
                if !page.take(&wanted, key, value) {
                    break;
                }
            }
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
            for pair in opened.lines.range(&txn, &range)? {
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

    /// The records of the latest turns that ended since then, oldest first, as JSON.
    pub(super) fn turns(&self, since_wall_ms: i64, count: usize) -> Result<Vec<String>, Error> {
        let since = row::beginning(since_wall_ms);
        self.with(|opened| {
            let txn = opened.env.read_txn()?;
            let range: (Bound<&[u8]>, Bound<&[u8]>) = (Included(&since), Unbounded);
            let mut found = Vec::new();
            for pair in opened.turns.rev_range(&txn, &range)?.take(count) {
                found.extend(row::read_turn(pair?.1).map(|turn| turn.json.as_str().to_owned()));
            }
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
            Ok(place(opened.lines.first(&txn)?).zip(place(opened.lines.last(&txn)?)))
        })
    }

    /// Drops lines for good, and the turns of these devices: the others are copied into a new file, which replaces the old
    /// one. Returns how many lines were dropped.
    pub(super) fn without(
        &self,
        is_dropped: impl Fn(LogCursor, &[u8], &ArchivedRow) -> bool,
        devices: &[String],
    ) -> Result<u64, Error> {
        let folder = &self.0.folder;
        let copied = self.with(|old| copy(old, &beside(folder), is_dropped, devices));
        let dropped = match copied {
            Ok(dropped) => dropped,
            Err(error) => {
                remove(&beside(folder))?;
                return Err(error);
            }
        };
        let mut opened = self.0.opened.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = opened.take() {
            old.close();
        }
        let exchanged = exchange(folder);
        // If the exchange failed, the old file is opened again.
        *opened = Some(Opened::open(folder)?);
        exchanged.map(|()| dropped)
    }
}

impl Opened {
    fn open(folder: &Path) -> Result<Self, Error> {
        private::make_folder(folder).map_err(failed(folder))?;
        let env = open_environment(folder, MAP_MIB, EnvFlags::empty())?;
        // A file that lost its end would end the process at the first look behind it.
        complete(&env, folder, MAP_MIB).map_err(|_| heed::Error::Mdb(MdbError::Corrupted))?;
        let txn = env.write_txn()?;
        let committed = env.create_databases_and_commit(txn, |opener, txn| -> Result<_, Error> {
            let (lines, turns) =
                (opener.create_database(txn, Some("lines"))?, opener.create_database(txn, Some("turns"))?);
            Ok(CommitOrAbort::<_, ()>::Commit((lines, turns)))
        })?;
        let CommitOrAbort::Commit((lines, turns)) = committed else { return Err(Error::Closed) };
        Ok(Self { env, lines, turns })
    }

    /// Waits until the file is unmapped.
    fn close(self) {
        self.env.prepare_for_closing().wait();
    }

    fn trim(&self, txn: &mut RwTxn<'_>, counts: &mut Counts, ring: Ring) -> Result<(), Error> {
        while counts.lines > ring.lines_max || counts.bytes > ring.bytes_max {
            let Some((key, value)) = self.lines.first(txn)? else { return Ok(()) };
            if let Some(counted) = counted(key, value) {
                counts.remove(&counted);
            }
            let key = key.to_vec();
            self.lines.delete(txn, &key)?;
        }
        while self.turns.len(txn)? > ring.turns_max {
            let Some((key, _)) = self.turns.first(txn)? else { return Ok(()) };
            let key = key.to_vec();
            self.turns.delete(txn, &key)?;
        }
        Ok(())
    }
}

/// What is counted of a stored line; `None`: it is damaged, and not counted.
fn counted<'l>(key: &[u8], value: &'l [u8]) -> Option<Counted<'l>> {
    let (_, level) = row::parts(key)?;
    let row = row::read(value)?;
    Some(Counted { bytes: key.len() + value.len(), level, source: &row.source, context: &row.context })
}

fn copy(
    old: &Opened,
    beside: &Path,
    is_dropped: impl Fn(LogCursor, &[u8], &ArchivedRow) -> bool,
    devices: &[String],
) -> Result<u64, Error> {
    remove(beside)?;
    let new = Opened::open(beside)?;
    let copied = || -> Result<u64, Error> {
        let (mut dropped, mut bytes) = (0, 0);
        let reading = old.env.read_txn()?;
        let mut writing = new.env.write_txn()?;
        for pair in old.lines.iter(&reading)? {
            let (key, value) = pair?;
            // A damaged line may belong to anybody.
            let kept = row::parts(key).zip(row::read(value));
            if kept.is_none_or(|((place, _), row)| is_dropped(place, key, row)) {
                dropped += 1;
                continue;
            }
            new.lines.put(&mut writing, key, value)?;
            bytes += key.len() + value.len();
            if bytes >= BATCH_BYTES_MAX {
                writing.commit()?;
                writing = new.env.write_txn()?;
                bytes = 0;
            }
        }
        let is_of_others = |value: &[u8]| {
            row::read_turn(value).is_some_and(|turn| !devices.iter().any(|device| device == turn.device.as_str()))
        };
        for pair in old.turns.iter(&reading)? {
            let (key, value) = pair?;
            if is_of_others(value) {
                new.turns.put(&mut writing, key, value)?;
            }
        }
        writing.commit()?;
        Ok(dropped)
    };
    let copied = copied();
    new.close();
    copied
}

fn beside(folder: &Path) -> PathBuf {
    folder.with_extension("new")
}

/// Replaces the file by the one beside it. Both are closed.
fn exchange(folder: &Path) -> Result<(), Error> {
    let beside = beside(folder);
    fs::rename(beside.join("data.mdb"), folder.join("data.mdb")).map_err(failed(folder))?;
    // The new name is on the disk before anybody is told.
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder))?;
    remove(&beside)
}

fn remove(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(folder)(error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> Error + use<> {
    let path = path.display().to_string();
    move |source| Error::Folder { path, source }
}
