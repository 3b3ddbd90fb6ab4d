//! Which addresses programs may reach, judged where names become addresses: the connection goes to an address that was
//! judged, whatever the name means a moment later.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Addresses of a name that are considered.
const ADDRESSES_MAX: usize = 16;

/// What an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A host of the internet.
    Public,
    /// The box itself, its networks, or a way around this judgement.
    Private(&'static str),
    /// No single host.
    Never(&'static str),
}

/// The class of an address, after the special-purpose registries of IANA (RFC 6890).
pub(super) fn class(address: IpAddr) -> Class {
    match address {
        IpAddr::V4(address) => class_v4(address),
        IpAddr::V6(address) => class_v6(address),
    }
}

fn class_v4(address: Ipv4Addr) -> Class {
    match address.octets() {
        [0, ..] => Class::Never("an unspecified address"),
        [127, ..] => Class::Private("a loopback address"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Class::Private("a private address"),
        [169, 254, ..] => Class::Private("a link-local address"),
        [100, 64..=127, ..] => Class::Private("an address behind a carrier's NAT"),
        [192, 0, 0, _] | [198, 18..=19, ..] => Class::Private("an address for special purposes"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Class::Never("an address for documentation"),
        [224..=239, ..] => Class::Never("a multicast address"),
        [240..=255, ..] => Class::Never("a reserved address"),
        _ => Class::Public,
    }
}

fn class_v6(address: Ipv6Addr) -> Class {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return match class_v4(mapped) {
            Class::Public => Class::Private("an IPv4-mapped address"),
            other => other,
        };
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Class::Never("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Private("a loopback address"),
        [0xfc00..=0xfdff, ..] => Class::Private("a unique local address"),
        [0xfe80..=0xfebf, ..] => Class::Private("a link-local address"),
        [0xfec0..=0xfeff, ..] => Class::Private("a site-local address"),
        [0xff00..=0xffff, ..] => Class::Never("a multicast address"),
        // RFC 6052: networks without IPv4 reach it so.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            class_v4(Ipv4Addr::new(a, b, c, d))
        }
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Class::Never("an address for documentation"),
        [0x2001, 0..=0x1ff, ..] | [0x2002, ..] => Class::Private("an address for special purposes"),
        [0x2000..=0x3fff, ..] => Class::Public,
        _ => Class::Private("an address for special purposes"),
    }
}

/// Which addresses a host may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Those of the internet.
    Public,
    /// Private ones, too: the operator has said so.
    Private,
}

impl Reach {
    /// # Errors
    /// The address must not be reached.
    pub(super) fn check(self, host: &str, address: IpAddr) -> Result<(), RefusedAddress> {
        let what = match (class(address), self) {
            (Class::Public, _) | (Class::Private(_), Self::Private) => return Ok(()),
            (Class::Private(what) | Class::Never(what), _) => what,
        };
        Err(RefusedAddress { host: host.to_owned(), address, what })
    }
}

/// A host has an address that must not be reached.
#[derive(Clone, Debug)]
pub(super) struct RefusedAddress {
    host: String,
    address: IpAddr,
    what: &'static str,
}

impl fmt::Display for RefusedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, address, what } = self;
        write!(f, "the host '{host}' has the address {address}, {what}, which programs must not reach")?;
        if matches!(class(*address), Class::Private(_)) {
            f.write_str("; the operator can list the host with private = true")?;
        }
        Ok(())
    }
}

impl std::error::Error for RefusedAddress {}

/// Finds the addresses of names.
#[async_trait]
pub(super) trait Lookup: Send + Sync {
    async fn lookup(&self, host: &str) -> std::io::Result<Vec<SocketAddr>>;
}

/// The system's way.
pub(super) struct System;

#[async_trait]
impl Lookup for System {
    async fn lookup(&self, host: &str) -> std::io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.take(ADDRESSES_MAX).collect())
    }
}

/// Finds the addresses of names, and gives out none that must not be reached.
pub(super) struct Judged {
    pub(super) lookup: Arc<dyn Lookup>,
    pub(super) reach: Reach,
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, reach) = (Arc::clone(&self.lookup), self.reach);
        Box::pin(async move {
            let found = lookup.lookup(name.as_str()).await?;
            // One that must not be reached condemns all: names of honest hosts have none.
            for address in &found {
                reach.check(name.as_str(), address.ip())?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_of_addresses() {
        let table: &[(&str, &str)] = &[
            ("1.1.1.1", "public"),
            ("100.63.255.255", "public"),
            ("100.128.0.0", "public"),
            ("172.15.0.1", "public"),
            ("172.32.0.1", "public"),
            ("192.167.1.1", "public"),
            ("223.255.255.255", "public"),
            ("2606:4700:4700::1111", "public"),
            ("2a00:1450:4001::200e", "public"),
            ("64:ff9b::101:101", "public"),
            ("127.0.0.1", "private"),
            ("127.255.255.254", "private"),
            ("10.0.0.1", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.1.1", "private"),
            ("169.254.169.254", "private"),
            ("100.64.0.1", "private"),
            ("100.127.255.255", "private"),
            ("192.0.0.8", "private"),
            ("198.19.0.1", "private"),
            ("::1", "private"),
            ("fc00::1", "private"),
            ("fd12:3456::1", "private"),
            ("fe80::1", "private"),
            ("fec0::1", "private"),
            ("::ffff:1.1.1.1", "private"),
            ("::ffff:127.0.0.1", "private"),
            ("::ffff:10.0.0.1", "private"),
            ("64:ff9b::a00:1", "private"),
            ("64:ff9b:1::1", "private"),
            ("::7f00:1", "private"),
            ("2002:7f00:1::", "private"),
            ("2001::1", "private"),
            ("100::1", "private"),
            ("0.0.0.0", "never"),
            ("0.1.2.3", "never"),
            ("224.0.0.1", "never"),
            ("239.255.255.255", "never"),
            ("240.0.0.1", "never"),
            ("255.255.255.255", "never"),
            ("192.0.2.1", "never"),
            ("::", "never"),
            ("ff02::1", "never"),
            ("::ffff:0.0.0.0", "never"),
            ("::ffff:224.0.0.1", "never"),
            ("2001:db8::1", "never"),
        ];
        for (address, expected) in table {
            let address: IpAddr = address.parse().unwrap();
            let (name, public, private) = match class(address) {
                Class::Public => ("public", true, true),
                Class::Private(_) => ("private", false, true),
                Class::Never(_) => ("never", false, false),
            };
            assert_eq!(name, *expected, "{address}");
            assert_eq!(Reach::Public.check("h", address).is_ok(), public, "{address}");
            assert_eq!(Reach::Private.check("h", address).is_ok(), private, "{address}");
        }
    }
}
