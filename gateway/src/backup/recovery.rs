//! Recovery: the folders of a backup and of a restore under way in a data folder, and what becomes of those that were
//! interrupted.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use rustix::fs::OFlags;

use crate::private::{remove_folder, sync_folder_of, try_lock};

/// The folder of a snapshot within the data folder.
pub(super) const STAGE: &str = "backing-up";
/// The folder into which a backup is unpacked. It is nothing as long as it has this name.
pub(super) const UNFINISHED: &str = "restoring";
/// Its name when everything in it is checked: from then on it is finished, now or by the next start.
pub(super) const FINISHED: &str = "restored";

/// Why no snapshot is made beside another one.
pub(super) const IN_USE: &str = "another backup is being made; wait for its end";

/// The folder of the snapshot.
pub(super) fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join(STAGE)
}

/// The folder of a snapshot that is in use. It is locked, so that nobody takes it for what an interrupted backup has left; the
/// system gives the lock up when the process ends, however it ends. It is removed when this is dropped.
pub(super) struct Stage {
    path: PathBuf,
    locked: File,
}

impl Stage {
    /// Of the folder that was just made for it.
    ///
    /// # Errors
    /// It cannot be locked.
    pub(super) fn of(data_dir: &Path) -> Result<Self> {
        let path = folder(data_dir);
        let locked = lock(&path).with_context(|| format!("locking {}", path.display()))?.context(IN_USE)?;
        Ok(Self { path, locked })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is still there. An erasure removes it, and then the next backup may have one in its place.
    fn is_there(&self) -> io::Result<bool> {
        is_at(&self.locked, &self.path)
    }
}

/// Whether this folder, which is open, is still the one at this path. While it is open no other one has its number.
pub(super) fn is_at(folder: &File, path: &Path) -> io::Result<bool> {
    let [own, there] = [folder.metadata()?, fs::symlink_metadata(path)?];
    Ok((own.dev(), own.ino()) == (there.dev(), there.ino()))
}

impl Drop for Stage {
    fn drop(&mut self) {
        if matches!(self.is_there(), Ok(true))
            && let Err(error) = remove_folder(&self.path)
        {
            tracing::warn!("the snapshot of a backup is left behind: {error:#}");
        }
    }
}

/// Locks a folder for as long as it is open; `None`: it is locked already.
fn lock(folder: &Path) -> io::Result<Option<File>> {
    try_lock(open(folder)?)
}

/// Opens a folder. A symbolic link is none here.
pub(super) fn open(folder: &Path) -> io::Result<File> {
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32;
    OpenOptions::new().read(true).custom_flags(flags).open(folder)
}

/// Removes what there is of a snapshot, also of one in use: what is in it has to be erased.
///
/// # Errors
/// It cannot be removed.
pub(crate) fn discard(data_dir: &Path) -> Result<()> {
    remove_folder(&folder(data_dir))
}

/// Removes what an interrupted backup has left of its snapshot. Whether there is none any more: one in use stays.
///
/// # Errors
/// It cannot be removed.
pub(crate) fn discard_left(data_dir: &Path) -> Result<bool> {
    let stage = folder(data_dir);
    // Held while it is removed.
    let _locked = match lock(&stage) {
        Ok(None) => return Ok(false),
        Ok(locked) => locked,
        // What is no folder, nobody has locked.
        Err(error) if !fs::symlink_metadata(&stage).is_ok_and(|found| found.is_dir()) => {
            tracing::debug!(%error, "no snapshot is left");
            None
        }
        Err(error) => return Err(error).with_context(|| format!("locking {}", stage.display())),
    };
    remove_folder(&stage)?;
    Ok(true)
}

/// Before anything else uses a data folder: removes what an interrupted backup has left of its snapshot, and completes an
/// interrupted restore. A snapshot in use stays. One that cannot be removed keeps no gateway from its start; backups and
/// erasures say that it is in their way.
///
/// # Errors
/// A restore was interrupted before everything was there, or something cannot be moved.
pub(crate) fn recover(data_dir: &Path) -> Result<()> {
    match discard_left(data_dir) {
        Ok(true) => {}
        Ok(false) => tracing::info!("a backup is being written of what was here before"),
        Err(error) => tracing::error!(error = format!("{error:#}"), "an interrupted backup is left; remove it"),
    }
    ensure_restore_complete(data_dir)?;
    finish(data_dir)
}

/// That no restore was interrupted before everything was there.
///
/// # Errors
/// One was.
pub(crate) fn ensure_restore_complete(data_dir: &Path) -> Result<()> {
    let unfinished = data_dir.join(UNFINISHED);
    ensure!(
        !unfinished.exists(),
        "a backup was being restored into {}, which was interrupted: run `lorgnette restore` once more, or remove {} to \
         begin with nothing",
        data_dir.display(),
        unfinished.display()
    );
    Ok(())
}

/// Moves what is restored and checked to its place.
pub(super) fn finish(data_dir: &Path) -> Result<()> {
    let finished = data_dir.join(FINISHED);
    if !finished.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(&finished)? {
        let entry = entry?;
        let to = data_dir.join(entry.file_name());
        fs::rename(entry.path(), &to).with_context(|| format!("moving what was restored to {}", to.display()))?;
    }
    fs::remove_dir(&finished).with_context(|| format!("removing {}", finished.display()))?;
    sync_folder_of(&finished)
}
