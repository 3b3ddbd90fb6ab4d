//! The listeners: one TCP port for WebSocket and everything over HTTP, one UDP port for QUIC.
//!
//! `accept` takes connections; `router` has all paths of the TCP port. An endpoint is a group of paths in its own file,
//! with a function `routes`: `health`, `metrics`, `try_page`, `mcp`, `app_requests`, `app_socket`, `glasses`, `console`. They share `peer`
//! (the other end of the connection), `origin` (the page that sends a request), `access` (who may send one), `upgrade`
//! (to a WebSocket) and `reply`.

mod accept;
mod access;
mod app_requests;
mod app_socket;
mod console;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod glasses;
mod health;
pub(crate) mod links;
mod mcp;
mod metrics;
mod origin;
mod peer;
mod reply;
mod router;
pub(crate) mod settings;
mod try_link;
mod try_page;
mod upgrade;

use std::{
    net::{SocketAddr, UdpSocket},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use tokio::{net::TcpListener, time::timeout};
use tokio_util::sync::CancellationToken;

use self::settings::Listen;
pub(crate) use self::{
    metrics::Metrics,
    try_link::TryLink,
    try_page::{About, TryPage},
};
use crate::{
    control::admin::Admin,
    device_task::{self, services::Services},
    health::Health,
    mcp::Mcp,
    runtime::essential::EssentialTasks,
    transport::{quic, slots::ConnectionSlots, sockets::Sockets, tls::Tls},
};

/// How long a TLS or HTTP handshake may take.
const HANDSHAKE_MS_MAX: u64 = 5_000;

/// What the endpoints work with.
pub(crate) struct Endpoints {
    /// Sessions of glasses, and what they share with the other endpoints: configuration, admission, mini-apps.
    pub services: Arc<Services>,
    /// What operators see and change at the console.
    pub admin: Arc<Admin>,
    /// MCP in both directions.
    pub mcp: Arc<Mcp>,
    /// Whether the gateway works.
    pub health: Arc<Health>,
    /// The gateway's numbers.
    pub metrics: Metrics,
    /// Whether glasses may connect over WebSocket.
    pub websocket: bool,
    /// The browser page; `None`: no such page.
    pub try_page: Option<TryPage>,
    /// Names of this machine in Host headers, in addition to its addresses and `localhost`.
    pub names: Vec<String>,
    /// Whether mini-apps connect from other machines too.
    pub apps_elsewhere: bool,
}

/// Bound sockets, ready to serve.
pub(crate) struct Bound {
    tcp: TcpListener,
    quic: Option<quinn::Endpoint>,
    tls: Tls,
    plain_everywhere: bool,
}

impl Bound {
    /// Takes the listening sockets.
    ///
    /// # Errors
    /// They cannot be used.
    pub(crate) fn new(sockets: Sockets, listen: &Listen, tls: Tls) -> Result<Self> {
        sockets.web.set_nonblocking(true)?;
        let tcp = TcpListener::from_std(sockets.web).context("using the TCP socket")?;
        let quic = sockets.quic.map(|socket| quic_endpoint(socket, &tls)).transpose()?;
        Ok(Self { tcp, quic, tls, plain_everywhere: listen.plain })
    }

    /// The TCP address that was bound.
    ///
    /// # Errors
    /// The socket is gone.
    pub(crate) fn web_address(&self) -> Result<SocketAddr> {
        Ok(self.tcp.local_addr()?)
    }

    /// The UDP address that was bound.
    pub(crate) fn quic_address(&self) -> Option<SocketAddr> {
        self.quic.as_ref().and_then(|endpoint| endpoint.local_addr().ok())
    }

    /// Accepts connections until `stop`.
    pub(crate) async fn serve(self, endpoints: Endpoints, essential: Arc<EssentialTasks>, stop: CancellationToken) {
        let slots = Arc::new(ConnectionSlots::new(endpoints.services.settings.limits.connections_max));
        if let Some(endpoint) = self.quic.clone() {
            let services = endpoints.services.clone();
            let serve = async move |link, slot: Arc<_>| device_task::serve(&services, link, &slot).await;
            let accepting = accept::quic(endpoint, self.tls.fingerprint, slots.clone(), serve, stop.clone());
            essential.spawn("quic-accept", accepting);
        }
        let web = accept::Web::new(&self.tls, self.plain_everywhere, slots, router::router(&endpoints));
        accept::tcp(self.tcp, web, stop).await;
        if let Some(endpoint) = self.quic {
            drop(timeout(Duration::from_secs(2), endpoint.wait_idle()).await);
        }
    }
}

fn quic_endpoint(socket: UdpSocket, tls: &Tls) -> Result<quinn::Endpoint> {
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(tls.quic.clone()).context("QUIC needs TLS 1.3")?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(quic::transport_config());
    let runtime = Arc::new(quinn::TokioRuntime);
    quinn::Endpoint::new(quic::endpoint_config(&tls.secret), Some(config), socket, runtime)
        .context("using the UDP socket")
}
