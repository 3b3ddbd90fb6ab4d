//! A device written by hand: small, right, and wrong in one thing.

use std::{path::PathBuf, time::Duration};

use bytes::Bytes;
use device_protocol::{
    Class, Codec, Codecs, Decoded, Down, Frame, GoodbyeReason, Message as _, PlayState, Stamp, Up, auth::Handshake,
    decode_down, encode, limits, up,
};
use firmware_sim::{
    identity::{Identity, random_bytes},
    transport::{self, Inbound, Link},
};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::peer::capabilities;

/// What it does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Nothing,
    /// It leaves out a control sequence.
    Sequence,
    /// It tells of what has not been played yet.
    Ahead,
    /// It sends a packet while it is muted.
    Muted,
    /// It plays on at a hush.
    Hush,
    /// It sends no heartbeat in a session.
    Heartbeat,
    /// It says goodbye to nobody who leaves out a control frame.
    Gap,
    /// It proves itself to any gateway.
    Pin,
    /// It sends LC3 in packets that are a byte longer than its frames.
    Frames,
    /// It names LC3 frames that do not exist.
    Lc3,
    /// It tells of a speech with the latest turn.
    Turn,
}

const PACKET_US: u64 = 20_000;
const TICK: Duration = Duration::from_millis(20);
/// Packets before it is muted, and while it is.
const BEFORE_MUTE: u64 = 50;
const MUTED: u64 = 15;
/// How far ahead of the truth a wrong report is.
const AHEAD_US: u64 = 400_000;
const REPORT_US: u64 = 100_000;
const ACK_US: u64 = 500_000;

struct Speech {
    number: u32,
    turn: u32,
    /// Clauses with their places.
    clauses: Vec<(u64, u16)>,
    buffered_us: u64,
    duration_us: Option<u64>,
    played_us: u64,
    /// When it began to play, less what was played before.
    from_us: Option<u64>,
    told: Option<(u64, PlayState, u16)>,
}

pub struct Device {
    identity: Identity,
    gateway: Option<[u8; 32]>,
    fault: Fault,
    zero: Instant,
    link: Link,
    nonce: [u8; 32],
    commitment: [u8; 32],
    key: [u8; 32],
    session: Option<Session>,
    retry: Duration,
}

#[derive(Default)]
struct Session {
    heartbeat_us: u64,
    beat_us: u64,
    echo: Option<(u64, u64)>,
    control: u32,
    audio: u32,
    turn: u32,
    received: (u32, u32),
    acked: (u32, u32),
    ack_us: u64,
    capture_us: u64,
    captured: u64,
    speech: Option<Speech>,
}

/// Runs such a device for ever: it connects again and again.
pub async fn run(address: String, state: PathBuf, fault: Fault) {
    let zero = Instant::now();
    let mut gateway = None;
    loop {
        let link = transport::open(&address.parse().expect("an address")).await;
        let Ok(link) = link else {
            sleep(TICK).await;
            continue;
        };
        let identity = Identity::load_or_make(&state).expect("an identity");
        let nonce: [u8; 32] = random_bytes().expect("random");
        let mut device = Device {
            identity,
            gateway,
            fault,
            zero,
            link,
            nonce,
            commitment: Sha256::digest(nonce).into(),
            key: [0; 32],
            session: None,
            retry: TICK,
        };
        device.connection().await;
        gateway = device.gateway;
        let retry = device.retry;
        close(device.link).await;
        sleep(retry).await;
    }
}

/// Sends what is queued and the close behind it, and reads on until the judge has closed, too.
async fn close(link: Link) {
    let Link { up, mut down, .. } = link;
    drop(up);
    while let Some(Inbound::Frame(_)) = down.recv().await {}
}

impl Device {
    fn now_us(&self) -> u64 {
        self.zero.elapsed().as_micros() as u64
    }

    async fn put(&self, stamp: Stamp, message: Up<'_>) {
        let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
        let length = encode(&Frame::new(stamp, message), &mut buffer).expect("it fits");
        buffer.truncate(length);
        drop(self.link.up.send(Bytes::from(buffer)).await);
    }

    async fn link_frame(&self, message: Up<'_>) {
        self.put(Stamp::link(self.now_us()), message).await;
    }

    async fn control(&mut self, turn: u32, time_us: u64, message: Up<'_>) {
        let Some(session) = &mut self.session else { return };
        session.control += 1;
        let stamp = Stamp { sequence: session.control, turn, time_us };
        self.put(stamp, message).await;
    }

    /// One connection, to its end.
    fn can(&self) -> up::Capabilities {
        let (lc3_frame_us, lc3_frame_bytes) = match self.fault {
            Fault::Frames => (10_000, 40),
            Fault::Lc3 => (5_000, 40),
            _ => return capabilities(),
        };
        up::Capabilities { codecs_up: Codecs::LC3, lc3_frame_us, lc3_frame_bytes, ..capabilities() }
    }

