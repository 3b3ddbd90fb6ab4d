//! QUIC on quinn. Control frames use the one bidirectional stream that the device opens; sound uses datagrams if it
//! fits, else unidirectional streams of one frame each.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use device_protocol::{Class, GoodbyeReason, RejectCode, auth, limits, peek};
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use quinn::{Connection, ReadToEndError, RecvStream, SendStream, VarInt};
use quinn_proto::HashedConnectionIdGenerator;
use ring::hmac;
use tokio::{task::JoinHandle, time::timeout};

use super::{
    Bindings, CLOSE_MS_MAX, Link, LinkError, Outbound, Sender, Transport, WRITE_MS_MAX, canonical, farewell,
    meter::Meter,
};
use crate::{clock, runtime::spawn};

/// Idle timeout of a connection: longer than any device may be silent in its session.
const IDLE_MS_MAX: u32 = limits::HEARTBEATS_MISSED_MAX * limits::HEARTBEAT_MS_MAX + 20_000;

/// Bytes of sound that may wait in the transport for the peer's window: one packet of the largest that fits a datagram.
/// Datagrams overtake the control stream there.
const DATAGRAMS_WAITING_BYTES: usize = 1_500;

/// How long a packet of sound waits for a free stream, in milliseconds: that the peer lets another one be open takes a round
/// trip, and sound is sent further ahead than that.
const STREAM_MS_MAX: u64 = 300;
/// How long a peer whose transport has the last frame may take to read it and close by itself, in milliseconds: some
/// peers discard unread data when the connection closes.
const LINGER_MS: u64 = 100;

/// Receiving half.
pub struct Receiver {
    connection: Connection,
    control: RecvStream,
    buffer: BytesMut,
    pub(super) meter: Meter,
    one_way: FuturesUnordered<BoxFuture<'static, Result<Option<Bytes>, LinkError>>>,
    writer: JoinHandle<()>,
}

/// Limits of every connection.
pub(crate) fn transport_config() -> Arc<quinn::TransportConfig> {
    let mut config = quinn::TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(limits::AUDIO_STREAMS_MAX))
        .stream_receive_window(VarInt::from_u32(256 * 1024))
        .receive_window(VarInt::from_u32(1024 * 1024))
        .datagram_receive_buffer_size(Some(64 * 1024))
        .datagram_send_buffer_size(DATAGRAMS_WAITING_BYTES)
        // Heartbeats keep it alive, at the interval that the device requested; without them, its session closes it.
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_MS_MAX).into()));
    Arc::new(config)
}

/// Settings of the endpoint. A packet of a connection that a process before this one had is answered with a stateless reset
/// (RFC 9000, section 10.3), so that its device comes back at once; otherwise it would take the silence for a bad network.
/// That needs the same `secret` in each process.
pub(crate) fn endpoint_config(secret: &[u8; 32]) -> quinn::EndpointConfig {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let mut ids = [0; 8];
    ids.copy_from_slice(&hmac::sign(&key, b"connection ids").as_ref()[..8]);
    let ids = u64::from_le_bytes(ids);
    let mut config = quinn::EndpointConfig::new(Arc::new(key));
    config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(ids)));
    config
}

/// Waits for the control stream of a new connection. `certificate`: SHA-256 of the gateway's certificate.
///
/// # Errors
/// The connection broke or the device opened no stream in time.
pub async fn open(connection: Connection, certificate: [u8; 32]) -> Result<Link, LinkError> {
    let mut exporter = [0; 32];
    connection
        .export_keying_material(&mut exporter, auth::EXPORTER_LABEL, &[])
        .map_err(|_| LinkError::Transport("TLS has no exporter".to_owned()))?;
    let opened_us = clock::mono_us();
    let opened = timeout(Duration::from_millis(limits::HANDSHAKE_MS_MAX.into()), connection.accept_bi()).await;
    let Ok(opened) = opened else {
        let reason = "no control stream was opened in time";
        connection.close(RejectCode::Timeout.close_code().into(), reason.as_bytes());
        return Err(LinkError::Transport(reason.to_owned()));
    };
    let (send, control) = opened.map_err(|error| LinkError::Transport(error.to_string()))?;
    let (sender, frames) = Sender::to_writer();
    let writer = spawn("quic-writer", write(connection.clone(), send, frames));
    let peer = canonical(connection.remote_address());
    let (buffer, one_way) = (BytesMut::new(), FuturesUnordered::new());
    let receiver = Receiver { connection, control, buffer, meter: Meter::newcomer(), one_way, writer };
    Ok(Link {
        opened_us,
        peer,
        bindings: Bindings { exporter, certificate },
        transport: Transport::QUIC,
        up: super::Receiver::Quic(Box::new(receiver)),
        down: sender,
        failures: None,
        answered: None,
    })
}

