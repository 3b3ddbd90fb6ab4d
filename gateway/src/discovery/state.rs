//! What became of announcing the gateway, for its status.

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::reach::Reach;

/// Whether the gateway is announced on the local network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Announced {
    /// Under this name.
    As(String),
    /// It is not, for this reason.
    Not(String),
}

/// The present state.
#[derive(Clone, Debug)]
pub(crate) struct State {
    latest: watch::Sender<Announced>,
    reaches: Vec<Reach>,
}

impl State {
    /// Of listeners with this reach, of which nothing was announced yet.
    pub(super) fn new(reaches: Vec<Reach>) -> Self {
        let not_yet = "nothing was sent so far, so UDP port 5353 may be closed to the gateway";
        Self { latest: watch::Sender::new(Announced::Not(not_yet.to_owned())), reaches }
    }

    /// A service was announced under this full name, `NAME._lorgnette._tcp.local.`.
    pub(super) fn sent(&self, full_name: &str) {
        let name = full_name.rsplit_once("._lorgnette.").map_or(full_name, |(name, _)| name);
        self.latest.send_replace(Announced::As(name.to_owned()));
    }

    pub(super) fn failed(&self, why: &anyhow::Error) {
        self.latest.send_replace(Announced::Not(format!("{why:#}")));
    }

    /// As it is at this moment: also by the interfaces of this machine, of which one may have gone.
    pub(crate) fn get(&self) -> Announced {
        if self.reaches.iter().any(Reach::is_there) {
            return self.latest.borrow().clone();
        }
        Announced::Not("no network interface is up at the addresses where the gateway listens".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_that_of_the_latest_event_and_of_the_interfaces() {
        let on = |address: &str| State::new(Reach::of(address.parse().unwrap(), true).into_iter().collect());
        let here = on("127.0.0.1");
        assert!(matches!(here.get(), Announced::Not(why) if why.contains("UDP port 5353")));
        here.sent("Hearth._lorgnette._tcp.local.");
        assert_eq!(here.get(), Announced::As("Hearth".to_owned()));
        here.sent("Hearth (2)._lorgnette._udp.local.");
        assert_eq!(here.get(), Announced::As("Hearth (2)".to_owned()), "another one has the name");
        here.failed(&anyhow::anyhow!("the thread has ended"));
        assert_eq!(here.get(), Announced::Not("the thread has ended".to_owned()));
        // The address of no machine: it is reserved for documentation.
        let elsewhere = on("192.0.2.77");
        elsewhere.sent("Hearth._lorgnette._tcp.local.");
        assert!(matches!(elsewhere.get(), Announced::Not(why) if why.contains("no network interface")));
    }
}
