//! Announces the gateway on the local network, so that glasses find it without an address: multicast DNS (RFC 6762) with
//! service discovery (RFC 6763). PROTOCOL.md, section 1, has the names and the records.
//!
//! An announcement proves nothing, since anybody in the network can make one: the handshake proves who a gateway is.

pub(crate) mod reach;
pub(crate) mod settings;
pub(crate) mod state;

use std::{net::SocketAddr, time::Duration};

use anyhow::{Result, anyhow};
use mdns_sd::{DaemonEvent, IfKind, IfPredicate, ServiceDaemon, ServiceInfo};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::{reach::Reach, settings::Discovery, state::State};
use crate::{identity, text::crop};

/// Longest announced name: a label of DNS has 63 bytes, and who has the name of another gateway adds ` (2)` and the like.
pub(crate) const NAME_BYTES_MAX: usize = 56;

/// Version of the protocol that is announced.
const VERSION: u8 = device_protocol::VERSION;
/// Services: the gateway over WebSocket, and over QUIC.
const WEB: &str = "_lorgnette._tcp.local.";
const QUIC: &str = "_lorgnette._udp.local.";
/// Digits of the fingerprint in the host name: enough for the gateways of one network.
const HOST_DIGITS: usize = 12;
/// Time until the gateway is announced again after a failure, such as a network that is not up yet.
const RETRY: Duration = Duration::from_secs(30);
/// How long the goodbye may take: it is sent at once.
const GOODBYE_MAX: Duration = Duration::from_secs(1);

/// What is announced about this gateway.
#[derive(Clone, Debug)]
pub(crate) struct Announcement {
    name: String,
    fingerprint: String,
    web: Option<Listener>,
    quic: Option<Listener>,
    state: State,
}

/// One of the gateway's ports, and where it can be reached.
#[derive(Clone, Copy, Debug)]
struct Listener {
    port: u16,
    reach: Reach,
}

impl Announcement {
    /// What to announce of a gateway with this name and key that listens for glasses on these addresses; `None`: nothing.
    pub(crate) fn new(
        settings: &Discovery,
        name: &str,
        public_key: &[u8; 32],
        (web, quic): (Option<SocketAddr>, Option<SocketAddr>),
    ) -> Option<Self> {
        let listener = |address: Option<SocketAddr>| {
            let reach = Reach::of(address?.ip(), settings.loopback)?;
            Some(Listener { port: address?.port(), reach })
        };
        let (web, quic) = (listener(web), listener(quic));
        if !settings.enabled || (web.is_none() && quic.is_none()) {
            return None;
        }
        let name = if settings.name.is_empty() { name } else { &settings.name };
        let fingerprint = identity::fingerprint(public_key);
        let state = State::new([web, quic].into_iter().flatten().map(|listener| listener.reach).collect());
        Some(Self { name: crop(name.trim(), NAME_BYTES_MAX).to_owned(), fingerprint, web, quic, state })
    }

    /// The announced name, unless another gateway in the network has it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What became of it.
    pub(crate) fn state(&self) -> State {
        self.state.clone()
    }

    /// Announces the gateway until `stop`, then says goodbye. The gateway works without it: a failure is logged, and after a
    /// while it is announced again.
    pub(crate) async fn keep_up(self, stop: CancellationToken) {
        while let Err(error) = self.announce(&stop).await {
            self.state.failed(&error);
            tracing::warn!(%error, "the gateway is not announced on the network; glasses need its address");
            if stop.run_until_cancelled(sleep(RETRY)).await.is_none() {
                return;
            }
        }
    }

    async fn announce(&self, stop: &CancellationToken) -> Result<()> {
        let daemon = ServiceDaemon::new()?;
        let outcome = self.announce_with(&daemon, stop).await;
        // It sends the goodbye, and its thread ends.
        if let Ok(ended) = daemon.shutdown() {
            drop(timeout(GOODBYE_MAX, ended.recv_async()).await);
        }
        outcome
    }

