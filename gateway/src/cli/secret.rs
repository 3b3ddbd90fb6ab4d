//! Secrets that a command is given in a file or on standard input: its arguments can be seen by everybody on the machine.

use std::{
    io::{BufRead as _, IsTerminal as _, Read as _},
    path::Path,
};

use anyhow::{Context as _, Result, anyhow};

use crate::private::read_private;

/// Longest key that is read.
pub(super) const KEY_BYTES_MAX: usize = 16 * 1024;

/// The first line of a file that only its owner may read, which has at most so many bytes.
///
/// # Errors
/// It cannot be read, is longer, is no text, or others may read it.
pub(super) fn of_file(file: &Path, bytes_max: usize) -> Result<String> {
    let bytes = read_private(file, bytes_max)?;
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("{} is no text", file.display()))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// A key: the first line of standard input. On a terminal, whoever types is told whose it is.
///
/// # Errors
/// It cannot be read.
pub(super) fn key_of_input(whose: &str) -> Result<String> {
    let input = std::io::stdin();
    if input.is_terminal() {
        eprintln!("The key of {whose}, then Enter:");
    }
    let mut line = String::new();
    input.lock().take(KEY_BYTES_MAX as u64).read_line(&mut line).context("the key cannot be read")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
