//! A connection on which a check decides about each frame itself.

use std::time::Duration;

use bytes::Bytes;
use device_protocol::auth::Handshake;
use device_protocol::down::AudioFormat;
use device_protocol::{Class, Decoded, Down, Frame, Message as _, Stamp, Up, decode_down, encode, limits, up};
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout_at};

use super::Gateway;
use crate::clock::Clock;
use crate::identity::{Identity, random_bytes};
use crate::names::named;
use crate::profile::Profile;
use crate::transport::{self, Inbound, Link, Scheme};

/// How long an answer may take, unless the document says otherwise: a slow box under load.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(10);

/// How often the probe says that it is alive, once it is welcomed: more often than any gateway asks for.
const BEAT_EVERY: Duration = Duration::from_secs(4);

/// What came from the gateway.
#[derive(Debug)]
pub(super) enum Came {
    /// A message of this version.
    Message(Bytes),
    /// The connection was closed with this code.
    Closed(u16),
}

/// What a check needs of `welcome`.
pub(super) struct Welcome {
    pub(super) session: u32,
    pub(super) token: Vec<u8>,
    pub(super) resume_ms: u32,
    pub(super) heartbeat: Duration,
    /// Control frames that the gateway has received, if it resumes a session.
    pub(super) resumed: Option<u32>,
    pub(super) continued: bool,
    pub(super) audio_up: AudioFormat,
    pub(super) audio_down: AudioFormat,
}

/// The device's end of a connection: what a check does not send is not sent, but for heartbeats after the welcome.
pub(super) struct Probe {
    link: Link,
    identity: Identity,
    profile: Profile,
    nonce: [u8; 32],
    clock: Clock,
    /// When the next heartbeat is due; `None`: before the welcome, and behind the last one.
    beat_at: Option<Instant>,
    /// The last control sequence that was sent.
    pub(super) sent: u32,
    /// The last control sequence that came.
    pub(super) received: u32,
}

impl Probe {
    /// Connects, and says nothing.
    pub(super) async fn connect(gateway: &Gateway) -> Result<Self, String> {
        let Gateway { target, state, profile, network } = gateway;
        let identity = Identity::load_or_make(state).map_err(|error| error.to_string())?;
        let link = transport::open_through(target, network.as_ref()).await.map_err(|error| error.to_string())?;
        let nonce = random_bytes().map_err(|error| error.to_string())?;
        let (clock, profile) = (Clock::start(), profile.clone());
        Ok(Self { link, identity, profile, nonce, clock, beat_at: None, sent: 0, received: 0 })
    }

    /// Sends bytes as they are. A gateway that has closed already is seen by what comes.
    pub(super) async fn raw(&self, bytes: impl Into<Bytes>) {
        drop(self.link.up.send(bytes.into()).await);
    }

    /// The time of the session's clock.
    pub(super) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// The bytes of a message with this sequence.
    pub(super) fn frame(&self, sequence: u32, message: Up<'_>) -> Vec<u8> {
        self.frame_at(self.now_us(), sequence, message)
    }

    fn frame_at(&self, time_us: u64, sequence: u32, message: Up<'_>) -> Vec<u8> {
        let stamp = Stamp { sequence, turn: 0, time_us };
        let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
        let length = encode(&Frame::new(stamp, message), &mut buffer).unwrap_or(0);
        buffer.truncate(length);
        buffer
    }

