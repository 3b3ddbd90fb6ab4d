//! Hello, challenge and proof of a device, judged: PROTOCOL.md, section 6.

use std::time::Duration;

use audio::codec::{RATES_HZ, lc3};
use bytes::Bytes;
use device_protocol::{
    Class, Codec, Codecs, Decoded, DisplayKind, Down, PairingMethod, RejectCode, Up,
    auth::{self, Handshake, pairing_code},
    decode_up, down,
    json::Owned as _,
    limits,
    up::{Capabilities, HelloOwned, Proof},
};
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Rule, rules::Report};
use crate::{
    clock,
    device_task::formats::agree,
    identity::{GatewayKey, fingerprint, random},
    text::is_plain,
    transport::Link,
};

/// A link kind of a later version: the last of its class.
const UNKNOWN_KIND: u16 = 0x8fff;
/// How often a device says that it is alive while it waits for pairing.
const PAIRING_BEAT: Duration = Duration::from_millis(5_000);

/// Begin of the reason where a device is silent.
pub(super) const NOTHING: &str = "nothing came";

/// What became of a handshake.
pub(super) type Outcome<T> = Result<T, String>;

/// Reads the first frame of a link.
pub(super) async fn hello(link: &mut Link, report: &mut Report) -> Outcome<HelloOwned> {
    let bytes = next(link).await?;
    let hello = match decode_up(&bytes) {
        Ok(Decoded::Frame(frame)) => match frame.message {
            Up::Hello(hello) => {
                if (frame.stamp.sequence, frame.stamp.turn) != (0, 0) {
                    report.fail(
                        Rule::Hello,
                        format!("it has sequence {} and turn {}", frame.stamp.sequence, frame.stamp.turn),
                    );
                }
                HelloOwned::from_borrowed(&hello).map_err(|error| error.to_string())?
            }
            other => {
                report.fail(Rule::Hello, format!("the first frame is `{}`", other.name()));
                return Err("no hello".to_owned());
            }
        },
        Ok(Decoded::Skipped { kind, .. }) => {
            report.fail(Rule::Hello, format!("the first frame is of the unknown kind {kind:#06x}"));
            return Err("no hello".to_owned());
        }
        Err(error) => {
            report.fail(Rule::Hello, error.to_string());
            return Err("no hello".to_owned());
        }
    };
    let HelloOwned { device_id, model, firmware, language, capabilities, .. } = &hello;
    let texts = [("device_id", device_id), ("model", model), ("firmware", firmware), ("language", language)];
    match texts.iter().find(|(_, text)| !is_plain(text)) {
        Some((field, _)) => report.fail(Rule::Hello, format!("`{field}` has a character that does not show as itself")),
        None => match unfit(capabilities) {
            Some(what) => report.fail(Rule::Hello, what),
            None => report.pass(Rule::Hello),
        },
    }
    Ok(hello)
}

/// What is wrong with capabilities.
fn unfit(capabilities: &Capabilities) -> Option<String> {
    let Capabilities { audio_up_hz, audio_down_hz, frame_bytes_max, heartbeat_ms, tools, .. } = *capabilities;
    let sides = [(audio_up_hz, capabilities.codecs_up), (audio_down_hz, capabilities.codecs_down)];
    let has_codec = |codecs: Codecs| [Codec::Opus, Codec::Lc3, Codec::Pcm16].into_iter().any(|codec| codecs.has(codec));
    if let Some((rate_hz, _)) = sides.iter().find(|(rate_hz, _)| *rate_hz != 0 && !RATES_HZ.contains(rate_hz)) {
        return Some(format!("{rate_hz} Hz is no rate of section 8"));
    }
    if sides.iter().any(|(rate_hz, codecs)| *rate_hz != 0 && !has_codec(*codecs)) {
        return Some("a rate without a codec".to_owned());
    }
    if sides.iter().any(|(rate_hz, codecs)| *rate_hz != 0 && codecs.has(Codec::Lc3)) {
        let format = lc3::Format::new(capabilities.lc3_frame_us.into(), capabilities.lc3_frame_bytes);
        if let Err(error) = format {
            return Some(error.to_string());
        }
    }
    if let Err(what) = agree(capabilities) {
        return Some(what);
    }
    let bytes_min = limits::DEVICE_FRAME_BYTES_MIN;
    if frame_bytes_max != 0 && (frame_bytes_max as usize) < bytes_min {
        return Some(format!("frame_bytes_max is {frame_bytes_max}, and at least {bytes_min}"));
    }
    if heartbeat_ms != 0 && !(limits::HEARTBEAT_MS_DEFAULT..=limits::HEARTBEAT_MS_MAX).contains(&heartbeat_ms) {
        return Some(format!("heartbeat_ms is {heartbeat_ms}; 5000 to 60000 may be asked for"));
    }
    (usize::from(tools) > limits::TOOLS_MAX).then(|| format!("{tools} tools; at most {}", limits::TOOLS_MAX))
}

/// What a device has proven.
pub(super) struct Proven {
    pub(super) handshake: Handshake,
    pub(super) proof: Proof,
}

