//! The quota of bytes that all recordings share, those under way included.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::file;
use crate::private::{FILE_MODE, make_folder};

/// A single recording has at most this share of all: there is room for more than one.
const SHARE: u64 = 4;

/// The folder of all recordings, whose files have no more bytes together than they may.
pub(super) struct RecordingQuota {
    folder: PathBuf,
    bytes_max: u64,
    /// Locked while a line is written: what is counted is on the disk.
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    /// Bytes of all files, or more: what was erased is noticed when the folder is looked at. `None`: it was not yet.
    bytes: Option<u64>,
    /// Files that are being written.
    open: BTreeSet<PathBuf>,
}

impl RecordingQuota {
    pub(super) fn new(folder: PathBuf, bytes_max: u64) -> Self {
        Self { folder, bytes_max, used: Mutex::default() }
    }

    /// Bytes that one recording may have.
    pub(super) fn one_max(&self) -> u64 {
        self.bytes_max / SHARE
    }

    /// Makes the file of a recording, which stays until it is closed.
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        let mut used = self.used();
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
        used.open.insert(path.to_path_buf());
        Ok(file)
    }

    /// The file may be removed from now on.
    pub(super) fn close(&self, path: &Path) {
        self.used().open.remove(path);
    }

    /// Writes a line. Where it does not fit, the oldest recordings are removed.
    ///
    /// # Errors
    /// It cannot be written, or the recordings under way take all the room.
    pub(super) fn write(&self, file: &mut File, line: &str) -> io::Result<()> {
        let mut used = self.used();
        let bytes = line.len() as u64;
        let before = match used.bytes.filter(|before| before.saturating_add(bytes) <= self.bytes_max) {
            Some(before) => before,
            None => self.make(bytes, &used.open)?,
        };
        used.bytes = Some(before.saturating_add(bytes));
        file.write_all(line.as_bytes())
    }

    /// Makes room for so many bytes, unless there is some. Returns how many are used.
    fn make(&self, bytes: u64, open: &BTreeSet<PathBuf>) -> io::Result<u64> {
        let mut all = file::paths(&self.folder)?
            .into_iter()
            .filter_map(|path| {
                let known = fs::metadata(&path).ok()?;
                Some((known.modified().ok()?, path, known.len()))
            })
            .collect::<Vec<_>>();
        all.sort();
        let mut used: u64 = all.iter().map(|(_, _, size)| size).sum();
        if used.saturating_add(bytes) > self.bytes_max {
            // More than is needed now: not every line that follows looks at the folder.
            let most = self.bytes_max - self.one_max();
            for (_, path, size) in all.iter().filter(|(_, path, _)| !open.contains(path)) {
                if used.saturating_add(bytes) <= most {
                    break;
                }
                match fs::remove_file(path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => used -= size,
                }
            }
        }
        if used.saturating_add(bytes) > self.bytes_max {
            return Err(io::Error::other("the recordings under way take all the room that there may be"));
        }
        Ok(used)
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
