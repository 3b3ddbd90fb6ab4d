//! The handshake and the pairing of PROTOCOL.md, section 6.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use device_protocol::auth::{Handshake, pairing_code};
use device_protocol::down::Challenge;
use device_protocol::{
    ChannelBinding, Decoded, Down, Frame, PairingMethod, Stamp, Up, decode_down, down, encode, limits, up,
};
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep_until};

use crate::clock::Clock;
use crate::identity::{Identity, random_bytes};
use crate::names::named;
use crate::profile::Profile;
use crate::seen::{Log, Seen};
use crate::transport::{Inbound, Link};

/// Interval of heartbeats during pairing.
const PAIRING_HEARTBEAT: Duration = Duration::from_secs(5);

/// How much longer than announced a pairing may take.
const PAIRING_GRACE: Duration = Duration::from_secs(10);

/// Why no session was opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The gateway refused.
    #[error("the gateway refused: {code}: {message}")]
    Rejected {
        /// Name of the code.
        code: String,
        /// The reason in words.
        message: String,
        /// Milliseconds before the next attempt; 0: the glasses' own back-off.
        retry_after_ms: u32,
        /// True if further attempts are useless.
        for_good: bool,
    },
    /// The signature of the gateway is wrong.
    #[error("the gateway's signature is wrong: it does not hold the key that it shows, or somebody is in the middle")]
    BadSignature,
    /// The gateway is not the pinned one.
    #[error(
        "this is gateway {found}, the glasses belong to {pinned}; remove gateway.pub from the state folder to pair anew"
    )]
    WrongGateway {
        /// Fingerprint of the received key.
        found: String,
        /// Fingerprint of the pinned key.
        pinned: String,
    },
    /// The gateway has another key than was expected of it.
    #[error("this is gateway {found}, but gateway {expected} is meant: somebody else answers at its address")]
    UnexpectedGateway {
        /// Fingerprint of the received key.
        found: String,
        /// Fingerprint of the expected key.
        expected: String,
    },
    /// A welcome without pairing, to glasses without a pinned gateway.
    #[error("the gateway welcomed glasses that were never paired; revoke them at the gateway and pair anew")]
    UnaskedWelcome,
    /// The link ended.
    #[error("the link ended during the handshake: {0}")]
    Closed(String),
    /// No answer in time.
    #[error("the gateway did not answer the handshake in time")]
    Timeout,
    /// A frame that cannot be decoded or is not allowed here.
    #[error("the gateway broke the handshake: {0}")]
    Unexpected(String),
    /// A key file or the random source failed.
    #[error(transparent)]
    Identity(#[from] crate::identity::Error),
    /// An own message does not fit; only an over-long option causes this.
    #[error("cannot build the handshake: {0}")]
    Encode(device_protocol::Error),
}

/// Most chunks of a replay that may overtake `welcome`: as many as a gateway keeps.
const EARLY_MAX: usize = 80;

/// Content of `welcome`.
#[derive(Clone, Debug)]
pub struct Welcome {
    /// Number of the session in the gateway's records.
    pub session: u32,
    /// Token for a resume.
    pub token: Vec<u8>,
    /// Received sequences of the gateway, control and audio, if the old session is resumed.
    pub resumed: Option<(u32, u32)>,
    /// What a restarted gateway has dealt with: control sequence, and capture time of sound.
    pub continued: Option<(u32, u64)>,
    /// Name of the gateway, for people.
    pub gateway_name: String,
    /// Name of the user that the glasses belong to.
    pub user_name: String,
    /// It acknowledges what it receives, so that the session can be resumed.
    pub acknowledges: bool,
    /// How long the gateway keeps the session for a resume.
    pub kept: Duration,
    /// Interval of heartbeats.
    pub heartbeat: Duration,
    /// Requested format of microphone sound.
    pub audio_up: down::AudioFormat,
    /// Format of speech.
    pub audio_down: down::AudioFormat,
    /// Name of the state of the conversation.
    pub listening: String,
    /// Key of the gateway, pinned after a pairing.
    pub gateway_key: [u8; 32],
    /// True after a pairing.
    pub paired_now: bool,
    /// Sound of a resumed session that overtook this.
    pub early: Vec<Bytes>,
}

/// The session to resume.
#[derive(Clone, Debug)]
pub struct Resume {
    /// Token of the last welcome.
    pub token: Vec<u8>,
    /// Last control sequence without a gap.
    pub control: u32,
    /// Highest audio sequence.
    pub audio: u32,
}

