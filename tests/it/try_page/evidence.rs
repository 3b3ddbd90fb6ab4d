//! The data folder of a gateway, whose recordings are printed if its test fails: what the gateway heard, and when.

use std::{fs, path::Path, thread};

use tempfile::TempDir;

/// Lines of a recording that are printed, the newest.
const LINES_MAX: usize = 80;
/// What such a line is about.
const ABOUT: [&str; 5] = ["\"Voice\"", "Transcri", "UtteranceLost", "LinkLost", "\"Connected\""];
const CHARS_MAX: usize = 200;

pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if thread::panicking() {
            print_recordings(&self.path().join("gateway/recordings"));
        }
    }
}

fn print_recordings(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            print_recordings(&path);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| ABOUT.iter().any(|about| line.contains(about))).collect();
        eprintln!("recorded in {}:", path.display());
        for line in lines.iter().skip(lines.len().saturating_sub(LINES_MAX)) {
            eprintln!("  {}", line.chars().take(CHARS_MAX).collect::<String>());
        }
    }
}
