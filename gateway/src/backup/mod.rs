//! Backups: the state of a gateway in one encrypted file that is verified after it was written, and from there into an
//! empty data folder. docs/operate.md has the format.
//!
//! A backup is made of a snapshot: a folder in the data folder, with a copy of the store as it is at one moment, and the
//! other files. The gateway makes it, the command reads it; so the gateway never has the passphrase, and no wearer waits
//! for the encryption.

mod container;
mod left_out;
mod manifest;
mod recovery;
mod restore;
mod snapshot;

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::private::{self, sync_folder_of};
pub(crate) use container::{PASSPHRASE_BYTES_MAX, Passphrase};
pub(crate) use left_out::LeftOut;
pub(crate) use manifest::Manifest;
use manifest::gone;
pub(crate) use recovery::{discard, discard_left, ensure_restore_complete, recover};
pub(crate) use restore::{Restored, restore};
pub(crate) use snapshot::{Backups, Closed};

/// Files of a snapshot: the photos of 64 users are 32,000, and their programs' files half as many.
const FILES_MAX: usize = 200_000;
/// Folders below each other: the data folder has three, and those of programs' files.
const DEPTH_MAX: usize = 16;
/// Longest path within the data folder, in bytes: that of a program's file, in a folder with its user's name.
const PATH_BYTES_MAX: usize = 1024;
/// What pins the gateway to its devices: its own key, and the key and certificate of its connections. The store has the
/// other half, the pairings.
const DEVICE_KEYS: [&str; 3] = ["gateway.key", "tls-cert.pem", "tls-key.pem"];
/// The store's file, within a snapshot as within a data folder.
const STORE_FILE: &str = "store/data.mdb";
/// Bytes of a disk that stay free, for the gateway that writes to it.
const FREE_BYTES: u64 = 64 * 1024 * 1024;

/// Whether a path may stand in a manifest, as far as its text goes.
fn is_path_text(path: &str) -> bool {
    path.len() <= PATH_BYTES_MAX && !path.contains(char::is_control)
}

/// Whether the disk of a folder has room for so many bytes, and for those that stay free. One that does not say is tried.
///
/// # Errors
/// It has not.
fn check_room(folder: &Path, bytes: u64) -> Result<()> {
    let Ok(stat) = rustix::fs::statvfs(folder) else { return Ok(()) };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let wanted = bytes.saturating_add(FREE_BYTES);
    ensure!(
        free >= wanted,
        "{} MiB are needed and {} MiB are free on the disk of {}",
        wanted >> 20,
        free >> 20,
        folder.display()
    );
    Ok(())
}

/// Writes a backup of the snapshot in a data folder, and reads it back: decrypts it, and compares each file's checksum.
/// A file that is there is not written over. `left_out`: what the snapshot has not.
///
/// # Errors
/// The snapshot cannot be read, the file cannot be written, or it does not read as it was written. Then there is no file.
pub(crate) fn write(
    data_dir: &Path,
    file: &Path,
    passphrase: &Passphrase,
    (device_keys, left_out): (bool, LeftOut),
) -> Result<Manifest> {
    let stage = recovery::folder(data_dir);
    let snapshot = recovery::open(&stage).with_context(|| gone(recovery::STAGE))?;
    let manifest = Manifest::of(&stage, device_keys, left_out)?;
    if let Some(folder) = file.parent() {
        check_room(folder, manifest.bytes()).context("there is no room for the backup")?;
    }
    let mut part = file.as_os_str().to_owned();
    part.push(".part");
    let part = Path::new(&part);
    let written = write_part(&stage, part, &manifest, passphrase).and_then(|()| {
        // Removed meanwhile, it would have had some of its files only when the manifest was made, or none.
        ensure!(recovery::is_at(&snapshot, &stage).is_ok_and(|is| is), gone(recovery::STAGE));
        if file.exists() {
            bail!("{} is there now; a file that is there is not written over", file.display());
        }
        fs::rename(part, file).with_context(|| format!("renaming {}", part.display()))?;
        sync_folder_of(file)
    });
    if written.is_err() {
        // Whatever there is of it is no backup.
        drop(fs::remove_file(part));
    }
    written.map(|()| manifest)
}

fn write_part(stage: &Path, part: &Path, manifest: &Manifest, passphrase: &Passphrase) -> Result<()> {
    // What was interrupted left it; a link that somebody else has put there is not followed.
    match fs::remove_file(part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("removing {}", part.display()));
        }
        _ => {}
    }
    let opened = OpenOptions::new().write(true).create_new(true).mode(private::FILE_MODE).open(part);
    let out = opened.with_context(|| format!("making {}", part.display()))?;
    container::write(stage, manifest, out, passphrase)
        .and_then(|out| out.sync_all().context("syncing it"))
        .with_context(|| format!("writing {}", part.display()))?;
    let read = verify(part, passphrase).context("reading back what was written")?;
    if read != *manifest {
        bail!("what was read back is not what was written: the disk of {} may be broken", part.display());
    }
    Ok(())
}

/// Reads a backup to its end and checks everything in it, without keeping anything.
///
/// # Errors
/// It cannot be read: the text says whether the passphrase is wrong, or the file cut off, damaged, or of a newer version.
pub(crate) fn verify(file: &Path, passphrase: &Passphrase) -> Result<Manifest> {
    let input = fs::File::open(file).with_context(|| format!("opening {}", file.display()))?;
    container::read(input, passphrase, |_| Ok(()), |_| Ok(Box::new(io::sink())))
}

#[cfg(test)]
mod tests;
