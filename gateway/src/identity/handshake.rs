//! Hello, challenge, proof, and pairing where the key is new.

use std::time::Duration;

use device_protocol::{
    Decoded, DisplayKind, Down, PairingMethod, RejectCode, Up,
    auth::{Handshake, pairing_code},
    decode_up, down,
    json::Owned as _,
    limits,
    up::{Capabilities, HelloOwned},
};
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest as _, Sha256};
use tokio::time::timeout;

use super::{GatewayKey, Pairings, fingerprint, keys::random, pairing};
use crate::{
    clock,
    store::{self, DeviceRecord, Store, Write},
    transport::{Link, LinkError},
};

/// A device that has proven who it is.
pub struct Admitted {
    /// Fingerprint of its key: its name in the store.
    pub id: String,
    /// Its record.
    pub record: DeviceRecord,
    /// What it said of itself.
    pub hello: HelloOwned,
}

/// Why a device was turned away.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// For the device.
    pub code: RejectCode,
    /// For people.
    pub message: String,
    /// When to try again; 0: the device's own back-off.
    pub retry_after_ms: u32,
}

fn refuse(code: RejectCode, message: impl Into<String>) -> Refusal {
    Refusal { code, message: message.into(), retry_after_ms: 0 }
}

fn broken(error: &LinkError) -> Refusal {
    match error {
        LinkError::Malformed(reason) => refuse(RejectCode::Malformed, reason.clone()),
        other => refuse(RejectCode::Unspecified, other.to_string()),
    }
}

/// Runs the handshake to its end. On refusal the device has been told.
///
/// # Errors
/// The device was turned away, or vanished.
pub async fn admit(link: &mut Link, key: &GatewayKey, store: &Store, pairings: &Pairings) -> Result<Admitted, Refusal> {
    let result = run(link, key, store, pairings).await;
    if let Err(refusal) = &result {
        tell(link, refusal);
    }
    result
}

/// Turns a device away for a reason outside of its handshake.
pub fn turn_away(link: &mut Link, code: RejectCode, message: &str) -> Refusal {
    let refusal = refuse(code, message);
    tell(link, &refusal);
    refusal
}

fn tell(link: &mut Link, refusal: &Refusal) {
    let reject = down::Reject {
        code: refusal.code,
        message: crop(&refusal.message, limits::LABEL_BYTES_MAX),
        retry_after_ms: refusal.retry_after_ms,
    };
    drop(link.down.send_last(0, clock::mono_us(), Down::Reject(reject)));
}

async fn run(link: &mut Link, key: &GatewayKey, store: &Store, pairings: &Pairings) -> Result<Admitted, Refusal> {
    let deadline = Duration::from_millis(limits::HANDSHAKE_MS_MAX.into());
    let (hello, handshake, device_nonce) = timeout(deadline, prove(link, key))
        .await
        .map_err(|_| refuse(RejectCode::Timeout, "the handshake took too long"))??;
    let id = fingerprint(&handshake.device_key);
    let known = store.device_or_refuse(&id)?;
    let record = match known {
        Some(record) if !record.revoked => record,
        // Who revokes can change their mind, by naming this very key.
        Some(_) if !pairings.is_open_for(clock::mono_us(), &id) => {
            return Err(refuse(RejectCode::Revoked, "this device was revoked by the operator"));
        }
        _ => pair(link, store, pairings, &hello, &id, &handshake, &device_nonce).await?,
    };
    Ok(Admitted { id, record, hello })
}

async fn prove(link: &mut Link, key: &GatewayKey) -> Result<(HelloOwned, Handshake, [u8; 32]), Refusal> {
    let internal = |error: anyhow::Error| refuse(RejectCode::Internal, error.to_string());
    let frame = next(link).await?;
    let hello = match decode(&frame)? {
        Up::Hello(hello) => {
            HelloOwned::from_borrowed(&hello).map_err(|error| refuse(RejectCode::Malformed, error.to_string()))?
        }
        _ => {
            return Err(refuse(RejectCode::UnexpectedMessage, "the first frame must be a Hello"));
        }
    };
    let gateway_nonce = random::<32>().map_err(internal)?;
    let handshake = Handshake {
        device_key: hello.device_key,
        gateway_key: key.public(),
        nonce_commitment: hello.nonce_commitment,
        gateway_nonce,
        binding: link.binding,
    };
    let challenge = down::Challenge {
        nonce: gateway_nonce,
        gateway_key: key.public(),
        signature: key.sign(&handshake.gateway_proof()),
    };
    link.down.send(0, clock::mono_us(), Down::Challenge(challenge)).map_err(|error| broken(&error))?;
    let frame = next(link).await?;
    let Up::Proof(proof) = decode(&frame)? else {
        return Err(refuse(RejectCode::UnexpectedMessage, "a Proof must follow the Challenge"));
    };
    let bad = |what: &str| refuse(RejectCode::BadProof, what);
    if Sha256::digest(proof.nonce)[..] != hello.nonce_commitment {
        return Err(bad("the nonce is not the one that Hello committed to"));
    }
    let device_key =
        VerifyingKey::from_bytes(&hello.device_key).map_err(|_| bad("the device key is no Ed25519 key"))?;
    device_key
        .verify_strict(&handshake.device_proof(&proof.nonce), &Signature::from_bytes(&proof.signature))
        .map_err(|_| bad("the signature does not fit this connection; was the handshake relayed?"))?;
    Ok((hello, handshake, proof.nonce))
}

