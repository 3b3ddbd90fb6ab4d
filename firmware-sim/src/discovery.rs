//! Looking for gateways on the local network, as PROTOCOL.md, section 1, has it: multicast DNS with service discovery.
//!
//! Whatever is found is only said by somebody in the network: glasses connect to a gateway because of the fingerprint of its
//! key, which the handshake then proves.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use mdns_sd::{ResolvedService, ScopedIp, ServiceDaemon, ServiceEvent};
use tokio::time::{Instant, timeout_at};

use crate::transport::{Scheme, Target};

/// Services: a gateway over WebSocket, and over QUIC.
const SERVICES: [(&str, Scheme); 2] =
    [("_lorgnette._tcp.local.", Scheme::Wss), ("_lorgnette._udp.local.", Scheme::Quic)];
/// Version of the records that is understood, and of the protocol.
const VERSIONS: [(&str, &str); 2] = [("txtvers", "1"), ("v", "1")];
/// Gateways that are remembered: more than a network has, unless somebody invents them.
const FOUND_MAX: usize = 32;
/// Addresses of each.
const TARGETS_MAX: usize = 16;
/// Longest name.
const NAME_BYTES_MAX: usize = 63;
/// Time for further answers after the first one that was looked for: who answers first need not be the one that is meant. A
/// responder does not repeat a record within a second, and waits up to 120 ms (RFC 6762, section 6).
const SETTLE: Duration = Duration::from_millis(1_500);

/// Why nothing could be looked for.
#[derive(Debug, thiserror::Error)]
#[error("looking for gateways on the network: {0}")]
pub struct Error(#[from] mdns_sd::Error);

/// What somebody in the network says to be a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name, for people.
    pub name: String,
    /// Fingerprint of its key: 32 hexadecimal digits.
    pub fingerprint: String,
    /// Where it is: WebSocket before QUIC, IPv4 before IPv6.
    pub targets: Vec<Target>,
}

/// Looks for gateways for at most `within`, and not much longer than until one is `wanted`.
///
/// # Errors
/// There is no network, or the system gives no socket for it.
pub async fn browse(within: Duration, wanted: impl Fn(&Found) -> bool) -> Result<Vec<Found>, Error> {
    let daemon = ServiceDaemon::new()?;
    let mut found = Vec::new();
    let result = collect(&daemon, Instant::now() + within, wanted, &mut found).await;
    // Its thread ends by itself.
    drop(daemon.shutdown());
    result.map(|()| found)
}

async fn collect(
    daemon: &ServiceDaemon,
    mut until: Instant,
    wanted: impl Fn(&Found) -> bool,
    found: &mut Vec<Found>,
) -> Result<(), Error> {
    let (web, quic) = (daemon.browse(SERVICES[0].0)?, daemon.browse(SERVICES[1].0)?);
    let mut is_settling = false;
    loop {
        let next = async {
            tokio::select! {
                event = web.recv_async() => event,
                event = quic.recv_async() => event,
            }
        };
        // Both channels close only with the daemon.
        let Ok(Ok(event)) = timeout_at(until, next).await else { return Ok(()) };
        let ServiceEvent::ServiceResolved(service) = event else { continue };
        if let Some(one) = understood(&service) {
            add(found, one);
        }
        if !is_settling && found.iter().any(&wanted) {
            is_settling = true;
            until = until.min(Instant::now() + SETTLE);
        }
    }
}

/// The gateway of a resolved service; `None`: it is none that these glasses understand.
fn understood(service: &ResolvedService) -> Option<Found> {
    let value = |key| service.get_property_val_str(key);
    if VERSIONS.iter().any(|(key, version)| value(key) != Some(version)) {
        return None;
    }
    let fingerprint = value("fp").and_then(fingerprint)?;
    let (kind, scheme) = SERVICES.into_iter().find(|(kind, _)| *kind == service.ty_domain)?;
    let name = value("name").or_else(|| service.fullname.strip_suffix(kind)).unwrap_or_default();
    let mut addresses: Vec<&ScopedIp> = service.addresses.iter().collect();
    addresses.sort_by_key(|address| (rank(address.to_ip_addr()), address.to_string()));
    let target = |address: &ScopedIp| Target {
        scheme,
        host: host(address),
        port: service.port,
        path: device_protocol::PATH.to_owned(),
    };
    let targets: Vec<Target> = addresses.into_iter().take(TARGETS_MAX).map(target).collect();
    (!targets.is_empty() && service.port != 0).then(|| Found { name: shown(name), fingerprint, targets })
}

