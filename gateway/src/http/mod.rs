//! The listeners: one TCP port for WebSocket and the pages, one UDP port for QUIC.

pub mod pages;
pub mod settings;

use std::{
    convert::Infallible,
    io::{self, ErrorKind},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use device_protocol::{PATH, SUBPROTOCOL, SUBPROTOCOL_JSON, auth};
use http_body_util::{BodyExt as _, Full};
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
    time::timeout,
};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_util::sync::CancellationToken;

use self::{pages::Pages, settings::Listen};
use crate::{
    apps::{self, APP_SOCKET_PATH},
    clock,
    device_task::{self, services::Services},
    reply::{Reply, plain},
    runtime::spawn,
    transport::{
        Bindings, Link, Receiver, Transport, canonical,
        places::{Place, Places},
        quic,
        tls::Tls,
        websocket,
    },
};

/// How long a TLS or HTTP handshake may take.
const HANDSHAKE_MS_MAX: u64 = 5_000;
/// First byte of a TLS record that carries a handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// What is behind the ports.
#[derive(Clone)]
pub struct Doors {
    /// For glasses.
    pub services: Arc<Services>,
    /// Whether glasses come in over WebSocket.
    pub websocket: bool,
    /// For everybody else.
    pub pages: Arc<Pages>,
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
        let tcp = TcpListener::bind(listen.web).await;
        let tcp = tcp.map_err(|error| anyhow!(cannot_listen(listen.web, "TCP", "listen.web", &error)))?;
        let quic = listen.quic.map(|address| quic_endpoint(address, &tls)).transpose()?;
        Ok(Self { tcp, quic, tls, plain_everywhere: listen.plain })
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
    pub async fn serve(self, doors: Doors, stop: CancellationToken) {
        let places = Arc::new(Places::new(doors.services.settings.limits.connections_max));
        if let Some(endpoint) = self.quic.clone() {
            let services = doors.services.clone();
            let accepting = serve_quic(endpoint, self.tls.fingerprint, places.clone(), services, stop.clone());
            spawn("quic-accept", accepting);
        }
        let acceptor = tokio_rustls::TlsAcceptor::from(self.tls.web.clone());
        loop {
            let (stream, peer) = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.tcp.accept() => match accepted {
                    Ok((stream, peer)) => (stream, canonical(peer)),
                    Err(error) => {
                        // Out of file descriptors, most likely: wait for some to come free.
                        tracing::warn!(%error, "accepting a connection failed");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
            };
            let Some(place) = places.take(&peer) else { continue };
            let is_welcome_plain = self.plain_everywhere || peer.ip().is_loopback();
            let (doors, acceptor, places) = (doors.clone(), acceptor.clone(), places.clone());
            let certificate = self.tls.fingerprint;
            spawn("connection", async move {
                let ended = match first_byte(&stream).await {
                    Ok(TLS_HANDSHAKE) => serve_tls(stream, peer, (acceptor, certificate), doors, place).await,
                    Ok(_) if is_welcome_plain => {
                        let peer =
                            Peer { address: peer, bindings: Bindings::NONE, transport: Transport::WS, doors, place };
                        serve_http(stream, move |request| answer(request, peer.clone())).await
                    }
                    Ok(_) => {
                        places.refused_plain(&peer);
                        serve_http(stream, |_| async { refuse_plain() }).await
                    }
                    Err(error) => Err(error),
                };
                if let Err(error) = ended {
                    tracing::debug!(%peer, %error, "connection ended");
                }
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
        .map_err(|error| anyhow!(cannot_listen(address, "UDP", "listen.quic", &error)))
}

/// Why nothing can listen there, and what to do.
pub fn cannot_listen(address: SocketAddr, kind: &str, key: &str, error: &io::Error) -> String {
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

async fn serve_quic(
    endpoint: quinn::Endpoint,
    certificate: [u8; 32],
    places: Arc<Places>,
    services: Arc<Services>,
    stop: CancellationToken,
) {
    loop {
        let incoming = tokio::select! {
            () = stop.cancelled() => break,
            incoming = endpoint.accept() => match incoming {
                Some(incoming) => incoming,
                None => break,
            },
        };
        // An address that has not shown that it can receive gets a retry first: no amplification.
        if !incoming.remote_address_validated()
            && endpoint.open_connections() > services.settings.limits.connections_max / 2
        {
            drop(incoming.retry());
            continue;
        }
        let Some(place) = places.take(&canonical(incoming.remote_address())) else {
            incoming.refuse();
            continue;
        };
        let services = services.clone();
        spawn("quic-connection", async move {
            let _place = place;
            let opened = async { quic::open(incoming.await?, certificate).await.map_err(anyhow::Error::from) };
            match opened.await {
                Ok(link) => device_task::serve(&services, link).await,
                Err(error) => tracing::debug!(%error, "a QUIC connection came to nothing"),
            }
        });
    }
}

/// What a peer says first; it stays there to be read.
async fn first_byte(stream: &TcpStream) -> Result<u8> {
    stream.set_nodelay(true)?;
    let mut first = [0];
    let wait = Duration::from_millis(HANDSHAKE_MS_MAX);
    timeout(wait, stream.peek(&mut first)).await.context("the peer said nothing")??;
    Ok(first[0])
}

async fn serve_tls(
    stream: TcpStream,
    address: SocketAddr,
    (acceptor, certificate): (tokio_rustls::TlsAcceptor, [u8; 32]),
    doors: Doors,
    place: Place,
) -> Result<()> {
    let wait = Duration::from_millis(HANDSHAKE_MS_MAX);
    let stream = timeout(wait, acceptor.accept(stream)).await.context("the TLS handshake took too long")??;
    let exporter =
        stream.get_ref().1.export_keying_material([0; 32], auth::EXPORTER_LABEL, Some(&[])).context("TLS exporter")?;
    let peer = Peer { address, bindings: Bindings { exporter, certificate }, transport: Transport::WSS, doors, place };
    serve_http(stream, move |request| answer(request, peer.clone())).await
}

/// What somebody reads who came without encryption from another machine.
fn refuse_plain() -> Reply {
    let mut reply = plain(
        StatusCode::FORBIDDEN,
        "this gateway takes encrypted connections only from other machines: https:// in place of http://, wss:// in \
         place of ws://; whoever runs it can set `listen.plain = true`\n",
    );
    reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    reply
}

#[derive(Clone)]
struct Peer {
    address: SocketAddr,
    bindings: Bindings,
    transport: Transport,
    doors: Doors,
    /// Goes with the connection: what it is upgraded to keeps it until its end.
    #[expect(dead_code, reason = "it is held, not looked at")]
    place: Place,
}

async fn serve_http<S, F>(stream: S, answer: impl Fn(Request<Incoming>) -> F + Send + 'static) -> Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = Reply> + Send,
{
    let service = service_fn(move |request| {
        let answered = answer(request);
        async move { Ok::<_, Infallible>(answered.await) }
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
    if request.uri().path() == PATH && peer.doors.websocket {
        return upgrade(request, peer);
    }
    if matches!(request.uri().path(), APP_SOCKET_PATH | apps::PATH_OLD) {
        return upgrade_app(request, peer);
    }
    pages::answer(request, peer.address, &peer.doors.pages).await
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
        // All of it, with its place.
        let peer = peer;
        match timeout(Duration::from_millis(HANDSHAKE_MS_MAX), upgraded).await {
            Ok(Ok(upgraded)) => {
                let (up, down) = websocket::open(upgraded, form).await;
                let link = Link {
                    opened_us: clock::mono_us(),
                    peer: peer.address,
                    bindings: peer.bindings,
                    transport: peer.transport,
                    up: Receiver::WebSocket(up),
                    down,
                    failures: None,
                };
                device_task::serve(&peer.doors.services, link).await;
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
        let peer = peer;
        match timeout(Duration::from_millis(HANDSHAKE_MS_MAX), upgraded).await {
            Ok(Ok(upgraded)) => {
                // Whoever stops the gateway waits for this: apps are told to dial again.
                let _open = peer.doors.services.admission.open.token();
                apps::socket::serve(peer.doors.pages.apps.clone(), upgraded, headers).await;
            }
            _ => tracing::debug!(peer = %peer.address, "an app's upgrade came to nothing"),
        }
    });
    switching(&key, None)
}