/// Frames of later versions that are skipped before the challenge (PROTOCOL.md, section 5).
const UNKNOWN_MAX: usize = 8;

/// Runs the handshake on a new link. `proven_us` is set to the time of the proof: from then on the gateway may replace another
/// connection of these glasses by this one.
///
/// # Errors
/// See [`Error`]; the caller closes the link.
pub async fn shake(
    link: &mut Link,
    identity: &Identity,
    profile: &Profile,
    resume: Option<&Resume>,
    clock: Clock,
    log: &Log,
    proven_us: &AtomicU64,
) -> Result<Welcome, Error> {
    let nonce = random_bytes()?;
    let commitment: [u8; 32] = Sha256::digest(nonce).into();
    let deadline = Instant::now() + Duration::from_millis(limits::HANDSHAKE_MS_MAX.into());
    let resume = resume.map(|resume| up::Resume {
        token: &resume.token,
        control_received: resume.control,
        audio_received: resume.audio,
    });
    let hello = up::Hello {
        device_key: identity.public_key(),
        nonce_commitment: commitment,
        device_id: &profile.device_id,
        model: &profile.model,
        firmware: &profile.firmware,
        language: &profile.language,
        capabilities: profile.capabilities(),
        resume,
        binding: profile.binding,
    };
    send(link, clock, Up::Hello(hello)).await?;
    let mut frame = receive(link, deadline).await?;
    for _ in 0..UNKNOWN_MAX {
        if decode(&frame)?.is_some() {
            break;
        }
        frame = receive(link, deadline).await?;
    }
    let challenge = match decode(&frame)? {
        Some(Down::Challenge(challenge)) => challenge,
        other => return Err(refusal(other, "challenge")),
    };
    let handshake = Handshake {
        device_key: identity.public_key(),
        gateway_key: challenge.gateway_key,
        nonce_commitment: commitment,
        gateway_nonce: challenge.nonce,
        binding: match profile.binding {
            ChannelBinding::Certificate => link.certificate,
            _ => link.binding,
        },
    };
    check_gateway(identity, &handshake, &challenge)?;
    let signature = identity.sign(&handshake.device_proof(&nonce));
    let invitation = identity
        .invitation()
        .map_or([0; 32], |code| Sha256::digest(handshake.invitation_transcript(&nonce, &code)).into());
    proven_us.store(clock.now_us(), Ordering::Relaxed);
    send(link, clock, Up::Proof(up::Proof { nonce, signature, invitation })).await?;
    let digest: [u8; 32] = Sha256::digest(handshake.pairing_transcript(&nonce)).into();
    let code = String::from_utf8_lossy(&pairing_code(&digest)).into_owned();
    await_welcome(link, identity, challenge.gateway_key, deadline, &code, clock, log).await
}

/// Checks that the gateway holds the key that it sent, and that it is the pinned one.
fn check_gateway(identity: &Identity, handshake: &Handshake, challenge: &Challenge) -> Result<(), Error> {
    let key = VerifyingKey::from_bytes(&challenge.gateway_key).map_err(|_| Error::BadSignature)?;
    let signature = Signature::from_bytes(&challenge.signature);
    key.verify_strict(&handshake.gateway_proof(), &signature).map_err(|_| Error::BadSignature)?;
    match identity.pinned() {
        Some(pinned) if pinned != challenge.gateway_key => Err(Error::WrongGateway {
            found: crate::identity::fingerprint(&challenge.gateway_key),
            pinned: crate::identity::fingerprint(&pinned),
        }),
        Some(_) => Ok(()),
        None => {
            let found = crate::identity::fingerprint(&challenge.gateway_key);
            match identity.expected() {
                Some(expected) if expected != found => Err(Error::UnexpectedGateway { found, expected }),
                _ => Ok(()),
            }
        }
    }
}

