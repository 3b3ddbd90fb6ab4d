//! The link to the device, as its session has it: it outlives the connections that carry it.

use std::net::SocketAddr;

use device_protocol::{
    Down,
    down::Heartbeat,
    up::{self, Capabilities},
};
use gateway_core::vocab::{SoundReport, Turn};

use super::{frame_limits::FrameLimits, incoming::Incoming, outgoing::Outgoing, quality::Quality};
use crate::{
    clock,
    transport::{self, Link, LinkError, Transport},
};

/// Frames to and from the device, and what is known of the way that they take.
pub(super) struct SessionLink {
    /// Of the present connection, or of the last one.
    transport: Transport,
    /// From where the last frame came.
    peer: SocketAddr,
    /// When the device asked for that, on the gateway's clock.
    asked_us: u64,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    pub(super) quality: Quality,
    pub(super) frame_limits: FrameLimits,
    heartbeat_ms: u32,
    /// The session began as one that can be resumed: the device keeps its frames until they are acknowledged.
    is_acknowledging: bool,
    /// Something has come over the present connection.
    is_confirmed: bool,
    /// The device's last heartbeat: its clock and the gateway's.
    heartbeat: Option<(u64, u64)>,
    /// When something last arrived, unless already reported to the core.
    heard_us: Option<u64>,
}

impl SessionLink {
    /// For a new session on this connection, for which the device asked at `asked_us` of the gateway's clock, with the device's frames. `is_resumable`: those to it are kept.
    pub(super) fn new(
        (link, asked_us): (&Link, u64),
        capabilities: &Capabilities,
        incoming: Incoming,
        heartbeat_ms: u32,
        is_resumable: bool,
    ) -> Self {
        let quality = if incoming.is_continued() { Quality::continued(clock::mono_us()) } else { Quality::default() };
        Self {
            transport: link.transport,
            peer: link.peer,
            asked_us,
            outgoing: Outgoing::new(link.down.clone(), is_resumable),
            incoming,
            quality,
            frame_limits: FrameLimits::of(capabilities),
            heartbeat_ms,
            is_acknowledging: is_resumable,
            is_confirmed: false,
            heartbeat: None,
            heard_us: None,
        }
    }

    /// Whether glasses are at its other end.
    pub(super) fn is_glasses(&self) -> bool {
        self.transport.is_glasses
    }

    /// When the device asked for the present connection, or the last one, on the gateway's clock.
    pub(super) fn asked_us(&self) -> u64 {
        self.asked_us
    }

    /// The session goes on over this connection, for which the device asked at `asked_us`. `audio_received`: the last sound that need not come again.
    pub(super) fn resume(&mut self, (link, asked_us): (&Link, u64), audio_received: u32) {
        (self.transport, self.peer) = (link.transport, link.peer);
        (self.asked_us, self.is_confirmed) = (asked_us, false);
        self.incoming.resume(audio_received);
        self.quality.resume(clock::mono_us());
        self.outgoing.attach(link.down.clone());
    }

    /// The connection is gone; `false`: it was before.
    pub(super) fn lose(&mut self) -> bool {
        let was_there = self.outgoing.detach();
        if was_there {
            (self.heartbeat, self.heard_us) = (None, None);
        }
        was_there
    }

    /// Sends a message of this turn, or of none.
    ///
    /// # Errors
    /// As [`Outgoing::send`].
    pub(super) fn send(&mut self, turn: Option<Turn>, message: Down<'_>) -> Result<(), LinkError> {
        self.outgoing.send(turn_on_wire(turn), clock::mono_us(), message).map(drop)
    }

    /// Whether the device is to be sent acknowledgements. They show it that the link stands. So it also gets them when
    /// the session can no longer be resumed because it acknowledged too little itself.
    pub(super) fn acknowledges(&self) -> bool {
        self.is_acknowledging && self.outgoing.is_attached()
    }

    /// A frame has come over the present connection; whether it is the first one.
    pub(super) fn confirm(&mut self) -> bool {
        !std::mem::replace(&mut self.is_confirmed, true)
    }

    /// A frame has come from this address; whether the one before came from another.
    pub(super) fn comes_from(&mut self, peer: SocketAddr) -> bool {
        std::mem::replace(&mut self.peer, peer) != peer
    }

    /// A message has come, with its time on the device's clock. Every one shows that the device is alive.
    pub(super) fn heard(&mut self, time_us: u64, now_us: u64) {
        self.incoming.note_time(time_us);
        self.heard_us = Some(now_us);
    }

    /// When something last arrived; `None`: the core was told before.
    pub(super) fn take_heard_us(&mut self) -> Option<u64> {
        self.heard_us.take()
    }

    /// Milliseconds between two heartbeats.
    pub(super) fn heartbeat_ms(&self) -> u32 {
        self.heartbeat_ms
    }

    /// The device's heartbeat is reported with the gateway's next one, and never answered by one: two sides that did so
    /// would not stop.
    pub(super) fn heartbeat_came(&mut self, time_us: u64, now_us: u64) {
        self.heartbeat = Some((time_us, now_us));
    }

    /// What the gateway's next heartbeat says.
    pub(super) fn heartbeat(&self) -> Heartbeat {
        transport::heartbeat(self.heartbeat, clock::mono_us())
    }

    /// The device has received this; returns how its sound came there, if it measures.
    pub(super) fn acknowledged(&mut self, ack: &up::Ack) -> Option<SoundReport> {
        let sent_us = self.outgoing.acknowledged(ack.control, ack.audio);
        self.quality.acknowledged(ack, sent_us, clock::mono_us())
    }

    /// The last sound of a stream that ends; `named`: its number, as the device says.
    pub(super) fn last_audio(&self, named: u32) -> u32 {
        self.incoming.last_audio(named, self.transport.ordered)
    }
}

/// A turn's number in frames: 0 stands for none.
pub(super) fn turn_on_wire(turn: Option<Turn>) -> u32 {
    turn.map_or(0, |turn| turn.id)
}
