//! Hello, challenge, proof, and pairing of new keys.

use std::time::Duration;

use device_protocol::{
    Class, Decoded, DisplayKind, Down, PairingMethod, RejectCode, Stamp, Up,
    auth::{Handshake, pairing_code},
    decode_up, down,
    json::Owned as _,
    limits,
    up::{Capabilities, HelloOwned, Proof},
};
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest as _, Sha256};
use tokio::time::{interval, timeout_at};

use super::{
    Admitted, Asked, GatewayKey, Pairings,
    context::AdmissionContext,
    fingerprint,
    grant::{Grant, Granted},
    invitations::{self, Shown},
    keys::random,
    pairing::{self, PairError, Wait},
    refusal::Refusal,
};
use crate::{
    clock,
    store::{self, DeviceRecord, Store, Write, names},
    text::is_plain,
    transport::{self, Link, LinkError},
};

/// Milliseconds until a device retries if too many wait for pairing: one of them is done by then.
const CROWDED_MS: u32 = 30_000;
/// What a device is told that nobody has paired.
const LATE: &str = "nobody confirmed the pairing in time";
/// Frames of unknown kinds that are skipped while one is awaited.
const UNKNOWN_MAX: usize = 8;

fn broken(error: &LinkError) -> Refusal {
    match error {
        LinkError::Malformed(reason) => Refusal::new(RejectCode::Malformed, reason.clone()),
        LinkError::Flooding(_) => Refusal::new(RejectCode::RateLimited, error.to_string()),
        other => Refusal::new(RejectCode::Unspecified, other.to_string()),
    }
}

/// Runs the handshake. On refusal the device has been informed.
///
/// # Errors
/// The device was rejected, or vanished.
pub(crate) async fn admit(link: &mut Link, context: &AdmissionContext<'_>, store: &Store) -> Result<Admitted, Refusal> {
    let result = run(link, context, store).await;
    if let Err(refusal) = &result {
        refusal.tell(link);
    }
    result
}

async fn run(link: &mut Link, context: &AdmissionContext<'_>, store: &Store) -> Result<Admitted, Refusal> {
    let deadline = clock::instant_at(link.opened_us + u64::from(limits::HANDSHAKE_MS_MAX) * 1_000);
    let (asked, handshake, proof) = timeout_at(deadline, prove(link, context.key))
        .await
        .map_err(|_| Refusal::new(RejectCode::Timeout, "the handshake took too long"))??;
    let id = fingerprint(&handshake.device_key);
    let proven = Proven { id: &id, hello: &asked.hello, handshake: &handshake, proof: &proof };
    match known_or_paired(link, store, context, proven).await {
        Ok(record) => Ok(Admitted { id, record, asked }),
        Err(refusal) => Err(Refusal { device: Some(id), ..refusal }),
    }
}

/// What a device has proven.
#[derive(Clone, Copy)]
struct Proven<'a> {
    id: &'a str,
    hello: &'a HelloOwned,
    handshake: &'a Handshake,
    proof: &'a Proof,
}

async fn known_or_paired(
    link: &mut Link,
    store: &Store,
    context: &AdmissionContext<'_>,
    proven: Proven<'_>,
) -> Result<DeviceRecord, Refusal> {
    match store.device_or_refuse(proven.id)? {
        Some(record) if !record.revoked && !context.pairings.is_revoked(proven.id) => Ok(record),
        // A revocation can be undone by naming this very key.
        Some(_) if !context.pairings.is_open_for(clock::mono_us(), proven.id) => {
            Err(Refusal::new(RejectCode::Revoked, pairing::REVOKED))
        }
        _ => pair(link, store, context, proven).await,
    }
}

