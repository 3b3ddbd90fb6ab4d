//! Judges a gateway by PROTOCOL.md: each check makes connections of its own, does one thing, and looks at what comes back.
//!
//! The glasses must be paired with the gateway before. Checks that need what a gateway may leave out (resume, speech) say so
//! instead of failing.

mod handshake;
mod probe;
mod session;

use std::path::PathBuf;

use futures_util::future::BoxFuture;

use self::probe::Probe;
use crate::network::Network;
use crate::options::Options;
use crate::profile::Profile;
use crate::transport::Target;

/// How a check came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As the document says.
    Passed,
    /// This gateway does not offer what the check needs.
    NotOffered(String),
    /// Otherwise: what was seen.
    Failed(String),
}

/// A check and its verdict.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Section of PROTOCOL.md.
    pub section: u8,
    /// The rule, in words.
    pub rule: &'static str,
    /// How it came out.
    pub verdict: Verdict,
}

/// Why a check did not pass.
enum Fault {
    NotOffered(String),
    Failed(String),
}

impl From<String> for Fault {
    fn from(what: String) -> Self {
        Self::Failed(what)
    }
}

type Outcome = Result<(), Fault>;

struct Check {
    section: u8,
    rule: &'static str,
    run: for<'a> fn(&'a Gateway) -> BoxFuture<'a, Outcome>,
}

/// The gateway, and the glasses that are paired with it: the folder with their keys, what they are, and their network.
struct Gateway {
    target: Target,
    state: PathBuf,
    profile: Profile,
    network: Option<Network>,
}

impl Gateway {
    async fn connect(&self) -> Result<Probe, Fault> {
        Probe::connect(self).await.map_err(Fault::Failed)
    }

    /// A connection with a session.
    async fn welcomed(&self) -> Result<Probe, Fault> {
        let mut probe = self.connect().await?;
        probe.shake(None).await?;
        Ok(probe)
    }
}

/// Runs all checks as glasses with these options, one after the other; `told` hears of each as it is judged.
pub async fn judge(options: &Options, mut told: impl FnMut(&Judged)) -> Vec<Judged> {
    let gateway = Gateway {
        target: options.target.clone(),
        state: options.state.clone(),
        profile: options.profile.clone(),
        network: options.network.clone().map(|profile| Network::start(profile, options.seed)),
    };
    let mut all = Vec::new();
    for check in handshake::CHECKS.iter().chain(session::CHECKS) {
        let verdict = match (check.run)(&gateway).await {
            Ok(()) => Verdict::Passed,
            Err(Fault::NotOffered(why)) => Verdict::NotOffered(why),
            Err(Fault::Failed(what)) => Verdict::Failed(what),
        };
        let judged = Judged { section: check.section, rule: check.rule, verdict };
        told(&judged);
        all.push(judged);
    }
    all
}
