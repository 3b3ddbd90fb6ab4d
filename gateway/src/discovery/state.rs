//! What became of announcing the gateway, for its status.

use serde::{Deserialize, Serialize};
use tokio::{
    sync::watch,
    time::{Duration, Instant},
};

use super::reach::Reach;

/// Time for the first announcement: names are probed for 750 ms before (RFC 6762, section 8.1), on a busy machine.
const FIRST: Duration = Duration::from_secs(10);

/// Whether the gateway is announced on the local network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Announced {
    /// Under this name.
    As(String),
    /// The gateway has just started.
    Soon,
    /// It is not, for this reason.
    Not(String),
}

/// Whether the gateway is announced, and where its listeners are reached; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// `None`: nothing has happened yet.
    latest: watch::Sender<Option<Announced>>,
    since: Instant,
    reaches: Vec<Reach>,
}

impl State {
    /// Of listeners with this reach, of which nothing was announced yet.
    pub(super) fn new(reaches: Vec<Reach>) -> Self {
        Self { latest: watch::Sender::new(None), since: Instant::now(), reaches }
    }

    /// A service was announced under this full name, `NAME._lorgnette._tcp.local.`.
    pub(super) fn sent(&self, full_name: &str) {
        let name = full_name.rsplit_once("._lorgnette.").map_or(full_name, |(name, _)| name);
        self.latest.send_replace(Some(Announced::As(name.to_owned())));
    }

    pub(super) fn failed(&self, why: &anyhow::Error) {
        self.latest.send_replace(Some(Announced::Not(format!("{why:#}"))));
    }

    /// As it is at this moment: also by the interfaces of this machine, of which one may have gone.
    pub(crate) fn get(&self) -> Announced {
        if !self.reaches.iter().any(Reach::is_there) {
            let why = "no network interface is up at the addresses where the gateway listens";
            return Announced::Not(why.to_owned());
        }
        match self.latest.borrow().clone() {
            Some(latest) => latest,
            None if self.since.elapsed() < FIRST => Announced::Soon,
            None => Announced::Not("nothing was sent so far, so UDP port 5353 may be closed to the gateway".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_state_is_that_of_the_latest_event_and_of_the_interfaces() {
        let on = |address: &str| State::new(Reach::of(address.parse().unwrap(), true).into_iter().collect());
        let here = on("127.0.0.1");
        assert_eq!(here.get(), Announced::Soon);
        tokio::time::advance(FIRST).await;
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