async fn prove(link: &mut Link, key: &GatewayKey) -> Result<(Asked, Handshake, Proof), Refusal> {
    let frame = next(link).await?;
    let received_us = clock::mono_us();
    let (stamp, Up::Hello(hello)) = decode(&frame)? else {
        return Err(Refusal::new(RejectCode::UnexpectedMessage, "the first frame must be a Hello"));
    };
    let hello =
        HelloOwned::from_borrowed(&hello).map_err(|error| Refusal::new(RejectCode::Malformed, error.to_string()))?;
    check_texts(&hello)?;
    let binding = link.bindings.of(hello.binding).ok_or_else(|| {
        let number = hello.binding.number();
        Refusal::new(RejectCode::BadProof, format!("channel binding {number} is unknown; use exporter or certificate"))
    })?;
    let gateway_nonce = random::<32>().map_err(Refusal::internal)?;
    let handshake = Handshake {
        device_key: hello.device_key,
        gateway_key: key.public(),
        nonce_commitment: hello.nonce_commitment,
        gateway_nonce,
        binding,
    };
    let challenge = down::Challenge {
        nonce: gateway_nonce,
        gateway_key: key.public(),
        signature: key.sign(&handshake.gateway_proof()),
    };
    link.down.send(clock::mono_us(), Down::Challenge(challenge)).map_err(|error| broken(&error))?;
    let frame = next(link).await?;
    let (_, Up::Proof(proof)) = decode(&frame)? else {
        return Err(Refusal::new(RejectCode::UnexpectedMessage, "a Proof must follow the Challenge"));
    };
    let bad = |what: &str| Refusal::new(RejectCode::BadProof, what);
    if Sha256::digest(proof.nonce)[..] != hello.nonce_commitment {
        return Err(bad("the nonce is not the one that Hello committed to"));
    }
    let device_key =
        VerifyingKey::from_bytes(&hello.device_key).map_err(|_| bad("the device key is no Ed25519 key"))?;
    device_key
        .verify_strict(&handshake.device_proof(&proof.nonce), &Signature::from_bytes(&proof.signature))
        .map_err(|_| bad("the signature does not fit this connection; was the handshake relayed?"))?;
    Ok((Asked { hello, sent_us: stamp.time_us, received_us }, handshake, proof))
}

/// The device's texts are shown to the operator, who decides by them: they must not contain terminal control
/// characters.
fn check_texts(hello: &HelloOwned) -> Result<(), Refusal> {
    let HelloOwned { device_id, model, firmware, language, .. } = hello;
    let fields = [("device_id", device_id), ("model", model), ("firmware", firmware), ("language", language)];
    match fields.iter().find(|(_, text)| !is_plain(text)) {
        None => Ok(()),
        Some((field, _)) => {
            Err(Refusal::new(RejectCode::Malformed, format!("`{field}` has a character that does not show as itself")))
        }
    }
}

async fn pair(
    link: &mut Link,
    store: &Store,
    context: &AdmissionContext<'_>,
    proven: Proven<'_>,
) -> Result<DeviceRecord, Refusal> {
    let id = proven.id;
    let granted = match by_invitation(context.pairings, proven) {
        Some(taken) => taken.map_err(|error| Refusal::new(RejectCode::PairingFailed, error.to_string()))?,
        None => by_operator(link, context, proven).await?,
    };
    // The grant is used up.
    context.slot.inspect(|slot| slot.waits(true));
    let mut stored = put(store, context.users_max, proven, granted.grant()).await;
    // Revoked meanwhile: the record may have been written over the revocation.
    if let Ok(record) = &stored
        && context.pairings.is_revoked(id)
    {
        let device = DeviceRecord { revoked: true, ..record.clone() };
        if let Err(error) = store.write(Write::PutDevice { id: id.to_owned(), device }).await {
            tracing::error!(device = id, %error, "a revocation could not be stored; it holds until the next start");
        }
        stored = Err(store::Error::Revoked);
    }
    // The operator is informed of the result: a device is paired only once it is on disk.
    granted.settle(stored.as_ref().map(|record| record.name.clone()).map_err(ToString::to_string));
    let record = stored.map_err(|error| match error {
        store::Error::Erasing => Refusal::new(RejectCode::Busy, error.to_string()),
        store::Error::Revoked => Refusal::new(RejectCode::Revoked, pairing::REVOKED),
        store::Error::TooManyUsers(_) => Refusal::new(RejectCode::PairingFailed, error.to_string()),
        _ => Refusal::internal(error),
    })?;
    tracing::info!(device = id, user = record.user, "paired");
    Ok(record)
}