async fn await_welcome(
    link: &mut Link,
    identity: &Identity,
    gateway_key: [u8; 32],
    mut deadline: Instant,
    code: &str,
    clock: Clock,
    log: &Log,
) -> Result<Welcome, Error> {
    // With an invitation the operator has confirmed before.
    let mut paired_now = identity.invitation().is_some();
    let mut early = Vec::new();
    let mut heartbeat_at: Option<Instant> = None;
    let mut heard: Option<(u64, u64)> = None;
    loop {
        let beat = async {
            match heartbeat_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let frame = tokio::select! {
            frame = receive(link, deadline) => frame?,
            () = beat => {
                let now_us = clock.now_us();
                let (echo_us, held_us) = heard.map_or((0, 0), |(echo, at)| (echo, now_us.saturating_sub(at)));
                send(link, clock, Up::Heartbeat(up::Heartbeat { echo_us, held_us })).await?;
                heartbeat_at = Some(Instant::now() + PAIRING_HEARTBEAT);
                continue;
            }
        };
        let bytes = frame;
        let frame = decode_down(&bytes).map_err(|error| Error::Unexpected(error.to_string()))?;
        let Decoded::Frame(Frame { stamp, message }) = frame else {
            continue;
        };
        match message {
            Down::PairingCode(pairing) => {
                paired_now = true;
                deadline = Instant::now() + Duration::from_secs(pairing.expires_s.into()) + PAIRING_GRACE;
                heartbeat_at.get_or_insert(Instant::now() + PAIRING_HEARTBEAT);
                log.push(
                    clock.now_us(),
                    Seen::PairingCode {
                        code: (pairing.method != PairingMethod::Fingerprint).then(|| code.to_owned()),
                        fingerprint: identity.fingerprint(),
                        expires_s: pairing.expires_s,
                        tries_left: pairing.tries_left,
                    },
                );
            }
            // A datagram overtakes the control stream.
            Down::SpeechChunk(_) if early.len() < EARLY_MAX => early.push(bytes.clone()),
            Down::Heartbeat(_) if paired_now => heard = Some((stamp.time_us, clock.now_us())),
            Down::Welcome(_) if !paired_now && identity.pinned().is_none() => {
                return Err(Error::UnaskedWelcome);
            }
            Down::Welcome(welcome) => {
                return Ok(Welcome {
                    session: welcome.session,
                    token: welcome.resume_token.to_vec(),
                    resumed: welcome.resumed.map(|resumed| (resumed.control_received, resumed.audio_received)),
                    acknowledges: welcome.resume_ms > 0,
                    kept: Duration::from_millis(welcome.resume_ms.into()),
                    continued: welcome.continued.map(|kept| (kept.control_received, kept.sound_until_us)),
                    gateway_name: welcome.gateway_name.to_owned(),
                    user_name: welcome.user_name.to_owned(),
                    heartbeat: Duration::from_millis(welcome.heartbeat_ms.max(1).into()),
                    audio_up: welcome.audio_up,
                    audio_down: welcome.audio_down,
                    listening: named(welcome.listening.name()),
                    gateway_key,
                    paired_now,
                    early,
                });
            }
            other => return Err(refusal(Some(other), "welcome")),
        }
    }
}

fn refusal(message: Option<Down<'_>>, wanted: &str) -> Error {
    match message {
        Some(Down::Reject(reject)) => Error::Rejected {
            code: named(reject.code.name()),
            message: reject.message.to_owned(),
            retry_after_ms: reject.retry_after_ms,
            for_good: reject.code == device_protocol::RejectCode::Revoked,
        },
        Some(Down::Goodbye(goodbye)) => Error::Closed(goodbye.message.to_owned()),
        Some(other) => Error::Unexpected(format!("{} came instead of {wanted}", other.name())),
        None => Error::Unexpected(format!("an unknown message came instead of {wanted}")),
    }
}

fn decode(frame: &Bytes) -> Result<Option<Down<'_>>, Error> {
    match decode_down(frame) {
        Ok(Decoded::Frame(frame)) => Ok(Some(frame.message)),
        Ok(Decoded::Skipped { .. }) => Ok(None),
        Err(error) => Err(Error::Unexpected(error.to_string())),
    }
}

async fn send(link: &Link, clock: Clock, message: Up<'_>) -> Result<(), Error> {
    let stamp = Stamp { sequence: 0, turn: 0, time_us: clock.now_us() };
    let mut buffer = vec![0; limits::FRAME_BYTES_MAX];
    let length = encode(&Frame::new(stamp, message), &mut buffer).map_err(Error::Encode)?;
    buffer.truncate(length);
    link.up.send(buffer.into()).await.map_err(|_| Error::Closed("the transport ended".to_owned()))
}

async fn receive(link: &mut Link, deadline: Instant) -> Result<Bytes, Error> {
    let inbound = tokio::select! {
        inbound = link.down.recv() => inbound,
        () = sleep_until(deadline) => return Err(Error::Timeout),
    };
    match inbound {
        Some(Inbound::Frame(frame)) => Ok(frame),
        Some(Inbound::Closed { code, reason }) => Err(Error::Closed(format!("closed with {code} {reason}"))),
        None => Err(Error::Closed("the transport ended".to_owned())),
    }
}
