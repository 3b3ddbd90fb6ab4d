//! The environment of the log while it is open: what is in it, and its copies.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use heed::{CommitOrAbort, Env, EnvFlags, MdbError, RwTxn, WithoutTls, types::Bytes};
use tools::inspection::logs::LogCursor;

use super::{
    Error,
    counts::{Counted, Counts},
    row::{self, ArchivedRow, ArchivedTurn},
    table::Table,
};
use crate::{
    private,
    store::{complete, open_environment},
};

/// Size of the environment's map in MiB: twice the lines, for the pages that a commit writes anew and those that readers
/// still hold.
const MAP_MIB: usize = 64;
/// The lines of a log in the order of their times, in which a clock that was set back made new lines the oldest ones.
const FORMER: &str = "lines";
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

/// The environment while it is open.
pub(super) struct Opened {
    pub(super) env: Env<WithoutTls>,
    pub(super) lines: Table,
    pub(super) turns: Table,
}

/// Opens the environment and counts what is in it, which reads all of it, and without which no query finds anything. A
/// damaged one is begun anew: a log is no reason not to start.
pub(super) fn open_or_begin_anew(folder: &Path) -> Result<(Opened, Counts, u64), Error> {
    match Opened::open(folder).and_then(Opened::counted) {
        Err(broken) if is_damage(&broken) => {
            let anew = begin_anew(folder)?;
            tracing::warn!(%broken, "the file of the log was damaged: it is begun anew");
            Ok(anew)
        }
        Err(Error::Former) => {
            let anew = begin_anew(folder)?;
            tracing::info!("the log has the form of a version before: it is begun anew");
            Ok(anew)
        }
        opened => opened,
    }
}

fn begin_anew(folder: &Path) -> Result<(Opened, Counts, u64), Error> {
    remove(folder)?;
    Opened::open(folder)?.counted()
}

/// Whether it says that the file cannot be read, in all or in a part.
pub(super) fn is_damage(error: &Error) -> bool {
    use MdbError::{Corrupted, Invalid, PageNotFound, VersionMismatch};
    matches!(error, Error::Lmdb(heed::Error::Mdb(Corrupted | PageNotFound | Invalid | VersionMismatch)))
}

impl Opened {
    /// With what is counted; closed where that fails.
    fn counted(self) -> Result<(Self, Counts, u64), Error> {
        match self.count() {
            Ok((counts, next)) => Ok((self, counts, next)),
            Err(error) => {
                self.close();
                Err(error)
            }
        }
    }

    fn count(&self) -> Result<(Counts, u64), Error> {
        let (mut counts, mut next) = (Counts::default(), 0);
        let txn = self.env.read_txn()?;
        for pair in self.lines.rows.iter(&txn)? {
            let (key, value) = pair?;
            self.lines.know(key);
            if let Some((place, _)) = row::parts(key) {
                next = next.max(row::number(place).saturating_add(1));
            }
            if let Some(counted) = counted(key, value) {
                counts.add(&counted);
            }
        }
        // Both are numbered alike.
        for pair in self.turns.rows.iter(&txn)? {
            let (key, _) = pair?;
            self.turns.know(key);
            if let Some(place) = row::place_of_turn(key) {
                next = next.max(row::number(place).saturating_add(1));
            }
        }
        Ok((counts, next))
    }

    fn open(folder: &Path) -> Result<Self, Error> {
        private::make_folder(folder).map_err(failed(folder))?;
        let env = open_environment(folder, MAP_MIB, EnvFlags::empty())?;
        // A file that lost its end would end the process at the first look behind it.
        complete(&env, folder, MAP_MIB).map_err(|_| heed::Error::Mdb(MdbError::Corrupted))?;
        let txn = env.write_txn()?;
        let committed = env.create_databases_and_commit(txn, |opener, txn| -> Result<_, Error> {
            if opener.open_database::<Bytes, Bytes>(txn, Some(FORMER))?.is_some() {
                return Ok(CommitOrAbort::Abort(()));
            }
            let (lines, turns) =
                (opener.create_database(txn, Some("lines2"))?, opener.create_database(txn, Some("turns2"))?);
            Ok(CommitOrAbort::Commit((lines, turns)))
        })?;
        let CommitOrAbort::Commit((lines, turns)) = committed else {
            env.prepare_for_closing().wait();
            return Err(Error::Former);
        };
        Ok(Self { env, lines: Table::new(lines), turns: Table::new(turns) })
    }

    /// Whether LMDB has given the environment up, for reads as well: it could not write a root page.
    pub(super) fn is_given_up(&self) -> bool {
        matches!(self.env.read_txn(), Err(heed::Error::Mdb(MdbError::Panic)))
    }

    /// Waits until the file is unmapped.
    pub(super) fn close(self) {
        self.env.prepare_for_closing().wait();
    }

    pub(super) fn trim(&self, txn: &mut RwTxn<'_>, counts: &mut Counts, ring: Ring) -> Result<(), Error> {
        while counts.lines > ring.lines_max || counts.bytes > ring.bytes_max {
            let Some((key, value)) = self.lines.rows.first(txn)? else { return Ok(()) };
            if let Some(counted) = counted(key, value) {
                counts.remove(&counted);
            }
            let key = key.to_vec();
            self.lines.rows.delete(txn, &key)?;
        }
        while self.turns.rows.len(txn)? > ring.turns_max {
            let Some((key, _)) = self.turns.rows.first(txn)? else { return Ok(()) };
            let key = key.to_vec();
            self.turns.rows.delete(txn, &key)?;
        }
        Ok(())
    }
}

/// What is counted of a stored line; `None`: it is damaged, and not counted.
pub(super) fn counted<'l>(key: &[u8], value: &'l [u8]) -> Option<Counted<'l>> {
    let (_, level) = row::parts(key)?;
    let row = row::read(value)?;
    Some(Counted { bytes: key.len() + value.len(), level, source: &row.source, context: &row.context })
}

pub(super) fn copy(
    old: &Opened,
    beside: &Path,
    is_dropped: impl Fn(LogCursor, &[u8], &ArchivedRow) -> bool,
    is_turn_dropped: impl Fn(&ArchivedTurn) -> bool,
) -> Result<u64, Error> {
    remove(beside)?;
    let new = Opened::open(beside)?;
    let copied = || -> Result<u64, Error> {
        let (mut dropped, mut bytes) = (0, 0);
        let reading = old.env.read_txn()?;
        let mut writing = new.env.write_txn()?;
        for pair in old.lines.rows.iter(&reading)? {
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
        for pair in old.turns.rows.iter(&reading)? {
            let (key, value) = pair?;
            if row::read_turn(value).is_some_and(|turn| !is_turn_dropped(turn)) {
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

/// Makes an environment without a line. Returns how many are known to be dropped: none.
pub(super) fn empty(beside: &Path) -> Result<u64, Error> {
    remove(beside)?;
    Opened::open(beside)?.close();
    Ok(0)
}

pub(super) fn beside(folder: &Path) -> PathBuf {
    folder.with_extension("new")
}

/// Replaces the file by the one beside it. Both are closed.
pub(super) fn exchange(folder: &Path) -> Result<(), Error> {
    let beside = beside(folder);
    fs::rename(beside.join("data.mdb"), folder.join("data.mdb")).map_err(failed(folder))?;
    // The new name is on the disk before anybody is told.
    fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder))?;
    remove(&beside)
}

pub(super) fn remove(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(folder)(error)),
        _ => Ok(()),
    }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> Error + use<> {
    let path = path.display().to_string();
    move |source| Error::Folder { path, source }
}
