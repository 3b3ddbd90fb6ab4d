//! One connection of a device in a session: what the judge sends, and what comes.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use device_protocol::{Class, Down, GoodbyeReason, Message, Stamp, down};

use super::{clip::Packet, watch::Watch};
use crate::{
    clock,
    runtime::spawn,
    transport::{self, Link, LinkError, envelope, slots::ConnectionSlot},
};

/// Between two looks at what may be sent of a speech, in microseconds: half a packet.
const FEED_EVERY_US: u64 = 10_000;

/// Why a link ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The device said goodbye.
    Goodbye(GoodbyeReason),
    /// It closed the link, or that broke.
    Closed(String),
}

impl From<LinkError> for Ended {
    fn from(error: LinkError) -> Self {
        Self::Closed(error.to_string())
    }
}

/// The judge's frames of a session, which outlives its links.
pub(super) struct Outgoing {
    /// Zero of the session's clock.
    pub(super) zero_us: u64,
    control: u32,
    audio: u32,
    /// Control frames that were not acknowledged.
    kept: VecDeque<(u32, Bytes)>,
}

impl Outgoing {
    pub(super) fn new(zero_us: u64) -> Self {
        Self { zero_us, control: 0, audio: 0, kept: VecDeque::new() }
    }

    /// The bytes of a message with the next sequence of its class.
    pub(super) fn frame<'a>(&mut self, turn: u32, at_us: u64, message: impl Message<'a>) -> Result<Bytes, LinkError> {
        let sequence = match message.class() {
            Class::Control => {
                self.control += 1;
                self.control
            }
            Class::Audio => {
                self.audio += 1;
                self.audio
            }
            Class::Link | Class::Reserved => 0,
        };
        let stamp = Stamp { sequence, turn, time_us: at_us.saturating_sub(self.zero_us) };
        envelope(stamp, message)
    }

    /// A control sequence is left out.
    pub(super) fn leave_out(&mut self) {
        self.control += 1;
    }

    /// The device has everything up to this.
    pub(super) fn acknowledged(&mut self, control: u32) {
        self.kept.retain(|(sequence, _)| *sequence > control);
    }

    /// What it has not.
    pub(super) fn lacking(&self) -> impl Iterator<Item = Bytes> {
        self.kept.iter().map(|(_, bytes)| bytes.clone())
    }
}

/// A speech on its way.
pub(super) struct Feed {
    pub(super) packets: Vec<Packet>,
    /// The next one.
    pub(super) at: usize,
    /// Packets from this one on are held back.
    pub(super) until: usize,
    /// Whether its end is sent behind the last packet.
    pub(super) ends: bool,
}

/// A link of a device that was welcomed.
pub(super) struct Session {
    pub(super) link: Link,
    /// Counts the connection.
    pub(super) _slot: Arc<ConnectionSlot>,
    pub(super) heartbeat_us: u64,
    pub(super) beat_us: u64,
    /// The device's last heartbeat, and when it came.
    pub(super) heard: Option<(u64, u64)>,
    /// Whether the judge acknowledges what comes.
    pub(super) acks: bool,
    pub(super) feed: Option<Feed>,
}

impl Session {
    /// Sends a frame as it is.
    pub(super) fn put(&self, bytes: Bytes) -> Result<(), Ended> {
        Ok(self.link.down.put(bytes)?)
    }

