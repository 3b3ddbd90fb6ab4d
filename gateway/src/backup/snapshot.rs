//! Snapshots: a folder in the data folder with a copy of what a backup has in it.

use std::{
    fs::{self, DirEntry},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{
    DEPTH_MAX, DEVICE_KEYS, FILES_MAX, STORE_FILE, check_room, is_path_text,
    left_out::{LeftOut, Omission, Why},
    recovery::{FINISHED, IN_USE, STAGE, Stage, UNFINISHED, discard_left, folder, recover},
};
use crate::{
    private::{FolderLock, give_to_owner, make_folder},
    runtime::on_own_thread,
    store::{self, Store},
};

/// What stands in a data folder and is no state: what is made anew by each start, what is copied in another way, the stored
/// log and recordings, which are about this box and change all the time, and the models and test speech, which come from packages.
const NO_STATE: [&str; 13] = [
    "lock",
    "control.sock",
    ".health",
    "store",
    "store.new",
    "log",
    "log.new",
    "recordings",
    "models",
    "speech",
    STAGE,
    UNFINISHED,
    FINISHED,
];

/// Whether a name in the data folder is none of the files that a backup has.
pub(super) fn is_no_state(name: &str) -> bool {
    NO_STATE.contains(&name)
}

/// Makes snapshots of a running gateway, one at a time.
pub struct Backups {
    data_dir: PathBuf,
    models_dir: PathBuf,
    store: Store,
    running: Arc<Mutex<()>>,
}

/// A snapshot, and the place of the one who makes a backup of it. It is removed when this is dropped.
pub(crate) struct Snapshot {
    /// What it has not.
    pub(crate) left_out: LeftOut,
    _stage: Stage,
    _one_at_a_time: OwnedMutexGuard<()>,
}

impl Backups {
    /// Of this gateway.
    pub(crate) fn new(data_dir: PathBuf, models_dir: PathBuf, store: Store) -> Self {
        Self { data_dir, models_dir, store, running: Arc::default() }
    }

    /// Makes a snapshot: of the store first, so that all files that it speaks of are there. No user may be erased
    /// meanwhile; later erasures remove the snapshot.
    ///
    /// # Errors
    /// Another one is in use, or it cannot be written.
    pub(crate) async fn snapshot(&self, device_keys: bool) -> Result<Snapshot> {
        let one_at_a_time = self.running.clone().try_lock_owned();
        let one_at_a_time = one_at_a_time.map_err(|_| anyhow!(IN_USE))?;
        let stage = begun(&self.data_dir)?;
        self.store.snapshot(&stage.path().join("store"), device_keys).await.context("copying the store")?;
        let (data_dir, models_dir) = (self.data_dir.clone(), self.models_dir.clone());
        let copy = stage.path().to_path_buf();
        let left_out = on_own_thread(move || copy_files(&data_dir, &models_dir, &copy, device_keys)).await??;
        Ok(Snapshot { left_out, _stage: stage, _one_at_a_time: one_at_a_time })
    }
}

impl Snapshot {
    /// Removes it, which may be many files, on a thread of its own.
    pub(crate) async fn end(self) {
        drop(on_own_thread(move || drop(self)).await);
    }
}

/// A snapshot of a data folder on which no gateway ran. One may have started since then. It is removed when this is dropped.
pub(crate) struct Closed {
    /// What it has not.
    pub(crate) left_out: LeftOut,
    _stage: Stage,
}

impl Closed {
    /// Makes it, and has the data folder until it is made. `Ok(None)`: a gateway runs on the folder.
    ///
    /// # Errors
    /// There is nothing to copy, or it cannot be written.
    pub(crate) fn snapshot(
        data_dir: &Path,
        models_dir: &Path,
        size_max_mib: usize,
        device_keys: bool,
    ) -> Result<Option<Self>> {
        let store = data_dir.join("store");
        ensure!(!Store::is_empty(&store), "there is nothing to back up in {}", data_dir.display());
        let Some(lock) = FolderLock::try_take(data_dir, "backup")? else { return Ok(None) };
        recover(data_dir)?;
        let stage = begun(data_dir)?;
        let copy = stage.path();
        make_stage(data_dir, &copy.join("store"))?;
        let copied = store::copy_closed(&store, &copy.join("store"), size_max_mib, device_keys);
        // Reading it has made LMDB's lock file.
        give_to_owner(data_dir, &store)?;
        copied.context("copying the store")?;
        let left_out = copy_files(data_dir, models_dir, copy, device_keys)?;
        // A gateway that starts now finds nothing of somebody else in its folder.
        give_to_owner(data_dir, copy)?;
        drop(lock);
        Ok(Some(Self { left_out, _stage: stage }))
    }
}

/// An empty folder for a snapshot, where there is room for a copy of the store.
fn begun(data_dir: &Path) -> Result<Stage> {
    ensure!(discard_left(data_dir)?, IN_USE);
    let store = fs::metadata(data_dir.join(STORE_FILE)).map_or(0, |file| file.len());
    check_room(data_dir, store).context("there is no room for a copy of the store")?;
    make_stage(data_dir, &folder(data_dir))?;
    Stage::of(data_dir)
}

/// Makes a folder of a snapshot, and those above it. Each is given to the owner of the data folder at once: whoever owns the
/// folders can remove what an interrupted backup of root's leaves.
fn make_stage(data_dir: &Path, folder: &Path) -> Result<()> {
    let is_new = |folder: &&Path| folder.starts_with(data_dir) && !folder.exists();
    let new: Vec<&Path> = folder.ancestors().take_while(is_new).collect();
    for folder in new.into_iter().rev() {
        make_folder(folder).with_context(|| format!("making {}", folder.display()))?;
        give_to_owner(data_dir, folder)?;
    }
    Ok(())
}

/// Removes LMDB's lock file from the copy of the store: it is made anew.
pub(super) fn without_store_lock(stage: &Path) -> Result<()> {
    match fs::remove_file(stage.join("store/lock.mdb")) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).context("removing the store's lock file"),
        _ => Ok(()),
    }
}

