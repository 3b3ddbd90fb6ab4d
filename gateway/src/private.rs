//! Files that nobody but their owner may read: the data folder and everything in it, and keys anywhere.

use std::{
    fmt,
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown, lchown},
    path::{Path, PathBuf},
    process,
};

use anyhow::{Context as _, Result, anyhow, bail};
use rustix::{
    fs::{Access, FlockOperation, OFlags, access, flock},
    io::Errno,
    process::{Pid, geteuid, test_kill_process},
};

/// The owner may list, enter and change; others nothing.
const FOLDER_MODE: u32 = 0o700;
/// The owner may read and write; others nothing.
pub(crate) const FILE_MODE: u32 = 0o600;
/// What others may not do with them.
const OTHERS: u32 = 0o077;
/// Folders below each other that are looked into: the data folder has three.
const DEPTH_MAX: usize = 16;
/// What to do about a data folder that is [`unusable`].
pub(crate) const HOW_TO_BE_USABLE: &str =
    "set another `data_dir`, or make this folder itself and give it, with mode 700, to the user that runs the gateway";
/// What to do where a file or folder is closed to the user of a command, and most likely not to the gateway.
pub(crate) const RUN_AS_ROOT: &str = "run the command as root (`sudo`)";
/// The file in the data folder that whoever uses it has locked.
const LOCK: &str = "lock";
/// Under which name a running gateway has the lock. Commands have it under their own.
pub(crate) const GATEWAY: &str = "gateway";
/// Most that is read of what stands in the lock: a name and the number of a process.
const HOLDER_BYTES_MAX: u64 = 64;

/// Makes a folder, and those above it, which only their owner may enter. One that is there stays as it is.
///
/// # Errors
/// It cannot be made.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// That a folder is behind one that this user may not enter, as that of a packaged gateway is for all but root: nothing is known
/// of it, and of what is in it.
pub(crate) fn out_of_sight(folder: &Path) -> Option<String> {
    unseen(folder, &fs::metadata(folder).err()?)
}

fn unseen(folder: &Path, error: &io::Error) -> Option<String> {
    let is_closed = error.kind() == io::ErrorKind::PermissionDenied;
    is_closed.then(|| format!("this user may not look into {}", folder.display()))
}

/// Why this process cannot keep data in a folder that is not [`out_of_sight`]: it has to be usable, or it must be possible to make it. `None`: it is.
pub(crate) fn unusable(folder: &Path) -> Option<String> {
    let is_dangling = |path: &&Path| fs::symlink_metadata(path).is_ok() && !path.exists();
    if let Some(link) = folder.ancestors().find(is_dangling) {
        return Some(format!("{} is a symbolic link that leads to nothing", link.display()));
    }
    let there = folder.ancestors().find(|folder| folder.exists() || folder.as_os_str().is_empty())?;
    let there = if there.as_os_str().is_empty() { Path::new(".") } else { there };
    let (whole, shown) = (folder.display(), there.display());
    let below = if there == folder { String::new() } else { format!("{whole} cannot be made: ") };
    if !there.is_dir() {
        return Some(format!("{below}{shown} is no folder"));
    }
    let denied = access(there, Access::WRITE_OK | Access::EXEC_OK).err();
    denied.map(|error| format!("{below}{shown} cannot be written to: {error}"))
}

/// A user's name as a file name: what could leave the folder is escaped, so that no two users share one.
pub(crate) fn file_name(user: &str) -> String {
    let mut name = String::new();
    for byte in user.bytes() {
        match byte {
            b'-' | b'_' => name.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            byte => name.push_str(&format!("%{byte:02x}")),
        }
    }
    name
}

/// Removes a folder and everything in it; it may be gone already.
///
/// # Errors
/// Something of it cannot be removed.
pub(crate) fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Whose the files in a folder are to be, as user and group, where root works in the folder of somebody else: a packaged
/// gateway runs as a user of its own, and finds closed what root makes there. `None`: whoever makes them.
///
/// # Errors
/// The folder cannot be looked at.
pub(crate) fn foreign_owner(folder: &Path) -> io::Result<Option<(u32, u32)>> {
    let meta = fs::metadata(folder)?;
    Ok((geteuid().is_root() && meta.uid() != 0).then(|| (meta.uid(), meta.gid())))
}

