//! Invitations: the text and the picture that glasses scan to be paired.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use anyhow::Result;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    net::unix::OwnedWriteHalf,
    sync::oneshot,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    Answer,
    admin::Admin,
    devices::{can_be_paired, find, grant},
    reply::{done, say},
};
use crate::{
    clock,
    discovery::reach::Reach,
    identity::{
        fingerprint,
        grant::Outcome,
        invitations::{Code, INVITED_US},
        random,
    },
    store::Store,
};

/// Addresses in an invitation: with more, its picture is hard to scan.
const ADDRESSES_MAX: usize = 4;
/// Longest address that an operator names: a name of DNS.
const ADDRESS_BYTES_MAX: usize = 253;

/// An invitation of one pair of glasses; dropping it withdraws it.
pub(crate) struct Open {
    /// What the glasses scan.
    pub(crate) text: String,
    outcome: oneshot::Receiver<Outcome>,
}

impl Open {
    /// Invites glasses of this user, which get this name, to these addresses; none: those of this machine. Cancelling
    /// `withdrawn`, or dropping this, withdraws the invitation.
    ///
    /// # Errors
    /// The user, the name or an address is none, or too many invitations are open.
    pub(crate) fn new(
        admin: &Admin,
        (user, name): (String, String),
        addresses: Vec<String>,
        withdrawn: CancellationToken,
    ) -> Result<Self, String> {
        let (services, started) = (&admin.services, &admin.started);
        let grant = grant(user, name)?;
        can_be_paired(services, None, &grant)?;
        let (web, quic) = (started.websocket.then_some(started.web), started.quic);
        let code = Code(random().map_err(|error| error.to_string())?);
        let settings = services.settings.current.get();
        let invited = Invited { addresses, web, quic, name: &settings.gateway_name };
        let text = invited.text(&fingerprint(&services.admission.key.public()), code)?;
        let outcome = services.admission.pairings.invitations.open(clock::mono_us(), code, grant, withdrawn);
        Ok(Self { text, outcome: outcome.map_err(|error| error.to_string())? })
    }

    /// What became of it, or why nothing did: at the latest when it expires.
    pub(crate) async fn settled(self, store: &Store) -> Result<String, String> {
        match timeout(Duration::from_micros(INVITED_US), self.outcome).await {
            Ok(Ok(Ok(name))) => {
                let (device, record) = find(store, &name)?;
                Ok(format!("paired {device} for {}, called {name} ({})", record.user, record.model))
            }
            Ok(Ok(Err(why))) => Err(format!("the glasses are not paired: {why}")),
            Ok(Err(_gone)) => Err("the glasses went away before they were paired".to_owned()),
            Err(_elapsed) => Err("nobody used the invitation in time".to_owned()),
        }
    }
}

/// Invites one pair of glasses and reports what comes of it, for as long as the client stays.
pub(super) async fn serve(
    mut read: impl AsyncRead + Unpin,
    mut write: OwnedWriteHalf,
    admin: &Admin,
    who: (String, String),
    addresses: Vec<String>,
) -> Result<()> {
    let open = match Open::new(admin, who, addresses, CancellationToken::new()) {
        Ok(open) => open,
        Err(message) => return say(&mut write, &Answer::Error { message }).await,
    };
    say(&mut write, &Answer::Invited { text: open.text.clone(), expires_s: INVITED_US / 1_000_000 }).await?;
    let settled = tokio::select! {
        settled = open.settled(&admin.services.store) => settled,
        // The client sends nothing more: any read is its end.
        _ = read.read_u8() => return Ok(()),
        () = admin.services.admission.stop.cancelled() => return Ok(()),
    };
    let answer = settled.map_or_else(|message| Answer::Error { message }, done);
    say(&mut write, &answer).await
}

/// Addresses of this machine that lead to the listeners; loopback where there are no others.
fn own_addresses(listeners: impl Iterator<Item = IpAddr>) -> Vec<String> {
    let listeners: Vec<IpAddr> = listeners.collect();
    let reached = |loopback| {
        let reaches = listeners.iter().filter_map(|listens| Reach::of(*listens, loopback));
        reaches.flat_map(|reach| reach.addresses()).collect::<BTreeSet<IpAddr>>()
    };
    let outside = reached(false);
    let addresses = if outside.is_empty() { reached(true) } else { outside };
    addresses.into_iter().take(ADDRESSES_MAX).map(|ip| ip.to_string()).collect()
}

