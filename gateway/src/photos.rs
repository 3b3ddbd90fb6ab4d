//! Photos that the wearer took, as files of the data folder.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use crate::clock;

/// Photos kept per user; the oldest goes first.
const KEPT_MAX: usize = 500;

/// Keeps a photo as `photos/USER/MILLISECONDS.EXT`.
///
/// # Errors
/// The folder cannot be written.
pub(crate) fn keep(data_dir: &Path, user: &str, mime: &str, bytes: &[u8]) -> Result<()> {
    let folder = folder_of(data_dir, user);
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let mut names: Vec<_> = fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    names.sort();
    for old in names.iter().take((names.len() + 1).saturating_sub(KEPT_MAX)) {
        fs::remove_file(old)?;
    }
    let extension = match mime {
        "image/jpeg" => "jpg",
        "image/png" => "png",
        _ => "bin",
    };
    let path = folder.join(format!("{:015}.{extension}", clock::wall_ms()));
    fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))
}

/// Removes all photos of a user.
///
/// # Errors
/// The folder cannot be removed.
pub(crate) fn erase(data_dir: &Path, user: &str) -> Result<()> {
    let folder = folder_of(data_dir, user);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", folder.display()))
        }
        _ => Ok(()),
    }
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
    let mut paths: Vec<_> = fs::read_dir(&folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

fn folder_of(data_dir: &Path, user: &str) -> PathBuf {
    data_dir.join("photos").join(file_name(user))
}

/// A user's name as a file name: what could leave the folder is escaped, so that no two users share one.
fn file_name(user: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        }
        erase(folder.path(), "nobody").unwrap();
    }
}
