//! `lorgnette doctor`: what is wrong with a box, where, and what to do.

mod speed;

use std::path::PathBuf;

use anyhow::{Result, bail};
use serde::Serialize;

use crate::{
    config::Config,
    doctor::{self, Use},
    findings::{Finding, Findings, Level},
    text::in_one_line,
    units::number_of,
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
    if let Some(config) = doctor::configuration(file.as_deref(), &mut findings) {
        let are_there = doctor::examine(&config, &Use::of(&config), &mut findings)?;
        measured = (are_there && !arguments.fast).then(|| measure(&config, &mut findings)).flatten();
    }
    doctor::examine_kernel(&mut findings);
    findings.sort();
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
            eprintln!("{}, no fault", number_of(warnings, "warning"));
            Ok(())
        }
        (faults, warnings) => bail!("{}, {}", number_of(faults, "fault"), number_of(warnings, "warning")),
    }
}

fn show(finding: &Finding) {
    let level = match finding.level {
        Level::Fault => "FAULT",
        level => level.word(),
    };
    println!("{level:<8} {:<14} {}", finding.check, in_one_line(&finding.what));
    if let Some(remedy) = &finding.remedy {
        println!("{:<8} {:<14} → {}", "", "", in_one_line(remedy));
    }
}

fn measure(config: &Config, findings: &mut Findings) -> Option<Speed> {
    match speed::measure(config) {
        Ok(speed) => Some(speed),
        Err(error) => {
            findings.fault("speed", format!("{error:#}"), "run `lorgnette models verify`");
            None
        }
    }
}
