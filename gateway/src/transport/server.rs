//! The listeners: one TCP port for WebSocket and the pages, one UDP port for QUIC.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use device_protocol::{PATH, SUBPROTOCOL, SUBPROTOCOL_JSON, auth};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{self, HeaderName, HeaderValue},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_util::sync::CancellationToken;

use super::{Link, Receiver, quic, tls::Tls, websocket};
use crate::{apps, effects::spawn, gate::Gate, pages};

/// How long a TLS or HTTP handshake may take.
const HANDSHAKE_MS_MAX: u64 = 5_000;
/// First byte of a TLS record that carries a handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// An answer; its body may be a stream.
pub type Reply = Response<BoxBody<Bytes, Infallible>>;

/// Where to listen.
pub struct Listen {
    /// TCP: WebSocket and pages.
    pub web: SocketAddr,
    /// UDP: QUIC; absent: none.
    pub quic: Option<SocketAddr>,
    /// Accept `ws://` from other machines too.
    pub plain_everywhere: bool,
}

/// Bound sockets, ready to serve.
pub struct Bound {
    tcp: TcpListener,
    quic: Option<quinn::Endpoint>,
    tls: Tls,
    plain_everywhere: bool,
}

impl Bound {
    /// Takes the ports.
    ///
    /// # Errors
    /// A port is in use or the address is not this machine's.
    pub async fn bind(listen: &Listen, tls: Tls) -> Result<Self> {
        let tcp = TcpListener::bind(listen.web).await.with_context(|| {
            format!("cannot listen on {} (TCP): is another gateway running? Change `listen.web`", listen.web)
        })?;
        let quic = listen.quic.map(|address| quic_endpoint(address, &tls)).transpose()?;
        Ok(Self { tcp, quic, tls, plain_everywhere: listen.plain_everywhere })
    }

    /// The TCP address really bound.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn web_address(&self) -> Result<SocketAddr> {
        Ok(self.tcp.local_addr()?)
    }

    /// The UDP address really bound.
    pub fn quic_address(&self) -> Option<SocketAddr> {
        self.quic.as_ref().and_then(|endpoint| endpoint.local_addr().ok())
    }

    /// Accepts until `stop`.
    pub async fn serve(self, gate: Arc<Gate>, stop: CancellationToken) {
        if let Some(endpoint) = self.quic.clone() {
            spawn("quic-accept", serve_quic(endpoint, gate.clone(), stop.clone()));
        }
        let acceptor = tokio_rustls::TlsAcceptor::from(self.tls.web.clone());
        let open = Arc::new(Semaphore::new(gate.limits().connections_max));
        loop {
            let (stream, peer) = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.tcp.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Out of file descriptors, most likely: wait for some to come free.
                        tracing::warn!(%error, "accepting a connection failed");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
            };
            let Ok(permit) = open.clone().try_acquire_owned() else {
                tracing::warn!(%peer, "refused: too many connections");
                continue;
            };
            let (gate, acceptor, plain) = (gate.clone(), acceptor.clone(), self.plain_everywhere);
            spawn("connection", async move {
                if let Err(error) = serve_tcp(stream, peer, acceptor, gate, plain).await {
                    tracing::debug!(%peer, %error, "connection ended");
                }
                drop(permit);
            });
        }
        if let Some(endpoint) = self.quic {
            drop(timeout(Duration::from_secs(2), endpoint.wait_idle()).await);
        }
    }
}

fn quic_endpoint(address: SocketAddr, tls: &Tls) -> Result<quinn::Endpoint> {
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(tls.quic.clone()).context("QUIC needs TLS 1.3")?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(quic::transport_config());
    quinn::Endpoint::server(config, address)
        .with_context(|| format!("cannot listen on {address} (UDP): is another gateway running? Change `listen.quic`"))
}

async fn serve_quic(endpoint: quinn::Endpoint, gate: Arc<Gate>, stop: CancellationToken) {
    loop {
        let incoming = tokio::select! {
            () = stop.cancelled() => break,
            incoming = endpoint.accept() => match incoming {
                Some(incoming) => incoming,
                None => break,
            },
        };
        // An address that has not shown that it can receive gets a retry first: no amplification.
        if !incoming.remote_address_validated() && endpoint.open_connections() > gate.limits().connections_max / 2 {
            drop(incoming.retry());
            continue;
        }
        if endpoint.open_connections() > gate.limits().connections_max {
            incoming.refuse();
            continue;
        }
        let gate = gate.clone();
        spawn("quic-connection", async move {
            let opened = async { quic::open(incoming.await?).await.map_err(anyhow::Error::from) };
            match opened.await {
                Ok(link) => gate.run(link).await,
                Err(error) => tracing::debug!(%error, "a QUIC connection came to nothing"),
            }
        });
    }
}

async fn serve_tcp(
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: tokio_rustls::TlsAcceptor,
    gate: Arc<Gate>,
    plain_everywhere: bool,
) -> Result<()> {
    stream.set_nodelay(true)?;
    let wait = Duration::from_millis(HANDSHAKE_MS_MAX);
    let mut first = [0];
    timeout(wait, stream.peek(&mut first)).await.context("the peer said nothing")??;
    if first == [TLS_HANDSHAKE] {
        let stream = timeout(wait, acceptor.accept(stream)).await.context("the TLS handshake took too long")??;
        let binding = stream
            .get_ref()
            .1
            .export_keying_material([0; 32], auth::EXPORTER_LABEL, Some(&[]))
            .context("TLS exporter")?;
        return serve_http(stream, Peer { address: peer, binding, transport: "wss", gate }).await;
    }
    if !peer.ip().is_loopback() && !plain_everywhere {
        tracing::info!(%peer, "refused plain ws:// from another machine: use wss://, or set `listen.plain = true`");
        return Ok(());
    }
    serve_http(stream, Peer { address: peer, binding: auth::NO_BINDING, transport: "ws", gate }).await
}