/// Gives to the owner of `folder` what root has made in it while no gateway runs: `made`, and what is root's below it. Symbolic links
/// are not followed, and a file with a second name stays root's: it may be one of another place.
///
/// # Errors
/// Something cannot be looked at or given.
pub(crate) fn give_to_owner(folder: &Path, made: &Path) -> Result<()> {
    let Some(owner) = foreign_owner(folder).with_context(|| format!("reading {}", folder.display()))? else {
        return Ok(());
    };
    give_below(made, owner).with_context(|| format!("giving {} to the owner of {}", made.display(), folder.display()))
}

fn give_below(path: &Path, (user, group): (u32, u32)) -> io::Result<()> {
    let meta = fs::symlink_metadata(path)?;
    if meta.uid() == 0 && (meta.is_dir() || meta.is_file() && meta.nlink() == 1) {
        lchown(path, Some(user), Some(group))?;
    }
    if meta.is_dir() {
        for entry in fs::read_dir(path)? {
            give_below(&entry?.path(), (user, group))?;
        }
    }
    Ok(())
}

/// Takes the rights of others from a folder and everything in it. Symbolic links in it are not followed; the folder itself may be
/// named by one, as that of a packaged gateway is. What cannot be changed is logged: it may be another user's, such as models
/// that several gateways use.
pub(crate) fn repair(folder: &Path) {
    let (mut repaired, mut failed) = (Vec::new(), Vec::new());
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    repair_below(&folder, 0, &mut |path, changed| match changed {
        Ok(()) => repaired.push(path.to_path_buf()),
        Err(error) => failed.push((path.to_path_buf(), error)),
    });
    if let Some(first) = repaired.first() {
        let (count, first) = (repaired.len(), first.display());
        tracing::warn!(count, %first, "others had rights to files of the data folder; now they have none");
    }
    if let Some((first, error)) = failed.first() {
        let (count, first) = (failed.len(), first.display());
        tracing::error!(count, %first, %error, "others may have rights to files of the data folder, which could not be changed");
    }
}

/// Tells `done` of each file that others had rights to, and of those that could not be looked at.
fn repair_below(path: &Path, depth: usize, done: &mut dyn FnMut(&Path, io::Result<()>)) {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        // Removed meanwhile, such as a file of the store's last exchange.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return done(path, Err(error)),
    };
    let mode = match meta.file_type() {
        kind if kind.is_dir() => FOLDER_MODE,
        kind if kind.is_file() => FILE_MODE,
        _ => return,
    };
    if meta.permissions().mode() & OTHERS != 0 {
        done(path, fs::set_permissions(path, Permissions::from_mode(mode)));
    }
    if meta.is_dir() && depth < DEPTH_MAX {
        match fs::read_dir(path) {
            Ok(entries) => {
                for entry in entries.filter_map(Result::ok) {
                    repair_below(&entry.path(), depth + 1, done);
                }
            }
            Err(error) => done(path, Err(error)),
        }
    }
}

/// Reads a file that is a secret, of at most so many bytes.
///
/// # Errors
/// It cannot be read, is longer, or others may read it. The error has none of its content.
pub(crate) fn read_private(path: &Path, bytes_max: usize) -> Result<Vec<u8>> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("reading {shown}"))?;
    // The mode of the open file, so that it cannot be replaced between check and reading.
    let mode = file.metadata().with_context(|| format!("reading {shown}"))?.permissions().mode() & 0o7777;
    if mode & OTHERS != 0 {
        bail!(
            "{shown} has mode {mode:04o}: others may read the key in it; run `chmod 600 {shown}`, and think of a new key"
        );
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).with_context(|| format!("reading {shown}"))?;
    if bytes.len() > bytes_max {
        bail!("{shown} has more than {bytes_max} bytes: it is no key");
    }
    Ok(bytes)
}

/// Writes a file that only its owner may read: whole and on the disk, or not at all.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    write_files(&[(path, bytes)])
}

/// As [`write_private`], several files of one folder. What a power cut leaves of them, [`finish`] completes, or they are as
/// before.
///
/// # Errors
/// They cannot be written.
pub(crate) fn write_files(files: &[(&Path, &[u8])]) -> Result<()> {
    for (path, bytes) in files {
        let new = new_of(path);
        let mut open = OpenOptions::new();
        let file = open.write(true).create(true).truncate(true).mode(FILE_MODE).open(&new);
        let written = file.and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
        written.with_context(|| format!("writing {}", new.display()))?;
    }
    // Their names are on the disk before the first is exchanged.
    for (path, _) in files {
        sync_folder_of(path)?;
    }
    for (path, _) in files {
        fs::rename(new_of(path), path).with_context(|| format!("writing {}", path.display()))?;
        sync_folder_of(path)?;
    }
    Ok(())
}

