//! `lorgnette firmware`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;

use crate::{
    config::Config,
    control::{Answer, Request, client::ask_within, firmware::FirmwareRequest},
    firmware::{
        Scope, Stage,
        facts::{DeviceFacts, Facts, RolloutFacts, Transfer},
    },
    text::in_one_line,
    units::number_of,
};

/// How long the gateway may take: 16 MiB are read, hashed, and written to a slow card.
const WAIT: Duration = Duration::from_secs(120);

/// Keep firmware for glasses, and roll it out.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Keep an image that its maker has signed. The gateway reads both files itself.
    Add {
        /// The signed manifest.
        manifest: PathBuf,
        /// The file that the manifest describes.
        image: PathBuf,
    },
    /// Show the images that are kept.
    List,
    /// Offer an image to glasses of its model: all, a share of them, or some. In place of the model's last roll-out.
    Rollout {
        /// The model, as the glasses name it.
        model: String,
        /// Version of the image.
        version: String,
        #[command(flatten)]
        scope: ScopeArguments,
        /// Also to glasses on which this image has failed before.
        #[arg(long)]
        again: bool,
    },
    /// Offer a model nothing more. What glasses have stored of an image stays.
    Pause {
        /// The model, as the glasses name it.
        model: String,
    },
    /// Remove an image, its roll-out, and what glasses have reported about it.
    Remove {
        /// The model, as the glasses name it.
        model: String,
        /// Version of the image.
        version: String,
    },
    /// Show roll-outs, and what each pair of glasses runs, is sent and has reported.
    Status {
        /// As one JSON object.
        #[arg(long)]
        json: bool,
    },
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct ScopeArguments {
    /// A share of the glasses, the same ones each time; a higher one has all of a lower one.
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=100))]
    percent: Option<u8>,
    /// Names or fingerprints of glasses, separated by commas.
    #[arg(long, value_delimiter = ',')]
    devices: Vec<String>,
    /// All glasses of the model.
    #[arg(long)]
    all: bool,
}

pub(super) fn run(config: &Config, arguments: Arguments) -> Result<()> {
    let request = match arguments.command {
        Command::Add { manifest, image } => {
            FirmwareRequest::Add { manifest: absolute(&manifest)?, image: absolute(&image)? }
        }
        Command::List => return state(config).map(|facts| list(&facts)),
        Command::Status { json: true } => {
            println!("{}", serde_json::to_string(&state(config)?)?);
            return Ok(());
        }
        Command::Status { json: false } => return state(config).map(|facts| status(&facts)),
        Command::Rollout { model, version, scope, again } => {
            let scope = match scope {
                ScopeArguments { percent: Some(percent), .. } => Scope::Percent(percent),
                ScopeArguments { all: true, .. } => Scope::All,
                ScopeArguments { devices, .. } => Scope::Devices(devices),
            };
            FirmwareRequest::RollOut { model, version, scope, again }
        }
        Command::Pause { model } => FirmwareRequest::Pause { model },
        Command::Remove { model, version } => FirmwareRequest::Remove { model, version },
    };
    match ask_within(&config.data_dir, &Request::Firmware { request }, WAIT)? {
        Answer::Done { message } => println!("{message}"),
        answer => bail!("unexpected answer: {answer:?}"),
    }
    Ok(())
}

/// The gateway has another working folder.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).with_context(|| format!("reading {}", path.display()))
}

fn state(config: &Config) -> Result<Facts> {
    match ask_within(&config.data_dir, &Request::Firmware { request: FirmwareRequest::State }, WAIT)? {
        Answer::Firmware { firmware } => Ok(*firmware),
        answer => bail!("unexpected answer: {answer:?}"),
    }
}

fn list(facts: &Facts) {
    if facts.images.is_empty() {
        println!("no images; `lorgnette firmware add` keeps one");
    }
    for image in &facts.images {
        let (least, most) = image.hardware;
        let from = image.version_min.as_ref().map_or_else(String::new, |version| format!(", from {version} on"));
        let down = if image.downgrade { ", also from later versions" } else { "" };
        let unsigned = if image.unsigned { ", of no maker that is configured: nobody is offered it" } else { "" };
        let id: String = image.hash.chars().take(16).collect();
        let model = in_one_line(&image.model);
        println!(
            "{model}  {}  {} bytes  {id}  hardware {least} to {most}{from}{down}{unsigned}",
            image.version, image.bytes
        );
    }
}

fn status(facts: &Facts) {
    if facts.rollouts.is_empty() {
        println!("no roll-outs");
    }
    facts.rollouts.iter().for_each(rollout);
    facts.devices.iter().for_each(device);
}

fn rollout(rollout: &RolloutFacts) {
    let scope = match &rollout.scope {
        Scope::All => "all".to_owned(),
        Scope::Percent(percent) => format!("{percent} percent"),
        Scope::Devices(devices) => number_of(devices.len(), "device"),
    };
    let stage = match &rollout.stage {
        Stage::Running => "running".to_owned(),
        Stage::Paused => "paused".to_owned(),
        Stage::Stopped(why) => format!("stopped: {why}"),
    };
    let counts = rollout.counts;
    println!(
        "{}  {}  to {scope}  {stage}  (applied {}, verified {}, failed {})",
        in_one_line(&rollout.model),
        rollout.version,
        counts.applied,
        counts.verified,
        counts.bad
    );
}

fn device(device: &DeviceFacts) {
    let away = if device.connected { "" } else { ", away" };
    let name = in_one_line(&device.name);
    let transfer = device.transfer.as_ref().map_or_else(String::new, transfer);
    println!("  {name}  runs {}{away}{transfer}", in_one_line(&device.version));
    for (version, report) in &device.reports {
        let at = jiff::Timestamp::from_millisecond(report.wall_ms).unwrap_or_default();
        let why = report.failure.as_ref().map_or_else(String::new, |why| format!(" ({})", in_one_line(why)));
        println!("    {version}: {}{why}, {at:.0}", report.outcome.name());
    }
}

fn transfer(transfer: &Transfer) -> String {
    let Transfer { version, stored, bytes, refused } = transfer;
    match refused {
        Some(answer) => format!(", refused {version}: {}", in_one_line(answer)),
        None => format!(", has {stored} of {bytes} bytes of {version}"),
    }
}
