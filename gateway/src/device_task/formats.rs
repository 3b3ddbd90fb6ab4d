//! Negotiates codecs and sample rates of a session, and builds its welcome.

use audio::codec::{Codec, RATES_HZ};
use device_protocol::{Codecs, Down, ListeningState, down as message, limits, up::Capabilities};

use super::services::Services;
use crate::{
    clock,
    transport::{LinkError, Sender},
};

/// Length of one packet, in milliseconds.
pub(super) const FRAME_MS: u16 = 20;

/// The agreed formats; `None`: no microphone, or no speaker.
pub(super) struct Agreed {
    pub(super) up: Option<(Codec, u32)>,
    pub(super) down: Option<(Codec, u32)>,
}

/// Opus before PCM; the microphone at 16 kHz, the rate of recognition, unless the device only supports another; speech
/// at the device's own rate.
pub(super) fn agree(capabilities: &Capabilities) -> Result<Agreed, String> {
    let up = one(capabilities.codecs_up, capabilities.audio_up_hz, "microphone")?;
    let speaks = capabilities.speakers > 0 && capabilities.audio_down_hz > 0;
    let down = if speaks { one(capabilities.codecs_down, capabilities.audio_down_hz, "speaker")? } else { None };
    Ok(Agreed { up, down })
}

fn one(codecs: Codecs, rate_hz: u32, what: &str) -> Result<Option<(Codec, u32)>, String> {
    if rate_hz == 0 {
        return Ok(None);
    }
    if !RATES_HZ.contains(&rate_hz) {
        return Err(format!("the {what}'s {rate_hz} Hz are not supported; use 8000, 12000, 16000, 24000 or 48000"));
    }
    if codecs.has(device_protocol::Codec::Opus) {
        Ok(Some((Codec::Opus, rate_hz)))
    } else if codecs.has(device_protocol::Codec::Pcm16) {
        Ok(Some((Codec::Pcm16, rate_hz)))
    } else {
        Err(format!("the {what} offers neither Opus nor PCM16"))
    }
}

/// The codec's number on the wire.
pub(super) fn wire(codec: Codec) -> device_protocol::Codec {
    match codec {
        Codec::Pcm16 => device_protocol::Codec::Pcm16,
        Codec::Opus => device_protocol::Codec::Opus,
    }
}

fn format(agreed: Option<(Codec, u32)>) -> message::AudioFormat {
    let (codec, rate_hz) = agreed.unwrap_or((Codec::Pcm16, 0));
    message::AudioFormat { codec: wire(codec), rate_hz, frame_ms: FRAME_MS }
}

/// Milliseconds between two heartbeats: the gateway's interval, or a longer one if the device requests it.
pub(super) fn heartbeat_ms(capabilities: &Capabilities, often_ms: u32) -> u32 {
    capabilities.heartbeat_ms.clamp(often_ms, limits::HEARTBEAT_MS_MAX)
}

/// Builds the message that opens the session on the device.
pub(super) fn welcome(
    down: &mut Sender,
    services: &Services,
    user: &str,
    session: u32,
    agreed: &Agreed,
    heartbeat_ms: u32,
) -> Result<(), LinkError> {
    let now = clock::now();
    let welcome = message::Welcome {
        session,
        resume_token: &[],
        resume_ms: 0,
        resumed: None,
        gateway_name: &services.settings.gateway_name,
        user_name: user,
        heartbeat_ms,
        audio_up: format(agreed.up),
        audio_down: format(agreed.down),
        wall_ms: u64::try_from(now.wall_ms).unwrap_or(0),
        zone_offset_s: now.offset_s,
        listening: ListeningState::Idle,
    };
    down.send(0, now.mono_us, Down::Welcome(welcome)).map(drop)
}
