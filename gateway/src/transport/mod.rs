//! Transports for frames: WebSocket or QUIC. For every transport and wire form, the rest of the gateway sees one binary
//! envelope per [`Bytes`].

mod encoding;
mod kind;
pub(crate) mod memory;
pub(crate) mod meter;
pub mod quic;
pub(crate) mod slots;
pub mod sockets;
pub mod tls;
pub(crate) mod websocket;

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use device_protocol::{ChannelBinding, Class, Decoded, Down, Message, Stamp, auth, decode_down, down, limits, peek};
use tokio::sync::{Notify, mpsc};

pub(crate) use self::encoding::envelope;
pub use self::kind::Transport;
use crate::{clock, limits::Traffic};

/// Frames queued for a slow link. With 600 ms of speech ahead (30 packets) this leaves room for every control frame of
/// a busy turn, also behind a whole replay; a peer that lets it fill up is too slow.
pub(crate) const DOWN_QUEUE_FRAMES: usize = limits::REPLAY_CONTROL_FRAMES_MAX + 128;
/// Packets of sound queued for a link: the next one is given when this one is on its way, so that on a slow link speech
/// waits where it can be hushed.
const SOUND_QUEUE_FRAMES: usize = 1;
/// Places of that queue reserved for a Goodbye or Reject.
const LAST_PLACES: usize = 1;
/// How long sending one frame may take before the peer counts as stalled, in milliseconds.
pub(crate) const WRITE_MS_MAX: u64 = limits::STALL_MS_MAX as u64;

/// How long a peer may take to close after its last frame, in milliseconds: a goodbye needs a round trip, and over a
/// poor link a retransmission.
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

/// Binds a handshake to a TLS connection (PROTOCOL.md, section 6); all zero without TLS.
#[derive(Clone, Copy, Debug)]
pub struct Bindings {
    /// The TLS exporter of this connection.
    pub exporter: [u8; 32],
    /// SHA-256 of the gateway's certificate.
    pub certificate: [u8; 32],
}

impl Bindings {
    /// Bindings of a connection without TLS.
    pub const NONE: Self = Self { exporter: auth::NO_BINDING, certificate: auth::NO_BINDING };

    /// The binding that a device requests; `None` if this version does not know it.
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
    /// The peer's address when the connection was opened.
    pub peer: SocketAddr,
    /// Binds a handshake to the connection.
    pub bindings: Bindings,
    /// The kind of connection.
    pub transport: Transport,
    /// Frames from the device.
    pub up: Receiver,
    /// Frames to the device.
    pub down: Sender,
    /// Receives more detail about failed tools than fits on the wire; `None`: detail is dropped.
    pub failures: Option<mpsc::Sender<ToolFailure>>,
    /// Notified when what the peer has typed is dealt with, behind the last frame about it; `None`: the peer does not wait for that.
    pub answered: Option<Arc<Notify>>,
}

/// A tool that failed.
#[derive(Clone, Debug)]
pub struct ToolFailure {
    /// Number of the call in its frames.
    pub call: u32,
    /// The reason as text.
    pub why: String,
}

impl Link {
    /// Sends what is queued and closes so that it arrives: the reason, sent last, must not be lost.
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

/// Converts IPv4-mapped IPv6 addresses, as reported by a dual-stack listener, to IPv4. Applied to every peer address.
pub(crate) fn canonical(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(peer.ip().to_canonical(), peer.port())
}

/// Receiving half.
#[allow(missing_docs, reason = "the variants are the transports")]
pub enum Receiver {
    WebSocket(websocket::Receiver),
    Quic(Box<quic::Receiver>),
    /// In-process.
    Memory(mpsc::Receiver<Bytes>),
}

impl Receiver {
    /// The peer is admitted: from now on it may send this much. A link inside the process has no limit.
    pub(crate) fn allow(&self, traffic: Traffic) {
        match self {
            Self::WebSocket(receiver) => receiver.meter.allow(traffic),
            Self::Quic(receiver) => receiver.meter.allow(traffic),
            Self::Memory(_) => {}
        }
    }

    /// Where the peer is now; `None`: where it was when the connection was opened.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match self {
            Self::Quic(receiver) => Some(receiver.peer()),
            Self::WebSocket(_) | Self::Memory(_) => None,
        }
    }

    /// The next envelope; `None` when the peer closed. Cancel safe.
    ///
    /// # Errors
    /// The link has failed.
    pub async fn recv(&mut self) -> Result<Option<Bytes>, LinkError> {
        match self {
            Self::WebSocket(receiver) => receiver.recv().await,
            Self::Quic(receiver) => receiver.recv().await,
            Self::Memory(receiver) => Ok(receiver.recv().await),
        }
    }
}

/// Sending half: encodes and queues frames. Sound has a queue of its own, and whatever else waits is sent first. When all
/// clones are dropped, the writer sends the rest and closes.
#[derive(Clone)]
pub struct Sender {
    queue: mpsc::Sender<Bytes>,
    sound: mpsc::Sender<Bytes>,
    /// Zero of this connection's clock, on the gateway's clock.
    pub(crate) zero_us: u64,
}

impl Sender {
    /// A sender to this queue, for all frames.
    pub fn new(queue: mpsc::Sender<Bytes>) -> Self {
        Self { sound: queue.clone(), queue, zero_us: clock::mono_us() }
    }

