//! Checks up to the welcome.

use std::time::Duration;

use device_protocol::{limits, up};
use futures_util::FutureExt as _;

use super::probe::{Probe, patch};
use super::{Check, Fault, Gateway, Outcome};

pub(super) const CHECKS: &[Check] = &[
    Check { section: 6, rule: "hello is answered by a signed challenge", run: |gateway| challenge(gateway).boxed() },
    Check {
        section: 6,
        rule: "a paired device is welcomed, in formats that it offered",
        run: |gateway| welcome(gateway).boxed(),
    },
    Check {
        section: 6,
        rule: "a proof with a wrong signature is refused (bad_proof)",
        run: |gateway| proof(gateway).boxed(),
    },
    Check {
        section: 6,
        rule: "a control frame before the welcome is refused (unexpected_message)",
        run: |gateway| early(gateway).boxed(),
    },
    Check {
        section: 5,
        rule: "an unknown link kind in the handshake is skipped",
        run: |gateway| unknown(gateway).boxed(),
    },
    Check {
        section: 2,
        rule: "another version of the envelope is refused (unsupported_version)",
        run: |gateway| version(gateway).boxed(),
    },
    Check {
        section: 2,
        rule: "a frame of the other direction is refused (malformed)",
        run: |gateway| direction(gateway).boxed(),
    },
    Check {
        section: 2,
        rule: "a length beyond the maximum is refused (malformed)",
        run: |gateway| length(gateway).boxed(),
    },
];

async fn challenge(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.connect().await?;
    probe.hello(None).await?;
    Ok(())
}

async fn welcome(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.connect().await?;
    let welcome = probe.shake(None).await?;
    let most = Duration::from_millis(limits::HEARTBEAT_MS_MAX.into());
    if welcome.heartbeat.is_zero() || welcome.heartbeat > most {
        return Err(Fault::Failed(format!("heartbeats each {:?}; at most each {most:?}", welcome.heartbeat)));
    }
    if welcome.resumed.is_some() || welcome.continued {
        return Err(Fault::Failed("a session was resumed that nobody asked for".to_owned()));
    }
    let offered = gateway.profile.codecs;
    for (way, format) in [("audio_up", welcome.audio_up), ("audio_down", welcome.audio_down)] {
        let is_offered = offered.has_bit(format.codec.number().into());
        let is_known = [8_000, 12_000, 16_000, 24_000, 48_000].contains(&format.rate_hz);
        if format.rate_hz > 0 && !(is_offered && is_known && [10, 20, 40, 60].contains(&format.frame_ms)) {
            return Err(Fault::Failed(format!("{way} is {format:?}")));
        }
    }
    Ok(())
}

/// The gateway ends the handshake with this reason and close code.
async fn refused(probe: &mut Probe, reason: &str, code: u16) -> Outcome {
    match probe.end().await? {
        (said, closed) if said == reason && probe.is_closed_with(closed, code) => Ok(()),
        (said, closed) => Err(Fault::Failed(format!("`{said}`, closed with {closed}; `{reason}` and {code} are due"))),
    }
}

async fn proof(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.connect().await?;
    let handshake = probe.hello(None).await?;
    probe.prove(&handshake, true).await;
    refused(&mut probe, "bad_proof", 4104).await
}

async fn early(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.connect().await?;
    probe.control(up::Mute { muted: false }).await;
    refused(&mut probe, "unexpected_message", 4103).await
}

async fn unknown(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.connect().await?;
    let mut frame = probe.frame(0, up::Heartbeat { echo_us: 0, held_us: 0 }.into());
    patch(&mut frame, 2, &[0xfe, 0x0f]);
    probe.raw(frame).await;
    probe.shake(None).await?;
    Ok(())
}

async fn version(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.connect().await?;
    let mut frame = probe.frame(0, up::Heartbeat { echo_us: 0, held_us: 0 }.into());
    patch(&mut frame, 0, &[2]);
    probe.raw(frame).await;
    refused(&mut probe, "unsupported_version", 4101).await
}

async fn direction(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.connect().await?;
    let mut frame = probe.frame(0, up::Heartbeat { echo_us: 0, held_us: 0 }.into());
    patch(&mut frame, 2, &[0x05, 0x80]);
    probe.raw(frame).await;
    refused(&mut probe, "malformed", 4102).await
}

async fn length(gateway: &Gateway) -> Outcome {
    let mut probe = gateway.connect().await?;
    let mut frame = probe.frame(0, up::Heartbeat { echo_us: 0, held_us: 0 }.into());
    patch(&mut frame, 4, &(limits::BODY_BYTES_MAX as u32 + 1).to_le_bytes());
    probe.raw(frame).await;
    refused(&mut probe, "malformed", 4102).await
}