impl Receiver {
    pub(super) async fn recv(&mut self) -> Result<Option<Bytes>, LinkError> {
        loop {
            if let Some(frame) = take_frame(&mut self.buffer)? {
                self.meter.count(1, 0)?;
                if self.buffer.is_empty() {
                    // Otherwise it would keep the frame's memory until the next one.
                    self.buffer = BytesMut::new();
                }
                return Ok(Some(frame));
            }
            let connection = &self.connection;
            tokio::select! {
                // Frames received before the close are read first: a goodbye and the close may arrive together.
                biased;
                chunk = self.control.read_chunk(limits::FRAME_BYTES_MAX, true) => match chunk {
                    Ok(Some(chunk)) => {
                        self.meter.count(0, chunk.bytes.len())?;
                        self.buffer.extend_from_slice(&chunk.bytes);
                    }
                    Ok(None) => return Ok(None),
                    Err(error) => return closed(&error.to_string(), connection),
                },
                datagram = connection.read_datagram() => match datagram {
                    Ok(bytes) => {
                        self.meter.count(1, bytes.len())?;
                        return sound_only(bytes).map(Some);
                    }
                    Err(error) => return closed(&error.to_string(), connection),
                },
                stream = connection.accept_uni() => match stream {
                    Ok(stream) => {
                        // Before it is read: streams that are reset count too.
                        self.meter.count(1, 0)?;
                        self.one_way.push(read_one(stream).boxed());
                    }
                    Err(error) => return closed(&error.to_string(), connection),
                },
                Some(frame) = self.one_way.next(), if !self.one_way.is_empty() => {
                    let frame = frame?;
                    // What was read of a stream before its reset is not known: at most this much.
                    self.meter.count(0, frame.as_ref().map_or(limits::AUDIO_FRAME_BYTES_MAX, Bytes::len))?;
                    if let Some(frame) = frame {
                        return sound_only(frame).map(Some);
                    }
                }
            }
        }
    }

    /// Where the peer is now: the connection may have migrated (RFC 9000, section 9).
    pub(super) fn peer(&self) -> SocketAddr {
        canonical(self.connection.remote_address())
    }

    /// Sends what is queued and closes the connection. The sender must have been dropped.
    pub(super) async fn close(mut self) {
        // Kept meanwhile: dropping the stream would send a stop, at which some peers end.
        drop(timeout(Duration::from_millis(WRITE_MS_MAX + CLOSE_MS_MAX), &mut self.writer).await);
        self.writer.abort();
    }
}

/// The next control frame, once all of it is there.
pub(crate) fn take_frame(buffer: &mut BytesMut) -> Result<Option<Bytes>, LinkError> {
    let header = match peek(buffer) {
        Ok(Some(header)) => header,
        Ok(None) => return Ok(None),
        // Only that version defines where its frames end. The decoder names the version.
        Err(device_protocol::Error::UnknownVersion { .. }) => {
            return Ok(Some(buffer.split().freeze()));
        }
        Err(error) => return Err(LinkError::Malformed(error.to_string())),
    };
    if buffer.remaining() < header.frame_bytes() {
        return Ok(None);
    }
    Ok(Some(buffer.split_to(header.frame_bytes()).freeze()))
}

