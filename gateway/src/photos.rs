//! Photos that the wearer took, as files of the data folder: within budgets, and on a thread of their own.

use std::{
    collections::{BTreeMap, VecDeque},
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result, bail};
use tokio::sync::oneshot;
use tools::in_flight::Lease;

use crate::{
    clock,
    private::{file_name, make_folder, remove_folder, write_private},
    runtime::compute::{Compute, Full, Urgency},
};

/// Photos of one device in a minute: more come from a stuck button.
const PER_MINUTE_MAX: usize = 30;
/// Devices whose last photos are remembered: more than a box has.
const DEVICES_MAX: usize = 1_024;
/// Photos that may wait for the disk: at 8 MiB each, memory is what limits them.
const WAITING_MAX: usize = 8;
const MINUTE_US: u64 = 60_000_000;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Photos of one user; the oldest goes first.
    count: usize,
    /// Bytes of one user's photos; likewise.
    user_bytes: u64,
    /// Bytes of all users' photos.
    all_bytes: u64,
    /// Bytes that stay free on the disk, for the store above all.
    free_bytes: u64,
}

const BUDGET: Budget = Budget { count: 500, user_bytes: 1 << 30, all_bytes: 4 << 30, free_bytes: 256 << 20 };

/// Keeps photos while the gateway runs.
pub struct Gallery {
    data_dir: PathBuf,
    thread: Compute,
    /// When each device's last photos came, in microseconds.
    latest: Mutex<BTreeMap<String, VecDeque<u64>>>,
}

impl Gallery {
    /// Photos below this data folder.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(crate) fn start(data_dir: PathBuf) -> std::io::Result<Self> {
        Ok(Self { data_dir, thread: Compute::start("photos", 1, WAITING_MAX)?, latest: Mutex::default() })
    }

    /// Whether its thread runs.
    pub(crate) fn is_running(&self) -> bool {
        self.thread.is_running()
    }

    /// Whether a device may have another photo kept now.
    fn admit(&self, device: &str) -> bool {
        self.admit_at(device, clock::mono_us())
    }

    fn admit_at(&self, device: &str, now_us: u64) -> bool {
        let mut devices = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        devices.retain(|_, latest| {
            latest.retain(|at_us| now_us.saturating_sub(*at_us) < MINUTE_US);
            !latest.is_empty()
        });
        if devices.len() >= DEVICES_MAX && !devices.contains_key(device) {
            return false;
        }
        let latest = devices.entry(device.to_owned()).or_default();
        let admitted = latest.len() < PER_MINUTE_MAX;
        if admitted {
            latest.push_back(now_us);
        }
        admitted
    }

    /// Has a photo of a device kept, if the user's lease has not ended when its turn comes. The answer comes when it is on
    /// the disk, or says why it is not; there is none where too many wait for the disk, or everything of the user is erased.
    pub(crate) fn keep(
        &self,
        device: &str,
        (lease, user): (Lease, String),
        (mime, bytes): (String, Vec<u8>),
    ) -> oneshot::Receiver<Result<(), String>> {
        let (told, kept) = oneshot::channel();
        if !self.admit(device) {
            tracing::warn!(device, "a photo was not kept: there were too many within a minute");
            drop(told.send(Err("there were too many photos within a minute".to_owned())));
            return kept;
        }
        let data_dir = self.data_dir.clone();
        let submitted = self.thread.submit(Urgency::Soon, move || {
            // Held until the photo is written: an erasure waits for it.
            if lease.is_ended() {
                return;
            }
            let kept = keep(&data_dir, &user, &mime, &bytes).map_err(|error| format!("{error:#}"));
            if let Err(error) = &kept {
                tracing::warn!(error, "a photo could not be kept");
            }
            // The caller may be gone.
            drop(told.send(kept));
        });
        if let Err(Full) = submitted {
            tracing::warn!(device, "a photo was not kept: too many wait for the disk");
        }
        kept
    }

    /// Has a user's last photo deleted, unless it was taken before that time. The answer says whether there was one, or
    /// what went wrong; there is none where too many operations wait for the disk.
    pub(crate) fn delete_last(&self, user: &str, since_wall_ms: i64) -> oneshot::Receiver<Result<bool, String>> {
        let (told, deleted) = oneshot::channel();
        let (data_dir, user) = (self.data_dir.clone(), user.to_owned());
        let submitted = self.thread.submit(Urgency::Soon, move || {
            let deleted = delete_last(&data_dir, &user, since_wall_ms).map_err(|error| format!("{error:#}"));
            // The caller may be gone.
            drop(told.send(deleted));
        });
        if let Err(Full) = submitted {
            tracing::warn!("a photo was not deleted: too much waits for the disk");
        }
        deleted
    }
}

