//! The inputs that are committed: few and small ones that reach all that all inputs reach.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use super::{Folders, LIMITS, engine::Engine};
use crate::process::Failure;

/// Bytes of one input, and of all of a target: some thirty targets stay below 2 MiB.
const INPUT_BYTES_MAX: u64 = 16 * 1024;
const TARGET_BYTES_MAX: u64 = 60 * 1024;
/// Inputs of a target.
const INPUTS_MAX: usize = 250;
/// What an input's name begins with that once failed: it stays, whatever it reaches.
const FOUND: &str = "found-";

/// Replaces the committed inputs by a small set that reaches the same as they and the working ones; how many there are.
pub(super) fn keep(engine: &Engine, target: &str, folders: &Folders) -> Result<usize, Failure> {
    let merged = folders.working.with_extension("merged");
    drop(fs::remove_dir_all(&merged));
    fs::create_dir_all(&merged).map_err(Failure::at(&merged))?;
    let mut merge = engine.command(target);
    merge.args(LIMITS).arg("-set_cover_merge=1").args([&merged, &folders.committed, &folders.working]);
    let status = merge.stdout(Stdio::null()).stderr(Stdio::null()).status().map_err(Failure::at(&merged))?;
    if !status.success() {
        return Err(Failure::new(format!("the inputs of {target} could not be merged")));
    }
    let chosen = chosen(sized(&merged)?);
    for (_, old) in sized(&folders.committed)? {
        if !name(&old).starts_with(FOUND) {
            fs::remove_file(&old).map_err(Failure::at(&old))?;
        }
    }
    for file in &chosen {
        let copy = folders.committed.join(name(file));
        fs::copy(file, &copy).map_err(Failure::at(&copy))?;
    }
    fs::remove_dir_all(&merged).map_err(Failure::at(&merged))?;
    Ok(sized(&folders.committed)?.len())
}

/// Of too many or too large ones the smallest.
fn chosen(mut files: Vec<(u64, PathBuf)>) -> Vec<PathBuf> {
    files.retain(|(bytes, file)| *bytes <= INPUT_BYTES_MAX && !name(file).starts_with(FOUND));
    files.sort();
    files.truncate(INPUTS_MAX);
    let mut room = TARGET_BYTES_MAX;
    let fits = |(bytes, file): (u64, PathBuf)| {
        room = room.checked_sub(bytes)?;
        Some(file)
    };
    files.into_iter().map_while(fits).collect()
}

fn sized(folder: &Path) -> Result<Vec<(u64, PathBuf)>, Failure> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(Failure::at(folder))? {
        let entry = entry.map_err(Failure::at(folder))?;
        files.push((entry.metadata().map_err(Failure::at(folder))?.len(), entry.path()));
    }
    Ok(files)
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_are_kept_and_none_is_large() {
        let files = vec![(9, "c".into()), (INPUT_BYTES_MAX + 1, "d".into()), (3, "a".into()), (1, "found-x".into())];
        assert_eq!(chosen(files), [PathBuf::from("a"), "c".into()]);
        let many = (0..10).map(|number| (INPUT_BYTES_MAX, format!("{number}").into())).collect();
        assert_eq!(chosen(many).len() as u64, TARGET_BYTES_MAX / INPUT_BYTES_MAX);
    }
}