    /// A sender to a writer.
    fn to_writer() -> (Self, Outbound) {
        let (queue, frames) = mpsc::channel(DOWN_QUEUE_FRAMES);
        let (sound, packets) = mpsc::channel(SOUND_QUEUE_FRAMES);
        (Self { queue, sound, zero_us: clock::mono_us() }, Outbound { frames, packets })
    }

    /// Queues a message about the link itself, which has no sequence; `at_us`: its time on the gateway's clock.
    ///
    /// # Errors
    /// The queue is full (the peer is too slow), the link is gone, or a field is beyond its maximum.
    pub fn send<'a, M: Message<'a>>(&self, at_us: u64, message: M) -> Result<(), LinkError> {
        self.put(self.link_frame(at_us, message)?)
    }

    /// Queues a message after which the link is closed. A place is reserved for it, so that even a peer that floods or
    /// stalls receives the reason.
    ///
    /// # Errors
    /// The link is gone, or a field is beyond its maximum.
    pub(crate) fn send_last<'a, M: Message<'a>>(&self, at_us: u64, message: M) -> Result<(), LinkError> {
        self.put_last(self.link_frame(at_us, message)?)
    }

    fn link_frame<'a, M: Message<'a>>(&self, at_us: u64, message: M) -> Result<Bytes, LinkError> {
        debug_assert_eq!(message.class(), Class::Link, "other frames have a sequence");
        let stamp = Stamp { sequence: 0, turn: 0, time_us: at_us.saturating_sub(self.zero_us) };
        envelope(stamp, message)
    }

    /// Queues an envelope.
    ///
    /// # Errors
    /// The queue is full (the peer is too slow), or the link is gone.
    pub fn put(&self, envelope: Bytes) -> Result<(), LinkError> {
        if self.queue.capacity() <= LAST_PLACES && !self.queue.is_closed() {
            return Err(LinkError::TooSlow);
        }
        self.put_last(envelope)
    }

    /// Queues an envelope with sound.
    ///
    /// # Errors
    /// The link does not take sound now, or it is gone.
    pub(crate) fn put_sound(&self, envelope: Bytes) -> Result<(), LinkError> {
        self.sound.try_send(envelope).map_err(refused)
    }

    /// Whether the link has sent the sound that it had.
    pub(crate) fn takes_sound(&self) -> bool {
        self.sound.capacity() > 0 || self.sound.is_closed()
    }

    /// Whether nothing at all waits for the link.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.capacity() == self.queue.max_capacity() && self.sound.capacity() == self.sound.max_capacity()
    }

    /// Waits until it has, or is gone.
    pub(crate) async fn room_for_sound(&self) {
        drop(self.sound.reserve().await);
    }

    fn put_last(&self, envelope: Bytes) -> Result<(), LinkError> {
        self.queue.try_send(envelope).map_err(refused)
    }
}

fn refused(error: mpsc::error::TrySendError<Bytes>) -> LinkError {
    match error {
        mpsc::error::TrySendError::Full(_) => LinkError::TooSlow,
        mpsc::error::TrySendError::Closed(_) => LinkError::Transport("closed".to_owned()),
    }
}

/// What a writer is to send.
pub(crate) struct Outbound {
    frames: mpsc::Receiver<Bytes>,
    packets: mpsc::Receiver<Bytes>,
}

impl Outbound {
    /// The next envelope: sound comes last. `None`: there will be none. Cancel safe.
    async fn recv(&mut self) -> Option<Bytes> {
        tokio::select! {
            biased;
            Some(frame) = self.frames.recv() => Some(frame),
            Some(packet) = self.packets.recv() => Some(packet),
            else => None,
        }
    }
}

/// A gateway heartbeat. It answers the device's last one, if any: the device's clock in it, and the gateway's at its
/// arrival.
pub fn heartbeat(heard: Option<(u64, u64)>, now_us: u64) -> down::Heartbeat {
    heard.map_or(down::Heartbeat { echo_us: 0, held_us: 0 }, |(echo_us, at_us)| down::Heartbeat {
        echo_us,
        held_us: now_us.saturating_sub(at_us),
    })
}

/// Kinds of the two frames that are followed by a close.
const KIND_REJECT: u16 = 0x8004;
const KIND_GOODBYE: u16 = 0x8007;

/// Code and reason of the transport's close after a Reject or a Goodbye (PROTOCOL.md, section 10); `None` after any
/// other frame.
fn farewell(bytes: &[u8]) -> Option<(u16, String)> {
    let header = peek(bytes).ok()??;
    // The kind is checked first: decoding every speech packet again would be costly.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_no_sound_overtakes_sound_which_comes_one_packet_at_a_time() {
        let (sender, mut outbound) = Sender::to_writer();
        sender.put_sound(Bytes::from_static(b"sound")).unwrap();
        assert!(!sender.takes_sound());
        assert!(matches!(sender.put_sound(Bytes::from_static(b"more")), Err(LinkError::TooSlow)));
        sender.put(Bytes::from_static(b"display")).unwrap();
        assert_eq!(outbound.recv().await.unwrap(), "display");
        assert_eq!(outbound.recv().await.unwrap(), "sound");
        sender.room_for_sound().await;
        assert!(sender.takes_sound());
        sender.put(Bytes::from_static(b"last")).unwrap();
        drop(sender);
        assert_eq!(outbound.recv().await.unwrap(), "last");
        assert_eq!(outbound.recv().await, None);
    }
}