async fn pair(
    link: &mut Link,
    store: &Store,
    pairings: &Pairings,
    hello: &HelloOwned,
    id: &str,
    handshake: &Handshake,
    device_nonce: &[u8; 32],
) -> Result<DeviceRecord, Refusal> {
    let digest: [u8; 32] = Sha256::digest(handshake.pairing_transcript(device_nonce)).into();
    let shows_code = has_display(&hello.capabilities);
    let code = shows_code.then(|| pairing_code(&digest).iter().map(|digit| char::from(*digit)).collect::<String>());
    let (granted, tries_left) = pairings.wait(clock::mono_us(), id, &hello.model, code).map_err(|error| Refusal {
        code: RejectCode::RateLimited,
        message: error.to_string(),
        retry_after_ms: 30_000,
    })?;
    let method = if shows_code { PairingMethod::Code } else { PairingMethod::Fingerprint };
    let expires_s = u16::try_from(pairing::OPEN_US / 1_000_000).unwrap_or(u16::MAX);
    let notice = down::PairingCode { method, expires_s, tries_left };
    link.down.send(0, clock::mono_us(), Down::PairingCode(notice)).map_err(|error| broken(&error))?;
    tracing::info!(device = id, model = hello.model, "a new device waits for pairing");
    let decided = async {
        tokio::pin!(granted);
        loop {
            tokio::select! {
                grant = &mut granted => {
                    return grant.map_err(|_| refuse(RejectCode::PairingFailed, "pairing was closed: too many wrong codes"));
                }
                // Heartbeats keep the link alive meanwhile; anything else is ignored.
                frame = next(link) => drop(frame?),
            }
        }
    };
    let grant = timeout(Duration::from_micros(pairing::OPEN_US), decided)
        .await
        .map_err(|_| refuse(RejectCode::NotPaired, "nobody confirmed the pairing in time"))??;
    let record = DeviceRecord {
        key: hello.device_key,
        name: if grant.name.is_empty() { hello.model.clone() } else { grant.name },
        user: grant.user,
        model: hello.model.clone(),
        paired_wall_ms: clock::wall_ms(),
        revoked: false,
    };
    store.write(Write::PutDevice { id: id.to_owned(), device: record.clone() }).await.map_err(|error| match error {
        store::Error::Erasing => refuse(RejectCode::Busy, error.to_string()),
        _ => refuse(RejectCode::Internal, error.to_string()),
    })?;
    tracing::info!(device = id, user = record.user, "paired");
    Ok(record)
}

/// Whether the device can show a pairing code.
fn has_display(capabilities: &Capabilities) -> bool {
    capabilities.display.kind != DisplayKind::None
}

async fn next(link: &mut Link) -> Result<bytes::Bytes, Refusal> {
    match link.up.recv().await {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(refuse(RejectCode::Unspecified, "the device went away")),
        Err(error) => Err(broken(&error)),
    }
}

fn decode(bytes: &[u8]) -> Result<Up<'_>, Refusal> {
    match decode_up(bytes) {
        Ok(Decoded::Frame(frame)) => Ok(frame.message),
        Ok(Decoded::Skipped { kind, .. }) => {
            Err(refuse(RejectCode::UnexpectedMessage, format!("kind {kind:#06x} does not belong in the handshake")))
        }
        Err(error @ device_protocol::Error::UnknownVersion { .. }) => {
            Err(refuse(RejectCode::UnsupportedVersion, error.to_string()))
        }
        Err(error) => Err(refuse(RejectCode::Malformed, error.to_string())),
    }
}

/// The longest start of `text` that has at most `bytes_max` bytes.
pub fn crop(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or("")
}

impl Store {
    fn device_or_refuse(&self, id: &str) -> Result<Option<DeviceRecord>, Refusal> {
        self.disk().device(id).map_err(|error| refuse(RejectCode::Internal, error.to_string()))
    }
}
