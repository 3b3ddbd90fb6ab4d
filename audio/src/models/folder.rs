//! Folders for models: those that all may enter, and temporary ones beside them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Error, Result};

/// Mode of folders, whatever the umask of the one who installs: a gateway may run as another user.
const FOLDER_MODE: u32 = 0o755;

/// Makes a folder, and those above it, that all may enter. One that is there stays as it is.
pub(super) fn make_open(folder: &Path) -> Result<()> {
    let new: Vec<&Path> =
        folder.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).collect();
    fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    for folder in new {
        fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE)).map_err(Error::io("open to all", folder))?;
    }
    Ok(())
}

/// A folder inside the models folder that is deleted on drop: on the same file system, so that a finished file can be renamed
/// into place.
pub(super) struct Temporary(PathBuf);

impl Temporary {
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

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
