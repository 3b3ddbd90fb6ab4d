//! `lorgnette version`.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{
    control::{Answer, Request, client},
    upgrade::Version,
};

/// Show the versions of this program and of its formats.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Check whether this program can replace the gateway that runs: device protocol, store and configuration. Nothing is
    /// changed.
    #[arg(long)]
    check: bool,
    /// One JSON object.
    #[arg(long, conflicts_with = "check")]
    json: bool,
}

pub(super) fn run(path: Option<&Path>, arguments: &Arguments) -> Result<()> {
    let own = Version::own();
    if arguments.json {
        println!("{}", serde_json::to_string(&own)?);
        return Ok(());
    }
    println!("lorgnette {}, device protocol {}, store {}", own.version, own.wire, own.store);
    if arguments.check { check(path, &own) } else { Ok(()) }
}

fn check(path: Option<&Path>, own: &Version) -> Result<()> {
    let config = super::load(path.map(Path::to_owned))?;
    println!("configuration: valid ({})", path.map_or("the defaults".into(), Path::to_string_lossy));
    let Answer::Version { version: running, .. } = client::ask(&config.data_dir, &Request::Version)? else {
        bail!("unexpected answer");
    };
    println!("running: lorgnette {}, device protocol {}, store {}", running.version, running.wire, running.store);
    if let Some(why) = running.cannot_be_replaced_by(own) {
        bail!("{why}");
    }
    println!("`lorgnette upgrade` can replace it without dropping a session");
    running.changes_for_good(own).into_iter().for_each(|change| println!("but {change}: copy the data folder before"));
    Ok(())
}
