//! Restores a backup into an empty data folder: whole, or not at all, also when the power fails.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{
    DEVICE_KEYS, Manifest, Passphrase, check_room, container,
    manifest::Entry,
    recovery::{FINISHED, UNFINISHED, finish},
    snapshot,
};
use crate::{
    private::{FILE_MODE, FolderLock, give_to_owner, make_folder, remove_folder, sync_folder_of},
    store,
};

/// What a restore has put into the data folder.
pub(crate) struct Restored {
    /// What the backup has in it.
    pub(crate) manifest: Manifest,
    /// Whether the gateway's keys and the pairings were restored.
    pub(crate) device_keys: bool,
}

/// Restores a backup into a data folder, which must be empty except for models. Without `device_keys` neither the gateway's
/// keys nor the pairings are restored.
///
/// # Errors
/// The folder is in use or not empty, or the backup cannot be read. Then the folder is as it was.
pub(crate) fn restore(
    file: &Path,
    passphrase: &Passphrase,
    (data_dir, models_dir): (&Path, &Path),
    size_max_mib: usize,
    device_keys: bool,
) -> Result<Restored> {
    let input = File::open(file).with_context(|| format!("opening {}", file.display()))?;
    make_folder(data_dir).with_context(|| format!("making {}; set `data_dir`", data_dir.display()))?;
    let _lock = FolderLock::take(data_dir, "restore").context("a backup is restored while no gateway runs")?;
    let unfinished = data_dir.join(UNFINISHED);
    remove_folder(&unfinished)?;
    finish(data_dir)?;
    check_empty(data_dir, models_dir)?;
    let unpacked = unpack(input, passphrase, data_dir, device_keys).and_then(|manifest| {
        let device_keys = device_keys && manifest.device_keys;
        check_store(&unfinished.join("store"), size_max_mib, &manifest, device_keys)?;
        snapshot::without_store_lock(&unfinished)?;
        give_to_owner(data_dir, &unfinished)?;
        rustix::fs::syncfs(File::open(&unfinished)?).context("syncing the disk")?;
        Ok(Restored { manifest, device_keys })
    });
    if unpacked.is_err() {
        remove_folder(&unfinished)?;
        return unpacked;
    }
    fs::rename(&unfinished, data_dir.join(FINISHED)).context("renaming what was restored")?;
    sync_folder_of(&unfinished)?;
    finish(data_dir)?;
    unpacked
}

fn check_empty(data_dir: &Path, models_dir: &Path) -> Result<()> {
    let mut found = Vec::new();
    for entry in fs::read_dir(data_dir).with_context(|| format!("reading {}", data_dir.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_no_data = entry.path() == models_dir || ["lock", "models", "speech"].contains(&name.as_str());
        if !is_no_data {
            found.push(name);
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    found.sort();
    found.truncate(5);
    bail!(
        "{} is not empty ({}): a backup is restored into an empty data folder only. Move these away, or set another \
         `data_dir`",
        data_dir.display(),
        found.join(", ")
    )
}

fn unpack(input: File, passphrase: &Passphrase, data_dir: &Path, device_keys: bool) -> Result<Manifest> {
    let unfinished = data_dir.join(UNFINISHED);
    let begin = |manifest: &Manifest| {
        check_room(data_dir, manifest.bytes())?;
        make_folder(&unfinished).with_context(|| format!("making {}", unfinished.display()))
    };
    let open = |entry: &Entry| -> Result<Box<dyn Write>> {
        if !device_keys && DEVICE_KEYS.contains(&entry.path.as_str()) {
            return Ok(Box::new(std::io::sink()));
        }
        let path = unfinished.join(&entry.path);
        if let Some(folder) = path.parent() {
            make_folder(folder).with_context(|| format!("making {}", folder.display()))?;
        }
        let file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&path);
        Ok(Box::new(file.with_context(|| format!("making {}", path.display()))?))
    };
    container::read(input, passphrase, begin, open)
}

/// Whether the store opens and has in it what the manifest says; the pairings are removed that are not wanted.
fn check_store(folder: &Path, size_max_mib: usize, manifest: &Manifest, device_keys: bool) -> Result<()> {
    let found = store::contents(folder, size_max_mib).context("opening the restored store")?;
    ensure!(
        found.rows == manifest.rows && found.schema == manifest.schema,
        "the backup's store has not in it what the backup says"
    );
    if manifest.device_keys && !device_keys {
        store::without_pairings(folder, size_max_mib).context("removing the pairings")?;
    }
    Ok(())
}