/// Sends the challenge; what is signed in this handshake.
pub(super) fn challenge(link: &Link, key: &GatewayKey, hello: &HelloOwned) -> Outcome<Handshake> {
    let binding = link.bindings.of(hello.binding).ok_or("an unknown channel binding")?;
    let gateway_nonce = random::<32>().map_err(|error| error.to_string())?;
    let handshake = Handshake {
        device_key: hello.device_key,
        gateway_key: key.public(),
        nonce_commitment: hello.nonce_commitment,
        gateway_nonce,
        binding,
    };
    let signature = key.sign(&handshake.gateway_proof());
    let challenge = down::Challenge { nonce: gateway_nonce, gateway_key: key.public(), signature };
    link.down.send(clock::mono_us(), Down::Challenge(challenge)).map_err(|error| error.to_string())?;
    Ok(handshake)
}

/// Sends a link frame of a later version.
pub(super) fn send_unknown(link: &Link) -> Outcome<()> {
    let mut bytes = vec![1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0];
    for (place, byte) in bytes.iter_mut().skip(2).zip(UNKNOWN_KIND.to_le_bytes()) {
        *place = byte;
    }
    link.down.put(bytes.into()).map_err(|error| error.to_string())
}

/// Reads the proof, and checks it.
pub(super) async fn proof(link: &mut Link, report: &mut Report, handshake: Handshake) -> Outcome<Proven> {
    let bytes = next(link).await?;
    let proof = match decode_up(&bytes) {
        Ok(Decoded::Frame(frame)) => match frame.message {
            Up::Proof(proof) => proof,
            other => {
                report.fail(Rule::Proof, format!("`{}` follows the challenge", other.name()));
                return Err("no proof".to_owned());
            }
        },
        Ok(Decoded::Skipped { kind, .. }) => {
            report.fail(Rule::Proof, format!("kind {kind:#06x} follows the challenge"));
            return Err("no proof".to_owned());
        }
        Err(error) => {
            report.fail(Rule::Proof, error.to_string());
            return Err("no proof".to_owned());
        }
    };
    let fault = if Sha256::digest(proof.nonce)[..] != handshake.nonce_commitment {
        Some("the nonce is not the one of the commitment")
    } else {
        let signed = VerifyingKey::from_bytes(&handshake.device_key).and_then(|key| {
            key.verify_strict(&handshake.device_proof(&proof.nonce), &Signature::from_bytes(&proof.signature))
        });
        signed.is_err().then_some("the signature does not fit this connection and the key of hello")
    };
    if let Some(fault) = fault {
        report.fail(Rule::Proof, fault);
        reject(link, RejectCode::BadProof, fault);
        return Err(fault.to_owned());
    }
    report.pass(Rule::Proof);
    Ok(Proven { handshake, proof })
}

/// Sends a device away.
pub(super) fn reject(link: &Link, code: RejectCode, message: &str) {
    let reject = down::Reject { code, message, retry_after_ms: 0 };
    drop(link.down.send_last(clock::mono_us(), Down::Reject(reject)));
}

/// What the device shows for people to compare: the six digits of its pairing code, or the fingerprint of its key.
pub(super) fn to_compare(proven: &Proven, capabilities: &Capabilities) -> (PairingMethod, String) {
    if capabilities.display.kind == DisplayKind::None {
        return (PairingMethod::Fingerprint, fingerprint(&proven.handshake.device_key));
    }
    let digest: [u8; 32] = Sha256::digest(proven.handshake.pairing_transcript(&proven.proof.nonce)).into();
    (PairingMethod::Code, pairing_code(&digest).iter().map(|digit| char::from(*digit)).collect())
}

/// Whether the device knows the code of an invitation; `None`: it says nothing of one.
pub(super) fn knows(proven: &Proven, code: &[u8; auth::INVITATION_CODE_BYTES]) -> Option<bool> {
    let Proven { handshake, proof } = proven;
    let digest = Sha256::digest(handshake.invitation_transcript(&proof.nonce, code));
    (proof.invitation != [0; 32]).then(|| digest[..] == proof.invitation)
}

/// Has the device wait for pairing, as long as its first heartbeat takes.
pub(super) async fn pair(link: &mut Link, report: &mut Report, method: PairingMethod, grace: Duration) -> Outcome<()> {
    let notice = down::PairingCode { method, expires_s: 120, tries_left: 3 };
    link.down.send(clock::mono_us(), Down::PairingCode(notice)).map_err(|error| error.to_string())?;
    let by = Instant::now() + PAIRING_BEAT + grace;
    loop {
        let Ok(bytes) = timeout_at(by, next(link)).await else {
            report.fail(Rule::PairingBeats, format!("none within {} ms", (PAIRING_BEAT + grace).as_millis()));
            return Ok(());
        };
        match decode_up(&bytes?) {
            Ok(Decoded::Frame(frame)) if matches!(frame.message, Up::Heartbeat(_)) => {
                report.pass(Rule::PairingBeats);
                return Ok(());
            }
            Ok(Decoded::Frame(frame)) => {
                report.fail(Rule::PairingBeats, format!("`{}` while pairing waits", frame.message.name()));
                return Err("only heartbeats belong into the wait for pairing".to_owned());
            }
            Ok(Decoded::Skipped { kind, .. }) if Class::of_kind(kind) == Class::Link => {}
            _ => return Err("a frame that cannot be read while pairing waits".to_owned()),
        }
    }
}

/// The next frame, within the time of a handshake.
pub(super) async fn next(link: &mut Link) -> Outcome<Bytes> {
    match timeout(Duration::from_millis(limits::HANDSHAKE_MS_MAX.into()), link.up.recv()).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => Err("the device closed the link".to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("{NOTHING} within {} ms", limits::HANDSHAKE_MS_MAX)),
    }
}