    /// Sends a control message; its bytes.
    pub(super) fn control<'a>(
        &self,
        (out, watch): (&mut Outgoing, &mut Watch),
        turn: u32,
        message: impl Into<Down<'a>>,
    ) -> Result<Bytes, Ended> {
        let bytes = out.frame(turn, clock::mono_us(), message.into())?;
        self.numbered((out, watch), turn, bytes.clone())?;
        Ok(bytes)
    }

    /// Sends a control frame that has the last sequence.
    pub(super) fn numbered(
        &self,
        (out, watch): (&mut Outgoing, &mut Watch),
        turn: u32,
        bytes: Bytes,
    ) -> Result<(), Ended> {
        out.kept.push_back((out.control, bytes.clone()));
        (watch.sent.0, watch.sent.2) = (out.control, watch.sent.2.max(turn));
        self.put(bytes)
    }

    /// Receives, and does what is due, until `done` or until then; whether it is done.
    pub(super) async fn run(
        &mut self,
        (out, watch): (&mut Outgoing, &mut Watch),
        until_us: u64,
        mut done: impl FnMut(&Watch) -> bool,
    ) -> Result<bool, Ended> {
        loop {
            if done(watch) {
                return Ok(true);
            }
            let now_us = clock::mono_us();
            if now_us >= until_us {
                return Ok(false);
            }
            let due_us = self.run_due((out, watch), now_us)?.min(until_us);
            let is_full = self.feed.is_some() && !self.link.down.takes_sound();
            tokio::select! {
                biased;
                came = self.link.up.recv() => match came? {
                    Some(bytes) => self.handle((out, watch), &bytes)?,
                    None => return Err(Ended::Closed("the device closed the link".to_owned())),
                },
                () = self.link.down.room_for_sound(), if is_full => {}
                () = tokio::time::sleep_until(clock::instant_at(due_us)) => {}
            }
        }
    }

    fn handle(&mut self, (out, watch): (&mut Outgoing, &mut Watch), bytes: &Bytes) -> Result<(), Ended> {
        let now_us = clock::mono_us();
        watch.handle(now_us, bytes);
        if let Some(beat) = watch.take_beat() {
            self.heard = Some((beat, now_us));
        }
        if let Some(ack) = watch.ack {
            out.acknowledged(ack.control);
        }
        watch.goodbye.map_or(Ok(()), |reason| Err(Ended::Goodbye(reason)))
    }

    /// Heartbeat, acknowledgement and speech; when something is due next.
    fn run_due(&mut self, (out, watch): (&mut Outgoing, &mut Watch), now_us: u64) -> Result<u64, Ended> {
        watch.handle_timeout(now_us);
        if self.beat_us <= now_us {
            self.beat_us = now_us + self.heartbeat_us;
            self.link.down.put(out.frame(
                watch.sent.2,
                now_us,
                Down::Heartbeat(transport::heartbeat(self.heard, now_us)),
            )?)?;
            watch.beat_sent(now_us.saturating_sub(out.zero_us), now_us);
        }
        let mut due_us = self.beat_us;
        if self.acks {
            if watch.ack_due_us().is_some_and(|at_us| at_us <= now_us) {
                let (control, audio) = watch.take_ack();
                let ack = down::Ack {
                    control,
                    audio,
                    audio_bitrate: 0,
                    audio_frame_ms: 0,
                    audio_loss_percent: 0,
                    audio_missing: 0,
                    sound_until_us: 0,
                    audio_missing_bits: 0,
                };
                self.link.down.put(out.frame(watch.sent.2, now_us, Down::Ack(ack))?)?;
            }
            due_us = due_us.min(watch.ack_due_us().unwrap_or(u64::MAX));
        }
        if self.feed((out, watch), now_us)? {
            due_us = due_us.min(now_us + FEED_EVERY_US);
        }
        Ok(due_us)
    }

    /// Sends of a speech what may be sent; whether more of it may follow.
    fn feed(&mut self, (out, watch): (&mut Outgoing, &mut Watch), now_us: u64) -> Result<bool, Ended> {
        let (Some(feed), Some(playback)) = (&mut self.feed, &mut watch.playback) else { return Ok(false) };
        let room_us = playback.room_us(now_us);
        while let Some(packet) = feed.packets.get(feed.at).filter(|_| feed.at < feed.until) {
            let end_us = packet.position_us + u64::from(packet.duration_us);
            if end_us > room_us || !self.link.down.takes_sound() {
                return Ok(true);
            }
            let chunk = down::SpeechChunk {
                speech: playback.speech,
                clause: playback.clause_at(packet.position_us),
                position_us: packet.position_us,
                duration_us: packet.duration_us,
                payload: &packet.payload,
            };
            let plays_us = now_us + packet.position_us.saturating_sub(playback.told_us().unwrap_or(0));
            let bytes = out.frame(playback.turn, plays_us, Down::SpeechChunk(chunk))?;
            self.link.down.put_sound(bytes)?;
            watch.sent.1 = out.audio;
            playback.sent(now_us, end_us);
            feed.at += 1;
        }
        if feed.at < feed.packets.len() {
            return Ok(true);
        }
        let (speech, turn, duration_us, ends) = (playback.speech, playback.turn, playback.sent_us, feed.ends);
        self.feed = None;
        if ends {
            let end = down::SpeechEnd { speech, last_audio_sequence: out.audio, duration_us };
            self.control((out, watch), turn, end)?;
        }
        Ok(false)
    }

    /// Ends the link as it is lost: without a goodbye.
    pub(super) fn cut(self) {
        drop(self.link);
    }

    /// Closes the link behind what was sent.
    pub(super) fn close(self) {
        spawn("closing", self.link.close());
    }
}
