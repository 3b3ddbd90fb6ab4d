//! Reading recordings.

use std::{
    fs::{self, File},
    io::{self, BufRead as _, BufReader, ErrorKind, Read as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};
use gateway_core::recording::Entry;

use super::{About, ENDING, FOLDER, FORMAT, LINE_BYTES_MAX};

/// Entries of a recording that is read.
const ENTRIES_MAX: usize = 2_000_000;
/// How the line of an output begins that requests a turn, and those of an end.
const TURN: &str = "{\"output\":\"RequestTurn";

/// A recording, read.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) about: About,
    pub(crate) entries: Vec<Entry>,
    /// Whether its last line is cut off, as after a loss of power.
    pub(crate) is_cut: bool,
}

impl Recording {
    /// Reads a file.
    ///
    /// # Errors
    /// It is no recording, or damaged, with the line.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
        let mut lines = Lines(BufReader::new(file));
        let first = lines.next().transpose()?.context("it is empty")?;
        let about = about(&first).with_context(|| format!("{} is no recording", path.display()))?;
        let (mut entries, mut is_cut) = (Vec::new(), false);
        for (at, line) in lines.enumerate() {
            let (line, number) = (line?, at + 2);
            ensure!(entries.len() < ENTRIES_MAX, "{} has more than {ENTRIES_MAX} entries", path.display());
            match serde_json::from_str(&line) {
                Ok(entry) => entries.push(entry),
                Err(_) if !line.ends_with('\n') => is_cut = true,
                Err(error) => bail!("line {number} of {}: {error}", path.display()),
            }
        }
        ensure!(matches!(entries.first(), Some(Entry::Settings(_))), "line 2 of {}: no settings", path.display());
        Ok(Self { about, entries, is_cut })
    }
}

fn about(line: &str) -> Result<About> {
    let about: About = serde_json::from_str(line)?;
    ensure!(about.format == FORMAT, "its form is {}, and this program knows {FORMAT}", about.format);
    Ok(about)
}

/// Lines with their ends, none longer than is written.
struct Lines(BufReader<File>);

impl Iterator for Lines {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = String::new();
        let most = LINE_BYTES_MAX as u64 + 1;
        match self.0.by_ref().take(most).read_line(&mut line) {
            Ok(0) => None,
            Ok(bytes) if bytes as u64 == most && !line.ends_with('\n') => {
                Some(Err(anyhow::anyhow!("a line is longer than {LINE_BYTES_MAX} bytes")))
            }
            Ok(_) => Some(Ok(line)),
            Err(error) => Some(Err(error.into())),
        }
    }
}

/// A recording, as the list shows it.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) path: PathBuf,
    pub(crate) about: About,
    pub(crate) bytes: u64,
    /// Numbers of its turns, in their order.
    pub(crate) turns: Vec<u32>,
}

/// All recordings of a data folder, the latest first. What is none is left out.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn list(data_dir: &Path) -> Result<Vec<Listed>> {
    let folder = data_dir.join(FOLDER);
    let paths = paths(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut all: Vec<Listed> = paths.into_iter().filter_map(|path| listed(path).ok()).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.about.began_wall_ms));
    Ok(all)
}

fn listed(path: PathBuf) -> Result<Listed> {
    let file = File::open(&path)?;
    let bytes = file.metadata()?.len();
    let mut lines = Lines(BufReader::new(file));
    let about = about(&lines.next().transpose()?.context("it is empty")?)?;
    let mut turns: Vec<u32> = Vec::new();
    for line in lines {
        let line = line?;
        let turn = line.starts_with(TURN).then(|| turn_of(&line)).flatten();
        turns.extend(turn.filter(|turn| turns.last() != Some(turn)));
    }
    Ok(Listed { path, about, bytes, turns })
}

/// The number of the turn that an output is about, from its debug form.
pub(super) fn turn_of(output: &str) -> Option<u32> {
    let (_, rest) = output.split_once("Turn { id: ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The files of all users.
pub(super) fn paths(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let users = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        users => users?,
    };
    let mut paths = Vec::new();
    for user in users {
        let user = user?.path();
        if !user.is_dir() {
            continue;
        }
        let files = match fs::read_dir(user) {
            // The user was erased meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            files => files?,
        };
        for file in files {
            paths.push(file?.path());
        }
    }
    paths.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
    Ok(paths)
}
