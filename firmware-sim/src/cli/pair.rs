//! `lorgnette-sim pair`.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use firmware_sim::invitation::Invitation;
use firmware_sim::transport::Target;
use firmware_sim::{Glasses, Seen};

use super::options::Common;

/// Pair the glasses.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The text of an invitation, as if the glasses had scanned its picture (`lorgnette devices invite`).
    #[arg(long, conflicts_with_all = ["gateway", "discover", "gateway_key"])]
    pub(super) invite: Option<Invitation>,
}

pub(super) async fn run(common: &Common) -> Result<()> {
    let mut options = common.options()?;
    options.reconnect = false;
    let glasses = connect(options, common).await?;
    if !common.json {
        let events = glasses.log().since(0);
        let welcome = events.iter().find_map(|event| match &event.seen {
            Seen::Welcome { gateway, user, .. } => Some(format!("welcomed by {gateway}; the glasses belong to {user}")),
            _ => None,
        });
        println!("{}", welcome.unwrap_or_default());
    }
    glasses.goodbye().await;
    Ok(())
}

/// As [`connect_at`]; where several addresses were found, at the first one that leads to the gateway.
pub(super) async fn connect(options: firmware_sim::Options, common: &Common) -> Result<Glasses> {
    Ok(reach(options, common).await?.0)
}

/// As [`connect`], with that address.
pub(super) async fn reach(mut options: firmware_sim::Options, common: &Common) -> Result<(Glasses, Target)> {
    let mut others = common.found.iter().skip(1);
    loop {
        let error = match connect_at(options.clone(), common.json).await {
            Ok(glasses) => return Ok((glasses, options.target)),
            Err(error) => error,
        };
        match others.next() {
            Some(target) if is_elsewhere(&error) => {
                eprintln!("{error:#}; trying {target}");
                options.target.clone_from(target);
            }
            _ => return Err(error),
        }
    }
}

/// Whether the gateway may be at another address.
fn is_elsewhere(error: &anyhow::Error) -> bool {
    use firmware_sim::{Error, handshake};
    match error.downcast_ref::<Error>() {
        Some(Error::Transport(_)) => true,
        Some(Error::Handshake(error)) => !matches!(error, handshake::Error::Rejected { .. }),
        _ => false,
    }
}

/// Connects, and prints the pairing code as soon as the glasses show it: a person or a script waits for that line.
pub(super) async fn connect_at(options: firmware_sim::Options, json: bool) -> Result<Glasses> {
    let target = options.target.clone();
    let mut glasses = Glasses::start(options)?;
    let log = glasses.log().clone();
    let announce = async move {
        let (mut next, mut announced) = (0, None);
        loop {
            let (event, behind) = log.find(next, |event| matches!(event.seen, Seen::PairingCode { .. })).await;
            next = behind;
            if json {
                super::show::json_line(&event);
            } else if let Seen::PairingCode { code, fingerprint, expires_s, .. } = event.seen {
                // The gateway repeats it after each attempt to enter a code.
                if announced.as_ref() == Some(&(code.clone(), fingerprint.clone())) {
                    continue;
                }
                announced = Some((code.clone(), fingerprint.clone()));
                let command = match &code {
                    Some(code) => format!("lorgnette devices pair {code}"),
                    None => format!("lorgnette devices pair --fingerprint {fingerprint}"),
                };
                match code {
                    Some(code) => println!("pairing code {code}"),
                    None => println!("pairing fingerprint {fingerprint}"),
                }
                eprintln!("to pair these glasses, type at the gateway within {expires_s} s: {command}");
            }
            // A closed pipe does not stop the pairing.
            drop(std::io::stdout().flush());
        }
    };
    let fingerprint = glasses.fingerprint().to_owned();
    let announcing = tokio::spawn(announce);
    let outcome = glasses.welcomed().await;
    announcing.abort();
    outcome.with_context(|| format!("no session at {target} (glasses {fingerprint})"))?;
    Ok(glasses)
}
