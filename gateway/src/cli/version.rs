//! `lorgnette version`.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{
    control::{Answer, Request, client},
    environment,
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
    println!("configuration: valid ({})", used(path, environment::installed()));
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

/// Which configuration is used; `installed`: the one of an installed gateway, which a program elsewhere does not use by itself.
fn used(path: Option<&Path>, installed: Option<&Path>) -> String {
    match (path, installed) {
        (Some(path), _) => path.display().to_string(),
        (None, Some(installed)) => {
            format!("the defaults; the installed gateway's with --config {}", installed.display())
        }
        (None, None) => "the defaults".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_which_configuration_is_used_and_how_to_use_the_installed_one() {
        let (own, installed) = (Some(Path::new("own.toml")), Some(Path::new("/etc/x.toml")));
        assert_eq!(used(own, installed), "own.toml");
        assert_eq!(used(None, installed), "the defaults; the installed gateway's with --config /etc/x.toml");
        assert_eq!(used(None, None), "the defaults");
    }
}