/// Completes what a power cut interrupted: some of these files, written together, are in place, and the others are not.
///
/// # Errors
/// A file cannot be renamed.
pub(crate) fn finish(files: &[&Path]) -> Result<()> {
    if files.iter().any(|path| path.exists()) {
        for path in files.iter().filter(|path| !path.exists() && new_of(path).exists()) {
            fs::rename(new_of(path), path).with_context(|| format!("writing {}", path.display()))?;
            sync_folder_of(path)?;
        }
    }
    Ok(())
}

fn new_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Waits until the names in the folder of this path are on the disk.
///
/// # Errors
/// The folder cannot be opened or synced.
pub(crate) fn sync_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).with_context(|| format!("syncing {}", folder.display()))
}

/// Locks an open file or folder for as long as it is open; `None`: it is locked already.
///
/// # Errors
/// It cannot be locked.
pub(crate) fn try_lock(file: File) -> io::Result<Option<File>> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Who has the lock of a data folder.
#[derive(Debug)]
pub(crate) struct Holder {
    /// [`GATEWAY`], or the name of a command.
    by: String,
    pid: u32,
}

impl Holder {
    /// Whether it is a gateway; else it is a command.
    pub(crate) fn is_gateway(&self) -> bool {
        self.by == GATEWAY
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_gateway() {
            true => write!(f, "the gateway (process {})", self.pid),
            false => write!(f, "`lorgnette {}` (process {})", self.by, self.pid),
        }
    }
}

