//! `lorgnette-sim pair`.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use firmware_sim::{Glasses, Seen};

use super::options::Common;

pub(super) async fn run(common: &Common) -> Result<()> {
    let mut options = common.options()?;
    options.reconnect = false;
    let glasses = connect(options, common.json).await?;
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

/// Connects, and prints the pairing code as soon as the glasses show it: a person or a script waits for that line.
pub(super) async fn connect(options: firmware_sim::Options, json: bool) -> Result<Glasses> {
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
