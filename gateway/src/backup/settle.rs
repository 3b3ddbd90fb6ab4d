//! The folders of a backup and of a restore under way in a data folder, and what becomes of those that were interrupted.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use crate::private::{remove_folder, sync_folder_of};

/// The folder of a snapshot within the data folder.
pub(super) const STAGE: &str = "backing-up";
/// The folder into which a backup is unpacked. It is nothing as long as it has this name.
pub(super) const UNFINISHED: &str = "restoring";
/// Its name when everything in it is checked: from then on it is finished, now or by the next start.
pub(super) const FINISHED: &str = "restored";

/// The folder of the snapshot.
pub(super) fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join(STAGE)
}

/// Removes what there is of a snapshot: a backup was interrupted, or what is in it has to be erased.
///
/// # Errors
/// It cannot be removed.
pub(crate) fn discard(data_dir: &Path) -> Result<()> {
    remove_folder(&folder(data_dir))
}

/// Before anything else uses a data folder: removes the snapshot of an interrupted backup, and completes an interrupted
/// restore. A snapshot that cannot be removed keeps no gateway from its start; backups and erasures say that it is in their way.
///
/// # Errors
/// A restore was interrupted before everything was there, or something cannot be moved.
pub(crate) fn settle(data_dir: &Path) -> Result<()> {
    if let Err(error) = discard(data_dir) {
        tracing::error!(error = format!("{error:#}"), "an interrupted backup is left; remove it");
    }
    unsettled(data_dir)?;
    finish(data_dir)
}

/// Whether a restore was interrupted before everything was there.
///
/// # Errors
/// It was.
pub(crate) fn unsettled(data_dir: &Path) -> Result<()> {
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
