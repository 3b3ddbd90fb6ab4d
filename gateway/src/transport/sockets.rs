//! The listening sockets. They are bound here, given by a service manager, or taken over from the gateway that this
//! process replaces.

use std::{
    io::{self, ErrorKind},
    net::{SocketAddr, TcpListener, UdpSocket},
};

use anyhow::{Context as _, Result, anyhow};
use listenfd::ListenFd;

/// Sockets that a service manager may give: one for TCP and one for UDP.
const GIVEN_MAX: usize = 2;

/// The sockets of all listeners.
#[derive(Debug)]
pub struct Sockets {
    /// WebSocket and everything over HTTP.
    pub web: TcpListener,
    /// QUIC; `None`: switched off.
    pub quic: Option<UdpSocket>,
    /// A service manager gave them: they are used wherever the configuration listens.
    pub given: bool,
}

impl Sockets {
    /// Binds the addresses.
    ///
    /// # Errors
    /// A port is in use or the address is not this machine's.
    pub async fn bind(web: SocketAddr, quic: Option<SocketAddr>) -> Result<Self> {
        let listener = tcp(web).await.map_err(|error| anyhow!(cannot_listen(web, "TCP", "listen.web", &error)))?;
        let bind = |at| UdpSocket::bind(at).map_err(|error| anyhow!(cannot_listen(at, "UDP", "listen.quic", &error)));
        Ok(Self { web: listener, quic: quic.map(bind).transpose()?, given: false })
    }

    /// These, as far as this configuration has their addresses; others are bound in place of the rest.
    ///
    /// # Errors
    /// As of [`bind`](Self::bind); or the gateway that this process replaces still listens on the port of another address.
    pub async fn exchanged(self, web: SocketAddr, quic: Option<SocketAddr>) -> Result<Self> {
        if self.fit(web, quic) {
            return Ok(self);
        }
        let own_web = self.web.local_addr();
        let own_quic = self.quic.as_ref().map(UdpSocket::local_addr);
        let listener = match is_same(web, &own_web) {
            true => self.web,
            false => tcp(web).await.map_err(|error| held(web, ("TCP", "listen.web"), Some(&own_web), &error))?,
        };
        let socket = match (quic, self.quic) {
            (None, _) => None,
            (Some(at), Some(socket)) if own_quic.as_ref().is_some_and(|own| is_same(at, own)) => Some(socket),
            (Some(at), _) => {
                let bound = UdpSocket::bind(at);
                Some(bound.map_err(|error| held(at, ("UDP", "listen.quic"), own_quic.as_ref(), &error))?)
            }
        };
        Ok(Self { web: listener, quic: socket, given: false })
    }

    /// Those of a service manager, by the protocol of `sd_listen_fds(3)`: one TCP and at most one UDP socket, in any order.
    /// `None`: it gave none. To be called once, before there are threads: it removes variables of the environment.
    ///
    /// # Errors
    /// Other sockets than these, or no TCP socket.
    pub fn given() -> Result<Option<Self>> {
        let mut given = ListenFd::from_env();
        let count = given.len();
        if count == 0 {
            return Ok(None);
        }
        let remedy = "a socket unit needs one ListenStream= and at most one ListenDatagram=, both with ports";
        if count > GIVEN_MAX {
            return Err(anyhow!("{count} sockets were given (LISTEN_FDS): {remedy}"));
        }
        let (mut web, mut quic) = (None, None);
        for index in 0..count {
            if let Ok(Some(listener)) = given.take_tcp_listener(index)
                && web.is_none()
            {
                web = Some(listener);
            } else if let Ok(Some(socket)) = given.take_udp_socket(index)
                && quic.is_none()
            {
                quic = Some(socket);
            } else {
                return Err(anyhow!("socket {index} of those that were given (LISTEN_FDS) is no listener: {remedy}"));
            }
        }
        let web = web.with_context(|| format!("no TCP socket was given (LISTEN_FDS): {remedy}"))?;
        Ok(Some(Self { web, quic, given: true }))
    }

    /// Whether they are those of this configuration; any port will do for port 0.
    fn fit(&self, web: SocketAddr, quic: Option<SocketAddr>) -> bool {
        let quic_fits = match (quic, &self.quic) {
            (Some(wanted), Some(socket)) => is_same(wanted, &socket.local_addr()),
            (None, None) => true,
            _ => false,
        };
        self.given || quic_fits && is_same(web, &self.web.local_addr())
    }

    /// The same sockets under other descriptors.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let quic = self.quic.as_ref().map(UdpSocket::try_clone).transpose()?;
        Ok(Self { web: self.web.try_clone()?, quic, given: self.given })
    }
}

async fn tcp(at: SocketAddr) -> io::Result<TcpListener> {
    tokio::net::TcpListener::bind(at).await.and_then(tokio::net::TcpListener::into_std)
}

/// Whether a socket is bound to this address.
fn is_same(wanted: SocketAddr, bound: &io::Result<SocketAddr>) -> bool {
    bound.as_ref().is_ok_and(|bound| bound.ip() == wanted.ip() && [0, bound.port()].contains(&wanted.port()))
}

/// Why listening there fails, beside a gateway that has a socket of the same kind as long as it serves.
fn held(
    at: SocketAddr,
    (kind, key): (&str, &str),
    own: Option<&io::Result<SocketAddr>>,
    error: &io::Error,
) -> anyhow::Error {
    let has_port = own.is_some_and(|own| own.as_ref().is_ok_and(|own| own.port() == at.port()));
    match error.kind() {
        ErrorKind::AddrInUse if has_port => anyhow!(
            "cannot listen on {at} ({kind}): the gateway that is to be replaced has this port until it ends, so that \
             another address in `{key}` needs a restart"
        ),
        _ => anyhow!(cannot_listen(at, kind, key, error)),
    }
}

/// Why listening there fails, and what to do.
pub(crate) fn cannot_listen(address: SocketAddr, kind: &str, key: &str, error: &io::Error) -> String {
    let why = match error.kind() {
        ErrorKind::AddrInUse => {
            format!("another program listens there already, perhaps another gateway; change `{key}`")
        }
        ErrorKind::AddrNotAvailable => {
            format!("this machine has no such address; name one that it has in `{key}`, or all of them with [::]")
        }
        ErrorKind::PermissionDenied => {
            format!("the system does not allow it: ports below 1024 are root's; change `{key}`")
        }
        _ => format!("{error}; change `{key}`"),
    };
    format!("cannot listen on {address} ({kind}): {why}")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn what_stays_is_taken_over_and_another_address_on_its_port_needs_a_restart() {
        let loopback = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
        let old = Sockets::bind(loopback, None).await.unwrap();
        let web = old.web.local_addr().unwrap();
        // Where a second socket were bound there, this would fail.
        let new = old.try_clone().unwrap().exchanged(web, Some(loopback)).await.unwrap();
        assert_eq!(new.web.local_addr().unwrap(), web);
        let quic = new.quic.as_ref().unwrap().local_addr().unwrap();
        assert!(new.try_clone().unwrap().exchanged(web, None).await.unwrap().quic.is_none());
        let wide = |port| SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
        for (web, quic) in [(wide(web.port()), quic), (web, wide(quic.port()))] {
            let refused = new.try_clone().unwrap().exchanged(web, Some(quic)).await.unwrap_err().to_string();
            assert!(refused.contains("needs a restart"), "{refused}");
        }
    }
}
