//! `lorgnette users`: all stored data of a user.

use std::{
    io::{BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
};

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;

use super::conversations::{ERASE_WAIT, number, records, told, words};
use crate::{
    config::Config,
    control::{Answer, Request, client, memory::MemoryRequest},
    text::quoted,
    units::number_of,
};

/// List users, export and erase everything of one.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show all users with stored data.
    List,
    /// Export all data of a user: one JSON object per line, photos in base64.
    Export {
        /// Name of the user.
        name: String,
        /// Output file, readable by its owner only; default: standard output.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Erase everything of a user from the disk: conversations, memory, notes, reminders, settings, photos, programs, records of calls.
    Erase {
        /// Name of the user.
        name: String,
        /// Also the pairings of the user's devices.
        #[arg(long)]
        devices: bool,
        /// Confirm: this cannot be undone.
        #[arg(long)]
        yes: bool,
    },
}

pub(super) fn run(config: &Config, arguments: Arguments) -> Result<()> {
    match arguments.command {
        Command::List => {
            for user in records(config, MemoryRequest::Users)? {
                println!("{}  {}", words(&user, "user"), number_of(number(&user, "devices"), "device"));
            }
            Ok(())
        }
        Command::Export { name, out } => export(config, name, out),
        Command::Erase { name, devices, yes } => {
            if !yes {
                bail!(
                    "this erases everything of {name} for good; `lorgnette users export {} --out FILE` keeps a copy, \
                     `--yes` goes on",
                    quoted(&name)
                );
            }
            let request = Request::Memory { request: MemoryRequest::EraseUser { user: name, devices } };
            told(client::ask_within(&config.data_dir, &request, ERASE_WAIT)?)
        }
    }
}

fn export(config: &Config, user: String, out: Option<PathBuf>) -> Result<()> {
    if !records(config, MemoryRequest::Users)?.iter().any(|known| words(known, "user") == user) {
        bail!("nothing is kept of {user}; `lorgnette users list` shows everybody");
    }
    let mut file = match &out {
        Some(path) => {
            let open = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
            Some(BufWriter::new(
                open.with_context(|| format!("making {}; a file that is there is not written over", path.display()))?,
            ))
        }
        None => None,
    };
    let mut result = Ok(());
    let mut is_whole = false;
    client::follow(&config.data_dir, &Request::Export { user }, |answer| {
        let Answer::Records { records } = answer else {
            is_whole = matches!(answer, Answer::Done { .. });
            return false;
        };
        match &mut file {
            Some(file) => result = records.iter().try_for_each(|record| writeln!(file, "{record}")),
            None => records.iter().for_each(|record| println!("{record}")),
        }
        result.is_ok()
    })?;
    result.and_then(|()| file.map_or(Ok(()), |mut file| file.flush())).context("writing the export")?;
    if !is_whole {
        bail!("the export broke off: it is not complete");
    }
    Ok(())
}
