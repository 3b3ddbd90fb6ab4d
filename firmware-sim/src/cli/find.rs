//! Which gateway the glasses connect to, where nobody gives its address: one that has invited them, or one that is found on
//! the network.

use std::io::{IsTerminal as _, stdin};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use firmware_sim::discovery::{Found, browse, fingerprint, listed};
use firmware_sim::identity::{Identity, Trust};
use firmware_sim::invitation::Invitation;
use firmware_sim::transport::Target;

use super::options::Common;

/// The gateway of an invitation.
pub(super) fn invited(common: &mut Common, invitation: &Invitation) -> Result<()> {
    let identity = Identity::load_or_make(&common.state())?;
    ensure!(
        identity.pinned().is_none(),
        "these glasses are paired already; remove gateway.pub from {} to pair them anew",
        common.state().display()
    );
    let Invitation { targets, fingerprint, code, name } = invitation.clone();
    common.found = wanted(common, targets);
    ensure!(!common.found.is_empty(), "the invitation has no address for this transport");
    if !common.json && !common.quiet {
        eprintln!("invited by {name}, gateway {fingerprint}");
    }
    common.trust = Trust::Invitation(fingerprint, code);
    Ok(())
}

/// The gateway at the given address; or if wanted, one that is found, and that the glasses can know.
pub(super) async fn gateway(common: &mut Common) -> Result<()> {
    if let Some(typed) = &common.gateway_key {
        common.trust = Trust::Key(known(typed)?);
    }
    if !common.discover {
        return Ok(());
    }
    let look = Duration::from_secs(common.look_s);
    let identity = Identity::load_or_make(&common.state())?.trusting(common.trust.clone());
    let expected = match identity.expected() {
        Some(expected) => expected,
        None => ask(look).await?,
    };
    let found = browse(look, |one| one.fingerprint == expected).await?;
    let targets = found.iter().filter(|one| one.fingerprint == expected).flat_map(|one| one.targets.clone());
    common.found = wanted(common, targets.collect());
    ensure!(!common.found.is_empty(), "gateway {expected} is not found on the network{}", others(&found));
    common.trust = Trust::Key(expected);
    Ok(())
}

fn others(found: &[Found]) -> String {
    if found.is_empty() { String::new() } else { format!("; found are:\n{}", listed(found)) }
}

fn known(typed: &str) -> Result<String> {
    fingerprint(typed).with_context(|| format!("`{typed}` is no fingerprint: it has 32 hexadecimal digits"))
}

/// Those over the wanted transport, if one is wanted.
fn wanted(common: &Common, targets: Vec<Target>) -> Vec<Target> {
    let is_wanted = |target: &Target| common.scheme().is_none_or(|scheme| target.scheme == scheme);
    targets.into_iter().filter(is_wanted).collect()
}

/// Glasses that are not paired cannot know which one of the network's gateways is theirs: a person compares its fingerprint
/// with what the gateway itself prints.
async fn ask(look: Duration) -> Result<String> {
    let found = browse(look, |_| true).await?;
    ensure!(!found.is_empty(), "no gateway is found on the network; give its address with --gateway");
    let shown = listed(&found);
    if !stdin().is_terminal() {
        bail!(
            "these glasses are not paired, and anybody in the network can say to be a gateway. Compare the fingerprint with what \
             `lorgnette serve` prints behind `gateway`, and give it with --gateway-key. Found are:\n{shown}"
        );
    }
    eprintln!("found on the network:\n{shown}\nType the fingerprint that `lorgnette serve` prints behind `gateway`:");
    let typed = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        stdin().read_line(&mut line).map(|_| line)
    });
    let typed = known(typed.await??.trim())?;
    ensure!(found.iter().any(|one| one.fingerprint == typed), "none of them has this fingerprint");
    Ok(typed)
}