/// What the operator has granted in advance to who knows the code of an invitation; `None`: the device has none.
fn by_invitation(pairings: &Pairings, proven: Proven<'_>) -> Option<Result<Granted, invitations::Error>> {
    let Proven { handshake, proof, .. } = proven;
    let shown = Shown { handshake, device_nonce: &proof.nonce, digest: proof.invitation };
    (proof.invitation != [0; 32]).then(|| pairings.invitations.take(clock::mono_us(), shown))
}

/// Waits until the operator has confirmed the device.
async fn by_operator(link: &mut Link, context: &AdmissionContext<'_>, proven: Proven<'_>) -> Result<Granted, Refusal> {
    let Proven { id, hello, handshake, proof } = proven;
    let digest: [u8; 32] = Sha256::digest(handshake.pairing_transcript(&proof.nonce)).into();
    let shows_code = has_display(&hello.capabilities);
    let code = shows_code.then(|| pairing_code(&digest).iter().map(|digit| char::from(*digit)).collect::<String>());
    let wait = context.pairings.wait(clock::mono_us(), id, &hello.model, code, link.peer.ip());
    let wait = wait.map_err(|error| not_now(&error))?;
    context.slot.inspect(|slot| slot.waits(true));
    let method = if shows_code { PairingMethod::Code } else { PairingMethod::Fingerprint };
    let until_us = clock::mono_us() + pairing::OPEN_US;
    if let Some(left_out) = context.waits.line() {
        tracing::info!(device = id, model = hello.model, left_out, "a new device waits for pairing");
    }
    let decided = await_operator(link, wait, method, until_us);
    let decided = timeout_at(clock::instant_at(until_us), decided).await;
    let decided = decided.unwrap_or_else(|_| Err(Refusal::new(RejectCode::NotPaired, LATE)));
    if decided.is_err() {
        context.slot.inspect(|slot| slot.waits(false));
    }
    decided
}

/// A device cannot wait for pairing now.
fn not_now(error: &PairError) -> Refusal {
    let retry_after_ms = match error {
        PairError::Locked { wait_s } => u32::try_from(wait_s.saturating_mul(1_000)).unwrap_or(u32::MAX),
        // It shows another code next time.
        PairError::Ambiguous => 0,
        _ => CROWDED_MS,
    };
    Refusal { retry_after_ms, ..Refusal::new(RejectCode::RateLimited, error.to_string()) }
}

/// Why a device waits no longer.
fn waits_no_longer(error: &PairError) -> Refusal {
    match error {
        PairError::Locked { .. } => {
            let refusal = Refusal::new(RejectCode::PairingFailed, "pairing was closed: too many wrong codes");
            Refusal { retry_after_ms: not_now(error).retry_after_ms, ..refusal }
        }
        _ => not_now(error),
    }
}

