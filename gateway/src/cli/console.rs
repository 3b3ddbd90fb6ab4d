//! `lorgnette console`: a one-time link to the console.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, bail};

use super::serve::page_addresses;
use crate::{
    config::Config,
    control::{Answer, Request, client::ask},
    identity::operators::Role,
};

/// Print a one-time link to the console of the running gateway. The person who opens it may do what you may: for people
/// who only look, use --viewer.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// For somebody who looks at the state of the gateway and changes nothing.
    #[arg(long)]
    viewer: bool,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let role = if arguments.viewer { Role::Viewer } else { Role::Operator };
    let Answer::ConsoleLink { path, web, expires_s } = ask(&config.data_dir, &Request::ConsoleLink { role })? else {
        bail!("unexpected answer");
    };
    let web: SocketAddr = web.parse().context("the gateway's address was not understood: is it another version?")?;
    let links: Vec<String> = page_addresses(web).into_iter().map(|address| format!("{address}{path}")).collect();
    if arguments.json {
        println!("{}", serde_json::json!({"links": links, "role": role.name(), "expires_s": expires_s}));
        return Ok(());
    }
    links.iter().for_each(|link| println!("{link}"));
    let one = if links.len() > 1 { "Open one of them" } else { "Open it" };
    eprintln!("{one} within {} minutes. It works once, and signs in as {}.", expires_s / 60, role.name());
    Ok(())
}