/// That nobody else uses a data folder, for as long as this lives. The system releases it when the process ends, however it
/// ends. Who has it stands in the file, for messages only: whether anybody has it, the system says.
pub(crate) struct FolderLock(#[expect(dead_code, reason = "open, and so locked")] File);

impl FolderLock {
    /// Takes the lock of a data folder for the gateway or a command: `by` is [`GATEWAY`] or the name of the command.
    ///
    /// # Errors
    /// Another process has it, or there cannot be one.
    pub(crate) fn take(folder: &Path, by: &str) -> Result<Self> {
        Self::try_take(folder, by)?.ok_or_else(|| {
            let shown = folder.display();
            match Self::holder(folder) {
                Some(gateway) if gateway.is_gateway() => anyhow!(
                    "another gateway already runs on {shown} (process {}); stop it, or give this one its own `data_dir`",
                    gateway.pid
                ),
                Some(command) => anyhow!("{command} has the data folder {shown}; wait until it has ended"),
                None => anyhow!(
                    "another process has the data folder {shown}; stop it (`fuser {}` names it), or give this gateway its \
                     own `data_dir`",
                    folder.join(LOCK).display()
                ),
            }
        })
    }

    /// As [`take`](Self::take); `None`: another process has it.
    ///
    /// # Errors
    /// There cannot be a lock.
    pub(crate) fn try_take(folder: &Path, by: &str) -> Result<Option<Self>> {
        let path = folder.join(LOCK);
        let mut open = OpenOptions::new();
        // Root opens it in a folder of somebody else, who could have put a link there.
        let open =
            open.write(true).create(true).truncate(false).mode(FILE_MODE).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        let making = || format!("making {}", path.display());
        let file = open.open(&path).with_context(making)?;
        let meta = file.metadata().with_context(making)?;
        if let Some((user, group)) =
            foreign_owner(folder).with_context(making)?.filter(|_| meta.uid() == 0 && meta.nlink() == 1)
        {
            fchown(&file, Some(user), Some(group)).with_context(making)?;
        }
        let locked = try_lock(file).with_context(|| format!("locking {}", path.display()))?;
        // A file with a second name may be one of another place. Without room nobody is named.
        if let Some(mut file) = locked.as_ref().filter(|_| meta.nlink() == 1) {
            let named = format!("{by} {}\n", process::id());
            drop(file.set_len(0).and_then(|()| file.write_all(named.as_bytes())));
        }
        Ok(locked.map(Self))
    }

    /// Who has the lock of a data folder that could not be taken, by what stands in it. `None`: nobody that runs is named
    /// there. What was killed may still be, and an older version names nobody.
    pub(crate) fn holder(folder: &Path) -> Option<Holder> {
        let mut open = OpenOptions::new();
        let open = open.read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(folder.join(LOCK));
        let mut text = String::new();
        open.ok()?.take(HOLDER_BYTES_MAX).read_to_string(&mut text).ok()?;
        let (by, pid) = text.trim_end().split_once(' ')?;
        let pid: u32 = pid.parse().ok()?;
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
        let is_name = !by.is_empty() && by.bytes().all(|byte| byte.is_ascii_lowercase());
        let runs = test_kill_process(process) != Err(Errno::SRCH);
        (is_name && runs).then(|| Holder { by: by.to_owned(), pid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_folder_is_usable_where_it_is_or_can_be_made() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(folder.path().join("none"), &link).unwrap();
        for usable in [folder.path().to_path_buf(), folder.path().join("a/b")] {
            assert_eq!(unusable(&usable), None, "{usable:?}");
        }
        let told = |path: &Path| unusable(path).unwrap();
        assert!(told(&file).ends_with("file is no folder"));
        let below = told(&file.join("data"));
        assert!(below.contains("data cannot be made: ") && below.ends_with("file is no folder"), "{below}");
        assert!(told(&link).ends_with("leads to nothing"));
        assert!(told(&link.join("data")).ends_with("leads to nothing"));
        assert_eq!([&file, &link].map(|path| out_of_sight(path)), [None, None]);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o500)).unwrap();
        // Root may write all the same.
        assert_eq!(unusable(&folder.path().join("c")).is_none(), geteuid().is_root());
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn a_link_to_what_this_user_cannot_see_is_not_said_to_lead_to_nothing() {
        let told = |kind: io::ErrorKind| unseen(Path::new("/srv/link"), &kind.into());
        assert_eq!(told(io::ErrorKind::PermissionDenied).as_deref(), Some("this user may not look into /srv/link"));
        assert_eq!(told(io::ErrorKind::NotFound), None);
    }

    #[test]
    fn what_others_could_read_they_cannot_after_a_repair() {
        let folder = tempfile::tempdir().unwrap();
        let (outside, inside) = (folder.path().join("outside"), folder.path().join("data"));
        let deep = inside.join("photos/ann");
        fs::create_dir_all(&deep).unwrap();
        fs::write(&outside, "x").unwrap();
        for file in ["gateway.key", "photos/ann/1.jpg", "photos/ann/2.jpg"] {
            fs::write(inside.join(file), "x").unwrap();
        }
        for path in [&outside, &inside, &deep, &inside.join("gateway.key")] {
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        // As a packaged gateway has it.
        let named = folder.path().join("named");
        std::os::unix::fs::symlink(&inside, &named).unwrap();
        repair(&named);
        for folder in [&inside, &inside.join("photos"), &deep] {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
        }
        for file in ["gateway.key", "photos/ann/1.jpg", "photos/ann/2.jpg"] {
            assert_eq!(mode(&inside.join(file)), 0o600, "{file}");
        }
        assert_eq!(mode(&outside), 0o755, "it is not of the folder");
    }

    /// Needs root, as CI has it; for others there is nothing to give.
    #[test]
    fn what_root_makes_in_the_folder_of_somebody_else_is_theirs() {
        const SOMEBODY: u32 = 61_234;
        let folder = tempfile::tempdir().unwrap();
        let (data, outside) = (folder.path().join("data"), folder.path().join("outside"));
        let made = data.join("restoring");
        fs::create_dir_all(made.join("store")).unwrap();
        for file in [&outside, &made.join("gateway.key"), &made.join("store/data.mdb")] {
            fs::write(file, "x").unwrap();
        }
        std::os::unix::fs::symlink(&outside, made.join("link")).unwrap();
        fs::hard_link(&outside, made.join("name")).unwrap();
        let owner = |path: &Path| fs::metadata(path).unwrap().uid();
        let own = owner(&data);
        give_to_owner(&data, &made).unwrap();
        assert_eq!(owner(&made), own, "its owner makes it");
        if !geteuid().is_root() {
            return;
        }
        lchown(&data, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        give_to_owner(&data, &made).unwrap();
        for path in ["restoring", "restoring/gateway.key", "restoring/store", "restoring/store/data.mdb"] {
            assert_eq!(owner(&data.join(path)), SOMEBODY, "{path}");
        }
        assert_eq!(owner(&outside), 0, "it is not of the folder");
        drop(FolderLock::take(&data, GATEWAY).unwrap());
        assert_eq!(owner(&data.join(LOCK)), SOMEBODY);
        fs::remove_file(data.join(LOCK)).unwrap();
        std::os::unix::fs::symlink(&outside, data.join(LOCK)).unwrap();
        assert!(FolderLock::take(&data, GATEWAY).is_err(), "a link is no lock");
    }

    #[test]
    fn a_secret_that_others_may_read_is_refused_without_quoting_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write_private(&path, b"hunter2").unwrap();
        assert_eq!((mode(&path), read_private(&path, 7).unwrap()), (0o600, b"hunter2".to_vec()));
        let long = format!("{:#}", read_private(&path, 6).unwrap_err());
        assert!(long.contains("more than 6 bytes") && !long.contains("hunter"), "{long}");
        for open in [0o640, 0o604, 0o644] {
            fs::set_permissions(&path, Permissions::from_mode(open)).unwrap();
            let error = format!("{:#}", read_private(&path, 7).unwrap_err());
            assert!(error.contains("chmod 600") && !error.contains("hunter2"), "{error}");
        }
        assert!(read_private(&folder.path().join("none"), 7).is_err());
    }

    #[test]
    fn files_that_a_power_cut_interrupted_are_completed() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        // Cut while the new ones were written: they may be half, and nothing is completed.
        fs::write(new_of(&one), "ha").unwrap();
        finish(&[&one, &other]).unwrap();
        assert!(!one.exists() && !other.exists());
        write_files(&[(&one, b"1"), (&other, b"2")]).unwrap();
        // Cut between the two renames: both new ones were whole before the first.
        fs::rename(&other, new_of(&other)).unwrap();
        finish(&[&one, &other]).unwrap();
        assert_eq!((fs::read(&one).unwrap(), fs::read(&other).unwrap()), (b"1".to_vec(), b"2".to_vec()));
        assert!(!new_of(&one).exists() && !new_of(&other).exists());
    }

    #[test]
    fn a_folder_has_one_lock_which_names_who_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let refused = || FolderLock::take(folder.path(), GATEWAY).err().unwrap().to_string();
        let pid = process::id();
        let lock = FolderLock::take(folder.path(), GATEWAY).unwrap();
        let told = refused();
        assert!(told.starts_with("another gateway already runs on "), "{told}");
        assert!(told.contains(&format!(" (process {pid}); stop it")), "{told}");
        drop(lock);
        let lock = FolderLock::take(folder.path(), "backup").unwrap();
        let told = refused();
        assert!(told.starts_with(&format!("`lorgnette backup` (process {pid}) has the data folder")), "{told}");
        drop(lock);
        FolderLock::take(folder.path(), GATEWAY).unwrap();
    }

    #[test]
    fn what_a_killed_process_has_left_in_the_lock_keeps_nobody_off_and_names_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK);
        let left = |text: &[u8]| fs::write(&path, text).unwrap();
        // No process has such a number.
        let dead = format!("backup {}\n", i32::MAX);
        for text in [dead.as_bytes(), b"", b"backup", b"backup 0\n", b"\x1b[2J 1\n", b"\xff 1\n", &[b'x'; 100]] {
            left(text);
            let lock = FolderLock::take(folder.path(), GATEWAY).unwrap();
            assert!(FolderLock::holder(folder.path()).unwrap().is_gateway());
            // As where a version that writes nothing has taken it.
            left(text);
            assert!(FolderLock::holder(folder.path()).is_none(), "{text:?}");
            let told = FolderLock::take(folder.path(), GATEWAY).err().unwrap().to_string();
            assert!(told.contains("another process has the data folder") && told.contains("fuser "), "{told}");
            drop(lock);
        }
    }

    #[test]
    fn a_lock_with_a_second_name_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (outside, data) = (folder.path().join("outside"), folder.path().join("data"));
        fs::create_dir(&data).unwrap();
        fs::write(&outside, "mine").unwrap();
        fs::hard_link(&outside, data.join(LOCK)).unwrap();
        let _lock = FolderLock::take(&data, "doctor").unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
    }
}
