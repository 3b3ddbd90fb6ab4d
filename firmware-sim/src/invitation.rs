//! Invitations: the text that glasses scan to be paired, as PROTOCOL.md, section 6, has it.

use std::fmt;
use std::str::FromStr;

use device_protocol::auth::INVITATION_CODE_BYTES;

use crate::discovery::fingerprint;
use crate::transport::{Scheme, Target};

/// Longest text: that of a picture with little room for errors.
const TEXT_BYTES_MAX: usize = 2_048;
/// Addresses that are read.
const ADDRESSES_MAX: usize = 8;

/// Why a text is no invitation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no invitation that these glasses understand: {0}")]
pub struct Error(&'static str);

/// An invitation of a gateway.
#[derive(Clone, PartialEq, Eq)]
pub struct Invitation {
    /// Where the gateway is: WebSocket before QUIC.
    pub targets: Vec<Target>,
    /// Fingerprint of its key.
    pub fingerprint: String,
    /// The code, which is a secret.
    pub code: [u8; INVITATION_CODE_BYTES],
    /// Name of the gateway, for people.
    pub name: String,
}

impl fmt::Debug for Invitation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { targets, fingerprint, name, .. } = self;
        write!(formatter, "Invitation({name:?} {fingerprint} {targets:?})")
    }
}

impl FromStr for Invitation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.len() > TEXT_BYTES_MAX {
            return Err(Error("it is too long"));
        }
        let query = text.strip_prefix("lorgnette:pair?").ok_or(Error("it does not begin with lorgnette:pair?"))?;
        let fields: Vec<(&str, &str)> = query.split('&').filter_map(|field| field.split_once('=')).collect();
        let all = |wanted: &'static str| fields.iter().filter(move |(key, _)| *key == wanted).map(|(_, value)| *value);
        let one = |wanted| {
            let mut values = all(wanted);
            values.next().filter(|_| values.next().is_none())
        };
        if one("v") != Some("1") {
            return Err(Error("it is of another version"));
        }
        let fingerprint = one("fp").and_then(fingerprint).ok_or(Error("`fp` is no fingerprint"))?;
        let code = one("code").and_then(unhex).ok_or(Error("`code` has not 32 hexadecimal digits"))?;
        let port = |key| match one(key).map(str::parse::<u16>) {
            None => Ok(None),
            Some(Ok(port)) if port > 0 => Ok(Some(port)),
            Some(_) => Err(Error("`tcp` or `udp` is no port")),
        };
        let ways = [(Scheme::Wss, port("tcp")?), (Scheme::Quic, port("udp")?)];
        let mut targets = Vec::new();
        for (scheme, port) in ways.into_iter().filter_map(|(scheme, port)| Some((scheme, port?))) {
            for host in all("at").take(ADDRESSES_MAX) {
                let is_host =
                    !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:".contains(&b));
                if !is_host {
                    return Err(Error("`at` is no address"));
                }
                let path = device_protocol::PATH.to_owned();
                targets.push(Target { scheme, host: host.to_owned(), port, path });
            }
        }
        if targets.is_empty() {
            return Err(Error("it has no address and port"));
        }
        let name = one("name").and_then(decoded).ok_or(Error("`name` is no text"))?;
        Ok(Self { targets, fingerprint, code, name })
    }
}

/// 32 hexadecimal digits.
fn unhex(text: &str) -> Option<[u8; INVITATION_CODE_BYTES]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * INVITATION_CODE_BYTES {
        return None;
    }
    let mut bytes = [0; INVITATION_CODE_BYTES];
    for (place, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *place = hex_byte(pair)?;
    }
    Some(bytes)
}

fn hex_byte(pair: &[u8]) -> Option<u8> {
    let is_hex = pair.iter().all(u8::is_ascii_hexdigit);
    u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok().filter(|_| is_hex)
}

/// A text with `%20` and the like (RFC 3986, section 2.1), without control characters.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            bytes.push(hex_byte(after.get(..2)?)?);
            rest = after.get(2..)?;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.chars().any(char::is_control))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "lorgnette:pair?v=1&fp=00112233445566778899AABBCCDDEEFF&code=a0a1a2a3a4a5a6a7a8a9aaabacadaeaf\
                         &at=192.0.2.1&at=2001:db8::1&tcp=8460&udp=8461&name=Ann%20%26%20B%C3%B6b&later=x";

    #[test]
    fn a_whole_invitation_is_read() {
        let invitation: Invitation = WHOLE.parse().unwrap();
        assert_eq!((invitation.name.as_str(), invitation.code[15]), ("Ann & Böb", 0xaf));
        assert_eq!(invitation.fingerprint, "00112233445566778899aabbccddeeff");
        let targets: Vec<String> = invitation.targets.iter().map(ToString::to_string).collect();
        assert_eq!(targets[..2], ["wss://192.0.2.1:8460/glasses", "wss://[2001:db8::1]:8460/glasses"]);
        assert_eq!(targets[2..], ["quic://192.0.2.1:8461", "quic://[2001:db8::1]:8461"]);
        assert!(!format!("{invitation:?}").contains("160"), "the code is not shown");
    }

    #[test]
    fn what_is_no_invitation_is_refused() {
        for (part, by) in [
            ("lorgnette:pair?", "https://pair?"),
            ("v=1", "v=2"),
            ("v=1", "v=1&v=1"),
            ("fp=00", "fp="),
            ("code=a0", "code=+0"),
            ("tcp=8460", "tcp=0"),
            ("udp=8461", "udp=70000"),
            ("at=192.0.2.1", "at=a/b"),
            ("at=192.0.2.1", "at="),
            ("%20", "%2"),
            ("%20", "%1b"),
            ("%C3", "%ff"),
            ("&at=192.0.2.1&at=2001:db8::1", ""),
            ("&tcp=8460&udp=8461", ""),
        ] {
            let changed = WHOLE.replacen(part, by, 1);
            assert_ne!(changed, WHOLE);
            assert!(changed.parse::<Invitation>().is_err(), "{changed}");
        }
        assert!("x".repeat(TEXT_BYTES_MAX + 1).parse::<Invitation>().is_err());
        assert!("lorgnette:pair?".parse::<Invitation>().is_err());
    }
}