    /// Sends a link message.
    pub(super) async fn link<'a>(&self, message: impl Into<Up<'a>>) {
        self.raw(self.frame(0, message.into())).await;
    }

    /// Sends the next control message.
    pub(super) async fn control<'a>(&mut self, message: impl Into<Up<'a>>) {
        self.sent += 1;
        self.raw(self.frame(self.sent, message.into())).await;
    }

    /// Sends a heartbeat, and none by itself from then on: the gateway knows of this one only. Returns its time.
    pub(super) async fn last_beat(&mut self) -> u64 {
        self.beat_at = None;
        let time_us = self.now_us();
        self.raw(self.frame_at(time_us, 0, up::Heartbeat { echo_us: 0, held_us: 0 }.into())).await;
        time_us
    }

    /// What comes next, until then; `None`: nothing. Heartbeats are sent meanwhile.
    async fn inbound_by(&mut self, by: Instant) -> Option<Option<Inbound>> {
        loop {
            let beat_at = self.beat_at.filter(|at| *at < by);
            if let Ok(inbound) = timeout_at(beat_at.unwrap_or(by), self.link.down.recv()).await {
                return Some(inbound);
            }
            beat_at?;
            self.link(up::Heartbeat { echo_us: 0, held_us: 0 }).await;
            self.beat_at = Some(Instant::now() + BEAT_EVERY);
        }
    }

    /// What comes next, until then; sequences without gaps are checked.
    pub(super) async fn next_by(&mut self, by: Instant) -> Result<Came, String> {
        loop {
            let inbound = self.inbound_by(by).await.ok_or("nothing came in time")?;
            let bytes = match inbound {
                Some(Inbound::Frame(bytes)) => bytes,
                Some(Inbound::Closed { code, .. }) => return Ok(Came::Closed(code)),
                None => return Ok(Came::Closed(0)),
            };
            let (class, stamp, is_known) = match decode_down(&bytes).map_err(|error| error.to_string())? {
                Decoded::Frame(Frame { stamp, message }) => (message.class(), stamp, true),
                Decoded::Skipped { kind, stamp } => (Class::of_kind(kind), stamp, false),
            };
            if class == Class::Control {
                if stamp.sequence > self.received + 1 {
                    return Err(format!("control frame {} follows {}", stamp.sequence, self.received));
                }
                self.received = self.received.max(stamp.sequence);
            }
            if is_known {
                return Ok(Came::Message(bytes));
            }
        }
    }

    /// The first thing that `wanted` picks, within this time; all else is skipped.
    pub(super) async fn find<T>(
        &mut self,
        within: Duration,
        what: &str,
        mut wanted: impl FnMut(Stamp, &Down<'_>) -> Option<T>,
    ) -> Result<T, String> {
        let by = Instant::now() + within;
        loop {
            match self.next_by(by).await.map_err(|error| format!("waited for {what}: {error}"))? {
                Came::Closed(code) => return Err(format!("waited for {what}: the connection was closed with {code}")),
                Came::Message(bytes) => {
                    if let Ok(Decoded::Frame(Frame { stamp, message })) = decode_down(&bytes)
                        && let Some(found) = wanted(stamp, &message)
                    {
                        return Ok(found);
                    }
                }
            }
        }
    }

    /// The name of the reason of a `reject` or `goodbye`, and the close code behind it.
    pub(super) async fn end(&mut self) -> Result<(String, u16), String> {
        let by = Instant::now() + ANSWER_MAX;
        let mut reason = String::new();
        loop {
            let bytes = match self.next_by(by).await? {
                Came::Closed(code) => return Ok((reason, code)),
                Came::Message(bytes) => bytes,
            };
            match decode_down(&bytes) {
                Ok(Decoded::Frame(Frame { message: Down::Reject(reject), .. })) => reason = named(reject.code.name()),
                Ok(Decoded::Frame(Frame { message: Down::Goodbye(goodbye), .. })) => {
                    reason = named(goodbye.reason.name())
                }
                _ => {}
            }
        }
    }

    /// Whether `closed` is right where `code` is due.
    pub(super) fn is_closed_with(&self, closed: u16, code: u16) -> bool {
        is_right(self.link.name == Scheme::Quic.name(), closed, code)
    }

    /// Sends `hello`; returns what the challenge makes of the handshake, its signature checked.
    pub(super) async fn hello(&mut self, resume: Option<up::Resume<'_>>) -> Result<Handshake, String> {
        let nonce_commitment = Sha256::digest(self.nonce).into();
        let profile = &self.profile;
        let hello = up::Hello {
            device_key: self.identity.public_key(),
            nonce_commitment,
            device_id: "conformance",
            model: &profile.model,
            firmware: &profile.firmware,
            language: "en",
            capabilities: up::Capabilities { tools: 0, ..profile.capabilities() },
            resume,
            binding: profile.binding,
        };
        self.link(hello).await;
        let challenge = self.find(ANSWER_MAX, "challenge", |_, message| match message {
            Down::Challenge(challenge) => Some(*challenge),
            _ => None,
        });
        let challenge = challenge.await?;
        let handshake = Handshake {
            device_key: self.identity.public_key(),
            gateway_key: challenge.gateway_key,
            nonce_commitment,
            gateway_nonce: challenge.nonce,
            binding: self.link.binding,
        };
        let key =
            VerifyingKey::from_bytes(&challenge.gateway_key).map_err(|_| "its key is no Ed25519 key".to_owned())?;
        key.verify_strict(&handshake.gateway_proof(), &Signature::from_bytes(&challenge.signature))
            .map_err(|_| "the signature of challenge is wrong".to_owned())?;
        if self.identity.pinned().is_some_and(|pinned| pinned != challenge.gateway_key) {
            return Err("this is not the gateway that the glasses are paired with".to_owned());
        }
        Ok(handshake)
    }

    /// Sends `proof`; `flip`: with one wrong bit.
    pub(super) async fn prove(&mut self, handshake: &Handshake, flip: bool) {
        let mut signature = self.identity.sign(&handshake.device_proof(&self.nonce));
        if let Some(byte) = signature.first_mut().filter(|_| flip) {
            *byte ^= 1;
        }
        self.link(up::Proof { nonce: self.nonce, signature, invitation: [0; 32] }).await;
    }

    /// From `hello` to `welcome`; with `resume`, of a session that began before.
    pub(super) async fn shake(&mut self, resume: Option<up::Resume<'_>>) -> Result<Welcome, String> {
        let handshake = self.hello(resume).await?;
        self.join(&handshake, resume).await
    }

    /// From `proof` to `welcome`, behind a `hello` with this `resume`.
    pub(super) async fn join(
        &mut self,
        handshake: &Handshake,
        resume: Option<up::Resume<'_>>,
    ) -> Result<Welcome, String> {
        self.prove(handshake, false).await;
        let welcome = self.find(ANSWER_MAX, "welcome", |_, message| match message {
            Down::Welcome(welcome) => Some(Welcome {
                session: welcome.session,
                token: welcome.resume_token.to_vec(),
                resume_ms: welcome.resume_ms,
                heartbeat: Duration::from_millis(welcome.heartbeat_ms.into()),
                resumed: welcome.resumed.map(|resumed| resumed.control_received),
                continued: welcome.continued.is_some(),
                audio_up: welcome.audio_up,
                audio_down: welcome.audio_down,
            }),
            _ => None,
        });
        let welcome = welcome.await?;
        self.beat_at = Some(Instant::now() + BEAT_EVERY);
        self.received = resume.filter(|_| welcome.resumed.is_some()).map_or(0, |resume| resume.control_received);
        Ok(welcome)
    }
}

/// Whether a connection may be closed with `closed` where `code` is due: over QUIC the gateway may leave it to the device to close,
/// and has no code for the answer to a goodbye (PROTOCOL.md, section 10).
fn is_right(over_quic: bool, closed: u16, code: u16) -> bool {
    closed == code || (over_quic && closed == 0)
}

/// Writes other bytes into a frame.
pub(super) fn patch(frame: &mut [u8], at: usize, bytes: &[u8]) {
    for (place, byte) in frame.iter_mut().skip(at).zip(bytes) {
        *place = *byte;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_without_a_close_code_is_right_over_quic_only() {
        for over_quic in [false, true] {
            let is_right = |closed| is_right(over_quic, closed, 4104);
            assert_eq!([4104, 0, 4103].map(is_right), [true, over_quic, false]);
        }
    }
}
