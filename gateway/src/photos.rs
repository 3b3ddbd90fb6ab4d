//! Photos that the wearer took, as files of the data folder.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

use crate::clock;

/// Photos kept per user; the oldest goes first.
const KEPT_MAX: usize = 500;

/// Keeps a photo as `photos/USER/MILLISECONDS.EXT`.
///
/// # Errors
/// The folder cannot be written.
pub fn keep(data_dir: &Path, user: &str, mime: &str, bytes: &[u8]) -> Result<()> {
    let folder = data_dir.join("photos").join(file_name(user));
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

/// A user's name as a file name: what could leave the folder is replaced.
fn file_name(user: &str) -> String {
    user.chars().map(|c| if c.is_alphanumeric() || c == '-' || c == '_' { c } else { '_' }).collect()
}
