//! `lorgnette devices`.

use anyhow::{Result, bail};
use clap::Subcommand;

use crate::{
    config::Checked,
    control::{Answer, Request, client::ask},
};

/// List, pair, rename and revoke devices.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show paired devices and those that wait for pairing.
    List,
    /// Pair the glasses that show this code, or those with this key.
    Pair {
        /// The six digits on the glasses' display.
        code: Option<String>,
        /// For glasses without a display: the fingerprint of their key. Opens two minutes for them.
        #[arg(long, conflicts_with = "code")]
        fingerprint: Option<String>,
        /// Whom they belong to.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// What to call them; default: their model.
        #[arg(long, default_value = "", hide_default_value = true)]
        name: String,
    },
    /// Give a device another name.
    Rename {
        /// Name, fingerprint, or the beginning of it.
        device: String,
        /// The new name.
        name: String,
    },
    /// Shut a device out; a session of it ends at once.
    Revoke {
        /// Name, fingerprint, or the beginning of it.
        device: String,
    },
}

pub(super) fn run(config: &Checked, arguments: Arguments) -> Result<()> {
    let request = match arguments.command {
        Command::List => Request::Devices,
        Command::Pair { code: Some(code), user, name, .. } => Request::PairCode { code, user, name },
        Command::Pair { fingerprint: Some(fingerprint), user, name, .. } => {
            Request::PairFingerprint { fingerprint, user, name }
        }
        Command::Pair { .. } => bail!("give the code that the glasses show, or --fingerprint"),
        Command::Rename { device, name } => Request::Rename { device, name },
        Command::Revoke { device } => Request::Revoke { device },
    };
    match ask(&config.data_dir, &request)? {
        Answer::Done { message } => println!("{message}"),
        Answer::Devices { paired, waiting } => {
            if paired.is_empty() && waiting.is_empty() {
                println!("no devices; connect glasses to pair them");
            }
            for device in paired {
                let state = match (device.revoked, device.connected) {
                    (true, _) => "revoked",
                    (false, true) => "connected",
                    (false, false) => "away",
                };
                println!("{}  {:<9}  {}  ({}, user {})", device.device, state, device.name, device.model, device.user);
            }
            for device in waiting {
                let how = if device.shows_code { "shows a code" } else { "pair with --fingerprint" };
                println!("{}  waiting    {} ({how}, {} s left)", device.fingerprint, device.model, device.expires_s);
            }
        }
        answer => bail!("unexpected answer: {answer:?}"),
    }
    Ok(())
}