/// Addresses that the operator names: of a machine in front of this one, or from DNS.
fn named(addresses: Vec<String>) -> Result<Vec<String>, String> {
    let is_host = |address: &String| {
        let is_name = address.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        !address.is_empty() && address.len() <= ADDRESS_BYTES_MAX && (is_name || address.parse::<IpAddr>().is_ok())
    };
    match addresses.iter().find(|address| !is_host(address)) {
        Some(wrong) => Err(format!("`{wrong}` is no address: give a name or an IP address, without a port")),
        None if addresses.len() > ADDRESSES_MAX => Err(format!("an invitation has up to {ADDRESSES_MAX} addresses")),
        None => Ok(addresses),
    }
}

/// What an invitation tells of listeners.
pub(crate) struct Invited<'a> {
    /// Addresses that the operator names; none: those of this machine.
    pub(crate) addresses: Vec<String>,
    /// TCP.
    pub(crate) web: Option<SocketAddr>,
    /// UDP.
    pub(crate) quic: Option<SocketAddr>,
    /// Of the gateway.
    pub(crate) name: &'a str,
}

impl Invited<'_> {
    /// The text for glasses.
    ///
    /// # Errors
    /// An address is none, or there are too many.
    pub(crate) fn text(self, fingerprint: &str, code: Code) -> Result<String, String> {
        let Self { addresses, web, quic, name } = self;
        let addresses = match addresses.is_empty() {
            true => own_addresses([web, quic].into_iter().flatten().map(|address| address.ip())),
            false => named(addresses)?,
        };
        let ports = (web.map(|address| address.port()), quic.map(|address| address.port()));
        Ok(Text { fingerprint, code, addresses: &addresses, ports, name }.to_string())
    }
}

/// The text of an invitation; PROTOCOL.md, section 6, has its form.
struct Text<'a> {
    fingerprint: &'a str,
    code: Code,
    addresses: &'a [String],
    /// Of TCP and of UDP.
    ports: (Option<u16>, Option<u16>),
    name: &'a str,
}

impl std::fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "lorgnette:pair?v=1&fp={}&code=", self.fingerprint)?;
        self.code.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        self.addresses.iter().try_for_each(|address| write!(f, "&at={address}"))?;
        let (tcp, udp) = self.ports;
        tcp.map_or(Ok(()), |port| write!(f, "&tcp={port}"))?;
        udp.map_or(Ok(()), |port| write!(f, "&udp={port}"))?;
        write!(f, "&name={}", utf8_percent_encode(self.name, NON_ALPHANUMERIC))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_what_glasses_need() {
        let text = Text {
            fingerprint: "00112233445566778899aabbccddeeff",
            code: Code([0xa1; 16]),
            addresses: &["192.0.2.1".to_owned(), "2001:db8::1".to_owned()],
            ports: (Some(8460), None),
            name: "Ann & Bob",
        };
        let wanted = "lorgnette:pair?v=1&fp=00112233445566778899aabbccddeeff&code=a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1\
                      &at=192.0.2.1&at=2001:db8::1&tcp=8460&name=Ann%20%26%20Bob";
        assert_eq!(text.to_string(), wanted);
    }

    #[test]
    fn an_operator_names_hosts_only() {
        for right in ["box.example", "192.0.2.1", "2001:db8::1", "a-b_c"] {
            assert_eq!(named(vec![right.to_owned()]), Ok(vec![right.to_owned()]));
        }
        for wrong in ["", "a&b=c", "http://box", "box:8460", &"x".repeat(254)] {
            assert!(named(vec![wrong.to_owned()]).is_err(), "{wrong}");
        }
        assert!(named(vec!["a".to_owned(); ADDRESSES_MAX + 1]).is_err());
    }

    #[test]
    fn a_gateway_on_loopback_invites_programs_of_its_machine() {
        assert_eq!(own_addresses(["127.0.0.1".parse().unwrap()].into_iter()), ["127.0.0.1"]);
    }
}