#[derive(Clone)]
struct Peer {
    address: SocketAddr,
    binding: [u8; 32],
    transport: &'static str,
    gate: Arc<Gate>,
}

async fn serve_http<S>(stream: S, peer: Peer) -> Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| {
        let peer = peer.clone();
        async move { Ok::<_, Infallible>(answer(request, peer).await) }
    });
    hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(HANDSHAKE_MS_MAX))
        .max_buf_size(16 * 1024)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await?;
    Ok(())
}

async fn answer(request: Request<Incoming>, peer: Peer) -> Reply {
    if request.uri().path() == PATH && peer.gate.config.websocket {
        return upgrade(request, peer);
    }
    if matches!(request.uri().path(), apps::PATH | apps::PATH_OLD) {
        return upgrade_app(request, peer);
    }
    pages::answer(request, peer.address, &peer.gate).await
}

fn header_of(request: &Request<Incoming>, name: HeaderName) -> Option<&str> {
    request.headers().get(name).and_then(|value| value.to_str().ok())
}

fn has(request: &Request<Incoming>, name: HeaderName, token: &str) -> bool {
    header_of(request, name).is_some_and(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(token)))
}

/// The key that accepts a WebSocket, or why there will be none.
fn accept_key(request: &Request<Incoming>) -> Result<String, Box<Reply>> {
    let refuse = |status, text| Err(Box::new(plain(status, text)));
    let upgrades = has(request, header::UPGRADE, "websocket") && has(request, header::CONNECTION, "upgrade");
    if request.method() != Method::GET || !upgrades {
        return refuse(
            StatusCode::UPGRADE_REQUIRED,
            "this path speaks WebSocket: /glasses as in PROTOCOL.md, /app-ws as in docs/apps-host.md\n",
        );
    }
    if header_of(request, header::SEC_WEBSOCKET_VERSION) != Some("13") {
        return refuse(StatusCode::BAD_REQUEST, "WebSocket version 13 is needed\n");
    }
    // A page of some other site must not reach the gateway through its visitor's browser.
    if !pages::origin_is_ours(request.headers()) {
        return refuse(StatusCode::FORBIDDEN, "this Origin may not connect\n");
    }
    match header_of(request, header::SEC_WEBSOCKET_KEY) {
        Some(key) => Ok(derive_accept_key(key.as_bytes())),
        None => refuse(StatusCode::BAD_REQUEST, "Sec-WebSocket-Key is missing\n"),
    }
}

fn switching(key: &str, protocol: Option<&'static str>) -> Reply {
    let mut reply = Response::new(Full::default().boxed());
    *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = reply.headers_mut();
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Some(protocol) = protocol {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
    }
    if let Ok(key) = HeaderValue::from_str(key) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, key);
    }
    reply
}

fn upgrade(mut request: Request<Incoming>, peer: Peer) -> Reply {
    let key = match accept_key(&request) {
        Ok(key) => key,
        Err(reply) => return *reply,
    };
    let (form, protocol) = if has(&request, header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        (websocket::Form::Binary, SUBPROTOCOL)
    } else if has(&request, header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL_JSON) {
        (websocket::Form::Json, SUBPROTOCOL_JSON)
    } else {
        return plain(StatusCode::BAD_REQUEST, "ask for the sub-protocol lorgnette.v1 or lorgnette.v1+json\n");
    };
    let upgraded = hyper::upgrade::on(&mut request);
    spawn("websocket", async move {
        match timeout(Duration::from_millis(HANDSHAKE_MS_MAX), upgraded).await {
            Ok(Ok(upgraded)) => {
                let (up, down) = websocket::open(upgraded, form).await;
                let link = Link {
                    peer: peer.address,
                    binding: peer.binding,
                    transport: peer.transport,
                    up: Receiver::WebSocket(up),
                    down,
                };
                peer.gate.run(link).await;
            }
            _ => tracing::debug!(peer = %peer.address, "a WebSocket upgrade came to nothing"),
        }
    });
    switching(&key, Some(protocol))
}

fn upgrade_app(mut request: Request<Incoming>, peer: Peer) -> Reply {
    let key = match accept_key(&request) {
        Ok(key) => key,
        Err(reply) => return *reply,
    };
    let headers = apps::socket::Headers::of(request.headers(), request.uri().path());
    let upgraded = hyper::upgrade::on(&mut request);
    spawn("app", async move {
        match timeout(Duration::from_millis(HANDSHAKE_MS_MAX), upgraded).await {
            Ok(Ok(upgraded)) => {
                // Whoever stops the gateway waits for this: apps are told to dial again.
                let _open = peer.gate.open.token();
                apps::socket::serve(peer.gate.apps.clone(), upgraded, headers).await;
            }
            _ => tracing::debug!(peer = %peer.address, "an app's upgrade came to nothing"),
        }
    });
    switching(&key, None)
}

/// A short text answer.
pub fn plain(status: StatusCode, text: &'static str) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    reply
}
