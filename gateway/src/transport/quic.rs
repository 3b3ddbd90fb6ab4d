//! QUIC on quinn. Control frames travel on the one bidirectional stream that the device opens;
//! sound travels in datagrams where it fits, else on one-way streams of one frame each.

use std::{sync::Arc, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use device_protocol::{Class, auth, limits, peek};
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use quinn::{Connection, RecvStream, SendStream, VarInt};
use tokio::{sync::mpsc, time::timeout};

use super::{CLOSE_MS_MAX, DOWN_QUEUE_FRAMES, Link, LinkError, Sender, WRITE_MS_MAX, farewell};
use crate::effects::spawn;

/// How long a device may take to open its control stream.
const CONTROL_OPEN_MS_MAX: u64 = 5_000;

/// Receiving half.
pub struct Receiver {
    connection: Connection,
    control: RecvStream,
    buffer: BytesMut,
    one_way: FuturesUnordered<BoxFuture<'static, Option<Bytes>>>,
}

/// Limits of every connection.
pub fn transport_config() -> Arc<quinn::TransportConfig> {
    let mut config = quinn::TransportConfig::default();
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(limits::AUDIO_STREAMS_MAX))
        .stream_receive_window(VarInt::from_u32(256 * 1024))
        .receive_window(VarInt::from_u32(1024 * 1024))
        .datagram_receive_buffer_size(Some(64 * 1024))
        .datagram_send_buffer_size(64 * 1024)
        .keep_alive_interval(Some(Duration::from_secs(5)))
        .max_idle_timeout(Some(VarInt::from_u32(20_000).into()));
    Arc::new(config)
}

/// Waits for the control stream of a new connection.
///
/// # Errors
/// The connection broke or the device opened no stream in time.
pub async fn open(connection: Connection) -> Result<Link, LinkError> {
    let mut binding = [0; 32];
    connection
        .export_keying_material(&mut binding, auth::EXPORTER_LABEL, &[])
        .map_err(|_| LinkError::Transport("TLS has no exporter".to_owned()))?;
    let (send, control) = timeout(Duration::from_millis(CONTROL_OPEN_MS_MAX), connection.accept_bi())
        .await
        .map_err(|_| LinkError::Transport("no control stream was opened in time".to_owned()))?
        .map_err(|error| LinkError::Transport(error.to_string()))?;
    let (queue, frames) = mpsc::channel(DOWN_QUEUE_FRAMES);
    spawn("quic-writer", write(connection.clone(), send, frames));
    let peer = connection.remote_address();
    let receiver = Receiver { connection, control, buffer: BytesMut::new(), one_way: FuturesUnordered::new() };
    Ok(Link {
        peer,
        binding,
        transport: "quic",
        up: super::Receiver::Quic(Box::new(receiver)),
        down: Sender::new(queue),
    })
}

impl Receiver {
    pub(super) async fn recv(&mut self) -> Result<Option<Bytes>, LinkError> {
        loop {
            if let Some(frame) = self.take_control_frame()? {
                return Ok(Some(frame));
            }
            let connection = &self.connection;
            tokio::select! {
                chunk = self.control.read_chunk(limits::FRAME_BYTES_MAX, true) => match chunk {
                    Ok(Some(chunk)) => self.buffer.extend_from_slice(&chunk.bytes),
                    Ok(None) => return Ok(None),
                    Err(error) => return closed(&error.to_string(), connection),
                },
                datagram = connection.read_datagram() => match datagram {
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(error) => return closed(&error.to_string(), connection),
                },
                stream = connection.accept_uni() => match stream {
                    Ok(stream) => self.one_way.push(read_one(stream).boxed()),
                    Err(error) => return closed(&error.to_string(), connection),
                },
                Some(frame) = self.one_way.next(), if !self.one_way.is_empty() => {
                    if let Some(frame) = frame {
                        return Ok(Some(frame));
                    }
                }
            }
        }
    }

    fn take_control_frame(&mut self) -> Result<Option<Bytes>, LinkError> {
        let header = match peek(&self.buffer) {
            Ok(Some(header)) => header,
            Ok(None) => return Ok(None),
            // Where its frames end, only that version knows. The decoder names the version.
            Err(device_protocol::Error::UnknownVersion { .. }) => {
                return Ok(Some(self.buffer.split().freeze()));
            }
            Err(error) => return Err(LinkError::Malformed(error.to_string())),
        };
        if self.buffer.remaining() < header.frame_bytes() {
            return Ok(None);
        }
        Ok(Some(self.buffer.split_to(header.frame_bytes()).freeze()))
    }
}

/// A peer that closes with code 0 has said what it wanted to say.
fn closed(error: &str, connection: &Connection) -> Result<Option<Bytes>, LinkError> {
    match connection.close_reason() {
        Some(quinn::ConnectionError::ApplicationClosed(close)) if close.error_code == VarInt::from_u32(0) => Ok(None),
        _ => Err(LinkError::Transport(error.to_owned())),
    }
}

async fn read_one(mut stream: RecvStream) -> Option<Bytes> {
    let read = stream.read_to_end(limits::AUDIO_FRAME_BYTES_MAX);
    timeout(Duration::from_millis(WRITE_MS_MAX), read).await.ok()?.ok().map(Bytes::from)
}

async fn write(connection: Connection, mut control: SendStream, mut frames: mpsc::Receiver<Bytes>) {
    let mut close = None;
    while let Some(bytes) = frames.recv().await {
        close = farewell(&bytes);
        let audio = matches!(peek(&bytes), Ok(Some(header)) if header.class() == Class::Audio);
        let sent = if !audio {
            timeout(Duration::from_millis(WRITE_MS_MAX), control.write_chunk(bytes)).await.map(|r| r.is_ok())
        } else if connection.max_datagram_size().is_some_and(|max| bytes.len() <= max) {
            Ok(connection.send_datagram(bytes).is_ok())
        } else {
            timeout(Duration::from_millis(WRITE_MS_MAX), write_one(&connection, bytes)).await
        };
        match sent {
            Ok(true) => {}
            Ok(false) => return,
            Err(_) => {
                tracing::info!("a peer took no frame for {WRITE_MS_MAX} ms; closing");
                connection.close(VarInt::from_u32(1), b"too slow");
                return;
            }
        }
    }
    // The last frame must be read before the connection goes, since a close takes along what the
    // peer has received but not read: a polite peer closes by itself.
    if control.finish().is_ok() {
        drop(timeout(Duration::from_millis(CLOSE_MS_MAX), connection.closed()).await);
    }
    let (code, reason) = close.unwrap_or_default();
    connection.close(VarInt::from_u32(code.into()), reason.as_bytes());
}

async fn write_one(connection: &Connection, bytes: Bytes) -> bool {
    let Ok(mut stream) = connection.open_uni().await else {
        return false;
    };
    stream.write_chunk(bytes).await.is_ok() && stream.finish().is_ok()
}
