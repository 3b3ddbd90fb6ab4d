//! Reads the files with definitions.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tools::{
    capabilities::{definition, offer::Offer},
    limits::CAPABILITY_BYTES_MAX,
};

/// Files of one folder: more are generated, and then the folder is the wrong one.
const FILES_MAX: usize = 128;

/// The definitions in a file, or in all files `*.json` of a folder, each with its file.
///
/// # Errors
/// All problems, each with its file.
pub(super) fn read(place: &Path) -> Result<Vec<(PathBuf, Offer)>, Vec<String>> {
    let about = |why: String| vec![format!("{}: {why}", place.display())];
    let found = fs::metadata(place).map_err(|error| about(error.to_string()))?;
    if !found.is_dir() {
        return read_file(place).map_err(about);
    }
    let (mut offers, mut problems) = (Vec::new(), Vec::new());
    for file in files(place).map_err(about)? {
        match read_file(&file) {
            Ok(found) => offers.extend(found),
            Err(why) => problems.push(format!("{}: {why}", file.display())),
        }
    }
    if problems.is_empty() { Ok(offers) } else { Err(problems) }
}

/// The files of a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if !is_hidden && path.extension().is_some_and(|ending| ending == "json") && path.is_file() {
            files.push(path);
        }
        if files.len() > FILES_MAX {
            return Err(format!("more than {FILES_MAX} files; name a folder that has only definitions"));
        }
    }
    if files.is_empty() {
        return Err("has no file *.json; put a definition there, or remove the reference".to_owned());
    }
    files.sort();
    Ok(files)
}

fn read_file(file: &Path) -> Result<Vec<(PathBuf, Offer)>, String> {
    let found = fs::metadata(file).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("is no file".to_owned());
    }
    let bytes = found.len();
    if bytes > CAPABILITY_BYTES_MAX as u64 {
        return Err(format!("{bytes} bytes; at most {CAPABILITY_BYTES_MAX} are accepted: make several files"));
    }
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let variable = |name: &str| std::env::var(name).ok();
    let definitions = definition::read_text(&text).map_err(|error| error.to_string())?;
    let offer =
        |definition| Ok((file.to_owned(), Offer::new(definition, &variable).map_err(|error| error.to_string())?));
    definitions.into_iter().map(offer).collect()
}
