//! QUIC: control on one stream that the device opens, sound in datagrams or, if it does not fit one, on a stream of its
//! own.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use device_protocol::{ALPN, Class, auth, limits, peek};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, Endpoint, EndpointConfig, RecvStream, SendStream, TokioRuntime, TransportConfig, VarInt};
use rustls::pki_types::CertificateDer;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::network::Network;
use crate::network::datagrams::{Datagrams, any};

use super::{Error, Inbound, Link, QUEUE_FRAMES_MAX, Scheme, Target, tls};

/// Server name in the TLS ClientHello; it is not checked.
const SERVER_NAME: &str = "lorgnette";

/// How long the last frames may take to arrive before the connection is closed regardless.
const FLUSH_MAX: Duration = Duration::from_secs(1);

/// Idle timeout of the connection: more than three of the slowest heartbeats.
const IDLE_MS: u32 = 200_000;

/// After so long without a packet something is sent. Glasses that wait for a welcome have nothing else to send, and a gateway
/// that was started meanwhile answers only what it gets (PROTOCOL.md, section 1).
const KEEP_ALIVE: Duration = Duration::from_secs(2);

/// Most bytes of sound queued in either direction: two seconds of PCM at 16 kHz.
const DATAGRAM_BUFFER_BYTES: usize = 64 * 1024;

pub(super) async fn open(target: &Target, network: Option<&Network>) -> Result<Link, Error> {
    let unreachable = |reason: String| target.unreachable(reason);
    let addresses = target.addresses().await?;
    let address = *addresses.first().ok_or_else(|| unreachable("the name has no address".to_owned()))?;
    let mut endpoint = local_end(address, network).await.map_err(|error| unreachable(error.to_string()))?;
    endpoint.set_default_client_config(config().map_err(unreachable)?);
    let connection = endpoint
        .connect(address, SERVER_NAME)
        .map_err(|error| unreachable(error.to_string()))?
        .await
        .map_err(|error| unreachable(error.to_string()))?;
    let mut binding = [0; 32];
    connection
        .export_keying_material(&mut binding, auth::EXPORTER_LABEL, &[])
        .map_err(|_| unreachable("TLS has no exporter".to_owned()))?;
    let chain =
        connection.peer_identity().and_then(|identity| identity.downcast::<Vec<CertificateDer<'static>>>().ok());
    let certificate = tls::fingerprint(chain.as_deref().map(Vec::as_slice));
    let (control_up, control_down) = connection.open_bi().await.map_err(|error| unreachable(error.to_string()))?;
    let (up, up_queue) = mpsc::channel(QUEUE_FRAMES_MAX);
    let (down_queue, down) = mpsc::channel(QUEUE_FRAMES_MAX);
    let local_end = endpoint.clone();
    let sound_in_order = Arc::<AtomicBool>::default();
    let in_order = sound_in_order.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = write(&connection, control_up, up_queue, &in_order) => {}
            () = read_all(&connection, control_down, &down_queue) => {}
            () = down_queue.closed() => {}
        }
        connection.close(VarInt::from_u32(0), b"");
        // The endpoint sends the close, so it must outlive the connection.
        drop(timeout(FLUSH_MAX, endpoint.wait_idle()).await);
    });
    Ok(Link {
        up,
        down,
        binding,
        certificate,
        name: Scheme::Quic.name(),
        loses_sound: true,
        sound_in_order,
        endpoint: Some((local_end, address)),
    })
}

async fn local_end(peer: SocketAddr, network: Option<&Network>) -> io::Result<Endpoint> {
    let Some(network) = network else { return Endpoint::client(any(peer)) };
    let socket = Arc::new(Datagrams::open(network, peer).await?);
    Endpoint::new_with_abstract_socket(EndpointConfig::default(), None, socket, Arc::new(TokioRuntime))
}

fn config() -> Result<quinn::ClientConfig, String> {
    let tls = tls::config(ALPN).map_err(|error| error.to_string())?;
    let tls = QuicClientConfig::try_from(tls).map_err(|error| error.to_string())?;
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(limits::AUDIO_STREAMS_MAX))
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_MS).into()))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .datagram_receive_buffer_size(Some(DATAGRAM_BUFFER_BYTES))
        .datagram_send_buffer_size(DATAGRAM_BUFFER_BYTES);
    let mut config = quinn::ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// Writes until the queue ends, then waits until the gateway has received everything.