/// Stores the device under a unique name. Grants that were made while there was room for one more user may be used when
/// there is none: it is looked at again.
async fn put(store: &Store, users_max: usize, proven: Proven<'_>, grant: &Grant) -> Result<DeviceRecord, store::Error> {
    let Proven { id, hello, .. } = proven;
    let wanted = if grant.name.is_empty() { &hello.model } else { &grant.name };
    loop {
        let name = names::free(&store.disk().devices()?, id, wanted);
        let device = DeviceRecord {
            key: hello.device_key,
            name,
            user: grant.user.clone(),
            model: hello.model.clone(),
            paired_wall_ms: clock::wall_ms(),
            revoked: false,
        };
        match store.write(Write::PairDevice { id: id.to_owned(), device: device.clone(), users_max }).await {
            Ok(_) => return Ok(device),
            // Another device took the name first.
            Err(store::Error::NameTaken(_)) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits for the operator, and keeps the device informed meanwhile.
async fn await_operator(
    link: &mut Link,
    Wait { mut granted, mut tries }: Wait,
    method: PairingMethod,
    until_us: u64,
) -> Result<Granted, Refusal> {
    let mut beats = interval(Duration::from_millis(limits::HEARTBEAT_MS_DEFAULT.into()));
    beats.reset();
    tries.mark_changed();
    let mut heard = None;
    loop {
        tokio::select! {
            biased;
            // First: glasses without a pin accept no welcome before this.
            Ok(()) = tries.changed() => {
                let tries_left = *tries.borrow_and_update();
                let left_s = until_us.saturating_sub(clock::mono_us()).div_ceil(1_000_000);
                let expires_s = u16::try_from(left_s).unwrap_or(u16::MAX);
                let notice = down::PairingCode { method, expires_s, tries_left };
                link.down.send(clock::mono_us(), Down::PairingCode(notice)).map_err(|error| broken(&error))?;
            }
            grant = &mut granted => return match grant {
                Ok(grant) => grant.map_err(|error| waits_no_longer(&error)),
                Err(_expired) => Err(Refusal::new(RejectCode::NotPaired, LATE)),
            },
            _ = beats.tick() => {
                let now_us = clock::mono_us();
                let beat = transport::heartbeat(heard, now_us);
                link.down.send(now_us, Down::Heartbeat(beat)).map_err(|error| broken(&error))?;
            }
            frame = next(link) => match decode(&frame?)? {
                (stamp, Up::Heartbeat(_)) => heard = Some((stamp.time_us, clock::mono_us())),
                (_, Up::Goodbye(_)) => return Err(Refusal::new(RejectCode::Unspecified, "the device says goodbye")),
                _ => return Err(Refusal::new(RejectCode::UnexpectedMessage, "only heartbeats belong into the wait for pairing")),
            }
        }
    }
}

/// Whether the device can show a pairing code.
fn has_display(capabilities: &Capabilities) -> bool {
    capabilities.display.kind != DisplayKind::None
}

/// The next frame. Link frames of kinds that only a later version knows are skipped.
async fn next(link: &mut Link) -> Result<bytes::Bytes, Refusal> {
    for _ in 0..=UNKNOWN_MAX {
        let bytes = match link.up.recv().await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(Refusal::new(RejectCode::Unspecified, "the device went away")),
            Err(error) => return Err(broken(&error)),
        };
        match decode_up(&bytes) {
            Ok(Decoded::Skipped { kind, .. }) if Class::of_kind(kind) == Class::Link => {}
            _ => return Ok(bytes),
        }
    }
    Err(Refusal::new(RejectCode::UnexpectedMessage, "more frames of unknown kinds than any version sends"))
}

fn decode(bytes: &[u8]) -> Result<(Stamp, Up<'_>), Refusal> {
    match decode_up(bytes) {
        Ok(Decoded::Frame(frame)) => Ok((frame.stamp, frame.message)),
        Ok(Decoded::Skipped { kind, .. }) => Err(Refusal::new(
            RejectCode::UnexpectedMessage,
            format!("kind {kind:#06x} does not belong in the handshake"),
        )),
        Err(error @ device_protocol::Error::UnknownVersion { .. }) => {
            Err(Refusal::new(RejectCode::UnsupportedVersion, error.to_string()))
        }
        Err(error) => Err(Refusal::new(RejectCode::Malformed, error.to_string())),
    }
}

impl Store {
    fn device_or_refuse(&self, id: &str) -> Result<Option<DeviceRecord>, Refusal> {
        self.disk().device(id).map_err(Refusal::internal)
    }
}
