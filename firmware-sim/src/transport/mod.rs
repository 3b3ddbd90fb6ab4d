//! Two transports to the gateway with the same interface: a queue of frames up and one down.

mod quic;
mod tls;
mod websocket;

use std::fmt;
use std::net::SocketAddr;
use std::pin::pin;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use device_protocol::PATH;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::network::Network;
use crate::network::datagrams::elsewhere;

/// Most queued frames in one direction: five seconds of 20 ms packets.
pub const QUEUE_FRAMES_MAX: usize = 256;

/// Time limit for opening a connection, excluding the handshake of the protocol.
const OPEN_MAX: Duration = Duration::from_secs(10);

/// How long one attempt may take before another one is made beside it: a gateway that is killed in the middle of a handshake of
/// QUIC leaves one that nobody answers any more (PROTOCOL.md, section 1).
const BESIDE_AFTER: Duration = Duration::from_secs(3);

/// Port if an address names none.
const PORT_DEFAULT: u16 = 8460;

/// Why a link could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is invalid.
    #[error(
        "'{0}' is no address of a gateway; use ws://HOST:PORT/glasses, wss://HOST:PORT/glasses or quic://HOST:PORT"
    )]
    Address(String),
    /// The host has no address or accepts no connection.
    #[error("cannot reach {target}: {reason}")]
    Unreachable {
        /// The address, as a URL.
        target: String,
        /// Why no connection came about.
        reason: String,
    },
}

/// The first part of a gateway's address: which transport the glasses use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// WebSocket without TLS.
    Ws,
    /// WebSocket over TLS 1.3.
    Wss,
    /// QUIC, over UDP and always with TLS 1.3.
    Quic,
}

impl Scheme {
    const NAMES: [(&'static str, Self); 3] = [("ws", Self::Ws), ("wss", Self::Wss), ("quic", Self::Quic)];

    /// The scheme in addresses.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, scheme)| *scheme == self).map_or("?", |(name, _)| name)
    }
}

/// The address of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// How the gateway is reached there.
    pub scheme: Scheme,
    /// Name or address, without brackets.
    pub host: String,
    /// Port: of UDP for QUIC, otherwise of TCP.
    pub port: u16,
    /// Path of the WebSocket.
    pub path: String,
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Address(text.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let (_, scheme) = Scheme::NAMES.into_iter().find(|(name, _)| *name == scheme).ok_or_else(wrong)?;
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, PATH),
        };
        // An IPv6 address is in brackets, because it contains colons.
        let (host, port) = match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, Some(port.strip_prefix(':').ok_or_else(wrong)?)),
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            },
        };
        let port = port.map_or(Ok(PORT_DEFAULT), |port| port.parse().map_err(|_| wrong()))?;
        if host.is_empty() {
            return Err(wrong());
        }
        let path = if path == "/" { PATH } else { path };
        Ok(Self { scheme, host: host.to_owned(), port, path: path.to_owned() })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.scheme == Scheme::Quic { "" } else { &self.path };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        write!(formatter, "{}://{host}:{}{path}", self.scheme.name(), self.port)
    }
}

impl Target {
    pub(crate) fn unreachable(&self, reason: impl fmt::Display) -> Error {
        Error::Unreachable { target: self.to_string(), reason: reason.to_string() }
    }

    /// The host as TLS and HTTP know it: the zone of a link-local address means something on this machine only (RFC 6874).
    fn host_without_zone(&self) -> &str {
        self.host.split_once('%').map_or(self.host.as_str(), |(address, _)| address)
    }

    async fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
        Ok(found.map_err(|error| self.unreachable(error))?.collect())
    }
}

/// Received from the gateway.
#[derive(Debug)]
pub enum Inbound {
    /// One envelope.
    Frame(Bytes),
    /// The gateway closed, or the link broke.
    Closed {
        /// Close code of the WebSocket or of QUIC; 0: none.
        code: u16,
        /// The reason in words.
        reason: String,
    },
}