/// Deletes a user's last photo, unless it was taken before that time. Returns whether there was one.
fn delete_last(data_dir: &Path, user: &str, since_wall_ms: i64) -> Result<bool> {
    let Some(last) = of(data_dir, user)?.pop() else { return Ok(false) };
    let taken_wall_ms = last.file_stem().and_then(|stem| stem.to_str()?.parse::<i64>().ok());
    if taken_wall_ms.is_none_or(|taken_wall_ms| taken_wall_ms < since_wall_ms) {
        return Ok(false);
    }
    fs::remove_file(&last).with_context(|| format!("removing {}", last.display()))?;
    Ok(true)
}

/// Keeps a photo as `photos/USER/NUMBER.EXT`. The numbers are milliseconds since the Unix epoch, and greater than all
/// before.
///
/// # Errors
/// The folder cannot be written, or the photo does not fit into the budgets.
pub(crate) fn keep(data_dir: &Path, user: &str, mime: &str, bytes: &[u8]) -> Result<()> {
    keep_within(data_dir, user, mime, bytes, BUDGET)
}

fn keep_within(data_dir: &Path, user: &str, mime: &str, bytes: &[u8], budget: Budget) -> Result<()> {
    let folder = folder_of(data_dir, user);
    make_folder(&folder).with_context(|| format!("making {}", folder.display()))?;
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut own = files(&folder)?;
    let own_bytes: u64 = own.iter().map(|(_, size)| size).sum();
    let others = all_bytes(data_dir)?.saturating_sub(own_bytes);
    if size > budget.user_bytes || others.saturating_add(size) > budget.all_bytes {
        bail!("the photos of all users take as much of the disk as they may; `lorgnette users erase` makes room");
    }
    let free = rustix::fs::statvfs(&folder).map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize))?;
    if free.saturating_sub(size) < budget.free_bytes {
        bail!("only {} MiB of the disk are free, and photos leave {} MiB", free >> 20, budget.free_bytes >> 20);
    }
    let extension = match mime {
        "image/jpeg" => "jpg",
        "image/png" => "png",
        _ => "bin",
    };
    // A clock that goes back must not make the newest photo the oldest.
    let last = own.last().and_then(|(path, _)| path.file_stem()?.to_str()?.parse::<i64>().ok()).unwrap_or(0);
    let path = folder.join(format!("{:015}.{extension}", clock::wall_ms().max(last.saturating_add(1))));
    write_private(&path, bytes)?;
    own.push((path, size));
    let (mut count, mut sum) = (own.len(), own_bytes.saturating_add(size));
    for (old, size) in own {
        let fits = count <= budget.count && sum <= budget.user_bytes && others.saturating_add(sum) <= budget.all_bytes;
        if fits {
            break;
        }
        fs::remove_file(&old).with_context(|| format!("removing {}", old.display()))?;
        (count, sum) = (count - 1, sum.saturating_sub(size));
    }
    Ok(())
}

/// Photos in a user's folder and their bytes, oldest first. What a power cut has left of others is removed.
fn files(folder: &Path) -> Result<Vec<(PathBuf, u64)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "new") {
            fs::remove_file(&path)?;
        } else {
            files.push((path, entry.metadata()?.len()));
        }
    }
    files.sort();
    Ok(files)
}

/// Bytes of all users' photos.
fn all_bytes(data_dir: &Path) -> Result<u64> {
    let mut sum = 0_u64;
    for user in fs::read_dir(data_dir.join("photos"))? {
        for photo in fs::read_dir(user?.path())? {
            // One that is gone meanwhile belonged to a user who is being erased.
            sum = sum.saturating_add(photo?.metadata().map_or(0, |file| file.len()));
        }
    }
    Ok(sum)
}

/// Removes all photos of a user.
///
/// # Errors
/// The folder cannot be removed.
pub(crate) fn erase(data_dir: &Path, user: &str) -> Result<()> {
    remove_folder(&folder_of(data_dir, user))
}

/// All photos of a user, oldest first.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn of(data_dir: &Path, user: &str) -> Result<Vec<PathBuf>> {
    let folder = folder_of(data_dir, user);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let paths = fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    // One that is being written is none yet.
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_none_or(|extension| extension != "new")).collect();
    paths.sort();
    Ok(paths)
}

