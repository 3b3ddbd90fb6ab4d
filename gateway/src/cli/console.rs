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
    let answer = ask(&config.data_dir, &Request::ConsoleLink { role })?;
    let Answer::ConsoleLink { path, web, expires_s, certificate } = answer else {
        bail!("unexpected answer");
    };
    let web: SocketAddr = web.parse().context("the gateway's address was not understood: is it another version?")?;
    let links: Vec<String> = page_addresses(web).into_iter().map(|address| format!("{address}{path}")).collect();
    if arguments.json {
        let told = serde_json::json!({
            "links": links, "role": role.name(), "expires_s": expires_s, "certificate_sha256": certificate
        });
        println!("{told}");
        return Ok(());
    }
    links.iter().for_each(|link| println!("{link}"));
    let one = if links.len() > 1 { "Open one of them" } else { "Open it" };
    eprintln!("{one} within {} minutes. It works once, and signs in as {}.", expires_s / 60, role.name());
    if let Some(told) = to_compare(&links, certificate.as_deref()) {
        eprintln!("{told}");
    }
    Ok(())
}

/// How to know the gateway behind a link whose certificate browsers warn of.
fn to_compare(links: &[String], certificate: Option<&str>) -> Option<String> {
    let certificate = certificate.filter(|_| links.iter().any(|link| link.starts_with("https://")))?;
    Some(format!(
        "The browser warns at https://, because no authority knows the certificate. Go on only if it shows this SHA-256 \
         fingerprint of it (docs/console.md):\n{certificate}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_told_where_a_browser_warns() {
        let links = |all: &[&str]| all.iter().map(|link| (*link).to_owned()).collect::<Vec<_>>();
        let (here, both) =
            (links(&["http://127.0.0.1:1/c"]), links(&["http://127.0.0.1:1/c", "https://192.0.2.1:1/c"]));
        assert_eq!(to_compare(&here, Some("AB:CD")), None);
        assert_eq!(to_compare(&both, None), None, "an authority's");
        assert!(to_compare(&both, Some("AB:CD")).unwrap().ends_with("\nAB:CD"));
    }
}