/// Adds what was found to what has the same name and key.
fn add(found: &mut Vec<Found>, one: Found) {
    let same = |known: &Found| (&known.name, &known.fingerprint) == (&one.name, &one.fingerprint);
    match found.iter().position(same) {
        Some(at) => {
            let known = &mut found[at];
            let new: Vec<Target> = one.targets.into_iter().filter(|target| !known.targets.contains(target)).collect();
            known.targets.extend(new);
            known.targets.sort_by_key(|target| (target.scheme == Scheme::Quic, rank_of(target)));
            known.targets.truncate(TARGETS_MAX);
        }
        None if found.len() < FOUND_MAX => found.push(one),
        None => {}
    }
}

/// Addresses that work everywhere come first.
fn rank(ip: IpAddr) -> u8 {
    match ip {
        IpAddr::V4(_) => 0,
        IpAddr::V6(ip) if ip.is_unicast_link_local() => 2,
        IpAddr::V6(_) => 1,
    }
}

fn rank_of(target: &Target) -> u8 {
    // One with a zone is no plain address.
    target.host.parse().map_or(2, rank)
}

/// The address as a host; one that holds within a link only has its number.
fn host(address: &ScopedIp) -> String {
    match address {
        ScopedIp::V6(scoped) if scoped.addr().is_unicast_link_local() => {
            format!("{}%{}", scoped.addr(), scoped.scope_id().index)
        }
        address => address.to_ip_addr().to_string(),
    }
}

/// A fingerprint however it is grouped and written: its 32 hexadecimal digits in lower case.
pub fn fingerprint(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|c| !matches!(c, ':' | '-' | ' ')).collect();
    let is_one = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| digits.to_ascii_lowercase())
}

/// A name from the network, for a terminal.
fn shown(name: &str) -> String {
    let name = name.trim_end_matches('.');
    // Neither what a terminal acts on, nor what turns the direction of writing.
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let plain: String = name.chars().map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).collect();
    plain[..plain.floor_char_boundary(NAME_BYTES_MAX)].to_owned()
}

/// Names of what was found, one line each, for people.
pub fn listed(found: &[Found]) -> String {
    let mut lines = BTreeSet::new();
    for one in found {
        let at: Vec<String> = one.targets.iter().map(ToString::to_string).collect();
        lines.insert(format!("  {}  {}  {}", one.fingerprint, one.name, at.join(" ")));
    }
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use mdns_sd::ServiceInfo;

    use super::*;

    const FP: &str = "00112233445566778899aabbccddeeff";

    fn resolved(kind: &str, records: &[(&str, &str)]) -> Option<Found> {
        let service = ServiceInfo::new(kind, "Hearth", "box.local.", "192.0.2.1,2001:db8::1", 8460, records).unwrap();
        understood(&service.as_resolved_service())
    }

    #[test]
    fn a_gateway_has_a_known_version_and_a_fingerprint() {
        let whole = [("txtvers", "1"), ("v", "1"), ("fp", FP), ("name", "He\u{1b}arth")];
        let found = resolved("_lorgnette._tcp.local.", &whole).unwrap();
        assert_eq!((found.name.as_str(), found.fingerprint.as_str()), ("He\u{fffd}arth", FP));
        let targets: Vec<String> = found.targets.iter().map(ToString::to_string).collect();
        assert_eq!(targets, ["wss://192.0.2.1:8460/glasses", "wss://[2001:db8::1]:8460/glasses"]);
        for wrong in [("v", "2"), ("txtvers", "9"), ("fp", "0011"), ("fp", "zz112233445566778899aabbccddeeff")] {
            let records = whole.map(|(key, value)| if key == wrong.0 { wrong } else { (key, value) });
            assert_eq!(resolved("_lorgnette._udp.local.", &records), None, "{wrong:?}");
        }
        assert_eq!(resolved("_http._tcp.local.", &whole), None);
    }

    #[test]
    fn addresses_that_work_everywhere_come_first_in_whatever_order_they_are_found() {
        let of = |target: &str| Found {
            name: "Hearth".to_owned(),
            fingerprint: FP.to_owned(),
            targets: vec![target.parse().unwrap()],
        };
        let mut found = Vec::new();
        for target in ["quic://192.0.2.1:1", "wss://[fe80::1%2]:1", "wss://[2001:db8::1]:1", "wss://192.0.2.1:1"] {
            add(&mut found, of(target));
        }
        let targets: Vec<String> = found[0].targets.iter().map(|target| target.host.clone()).collect();
        assert_eq!(targets, ["192.0.2.1", "2001:db8::1", "fe80::1%2", "192.0.2.1"]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let of = |name: String, port: u16| Found {
            name,
            fingerprint: FP.to_owned(),
            targets: vec![format!("wss://192.0.2.1:{port}").parse().unwrap()],
        };
        let mut found = Vec::new();
        for number in 0..100 {
            add(&mut found, of(format!("{number}"), 1));
            add(&mut found, of("0".to_owned(), number + 1));
        }
        assert_eq!((found.len(), found[0].targets.len()), (FOUND_MAX, TARGETS_MAX));
        assert_eq!(shown(&"ü".repeat(50)).len(), 62);
    }
}
