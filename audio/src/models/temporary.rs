//! A folder beside the target that is deleted on drop.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, process};

use super::install::make_open;
use super::{Error, Result};

/// A temporary folder inside the models folder: on the same file system, so that a finished file
/// can be renamed into place.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn inside(parent: &Path) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!(".incoming-{}-{count}", process::id()));
        // Left by a killed process with the same id.
        let _ = fs::remove_dir_all(&path);
        make_open(parent)?;
        fs::create_dir(&path).map_err(Error::io("create", &path))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
