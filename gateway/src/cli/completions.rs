//! `lorgnette completions` and `lorgnette man`: files for shells and packages, made from the definitions of the commands.

use std::{
    fs,
    io::{ErrorKind, Write as _, stdout},
    path::PathBuf,
};

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;

/// Print the completions of a shell.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The shell that reads them.
    shell: clap_complete::Shell,
}

/// Write the man pages of all commands into a folder.
#[derive(clap::Args)]
pub(super) struct Man {
    /// The folder; it is made if it is not there.
    folder: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::Arguments::command(), "lorgnette", &mut text);
    match stdout().write_all(&text) {
        // Its reader has read enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("printing the completions"),
    }
}

pub(super) fn write_pages(arguments: &Man) -> Result<()> {
    let folder = &arguments.folder;
    let written = fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(super::Arguments::command(), folder).map(drop));
    written.with_context(|| format!("writing the man pages into {}", folder.display()))
}
