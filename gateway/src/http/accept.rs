//! Accepts connections, distinguishes them by their first byte, and serves them with hyper.

use std::{convert::Infallible, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use axum::{
    Router,
    http::{
        StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
};
use device_protocol::auth;
use hyper::{Request, body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use super::{HANDSHAKE_MS_MAX, peer::Peer, reply::Text};
use crate::{
    runtime::{descriptors::is_broken, spawn},
    transport::{
        Bindings, Link, Transport, canonical, quic,
        slots::{ConnectionSlot, ConnectionSlots},
        tls::Tls,
    },
};

/// First byte of a TLS handshake record.
const TLS_HANDSHAKE: u8 = 0x16;
/// Longest request head in bytes, and read-ahead of its body.
const BUFFER_BYTES_MAX: usize = 16 * 1024;

/// What serves connections of the TCP port. Cheap to clone.
#[derive(Clone)]
pub(super) struct Web {
    acceptor: TlsAcceptor,
    /// SHA-256 of the certificate.
    certificate: [u8; 32],
    plain_everywhere: bool,
    slots: Arc<ConnectionSlots>,
    router: Router,
    /// For unencrypted connections from other machines.
    refusal: Router,
}

impl Web {
    pub(super) fn new(tls: &Tls, plain_everywhere: bool, slots: Arc<ConnectionSlots>, router: Router) -> Self {
        let refusal = Router::new().fallback(refuse_plain);
        let acceptor = tls.web.clone().into();
        Self { acceptor, certificate: tls.fingerprint, plain_everywhere, slots, router, refusal }
    }

    async fn serve(self, stream: TcpStream, address: SocketAddr, slot: Arc<ConnectionSlot>) -> Result<()> {
        if first_byte(&stream).await? == TLS_HANDSHAKE {
            return self.serve_tls(stream, address, slot).await;
        }
        let peer = Peer { address, bindings: Bindings::NONE, transport: Transport::WS, slot };
        if self.plain_everywhere || peer.is_here() {
            return serve_http(stream, peer, self.router).await;
        }
        self.slots.refused_plain(&address);
        serve_http(stream, peer, self.refusal).await
    }

    async fn serve_tls(self, stream: TcpStream, address: SocketAddr, slot: Arc<ConnectionSlot>) -> Result<()> {
        let wait = Duration::from_millis(HANDSHAKE_MS_MAX);
        let stream = timeout(wait, self.acceptor.accept(stream)).await.context("the TLS handshake took too long")??;
        let tls = stream.get_ref().1;
        let exporter = tls.export_keying_material([0; 32], auth::EXPORTER_LABEL, Some(&[])).context("TLS exporter")?;
        let bindings = Bindings { exporter, certificate: self.certificate };
        serve_http(stream, Peer { address, bindings, transport: Transport::WSS, slot }, self.router).await
    }
}

/// Accepts connections of the TCP port until `stop`.
pub(super) async fn tcp(listener: TcpListener, web: Web, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok((stream, peer)) => (stream, canonical(peer)),
            Err(error) if is_broken(&error) => {
                tracing::error!(%error, "the listener takes no connections any more");
                return;
            }
            Err(error) => {
                // Most likely out of file descriptors: wait for some to be closed.
                tracing::warn!(%error, "accepting a connection failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Some(slot) = web.slots.take(&peer) else { continue };
        let web = web.clone();
        spawn("connection", async move {
            let serving = pin!(web.serve(stream, peer, slot.clone()));
            match slot.keep(serving).await {
                Some(Ok(())) => {}
                Some(Err(error)) => tracing::debug!(%peer, %error, "connection ended"),
                None => tracing::debug!(%peer, "a connection gave way to a newer one"),
            }
        });
    }
}

/// The peer's first byte, which is not consumed.
async fn first_byte(stream: &TcpStream) -> Result<u8> {
    stream.set_nodelay(true)?;
    let mut first = [0];
    let wait = Duration::from_millis(HANDSHAKE_MS_MAX);
    let bytes = timeout(wait, stream.peek(&mut first)).await.context("the peer said nothing")??;
    // Who tries several addresses at once drops the others.
    ensure!(bytes == 1, "the peer closed the connection before it said anything");
    Ok(first[0])
}

/// The answer to an unencrypted connection from another machine.
async fn refuse_plain() -> ([(HeaderName, &'static str); 1], Text) {
    let told = "this gateway takes encrypted connections only from other machines: https:// in place of http://, wss:// in \
                place of ws://; its operator can set `listen.plain = true`\n";
    ([(header::CONNECTION, "close")], (StatusCode::FORBIDDEN, told))
}

/// Serves the requests of a connection, with upgrades.
pub(super) async fn serve_http<S>(stream: S, peer: Peer, router: Router) -> Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |mut request: Request<Incoming>| {
        let slot = peer.slot.clone();
        slot.count_request();
        request.extensions_mut().insert(peer.clone());
        let answered = router.clone().call(request);
        async move {
            let mut answer = answered.await?;
            if slot.is_used_up() && answer.status() != StatusCode::SWITCHING_PROTOCOLS {
                answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(answer)
        }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(HANDSHAKE_MS_MAX))
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await?;
    Ok(())
}

/// Accepts connections of the UDP port until `stop`; `serve` gets the links.
pub(super) async fn quic<F>(
    endpoint: quinn::Endpoint,
    certificate: [u8; 32],
    slots: Arc<ConnectionSlots>,
    serve: impl FnOnce(Link, Arc<ConnectionSlot>) -> F + Clone + Send + 'static,
    stop: CancellationToken,
) where
    F: Future<Output = ()> + Send,
{
    loop {
        let incoming = tokio::select! {
            () = stop.cancelled() => break,
            incoming = endpoint.accept() => match incoming {
                Some(incoming) => incoming,
                None => break,
            },
        };
        let peer = canonical(incoming.remote_address());
        // A peer that may have forged its address gets a retry first: it takes nobody's share, and there is no
        // amplification.
        if !incoming.remote_address_validated() && slots.is_busy_for(&peer) {
            drop(incoming.retry());
            continue;
        }
        let Some(slot) = slots.take(&peer) else {
            incoming.refuse();
            continue;
        };
        let serve = serve.clone();
        spawn("quic-connection", async move {
            let opened = async {
                let wait = Duration::from_millis(HANDSHAKE_MS_MAX);
                let connection = timeout(wait, incoming).await.context("the QUIC handshake took too long")??;
                quic::open(connection, certificate).await.map_err(anyhow::Error::from)
            };
            let serving = pin!(async {
                match opened.await {
                    Ok(link) => serve(link, slot.clone()).await,
                    Err(error) => tracing::debug!(%error, "a QUIC connection came to nothing"),
                }
            });
            if slot.keep(serving).await.is_none() {
                tracing::debug!(%peer, "a connection gave way to a newer one");
            }
        });
    }
}
