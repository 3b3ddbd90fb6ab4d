//! `lorgnette doctor`: what is wrong with a box, where, and what to do.

mod folder;
mod listening;
mod machine;
mod settings;
mod speed;

use std::{os::unix::net::UnixStream, path::PathBuf};

use anyhow::{Result, bail};
use serde::Serialize;

use crate::{
    config::{self, Config},
    control::{Answer, Request, client, socket_path, status::Status},
    private::FolderLock,
    text::in_one_line,
};
use speed::Speed;

/// Examine this box: configuration, models, data folder, keys, store, ports, clock, disk, kernel, and how many devices it
/// carries. Says of each fault what to do; ends with status 1 where there is any.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// One JSON object.
    #[arg(long)]
    json: bool,
    /// Do not measure the processor, which takes some seconds.
    #[arg(long)]
    fast: bool,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Level {
    /// The gateway does not start, loses data, or does not work.
    Fault,
    /// It works, and may fail some day, or part of it does not work.
    Warning,
    /// Something to know.
    Note,
    /// All is well.
    Ok,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    /// What was looked at.
    check: &'static str,
    /// What is the case, and where.
    what: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

/// All findings.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, check: &'static str, what: impl Into<String>) {
        self.0.push(Finding { level: Level::Ok, check, what: what.into(), remedy: None });
    }

    fn add(&mut self, level: Level, check: &'static str, what: impl Into<String>, remedy: impl Into<String>) {
        self.0.push(Finding { level, check, what: what.into(), remedy: Some(remedy.into()) });
    }

    fn fault(&mut self, check: &'static str, what: impl Into<String>, remedy: impl Into<String>) {
        self.add(Level::Fault, check, what, remedy);
    }

    fn count(&self, level: Level) -> usize {
        self.0.iter().filter(|finding| finding.level == level).count()
    }
}

/// Who uses the data folder.
enum Use {
    /// Nobody; as long as this lives.
    Nobody(#[expect(dead_code, reason = "held, and so locked")] FolderLock),
    /// There is no folder yet, or it cannot be used.
    NoFolder,
    /// A gateway that answers.
    Gateway(Box<Status>),
    /// A process that has the lock and does not answer.
    Silent(String),
}

#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    findings: &'a [Finding],
    #[serde(skip_serializing_if = "Option::is_none")]
    speed: Option<Speed>,
}

pub(super) fn run(file: Option<PathBuf>, arguments: &Arguments) -> Result<()> {
    let mut findings = Findings::default();
    let mut measured = None;
    match config::load(file.as_deref()) {
        Err(problems) => {
            for problem in problems {
                let remedy = "correct it; `lorgnette check --example` explains every key. The rest was not examined";
                findings.fault("configuration", problem.to_string(), remedy);
            }
        }
        Ok(config) => {
            let shown = file.map_or_else(|| "the defaults".to_owned(), |file| file.display().to_string());
            findings.ok("configuration", format!("{shown} can be read, and every value is allowed"));
            measured = examine(&config, arguments.fast, &mut findings)?;
        }
    }
    machine::examine_kernel(&mut findings);
    findings.0.sort_by_key(|finding| finding.level);
    if arguments.json {
        let report = Report { version: env!("CARGO_PKG_VERSION"), findings: &findings.0, speed: measured };
        println!("{}", serde_json::to_string(&report)?);
    } else {
        findings.0.iter().for_each(show);
        if let Some(speed) = &measured {
            println!("{speed}");
        }
    }
    match (findings.count(Level::Fault), findings.count(Level::Warning)) {
        (0, 0) => Ok(()),
        (0, warnings) => {
            eprintln!("{warnings} warning(s), no fault");
            Ok(())
        }
        (faults, warnings) => bail!("{faults} fault(s), {warnings} warning(s)"),
    }
}

fn show(finding: &Finding) {
    let level = match finding.level {
        Level::Fault => "FAULT",
        Level::Warning => "warning",
        Level::Note => "note",
        Level::Ok => "ok",
    };
    println!("{level:<8} {:<14} {}", finding.check, in_one_line(&finding.what));
    if let Some(remedy) = &finding.remedy {
        println!("{:<8} {:<14} → {}", "", "", in_one_line(remedy));
    }
}

/// Everything that depends on the configuration.
fn examine(config: &Config, fast: bool, findings: &mut Findings) -> Result<Option<Speed>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    settings::examine(config, &runtime, findings);
    let are_there = settings::examine_models(config, findings);
    let used_by = used_by(config);
    folder::examine(config, &used_by, findings);
    listening::examine(config, &used_by, findings);
    machine::examine(config, &used_by, findings);
    if fast || !are_there {
        return Ok(None);
    }
    match speed::measure(config) {
        Ok(speed) => Ok(Some(speed)),
        Err(error) => {
            findings.fault("speed", format!("{error:#}"), "run `lorgnette models verify`");
            Ok(None)
        }
    }
}

fn used_by(config: &Config) -> Use {
    match FolderLock::try_take(&config.data_dir) {
        Ok(Some(lock)) => Use::Nobody(lock),
        Err(_) => Use::NoFolder,
        Ok(None) => match client::ask(&config.data_dir, &Request::Status) {
            Ok(Answer::Status { status }) => Use::Gateway(status),
            Ok(other) => Use::Silent(format!("it answers something else: {other:?}")),
            Err(error) => {
                let socket = UnixStream::connect(socket_path(&config.data_dir));
                Use::Silent(socket.err().map_or_else(|| format!("{error:#}"), |error| error.to_string()))
            }
        },
    }
}