async fn write(
    connection: &Connection,
    mut control: SendStream,
    mut frames: mpsc::Receiver<Bytes>,
    sound_in_order: &AtomicBool,
) {
    while let Some(frame) = frames.recv().await {
        let sound = matches!(peek(&frame), Ok(Some(header)) if header.class() == Class::Audio);
        let sent = if !sound || sound_in_order.load(Ordering::Relaxed) {
            control.write_chunk(frame).await.is_ok()
        } else if connection.max_datagram_size().is_some_and(|max| frame.len() <= max) {
            connection.send_datagram(frame).is_ok()
        } else {
            write_alone(connection, frame).await
        };
        if !sent {
            // The gateway accepts nothing more; its last frames are still to be read.
            return std::future::pending().await;
        }
    }
    if control.finish().is_ok() {
        drop(timeout(FLUSH_MAX, control.stopped()).await);
    }
}

/// Sends one frame on its own stream; drops it if the gateway allows no more open streams.
async fn write_alone(connection: &Connection, frame: Bytes) -> bool {
    let opened = tokio::select! {
        biased;
        stream = connection.open_uni() => Some(stream),
        () = std::future::ready(()) => None,
    };
    match opened {
        None => true,
        Some(Err(_)) => false,
        Some(Ok(mut stream)) => stream.write_chunk(frame).await.is_ok() && stream.finish().is_ok(),
    }
}

async fn read_all(connection: &Connection, control: RecvStream, down: &mpsc::Sender<Inbound>) {
    let sound = async {
        read_sound(connection, down).await;
        // Frames received on the control stream before the connection ended are still to be read.
        std::future::pending::<()>().await;
    };
    // Where both are there, what is shown comes before what is spoken.
    tokio::select! {
        biased;
        () = read_control(control, down) => {}
        () = sound => {}
    }
    let (code, reason) = match connection.close_reason() {
        Some(quinn::ConnectionError::ApplicationClosed(close)) => (
            u16::try_from(close.error_code.into_inner()).unwrap_or(0),
            String::from_utf8_lossy(&close.reason).into_owned(),
        ),
        Some(error) => (0, error.to_string()),
        None => (0, "the control stream ended".to_owned()),
    };
    drop(down.send(Inbound::Closed { code, reason }).await);
}

async fn read_control(mut control: RecvStream, down: &mpsc::Sender<Inbound>) {
    let mut buffer = BytesMut::new();
    while let Ok(Some(chunk)) = control.read_chunk(limits::FRAME_BYTES_MAX, true).await {
        buffer.extend_from_slice(&chunk.bytes);
        loop {
            match peek(&buffer) {
                Ok(Some(header)) if buffer.len() >= header.frame_bytes() => {
                    let frame = buffer.split_to(header.frame_bytes()).freeze();
                    if down.send(Inbound::Frame(frame)).await.is_err() {
                        return;
                    }
                }
                Ok(_) => break,
                // The start of the next frame is unknown; the decoder reports the problem of this one.
                Err(_) => {
                    drop(down.send(Inbound::Frame(buffer.freeze())).await);
                    return;
                }
            }
        }
    }
}

async fn read_sound(connection: &Connection, down: &mpsc::Sender<Inbound>) {
    loop {
        tokio::select! {
            datagram = connection.read_datagram() => match datagram {
                Ok(frame) => if down.send(Inbound::Frame(frame)).await.is_err() { return },
                Err(_) => return,
            },
            stream = connection.accept_uni() => match stream {
                Ok(mut stream) => {
                    let down = down.clone();
                    // The gateway may have at most 32 of these open; each ends with its frame or the connection.
                    tokio::spawn(async move {
                        if let Ok(frame) = stream.read_to_end(limits::AUDIO_FRAME_BYTES_MAX).await {
                            drop(down.send(Inbound::Frame(frame.into())).await);
                        }
                    });
                }
                Err(_) => return,
            },
        }
    }
}