fn folder_of(data_dir: &Path, user: &str) -> PathBuf {
    data_dir.join("photos").join(file_name(user))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const SMALL: Budget = Budget { count: 3, user_bytes: 10, all_bytes: 15, free_bytes: 0 };

    fn read(data_dir: &Path, user: &str) -> Vec<String> {
        let photos = of(data_dir, user).unwrap();
        photos.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
    }

    #[test]
    fn the_last_photo_is_deleted_if_it_is_new() {
        let folder = tempfile::tempdir().unwrap();
        let delete = |user: &str, since_wall_ms| delete_last(folder.path(), user, since_wall_ms).unwrap();
        assert!(!delete("ann", 0), "there is none");
        let began_wall_ms = clock::wall_ms();
        for (user, bytes) in [("ann", b"1"), ("ann", b"2"), ("bob", b"3")] {
            keep(folder.path(), user, "image/png", bytes).unwrap();
        }
        assert!(!delete("ann", began_wall_ms + 3_600_000), "it is too old");
        assert!(delete("ann", began_wall_ms));
        assert_eq!(
            (read(folder.path(), "ann"), read(folder.path(), "bob")),
            (vec!["1".to_owned()], vec!["3".to_owned()])
        );
    }

    #[test]
    fn users_do_not_share_photos() {
        let folder = tempfile::tempdir().unwrap();
        for user in ["a b", "a_b", "../x", "ü"] {
            keep(folder.path(), user, "image/png", user.as_bytes()).unwrap();
        }
        erase(folder.path(), "a b").unwrap();
        assert!(of(folder.path(), "a b").unwrap().is_empty());
        for user in ["a_b", "../x", "ü"] {
            let photos = of(folder.path(), user).unwrap();
            assert_eq!(fs::read(&photos[0]).unwrap(), user.as_bytes());
            assert!(photos[0].starts_with(folder.path().join("photos")));
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&photos[0]), mode(photos[0].parent().unwrap())), (0o600, 0o700));
        }
        erase(folder.path(), "nobody").unwrap();
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_or_too_many_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let keep = |user, text: &str| keep_within(folder.path(), user, "image/jpeg", text.as_bytes(), SMALL);
        // Faster than the clock ticks: no name is given twice.
        for text in ["1", "2", "3", "4"] {
            keep("ann", text).unwrap();
        }
        assert_eq!(read(folder.path(), "ann"), ["2", "3", "4"]);
        keep("ann", "99999999").unwrap();
        assert_eq!(read(folder.path(), "ann"), ["3", "4", "99999999"]);
        keep("ann", "5").unwrap();
        assert_eq!(read(folder.path(), "ann"), ["4", "99999999", "5"]);
        // One that is larger than all may be together pushes nothing out.
        assert!(keep("ann", "larger than ten").is_err());
        assert_eq!(read(folder.path(), "ann").len(), 3);
        // All users together.
        let error = keep("bob", "666666").unwrap_err().to_string();
        assert!(error.contains("all users"), "{error}");
        keep("bob", "777").unwrap();
        assert_eq!((read(folder.path(), "ann").len(), read(folder.path(), "bob").len()), (3, 1));
    }

    #[test]
    fn a_clock_that_went_back_and_a_power_cut_lose_no_new_photo() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder_of(folder.path(), "ann");
        make_folder(&own).unwrap();
        fs::write(own.join("005000000000000.jpg"), "of a clock that was ahead").unwrap();
        fs::write(own.join("000000000000001.jpg.new"), "ha").unwrap();
        let budget = Budget { count: 2, user_bytes: 100, all_bytes: 100, ..SMALL };
        for text in ["new", "newer"] {
            keep_within(folder.path(), "ann", "image/jpeg", text.as_bytes(), budget).unwrap();
        }
        assert_eq!(read(folder.path(), "ann"), ["new", "newer"]);
        assert_eq!(fs::read_dir(&own).unwrap().count(), 2);
    }

    #[test]
    fn photos_leave_room_on_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let budget = Budget { free_bytes: u64::MAX, ..SMALL };
        let error = keep_within(folder.path(), "ann", "image/jpeg", b"1", budget).unwrap_err().to_string();
        assert!(error.contains("MiB of the disk are free"), "{error}");
        assert!(read(folder.path(), "ann").is_empty());
    }

    #[test]
    fn a_stuck_button_fills_no_gallery() {
        let folder = tempfile::tempdir().unwrap();
        let gallery = Gallery::start(folder.path().to_owned()).unwrap();
        let admitted = (0..400).filter(|at| gallery.admit_at("glasses", *at)).count();
        assert_eq!(admitted, PER_MINUTE_MAX);
        assert!(gallery.admit_at("others", 400), "each device for itself");
        assert!(gallery.admit_at("glasses", MINUTE_US + 400));
    }
}
