//! How frames reach the gateway: WebSocket or QUIC. Whatever the transport and the form on the
//! wire, the rest of the house sees one binary envelope per [`Bytes`].

mod kind;
pub(crate) mod memory;
pub(crate) mod places;
pub mod quic;
pub mod tls;
pub(crate) mod websocket;

use std::net::SocketAddr;

use bytes::Bytes;
use device_protocol::{
    ChannelBinding, Class, Decoded, Down, Frame, Message, Stamp, auth, decode_down, down, encode, limits, peek,
};
use tokio::sync::mpsc;

pub use self::kind::Transport;
use crate::clock;

/// Frames that wait for a slow link. With 600 ms of speech ahead (30 packets) this leaves room for
/// every control frame of a busy turn; who lets it fill up is too slow.
pub const DOWN_QUEUE_FRAMES: usize = 256;
/// Places of that queue that are kept for a Goodbye or Reject.
const LAST_PLACES: usize = 1;
/// How long one frame may take to leave before the peer counts as stalled.
pub const WRITE_MS_MAX: u64 = 5_000;

/// How long a peer may take to go after its last frame: a goodbye needs a round trip, and over a poor link a second try.
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

/// What ties a handshake to a TLS connection (PROTOCOL.md, section 6); all zero without TLS.
#[derive(Clone, Copy, Debug)]
pub struct Bindings {
    /// The TLS exporter of this connection.
    pub exporter: [u8; 32],
    /// SHA-256 of the gateway's certificate.
    pub certificate: [u8; 32],
}

impl Bindings {
    /// Of a connection without TLS.
    pub const NONE: Self = Self { exporter: auth::NO_BINDING, certificate: auth::NO_BINDING };

    /// The one that a device asks for; nothing where this version does not know it.
    pub fn of(&self, wanted: ChannelBinding) -> Option<[u8; 32]> {
        match wanted {
            ChannelBinding::Exporter => Some(self.exporter),
            ChannelBinding::Certificate => Some(self.certificate),
            ChannelBinding::Other(_) => None,
        }
    }
}

/// A connection before and during a session.
pub struct Link {
    /// When the connection was opened, on the gateway's clock.
    pub opened_us: u64,
    /// Who is at the other end.
    pub peer: SocketAddr,
    /// What ties a handshake to it.
    pub bindings: Bindings,
    /// What it is.
    pub transport: Transport,
    /// Frames from the device.
    pub up: Receiver,
    /// Frames to the device.
    pub down: Sender,
    /// Where more is told of a tool that failed than the wire has room for; absent: nowhere.
    pub failures: Option<mpsc::Sender<ToolFailure>>,
}

/// A tool that failed.
#[derive(Clone, Debug)]
pub struct ToolFailure {
    /// Number of the call, as the frames about it have it.
    pub call: u32,
    /// Why, in words.
    pub why: String,
}

impl Link {
    /// Lets what is queued leave and closes so that it arrives: the reason, sent last, must not be lost.
    pub async fn close(self) {
        let Self { up, down, .. } = self;
        drop(down);
        match up {
            Receiver::WebSocket(receiver) => receiver.close().await,
            Receiver::Quic(receiver) => receiver.close().await,
            Receiver::Memory(_) => {}
        }
    }
}

/// The address as its owner writes it: a listener for both kinds of addresses has IPv4 ones in the form of IPv6. Every
/// address of a peer comes through here.
pub fn canonical(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(peer.ip().to_canonical(), peer.port())
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
    /// Where the clock of this connection begins, on the gateway's.
    zero_us: u64,
    control_sequence: u32,
    audio_sequence: u32,
    buffer: Vec<u8>,
}

impl Sender {
    /// A sender in front of this queue.
    pub fn new(queue: mpsc::Sender<Bytes>) -> Self {
        let buffer = vec![0; limits::FRAME_BYTES_MAX];
        Self { queue, zero_us: clock::mono_us(), control_sequence: 0, audio_sequence: 0, buffer }
    }

    /// Queues a message with its place in time, on the gateway's clock; returns its sequence.
    ///
    /// # Errors
    /// The queue is full (the peer is too slow), the link is gone, or a field is beyond its maximum.
    pub fn send<'a, M: Message<'a>>(&mut self, turn: u32, at_us: u64, message: M) -> Result<u32, LinkError> {
        if self.queue.capacity() <= LAST_PLACES && !self.queue.is_closed() {
            return Err(LinkError::TooSlow);
        }
        self.send_last(turn, at_us, message)
    }

    /// Queues a message behind which the link is closed: there is always a place for it, so that
    /// even a peer that floods or stalls is told why.
    ///
    /// # Errors
    /// The link is gone, or a field is beyond its maximum.
    pub fn send_last<'a, M: Message<'a>>(&mut self, turn: u32, at_us: u64, message: M) -> Result<u32, LinkError> {
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
        let time_us = at_us.saturating_sub(self.zero_us);
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

/// A heartbeat of ours after the device's last one, where one came: its clock in it, and ours when it came.
pub fn heartbeat(heard: Option<(u64, u64)>, now_us: u64) -> down::Heartbeat {
    heard.map_or(down::Heartbeat { echo_us: 0, held_us: 0 }, |(echo_us, at_us)| down::Heartbeat {
        echo_us,
        held_us: now_us.saturating_sub(at_us),
    })
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
