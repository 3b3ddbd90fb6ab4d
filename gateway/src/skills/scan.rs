//! Scans the folders, within limits.

use std::{
    collections::BTreeMap,
    env, fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Component, Path, PathBuf},
    time::UNIX_EPOCH,
};

use super::front_matter::{self, Head};

/// Maximum depth of folders below a configured one: by author, by subject, the skill itself.
const DEPTH_MAX: usize = 4;
/// Maximum number of skills: a longer index is not read.
pub(super) const SKILLS_MAX: usize = 200;
/// Maximum bytes of a `SKILL.md` or another file: the limit of a tool's answer.
pub(super) const FILE_BYTES_MAX: usize = tools::limits::CONTENT_BYTES_MAX;
/// Maximum entries of all folders that are scanned: the limit is reported to an operator who names a whole disk.
const ENTRIES_MAX: usize = 10_000;

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";

/// A skill that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its front matter.
    pub head: Head,
    /// The text after the front matter.
    pub body: String,
    /// Where its text and its files are.
    pub folder: PathBuf,
    /// Whether the programs that it needs are installed.
    pub has_programs: bool,
}

/// The result of a scan.
#[derive(Default)]
pub(super) struct Places {
    files: Vec<PathBuf>,
    problems: Vec<String>,
    entries: usize,
}

/// All skill files, in the order of the folders and of their names.
pub(super) fn places(folders: &[PathBuf]) -> Places {
    let mut places = Places::default();
    for folder in folders {
        // A configured folder may be a link; entries below it may not.
        if folder.is_dir() {
            walk(folder, 0, &mut places);
        }
    }
    places
}

fn walk(folder: &Path, depth: usize, places: &mut Places) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            places.problems.push(format!("{}:1: cannot be read: {error}", folder.display()));
            return;
        }
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).take(ENTRIES_MAX).collect();
    paths.sort();
    let is_skill = paths.iter().any(|path| path.file_name().is_some_and(|name| name == FILE));
    for path in paths {
        places.entries += 1;
        if places.entries == ENTRIES_MAX {
            places
                .problems
                .push(format!("{}:1: more than {ENTRIES_MAX} entries; name fewer folders", folder.display()));
        }
        if places.entries >= ENTRIES_MAX {
            return;
        }
        let Ok(meta) = path.symlink_metadata() else { continue };
        let is_file = path.file_name().is_some_and(|name| name == FILE);
        if meta.is_symlink() {
            if is_file || path.is_dir() {
                places.problems.push(format!("{}:1: a symbolic link is not followed; copy it", path.display()));
            }
        } else if meta.is_file() && is_file {
            match places.files.len() {
                SKILLS_MAX => places.problems.push(format!("{}:1: more than {SKILLS_MAX} skills", path.display())),
                count if count < SKILLS_MAX => places.files.push(path),
                _ => {}
            }
        } else if meta.is_dir() && !is_skill && depth + 1 < DEPTH_MAX {
            // Folders within a skill hold its files, not further skills.
            walk(&path, depth + 1, places);
        }
    }
}

/// A hash that changes when a file is added, removed or changed.
pub(super) fn stamp(places: &Places) -> u64 {
    let mut hasher = DefaultHasher::new();
    places.problems.hash(&mut hasher);
    for file in &places.files {
        file.hash(&mut hasher);
        if let Ok(meta) = file.symlink_metadata() {
            let changed = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            (meta.len(), changed.map_or(0, |since| since.as_nanos())).hash(&mut hasher);
        }
    }
    // Zero means that nothing was read yet.
    hasher.finish().max(1)
}

/// Reads the files: the skills by name, and the problems, each with file and line.
pub(super) fn read(places: Places) -> (Vec<Found>, Vec<String>) {
    let mut problems = places.problems;
    let mut skills: BTreeMap<String, Found> = BTreeMap::new();
    for path in places.files {
        let Some(folder) = path.parent() else { continue };
        let Some(text) = file_of(folder, FILE) else {
            let what = format!("is not text of at most {FILE_BYTES_MAX} bytes");
            problems.push(format!("{}:1: {what}", path.display()));
            continue;
        };
        let head = match front_matter::parse(&text) {
            Ok(head) => head,
            Err(problem) => {
                problems.push(format!("{}:{}: {}", path.display(), problem.line, problem.what));
                continue;
            }
        };
        if let Some(other) = skills.get(&head.name) {
            let what = format!("the skill `{}` is in {} already", head.name, other.folder.display());
            problems.push(format!("{}:1: {what}", path.display()));
            continue;
        }
        let has_programs = head.programs.iter().all(|program| is_program(program));
        let (body, folder) = (body_of(&text), folder.to_path_buf());
        skills.insert(head.name.clone(), Found { head, body, folder, has_programs });
    }
    (skills.into_values().collect(), problems)
}

/// The text after the front matter.
pub(crate) fn body_of(text: &str) -> String {
    let mut marks = 0;
    let mut body = String::new();
    for line in text.split_inclusive('\n') {
        if marks >= 2 {
            body.push_str(line);
        } else if line.trim_end().trim_start_matches('\u{feff}') == "---" {
            marks += 1;
        }
    }
    body
}

/// A text file below a folder: without `..`, without a link on the path, and within the size limit.
pub(super) fn file_of(folder: &Path, file: &str) -> Option<String> {
    let relative = Path::new(file);
    let mut path = folder.to_path_buf();
    let mut steps = 0;
    for component in relative.components() {
        let Component::Normal(name) = component else { return None };
        path.push(name);
        steps += 1;
        // A link is refused whatever its target.
        if path.symlink_metadata().ok()?.is_symlink() {
            return None;
        }
    }
    let meta = path.symlink_metadata().ok()?;
    if steps == 0 || !meta.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    // One byte more shows that the file exceeds the limit.
    fs::File::open(&path).ok()?.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() > FILE_BYTES_MAX {
        return None;
    }
    String::from_utf8(bytes).ok()
}

fn is_program(name: &str) -> bool {
    let Some(path) = env::var_os("PATH") else { return false };
    let runs =
        |path: PathBuf| path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    env::split_paths(&path).any(|folder| runs(folder.join(name)))
}