    async fn announce_with(&self, daemon: &ServiceDaemon, stop: &CancellationToken) -> Result<()> {
        let reaches: Vec<Reach> = [self.web, self.quic].into_iter().flatten().map(|listener| listener.reach).collect();
        daemon.disable_interface(IfKind::All)?;
        let any = move |ip| reaches.iter().any(|reach| reach.covers(ip));
        daemon.enable_interface(IfKind::Predicate(IfPredicate::new(move |interface| any(interface.ip()))))?;
        let events = daemon.monitor()?;
        for service in self.services()? {
            daemon.register(service)?;
        }
        tracing::info!(name = self.name, fingerprint = self.fingerprint, "announced on the network");
        loop {
            let event = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                event = events.recv_async() => event,
            };
            match event.map_err(|_| anyhow!("the thread for multicast DNS has ended"))? {
                DaemonEvent::Announce(full_name, _) => self.state.sent(&full_name),
                DaemonEvent::NameChange(change) => {
                    tracing::warn!(name = change.new_name, "another gateway in the network has the announced name");
                }
                DaemonEvent::Error(error) => tracing::debug!(%error, "multicast DNS"),
                _ => {}
            }
        }
    }

    fn services(&self) -> Result<Vec<ServiceInfo>> {
        let port = |listener: Option<Listener>| listener.map_or_else(String::new, |listener| listener.port.to_string());
        let records = [
            ("txtvers", "1".to_owned()),
            ("v", VERSION.to_string()),
            ("fp", self.fingerprint.clone()),
            ("tcp", port(self.web)),
            ("udp", port(self.quic)),
            ("name", self.name.clone()),
        ];
        let records: Vec<_> = records.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let host = format!("lorgnette-{}.local.", crop(&self.fingerprint, HOST_DIGITS));
        let of = |(kind, listener): (&str, Option<Listener>)| {
            let Listener { port, reach } = listener?;
            let made = ServiceInfo::new(kind, &self.name, &host, (), port, &records[..]);
            Some(made.map(|service| {
                let mut service = service.enable_addr_auto();
                let covered = IfPredicate::new(move |interface| reach.covers(interface.ip()));
                service.set_interfaces(vec![IfKind::Predicate(covered)]);
                service
            }))
        };
        Ok([(WEB, self.web), (QUIC, self.quic)].into_iter().filter_map(of).collect::<Result<_, _>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn settings(enabled: bool, loopback: bool) -> Discovery {
        Discovery { enabled, name: String::new(), loopback }
    }

    fn announced(settings: &Discovery, web: &str, quic: &str) -> Option<Announcement> {
        let address = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
        Announcement::new(settings, "Hearth", &KEY, (address(web), address(quic)))
    }

    #[test]
    fn a_gateway_on_loopback_is_announced_only_if_that_is_wanted() {
        let usual = settings(true, false);
        assert!(announced(&usual, "127.0.0.1:8460", "[::1]:8460").is_none());
        assert!(announced(&usual, "", "").is_none());
        assert!(announced(&settings(false, true), "[::]:8460", "[::]:8460").is_none());
        assert!(announced(&settings(true, true), "127.0.0.1:8460", "").is_some());
        // Only the listener that others reach.
        let one = announced(&usual, "127.0.0.1:8460", "0.0.0.0:8461").unwrap();
        let services = one.services().unwrap();
        assert_eq!((services.len(), services[0].get_type(), services[0].get_port()), (1, QUIC, 8461));
        assert_eq!(services[0].get_property_val_str("tcp"), None);
    }

    #[test]
    fn the_records_say_version_key_and_ports() {
        let services = announced(&settings(true, false), "[::]:8460", "[::]:8461").unwrap().services().unwrap();
        assert_eq!(services.len(), 2);
        for service in &services {
            let value = |key| service.get_property_val_str(key).unwrap();
            assert_eq!([value("txtvers"), value("v"), value("tcp"), value("udp")], ["1", "1", "8460", "8461"]);
            assert_eq!((value("fp"), value("name")), (identity::fingerprint(&KEY).as_str(), "Hearth"));
            assert!(service.get_fullname().starts_with("Hearth._lorgnette._"), "{}", service.get_fullname());
        }
    }

    #[test]
    fn a_name_is_cropped_to_what_a_label_holds() {
        let long = Discovery { enabled: true, name: String::new(), loopback: false };
        let address = Some("[::]:1".parse().unwrap());
        let made = Announcement::new(&long, &"ü".repeat(32), &KEY, (address, None)).unwrap();
        assert_eq!(made.name(), "ü".repeat(28));
    }
}
