//! `lorgnette-sim firmware`: what a maker of glasses does, and glasses that are updated.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Subcommand;
use firmware_sim::Seen;
use firmware_sim::firmware::maker::{self, Wanted};
use firmware_sim::identity::{hex, random_bytes, read_key, write_new_private};

use super::options::Common;
use super::{pair, show};

/// Sign firmware, and take it.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

impl Arguments {
    /// Whether it plays glasses.
    pub(super) fn has_glasses(&self) -> bool {
        matches!(self.command, Command::Run { .. })
    }
}

#[derive(Subcommand)]
enum Command {
    /// Make the key of a maker, and print its public half. If the file is there, only print it.
    Key {
        /// File of the private key, readable by its owner only.
        file: PathBuf,
    },
    /// Sign an image.
    Sign(Sign),
    /// Connect glasses with --flash, take what is offered, and end when its outcome is reported.
    Run {
        /// Seconds to wait for an outcome.
        #[arg(long, default_value_t = 600)]
        wait_s: u64,
    },
}

#[derive(clap::Args)]
struct Sign {
    /// The image; one that begins with the words `does not boot` does not start on simulated glasses.
    image: PathBuf,
    /// File of the private key.
    #[arg(long)]
    key: PathBuf,
    /// The model for which it is, as the glasses name it.
    #[arg(long = "for")]
    model: String,
    /// Its version, such as 1.2.3.
    #[arg(long = "as")]
    version: String,
    /// Lowest version from which glasses may change to it.
    #[arg(long, default_value = "")]
    from: String,
    /// Lowest revision of the hardware.
    #[arg(long, default_value_t = 0)]
    hardware_min: u16,
    /// Highest revision of the hardware.
    #[arg(long, default_value_t = u16::MAX)]
    hardware_max: u16,
    /// Glasses may change to it from a later version.
    #[arg(long)]
    downgrade: bool,
    /// File of the signed manifest.
    #[arg(long)]
    out: PathBuf,
}

pub(super) async fn run(common: &Common, arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Key { file } => {
            let seed = match read_key(file)? {
                Some(seed) => seed,
                None => {
                    let seed = random_bytes()?;
                    write_new_private(file, &hex(&seed))?;
                    seed
                }
            };
            println!("{}", hex(&maker::public(seed)));
            Ok(())
        }
        Command::Sign(wanted) => sign(wanted),
        Command::Run { wait_s } => take(common, Duration::from_secs(*wait_s)).await,
    }
}

fn sign(arguments: &Sign) -> Result<()> {
    let key = read_key(&arguments.key)?;
    let seed = key.with_context(|| format!("{} is not there; `firmware key` makes it", arguments.key.display()))?;
    let image = std::fs::read(&arguments.image).with_context(|| format!("reading {}", arguments.image.display()))?;
    let wanted = Wanted {
        model: arguments.model.clone(),
        hardware: (arguments.hardware_min, arguments.hardware_max),
        version: arguments.version.clone(),
        version_min: arguments.from.clone(),
        downgrade: arguments.downgrade,
    };
    let manifest = maker::sign(seed, &image, &wanted)?;
    std::fs::write(&arguments.out, manifest).with_context(|| format!("writing {}", arguments.out.display()))
}

/// Connects, and shows what happens until the outcome of an update is reported.
async fn take(common: &Common, wait: Duration) -> Result<()> {
    let options = common.options()?;
    ensure!(options.updates.is_some(), "--flash names the file for the firmware, and --maker-key who signs it");
    let glasses = pair::connect(options, common).await?;
    let (log, style) = (glasses.log().clone(), show::Style::detect());
    let mut next = 0;
    // The report about an update before this one is not waited for.
    let mut is_new = false;
    let outcome = tokio::time::timeout(wait, async {
        loop {
            let (event, behind) = log.find(next, |_| true).await;
            next = behind;
            if common.json {
                show::json_line(&event);
            } else if let Some(line) = show::line(style, &event, None).filter(|_| !common.quiet) {
                println!("{line}");
            }
            match event.seen {
                Seen::FirmwareOffered { .. } => is_new = true,
                Seen::PowerLost { stored } => bail!("the power is lost with {stored} bytes stored"),
                Seen::FirmwareReported { outcome, failure, version } if is_new && outcome != "verified" => {
                    ensure!(outcome == "applied", "{outcome} ({failure}); {version} runs");
                    return Ok(());
                }
                Seen::Rejected { message, .. } => bail!("rejected: {message}"),
                _ => {}
            }
        }
    });
    let outcome = outcome.await.with_context(|| format!("no outcome within {} s", wait.as_secs()))?;
    if outcome.is_ok() {
        glasses.goodbye().await;
    }
    outcome
}