fn copy_files(data_dir: &Path, models_dir: &Path, stage: &Path, device_keys: bool) -> Result<LeftOut> {
    let is_state = |path: &Path| {
        let name = path.strip_prefix(data_dir).ok().and_then(Path::to_str);
        let is_left_out = |name: &str| is_no_state(name) || !device_keys && DEVICE_KEYS.contains(&name);
        path != models_dir && !name.is_some_and(is_left_out)
    };
    let found = files_below(data_dir, is_state)?;
    // Photos are many and large, and never change: one more name is enough.
    let is_photo = |path: &str| path.starts_with("photos/");
    let size = |path: &String| fs::metadata(data_dir.join(path)).map_or(0, |file| file.len());
    let sizes = found.paths.iter().filter(|path| !is_photo(path)).map(size);
    check_room(data_dir, sizes.fold(0, u64::saturating_add)).context("there is no room for a copy of the files")?;
    for path in found.paths {
        let (from, to) = (data_dir.join(&path), stage.join(&path));
        if let Some(folder) = to.parent() {
            make_stage(data_dir, folder)?;
        }
        let copied = match is_photo(&path) {
            true => fs::hard_link(&from, &to).or_else(|_| copy_file(&from, &to)),
            false => copy_file(&from, &to),
        };
        match copied {
            // It was removed meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            copied => copied.with_context(|| format!("copying {}", from.display()))?,
        }
    }
    Ok(LeftOut::of(found.left_out))
}

/// Photos, too, on a disk that gives no file a second name.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or(to);
    check_room(folder, fs::metadata(from)?.len()).map_err(io::Error::other)?;
    fs::copy(from, to).map(drop)
}

/// Files below a folder.
#[derive(Default)]
pub(super) struct Found {
    /// Their paths within it.
    pub(super) paths: Vec<String>,
    /// What cannot be kept.
    pub(super) left_out: Vec<Omission>,
}

/// Lists the files below a folder that `takes` accepts, and those of the folders that it accepts. Symbolic links are not
/// followed.
pub(super) fn files_below(root: &Path, takes: impl Fn(&Path) -> bool) -> Result<Found> {
    let mut found = Found::default();
    let mut folders = vec![(root.to_path_buf(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound && depth > 0 => continue,
            entries => entries.with_context(|| format!("reading {}", folder.display()))?,
        };
        for entry in entries {
            let entry = entry.with_context(|| format!("reading {}", folder.display()))?;
            let path = entry.path();
            if !takes(&path) {
                continue;
            }
            let within = path.strip_prefix(root).unwrap_or(&path);
            let why = match (kind(&entry, within), within.to_str().filter(|name| is_path_text(name))) {
                (Kind::Folder, Some(_)) if depth + 2 < DEPTH_MAX => {
                    folders.push((path, depth + 1));
                    continue;
                }
                (Kind::Folder, Some(_)) => bail!("{} has too many folders below each other", root.display()),
                (Kind::File, Some(name)) => {
                    found.paths.push(name.to_owned());
                    None
                }
                (Kind::File | Kind::Folder, None) => Some(Why::Name),
                (Kind::Unfinished, _) => Some(Why::Unfinished),
                (Kind::Other, _) => Some(Why::Kind),
            };
            found.left_out.extend(why.map(|why| Omission::new(&within.to_string_lossy(), why)));
            if found.paths.len() + found.left_out.len() > FILES_MAX {
                bail!("{} has more than {FILES_MAX} files; is it the data folder of a gateway?", root.display());
            }
        }
    }
    found.paths.sort();
    Ok(found)
}

enum Kind {
    File,
    Folder,
    /// A file that is renamed when it is whole.
    Unfinished,
    Other,
}

fn kind(entry: &DirEntry, within: &Path) -> Kind {
    // A program's file that is being written has a control character in its name; those that are whole may have any ending.
    let is_unfinished = match within.starts_with("workspace") {
        true => entry.file_name().as_encoded_bytes().iter().any(u8::is_ascii_control),
        false => within.extension().is_some_and(|end| end == "new"),
    };
    match entry.file_type() {
        Ok(kind) if kind.is_dir() => Kind::Folder,
        Ok(kind) if kind.is_file() && is_unfinished => Kind::Unfinished,
        Ok(kind) if kind.is_file() => Kind::File,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, lchown};

    use super::*;

    /// Needs root, as CI has it; for others there is nothing to give.
    #[test]
    fn each_folder_of_roots_snapshot_is_that_of_the_data_folders_owner_from_the_beginning() {
        const SOMEBODY: u32 = 61_234;
        let data = tempfile::tempdir().unwrap();
        let is_root = lchown(data.path(), Some(SOMEBODY), Some(SOMEBODY)).is_ok();
        let owner = if is_root { SOMEBODY } else { fs::metadata(data.path()).unwrap().uid() };
        let deep = folder(data.path()).join("photos/ann");
        make_stage(data.path(), &deep).unwrap();
        for made in deep.ancestors().take(3) {
            assert_eq!(fs::metadata(made).unwrap().uid(), owner, "{}", made.display());
        }
    }
}