/// Code 0 is a normal close by the peer.
fn closed(error: &str, connection: &Connection) -> Result<Option<Bytes>, LinkError> {
    match connection.close_reason() {
        Some(quinn::ConnectionError::ApplicationClosed(close)) if close.error_code == VarInt::from_u32(0) => Ok(None),
        _ => Err(LinkError::Transport(error.to_owned())),
    }
}

/// The frame of a unidirectional stream; `None` if its sender reset it.
async fn read_one(mut stream: RecvStream) -> Result<Option<Bytes>, LinkError> {
    let read = stream.read_to_end(limits::AUDIO_FRAME_BYTES_MAX);
    match timeout(Duration::from_millis(WRITE_MS_MAX), read).await {
        Ok(Ok(bytes)) => Ok(Some(bytes.into())),
        Ok(Err(ReadToEndError::TooLong)) => {
            let max = limits::AUDIO_FRAME_BYTES_MAX;
            Err(LinkError::Malformed(format!("a one-way stream with more than the {max} bytes of a frame with sound")))
        }
        Ok(Err(ReadToEndError::Read(_))) | Err(_) => Ok(None),
    }
}

/// Unreliable or unordered frames must be sound. Unreadable ones are left to the decoder's error.
pub(crate) fn sound_only(bytes: Bytes) -> Result<Bytes, LinkError> {
    match peek(&bytes) {
        Ok(Some(header)) if header.class() != Class::Audio => Err(LinkError::Malformed(format!(
            "kind {:#06x} is no sound: it belongs on the control stream, where nothing is lost",
            header.kind
        ))),
        _ => Ok(bytes),
    }
}

async fn write(connection: Connection, mut control: SendStream, mut frames: Outbound) {
    let (mut close, mut starved) = (None, false);
    while close.is_none()
        && let Some(bytes) = frames.recv().await
    {
        close = farewell(&bytes);
        let audio = matches!(peek(&bytes), Ok(Some(header)) if header.class() == Class::Audio);
        let sent = if !audio {
            timeout(Duration::from_millis(WRITE_MS_MAX), control.write_chunk(bytes)).await.map(|r| r.is_ok())
        } else if connection.max_datagram_size().is_some_and(|max| bytes.len() <= max) {
            timeout(Duration::from_millis(WRITE_MS_MAX), connection.send_datagram_wait(bytes)).await.map(|r| r.is_ok())
        } else {
            timeout(Duration::from_millis(WRITE_MS_MAX), write_one(&connection, bytes, &mut starved)).await
        };
        match sent {
            Ok(true) => {}
            Ok(false) => return,
            Err(_) => {
                tracing::info!("a peer took no frame for {WRITE_MS_MAX} ms; closing");
                connection.close(GoodbyeReason::TooSlow.close_code().into(), b"too slow");
                return;
            }
        }
    }
    // Without a reason there is nothing to wait for: the peer has said goodbye.
    let (code, reason) = close.unwrap_or_default();
    if code != 0 && control.finish().is_ok() {
        let read = async {
            drop(timeout(Duration::from_millis(CLOSE_MS_MAX), control.stopped()).await);
            tokio::time::sleep(Duration::from_millis(LINGER_MS)).await;
        };
        tokio::select! {
            // A well-behaved peer closes by itself once it has read the last frames.
            _ = connection.closed() => {}
            () = read => {}
        }
    }
    connection.close(VarInt::from_u32(code.into()), reason.as_bytes());
}

/// Sends one packet of sound on a stream of its own, or drops it where the peer lets no more be open: what is shown must not wait behind
/// it. The first such packet waits for [`STREAM_MS_MAX`], and those behind it not at all. `false`: the connection has ended.
async fn write_one(connection: &Connection, bytes: Bytes, starved: &mut bool) -> bool {
    let wait_ms = if *starved { 0 } else { STREAM_MS_MAX };
    let opened = timeout(Duration::from_millis(wait_ms), connection.open_uni()).await;
    *starved = opened.is_err();
    match opened {
        Err(_elapsed) => true,
        Ok(Err(_)) => false,
        Ok(Ok(mut stream)) => stream.write_chunk(bytes).await.is_ok() && stream.finish().is_ok(),
    }
}
