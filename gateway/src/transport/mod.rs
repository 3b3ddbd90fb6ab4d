//! How frames reach the gateway: WebSocket or QUIC. Whatever the transport and the form on the
//! wire, the rest of the house sees one binary envelope per [`Bytes`].

pub mod memory;
pub mod quic;
pub mod server;
pub mod tls;
pub mod websocket;

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use device_protocol::{Class, Decoded, Down, Frame, Message, Stamp, decode_down, encode, limits, peek};
use tokio::{sync::mpsc, time::timeout};

/// Frames that wait for a slow link. With 600 ms of speech ahead (30 packets) this leaves room for
/// every control frame of a busy turn; who lets it fill up is too slow.
pub const DOWN_QUEUE_FRAMES: usize = 256;
/// Places of that queue that are kept for a Goodbye or Reject.
const LAST_PLACES: usize = 1;
/// How long one frame may take to leave before the peer counts as stalled.
pub const WRITE_MS_MAX: u64 = 5_000;

/// How long a peer may take to go after its last frame: a goodbye needs a round trip.
const CLOSE_MS_MAX: u64 = 1_000;

/// Why a link ended.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The transport failed.
    #[error("the connection failed: {0}")]
    Transport(String),
    /// A frame that is no envelope of this protocol.
    #[error("malformed frame: {0}")]
    Malformed(String),
    /// The peer takes its frames too slowly.
    #[error("the peer takes its frames too slowly")]
    TooSlow,
    /// The peer sends more than the configured rate.
    #[error("the peer sends too much: more than {0}")]
    Flooding(&'static str),
}

/// A connection before and during a session.
pub struct Link {
    /// Who is at the other end.
    pub peer: SocketAddr,
    /// TLS exporter of this connection; all zero on plain `ws://`.
    pub binding: [u8; 32],
    /// For logs: `ws`, `wss` or `quic`.
    pub transport: &'static str,
    /// Frames from the device.
    pub up: Receiver,
    /// Frames to the device.
    pub down: Sender,
}

impl Link {
    /// Lets what is queued leave, then waits, not for long, until the peer is gone. Closing over
    /// unread bytes would reset a TCP connection, and the reason, sent last, would not arrive.
    pub async fn close(self) {
        let Self { mut up, down, .. } = self;
        drop(down);
        let gone = async {
            loop {
                match up.recv().await {
                    Ok(Some(_)) => {}
                    // What cannot be read any more stays unread; the peer still gets its time.
                    Err(LinkError::Malformed(_)) => std::future::pending().await,
                    Ok(None) | Err(_) => return,
                }
            }
        };
        drop(timeout(Duration::from_millis(CLOSE_MS_MAX), gone).await);
    }
}

/// Receiving half.
pub enum Receiver {
    /// WebSocket.
    WebSocket(websocket::Receiver),
    /// QUIC.
    Quic(Box<quic::Receiver>),
    /// Within the process.
    Memory(mpsc::Receiver<Bytes>),
}

impl Receiver {
    /// The next envelope; `None` when the peer closed. Cancel safe.
    ///
    /// # Errors
    /// The link cannot go on.
    pub async fn recv(&mut self) -> Result<Option<Bytes>, LinkError> {
        match self {
            Self::WebSocket(receiver) => receiver.recv().await,
            Self::Quic(receiver) => receiver.recv().await,
            Self::Memory(receiver) => Ok(receiver.recv().await),
        }
    }
}

/// Sending half: stamps, encodes and queues. What is queued leaves in order; when the sender is
/// dropped, the writer sends what is left and closes.
pub struct Sender {
    queue: mpsc::Sender<Bytes>,
    control_sequence: u32,
    audio_sequence: u32,
    buffer: Vec<u8>,
}

impl Sender {
    /// A sender in front of this queue.
    pub fn new(queue: mpsc::Sender<Bytes>) -> Self {
        Self { queue, control_sequence: 0, audio_sequence: 0, buffer: vec![0; limits::FRAME_BYTES_MAX] }
    }

    /// Queues a message with its place in time; returns its sequence.
    ///
    /// # Errors
    /// The queue is full (the peer is too slow), the link is gone, or a field is beyond its maximum.
    pub fn send<'a, M: Message<'a>>(&mut self, turn: u32, time_us: u64, message: M) -> Result<u32, LinkError> {
        if self.queue.capacity() <= LAST_PLACES && !self.queue.is_closed() {
            return Err(LinkError::TooSlow);
        }
        self.send_last(turn, time_us, message)
    }

    /// Queues a message behind which the link is closed: there is always a place for it, so that
    /// even a peer that floods or stalls is told why.
    ///
    /// # Errors
    /// The link is gone, or a field is beyond its maximum.
    pub fn send_last<'a, M: Message<'a>>(&mut self, turn: u32, time_us: u64, message: M) -> Result<u32, LinkError> {
        let sequence = match message.class() {
            Class::Control => {
                self.control_sequence += 1;
                self.control_sequence
            }
            Class::Audio => {
                self.audio_sequence += 1;
                self.audio_sequence
            }
            Class::Link | Class::Reserved => 0,
        };
        let frame = Frame::new(Stamp { sequence, turn, time_us }, message);
        let length = encode(&frame, &mut self.buffer).map_err(|error| LinkError::Malformed(error.to_string()))?;
        let bytes = Bytes::copy_from_slice(&self.buffer[..length]);
        self.queue.try_send(bytes).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => LinkError::TooSlow,
            mpsc::error::TrySendError::Closed(_) => LinkError::Transport("closed".to_owned()),
        })?;
        Ok(sequence)
    }

    /// Sequence of the last audio frame; 0: none yet.
    pub fn audio_sequence(&self) -> u32 {
        self.audio_sequence
    }
}

/// Kinds of the two frames that a close follows.
const KIND_REJECT: u16 = 0x8004;
const KIND_GOODBYE: u16 = 0x8007;

/// Code and reason that the transport closes with behind a Reject or a Goodbye (PROTOCOL.md,
/// section 10); none behind any other frame.
fn farewell(bytes: &[u8]) -> Option<(u16, String)> {
    let header = peek(bytes).ok()??;
    // Looked at by kind first: decoding every packet of speech once more would cost.
    if !matches!(header.kind, KIND_REJECT | KIND_GOODBYE) {
        return None;
    }
    let Ok(Decoded::Frame(frame)) = decode_down(bytes) else { return None };
    match frame.message {
        Down::Reject(reject) => Some((reject.code.close_code(), reject.message.to_owned())),
        Down::Goodbye(goodbye) => Some((goodbye.reason.close_code(), goodbye.message.to_owned())),
        _ => None,
    }
}