/// An open connection. Dropping `up` sends what is queued and closes; dropping both aborts it.
#[derive(Debug)]
pub struct Link {
    /// Frames to the gateway.
    pub up: mpsc::Sender<Bytes>,
    /// Frames from the gateway.
    pub down: mpsc::Receiver<Inbound>,
    /// TLS exporter of this connection, or zeros without TLS.
    pub binding: [u8; 32],
    /// SHA-256 of the gateway's certificate, or zeros without TLS.
    pub certificate: [u8; 32],
    /// Name of the transport.
    pub name: &'static str,
    /// True if sound may be lost or reordered.
    pub loses_sound: bool,
    /// Set: sound is sent on the control stream, so that nothing of it is lost and it stands where it stood. Other
    /// transports have no other way.
    pub sound_in_order: Arc<AtomicBool>,
    /// The local end of QUIC, which can move to another address, and the gateway's address.
    pub endpoint: Option<(quinn::Endpoint, SocketAddr)>,
}

impl Link {
    /// Moves to another local address, where the transport can; `None`: it cannot. From a gateway on this machine to
    /// another address of it, as far as it has several; otherwise to another port.
    ///
    /// # Errors
    /// No other address is free.
    pub fn rebind(&self) -> std::io::Result<Option<SocketAddr>> {
        let Some((endpoint, peer)) = &self.endpoint else { return Ok(None) };
        let socket = std::net::UdpSocket::bind(elsewhere(endpoint.local_addr()?, *peer))?;
        let address = socket.local_addr()?;
        endpoint.rebind(socket)?;
        Ok(Some(address))
    }
}

/// Opens a connection.
///
/// # Errors
/// The gateway cannot be reached, or uses another protocol.
pub async fn open(target: &Target) -> Result<Link, Error> {
    open_through(target, None).await
}

/// Opens a connection through a network, if there is one.
///
/// # Errors
/// The gateway cannot be reached, or uses another protocol.
pub async fn open_through(target: &Target, network: Option<&Network>) -> Result<Link, Error> {
    let opening = async {
        match target.scheme {
            Scheme::Ws | Scheme::Wss => websocket::open(target, network).await,
            Scheme::Quic => first_of_two(|| quic::open(target, network)).await,
        }
    };
    match timeout(OPEN_MAX, opening).await {
        Ok(result) => result,
        Err(_) => Err(target.unreachable(format!("no answer in {} s", OPEN_MAX.as_secs()))),
    }
}

/// The outcome of an attempt or, where it takes long, of another one beside it: of the one that is ready first.
async fn first_of_two<T, F: Future<Output = T>>(attempt: impl Fn() -> F) -> T {
    let mut first = pin!(attempt());
    match timeout(BESIDE_AFTER, &mut first).await {
        Ok(outcome) => outcome,
        Err(_) => tokio::select! {
            outcome = first => outcome,
            outcome = attempt() => outcome,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use tokio::time::{Instant, sleep};

    /// The number of the attempt of which something came, and after how many seconds; `seconds`: what each takes.
    async fn attempts(seconds: [u64; 2]) -> (usize, u64) {
        let (count, began) = (Cell::new(0), Instant::now());
        let attempt = || {
            let number = count.replace(count.get() + 1);
            async move {
                sleep(Duration::from_secs(seconds[number])).await;
                number
            }
        };
        (first_of_two(attempt).await, began.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_nobody_answers_holds_nothing_up() {
        assert_eq!(attempts([2, 0]).await, (0, 2), "the only one");
        assert_eq!(attempts([1_000, 1]).await, (1, 4), "begun in a gateway that is gone");
        assert_eq!(attempts([5, 9]).await, (0, 5), "slow");
    }

    #[test]
    fn addresses_of_gateways() {
        for (text, shown) in [
            ("ws://127.0.0.1:8460/glasses", "ws://127.0.0.1:8460/glasses"),
            ("ws://localhost", "ws://localhost:8460/glasses"),
            ("wss://box.local:99/", "wss://box.local:99/glasses"),
            ("quic://[::1]:8460", "quic://[::1]:8460"),
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), shown);
        }
        let scoped: Target = "wss://[fe80::1%2]:99/".parse().unwrap();
        assert_eq!((scoped.host.as_str(), scoped.host_without_zone()), ("fe80::1%2", "fe80::1"));
        for text in ["", "http://x", "ws://", "ws://x:port", "quic://[::1]x", "ws://x:70000"] {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
