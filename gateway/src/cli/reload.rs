//! `lorgnette reload`.

use anyhow::{Result, bail};

use crate::{
    config::Config,
    control::{Answer, Request, client::ask},
};

/// Have the running gateway read its configuration again. What can change changes for sessions that begin from then on; what
/// cannot is named. A file with errors changes nothing.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let Answer::Reloaded { reloaded } = ask(&config.data_dir, &Request::Reload)? else { bail!("unexpected answer") };
    if arguments.json {
        println!("{}", serde_json::to_string(&reloaded)?);
        return Ok(());
    }
    println!("{}", reloaded.told());
    Ok(())
}
