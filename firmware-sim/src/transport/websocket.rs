//! WebSocket, with and without TLS: one binary message is one envelope.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use device_protocol::{CLOSE_NORMAL, SUBPROTOCOL, auth, limits};
use futures_util::{SinkExt as _, StreamExt as _};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::network::{Network, stream};

use super::{Error, Inbound, Link, QUEUE_FRAMES_MAX, Scheme, Target, tls};

pub(super) async fn open(target: &Target, network: Option<&Network>) -> Result<Link, Error> {
    let addresses = target.addresses().await?;
    let (Some(network), Some(first)) = (network, addresses.first()) else {
        return secure(target, connect(target, &addresses).await?).await;
    };
    let stream = stream::connect(network, *first).await.map_err(|error| target.unreachable(error))?;
    secure(target, stream).await
}

/// Goes on over TLS where the address says so.
async fn secure<S>(target: &Target, stream: S) -> Result<Link, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if target.scheme == Scheme::Ws {
        return upgrade(target, stream, auth::NO_BINDING, auth::NO_BINDING).await;
    }
    let config = tls::config(b"http/1.1").map_err(|error| target.unreachable(error))?;
    let name =
        ServerName::try_from(target.host_without_zone().to_owned()).map_err(|error| target.unreachable(error))?;
    let stream =
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|error| target.unreachable(error))?;
    let binding = stream
        .get_ref()
        .1
        .export_keying_material([0; 32], auth::EXPORTER_LABEL, Some(&[]))
        .map_err(|error| target.unreachable(error))?;
    let certificate = tls::fingerprint(stream.get_ref().1.peer_certificates());
    upgrade(target, stream, binding, certificate).await
}

async fn connect(target: &Target, addresses: &[SocketAddr]) -> Result<TcpStream, Error> {
    let stream = TcpStream::connect(addresses).await.map_err(|error| target.unreachable(error))?;
    // Packets of sound are small and must not be delayed by Nagle's algorithm.
    stream.set_nodelay(true).map_err(|error| target.unreachable(error))?;
    Ok(stream)
}

async fn upgrade<S>(target: &Target, stream: S, binding: [u8; 32], certificate: [u8; 32]) -> Result<Link, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let named = Target { host: target.host_without_zone().to_owned(), ..target.clone() };
    let mut request = named.to_string().into_client_request().map_err(|error| target.unreachable(error))?;
    request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    let config = WebSocketConfig::default()
        .max_message_size(Some(limits::FRAME_BYTES_MAX))
        .max_frame_size(Some(limits::FRAME_BYTES_MAX));
    let (socket, _) =
        client_async_with_config(request, stream, Some(config)).await.map_err(|error| target.unreachable(error))?;
    let (up, up_queue) = mpsc::channel(QUEUE_FRAMES_MAX);
    let (down_queue, down) = mpsc::channel(QUEUE_FRAMES_MAX);
    tokio::spawn(carry(socket, up_queue, down_queue));
    Ok(Link {
        up,
        down,
        binding,
        certificate,
        name: target.scheme.name(),
        loses_sound: false,
        sound_in_order: Arc::default(),
        endpoint: None,
    })
}

/// How long the last frame of a connection, its close, may take to be written and answered.
const CLOSE_MAX: Duration = Duration::from_secs(1);

/// Reads and writes until one side ends.
async fn carry<S>(socket: WebSocketStream<S>, mut up: mpsc::Receiver<Bytes>, down: mpsc::Sender<Inbound>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sink, mut stream) = socket.split();
    let write = async {
        while let Some(frame) = up.recv().await {
            if sink.send(Message::Binary(frame)).await.is_err() {
                // The gateway accepts nothing more; its last frames are still to be read.
                return std::future::pending().await;
            }
        }
        let close = CloseFrame { code: CLOSE_NORMAL.into(), reason: "".into() };
        drop(sink.send(Message::Close(Some(close))).await);
        // The gateway's answer says that everything has arrived, which may have a slow network before it.
        sleep(CLOSE_MAX).await;
    };
    let read = async {
        let closed = loop {
            match stream.next().await {
                Some(Ok(Message::Binary(frame))) => {
                    if down.send(Inbound::Frame(frame)).await.is_err() {
                        return;
                    }
                }
                Some(Ok(Message::Close(close))) => {
                    let (code, reason) =
                        close.map_or((0, String::new()), |close| (close.code.into(), close.reason.to_string()));
                    break Inbound::Closed { code, reason };
                }
                Some(Ok(Message::Text(_))) => {
                    break Inbound::Closed { code: 0, reason: "the gateway sent a text message".to_owned() };
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    break Inbound::Closed { code: 0, reason: error.to_string() };
                }
                None => {
                    break Inbound::Closed { code: 0, reason: "the connection ended".to_owned() };
                }
            }
        };
        drop(down.send(closed).await);
    };
    tokio::select! {
        () = write => {}
        () = read => {}
        () = down.closed() => {}
    }
    // Closes, or sends the answer to the gateway's close.
    drop(timeout(CLOSE_MAX, sink.close()).await);
}