    async fn connection(&mut self) {
        let hello = up::Hello {
            device_key: self.identity.public_key(),
            nonce_commitment: self.commitment,
            device_id: "by-hand",
            model: "By hand",
            firmware: "1",
            language: "en",
            capabilities: self.can(),
            resume: None,
            binding: device_protocol::ChannelBinding::Exporter,
        };
        self.link_frame(Up::Hello(hello)).await;
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                inbound = self.link.down.recv() => match inbound {
                    Some(Inbound::Frame(bytes)) => if !self.handle(&bytes).await { return },
                    _ => return,
                },
                _ = ticks.tick() => self.tick().await,
            }
        }
    }

    /// A frame; whether the connection goes on.
    async fn handle(&mut self, bytes: &Bytes) -> bool {
        let (class, stamp, message) = match decode_down(bytes).expect("a frame") {
            Decoded::Frame(Frame { stamp, message }) => (message.class(), stamp, Some(message)),
            Decoded::Skipped { kind, stamp } => (Class::of_kind(kind), stamp, None),
        };
        if let Some(session) = &mut self.session {
            match class {
                Class::Control if stamp.sequence <= session.received.0 => return true,
                Class::Control if stamp.sequence > session.received.0 + 1 && self.fault != Fault::Gap => {
                    let goodbye = up::Goodbye { reason: GoodbyeReason::BadSequence, message: "", retry_after_ms: 0 };
                    self.link_frame(Up::Goodbye(goodbye)).await;
                    return false;
                }
                Class::Control => (session.received.0, session.turn) = (stamp.sequence, stamp.turn.max(session.turn)),
                Class::Audio => session.received.1 = stamp.sequence.max(session.received.1),
                _ => {}
            }
        }
        match message {
            Some(Down::Challenge(challenge)) => return self.prove(&challenge).await,
            Some(Down::PairingCode(_)) => {
                self.link_frame(Up::Heartbeat(up::Heartbeat { echo_us: 0, held_us: 0 })).await
            }
            Some(Down::Welcome(welcome)) => {
                self.gateway.get_or_insert(self.key);
                let (now_us, heartbeat_us) = (self.now_us(), u64::from(welcome.heartbeat_ms) * 1_000);
                let beat_us = now_us + heartbeat_us;
                self.session =
                    Some(Session { heartbeat_us, beat_us, capture_us: now_us, ack_us: now_us, ..Session::default() });
            }
            Some(Down::Goodbye(goodbye)) => {
                self.retry = Duration::from_millis(goodbye.retry_after_ms.into()).max(TICK);
                return false;
            }
            Some(message) => self.handle_message(stamp, message).await,
            None => {}
        }
        true
    }

    async fn prove(&mut self, challenge: &device_protocol::down::Challenge) -> bool {
        let is_other = self.gateway.is_some_and(|pinned| pinned != challenge.gateway_key);
        if is_other && self.fault != Fault::Pin {
            return false;
        }
        self.key = challenge.gateway_key;
        let handshake = Handshake {
            device_key: self.identity.public_key(),
            gateway_key: challenge.gateway_key,
            nonce_commitment: self.commitment,
            gateway_nonce: challenge.nonce,
            binding: self.link.binding,
        };
        let signature = self.identity.sign(&handshake.device_proof(&self.nonce));
        self.link_frame(Up::Proof(up::Proof { nonce: self.nonce, signature, invitation: [0; 32] })).await;
        true
    }

    async fn handle_message(&mut self, stamp: Stamp, message: Down<'_>) {
        let now_us = self.now_us();
        let Some(session) = &mut self.session else { return };
        match message {
            Down::Heartbeat(_) => session.echo = Some((stamp.time_us, now_us)),
            Down::SpeechStart(start) => {
                session.speech = Some(Speech {
                    number: start.speech,
                    turn: stamp.turn,
                    clauses: Vec::new(),
                    buffered_us: 0,
                    duration_us: None,
                    played_us: 0,
                    from_us: None,
                    told: None,
                });
            }
            Down::SpeechChunk(chunk) => {
                if let Some(speech) = session.speech.as_mut().filter(|speech| speech.number == chunk.speech) {
                    speech.buffered_us = chunk.position_us + u64::from(chunk.duration_us);
                    speech.clauses.push((chunk.position_us, chunk.clause));
                }
            }
            Down::SpeechEnd(end) => {
                if let Some(speech) = &mut session.speech {
                    speech.duration_us = Some(end.duration_us);
                }
            }
            Down::Hush(_) if self.fault != Fault::Hush => {
                if let Some(speech) = session.speech.take() {
                    self.tell(&speech, speech.played_us, PlayState::Stopped).await;
                }
            }
            _ => {}
        }
    }

    async fn tell(&mut self, speech: &Speech, played_us: u64, state: PlayState) -> u16 {
        let clause =
            speech.clauses.iter().rev().find(|(at_us, _)| *at_us < played_us.max(1)).map_or(0, |(_, clause)| *clause);
        let played = up::Played { speech: speech.number, clause, played_us, state };
        let latest = self.session.as_ref().map_or(0, |session| session.turn);
        let turn = if self.fault == Fault::Turn { latest } else { speech.turn };
        self.control(turn, self.now_us(), Up::Played(played)).await;
        clause
    }

    async fn tick(&mut self) {
        if self.session.is_none() {
            return;
        }
        self.beat().await;
        self.capture().await;
        self.play().await;
    }

    async fn beat(&mut self) {
        let (now_us, fault) = (self.now_us(), self.fault);
        let Some(session) = &mut self.session else { return };
        let echo = session.echo.map_or((0, 0), |(echo_us, at_us)| (echo_us, now_us - at_us));
        let beats = session.beat_us <= now_us && fault != Fault::Heartbeat;
        if beats {
            session.beat_us = now_us + session.heartbeat_us;
        }
        let acks = session.ack_us + ACK_US <= now_us && session.received != session.acked;
        let (control, audio) = session.received;
        if acks {
            (session.ack_us, session.acked) = (now_us, session.received);
        }
        if beats {
            self.link_frame(Up::Heartbeat(up::Heartbeat { echo_us: echo.0, held_us: echo.1 })).await;
        }
        if acks {
            self.link_frame(Up::Ack(up::Ack { control, audio, audio_lost: 0, audio_held_us: 0 })).await;
        }
    }

    /// Sends silence, and is muted for a while.
    async fn capture(&mut self) {
        loop {
            let (now_us, fault) = (self.now_us(), self.fault);
            let Some(session) = &mut self.session else { return };
            if session.capture_us + PACKET_US > now_us {
                return;
            }
            let (time_us, at, turn) = (session.capture_us, session.captured, session.turn);
            session.capture_us += PACKET_US;
            session.captured += 1;
            let is_muted = (BEFORE_MUTE..BEFORE_MUTE + MUTED).contains(&at);
            if at == BEFORE_MUTE {
                session.control += u32::from(fault == Fault::Sequence);
                let last_audio_sequence = session.audio;
                let end = up::AudioEnd { last_audio_sequence, reason: device_protocol::MicEnd::Muted };
                self.control(turn, time_us, Up::AudioEnd(end)).await;
                self.control(turn, time_us, Up::Mute(up::Mute { muted: true })).await;
            } else if at == BEFORE_MUTE + MUTED {
                self.control(turn, time_us, Up::Mute(up::Mute { muted: false })).await;
            }
            if is_muted && !(fault == Fault::Muted && at == BEFORE_MUTE + MUTED / 2) {
                continue;
            }
            let Some(session) = &mut self.session else { return };
            session.audio += 1;
            let stamp = Stamp { sequence: session.audio, turn, time_us };
            let (codec, payload) = match fault {
                Fault::Frames => (Codec::Lc3, &[0; 81][..]),
                _ => (Codec::Pcm16, &[0; 640][..]),
            };
            let audio = up::Audio { codec, rate_hz: 16_000, duration_us: PACKET_US as u32, payload };
            self.put(stamp, Up::Audio(audio)).await;
        }
    }

    async fn play(&mut self) {
        let (now_us, fault) = (self.now_us(), self.fault);
        let Some(mut speech) = self.session.as_mut().and_then(|session| session.speech.take()) else { return };
        let end_us = speech.duration_us.unwrap_or(speech.buffered_us);
        if speech.from_us.is_none() && speech.buffered_us > speech.played_us + 3 * PACKET_US {
            speech.from_us = Some(now_us - speech.played_us);
        }
        let mut is_over = false;
        if let Some(from_us) = speech.from_us {
            let reached_us = now_us - from_us;
            speech.played_us = reached_us.min(end_us);
            let state = match (reached_us >= end_us, speech.duration_us) {
                (true, Some(_)) => PlayState::Finished,
                (true, None) => PlayState::Starved,
                _ => PlayState::Playing,
            };
            let ahead_us = if fault == Fault::Ahead && state == PlayState::Playing { AHEAD_US } else { 0 };
            let told_us = (speech.played_us + ahead_us).min(speech.buffered_us);
            let clause =
                speech.clauses.iter().rev().find(|(at_us, _)| *at_us < told_us.max(1)).map_or(0, |(_, clause)| *clause);
            let is_due = speech
                .told
                .is_none_or(|(at_us, told, before)| at_us + REPORT_US <= now_us || told != state || before != clause);
            // A wrong one never goes back.
            if is_due && !(fault == Fault::Ahead && state == PlayState::Starved) {
                self.tell(&speech, told_us, state).await;
                speech.told = Some((now_us, state, clause));
            }
            if state == PlayState::Starved {
                speech.from_us = None;
                if fault == Fault::Ahead {
                    self.tell(&speech, speech.buffered_us, state).await;
                    speech.told = Some((now_us, state, clause));
                }
            }
            is_over = state == PlayState::Finished;
        }
        if let Some(session) = self.session.as_mut().filter(|_| !is_over) {
            session.speech = Some(speech);
        }
    }
}
