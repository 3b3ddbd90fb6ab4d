//! Negotiates codecs and sample rates of a session.

use audio::codec::{self, Codec, RATES_HZ, lc3};
use device_protocol::{
    Buttons, Codecs, DisplayKind, Sensors, down as message, limits,
    up::{self, Capabilities},
};
use gateway_core::vocab::{DeviceInfo, DisplaySize};

/// Length of one packet, in milliseconds.
pub(super) const FRAME_MS: u16 = 20;

/// The agreed formats; `None`: no microphone, or no speaker that sound can be coded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) up: Option<(Codec, u32)>,
    pub(crate) down: Option<(Codec, u32)>,
}

/// Opus before LC3 before PCM; the microphone at 16 kHz, the rate of recognition, unless the device only supports another;
/// speech at the device's own rate. A speaker that has nothing but LC3 at a rate that is only decoded gets no sound: the
/// device is heard all the same, if it can show its answers.
pub(crate) fn agree(capabilities: &Capabilities) -> Result<Agreed, String> {
    let lc3 = lc3::Format::new(capabilities.lc3_frame_us.into(), capabilities.lc3_frame_bytes);
    let up = one(capabilities.codecs_up, capabilities.audio_up_hz, &lc3, &lc3::RATES_HZ, "microphone")?;
    let speaks = capabilities.speakers > 0;
    let down_hz = if speaks { capabilities.audio_down_hz } else { 0 };
    let down = one(capabilities.codecs_down, down_hz, &lc3, &lc3::ENCODER_RATES_HZ, "speaker")?;
    if down_hz > 0 && down.is_none() && capabilities.display.kind == DisplayKind::None {
        return Err(format!("the speaker's LC3 at {down_hz} Hz cannot be coded, and there is no display"));
    }
    Ok(Agreed { up, down })
}

fn one(
    codecs: Codecs,
    rate_hz: u32,
    lc3: &Result<lc3::Format, codec::Error>,
    lc3_rates_hz: &[u32],
    what: &str,
) -> Result<Option<(Codec, u32)>, String> {
    if rate_hz == 0 {
        return Ok(None);
    }
    if !RATES_HZ.contains(&rate_hz) {
        return Err(format!("the {what}'s {rate_hz} Hz are not supported; use 8000, 12000, 16000, 24000 or 48000"));
    }
    let has_lc3 = codecs.has(device_protocol::Codec::Lc3);
    let codec = match lc3 {
        _ if codecs.has(device_protocol::Codec::Opus) => Codec::Opus,
        Ok(format) if has_lc3 && lc3_rates_hz.contains(&rate_hz) => Codec::Lc3(*format),
        _ if codecs.has(device_protocol::Codec::Pcm16) => Codec::Pcm16,
        Err(error) if has_lc3 => return Err(format!("the {what}'s {error}")),
        Ok(_) if has_lc3 && lc3::RATES_HZ.contains(&rate_hz) => return Ok(None),
        Ok(_) if has_lc3 => {
            return Err(format!("the {what}'s LC3 at {rate_hz} Hz is not supported; use {lc3_rates_hz:?}"));
        }
        _ => return Err(format!("the {what} offers neither Opus nor LC3 nor PCM16")),
    };
    Ok(Some((codec, rate_hz)))
}

/// The codec's number on the wire.
pub(super) fn wire(codec: Codec) -> device_protocol::Codec {
    match codec {
        Codec::Pcm16 => device_protocol::Codec::Pcm16,
        Codec::Opus => device_protocol::Codec::Opus,
        Codec::Lc3(_) => device_protocol::Codec::Lc3,
    }
}

/// What is wrong with the form of a packet; `None`: it is as agreed. What its coder makes of it is not looked at.
pub(super) fn misfit(packet: &up::Audio<'_>, codec: Codec, rate_hz: u32) -> Option<String> {
    if packet.codec != wire(codec) || packet.rate_hz != rate_hz {
        let (came, came_hz) = (packet.codec, packet.rate_hz);
        return Some(format!("sound came as {came:?} at {came_hz} Hz, agreed was {codec:?} at {rate_hz} Hz"));
    }
    let Codec::Lc3(format) = codec else { return None };
    match format.duration_us(packet.payload.len()) {
        Ok(us) if us == u64::from(packet.duration_us) => None,
        Ok(us) => Some(format!("an LC3 packet of {us} us came as one of {} us", packet.duration_us)),
        Err(error) => Some(error.to_string()),
    }
}

/// What a welcome says of one direction.
pub(crate) fn format(agreed: Option<(Codec, u32)>) -> message::AudioFormat {
    let (codec, rate_hz) = agreed.unwrap_or((Codec::Pcm16, 0));
    let (lc3_frame_us, lc3_frame_bytes) = match codec {
        Codec::Lc3(format) => (format.frame_us() as u16, format.frame_bytes() as u16),
        Codec::Pcm16 | Codec::Opus => (0, 0),
    };
    message::AudioFormat { codec: wire(codec), rate_hz, frame_ms: FRAME_MS, lc3_frame_us, lc3_frame_bytes }
}

/// Milliseconds between two heartbeats: the gateway's interval, or a longer one if the device requests it.
pub(super) fn heartbeat_ms(capabilities: &Capabilities, often_ms: u32) -> u32 {
    capabilities.heartbeat_ms.clamp(often_ms, limits::HEARTBEAT_MS_MAX)
}

/// What a session is begun with. A device takes its session up again on the same terms.
#[derive(PartialEq, Eq)]
pub(super) struct Terms {
    /// Compared only: a device that has changed in anything begins anew.
    capabilities: Capabilities,
    pub(super) formats: Agreed,
    pub(super) info: DeviceInfo,
    /// Whether the device has what switches the microphone on again: a button, or a touch pad.
    pub(super) can_unmute: bool,
}

impl Terms {
    /// With a device of this user.
    ///
    /// # Errors
    /// There is no common format; the reason.
    pub(super) fn of(id: &str, user: &str, capabilities: &Capabilities) -> Result<Self, String> {
        let formats = agree(capabilities)?;
        let buttons = capabilities.buttons;
        let can_unmute = buttons.contains(Buttons::MAIN)
            || buttons.contains(Buttons::MUTE)
            || capabilities.sensors.contains(Sensors::TOUCH);
        let info = info(id, user, capabilities, &formats);
        Ok(Self { capabilities: *capabilities, formats, info, can_unmute })
    }

    /// Whether the device has a speaker for which no sound can be coded.
    pub(super) fn leaves_speaker_silent(&self) -> bool {
        let Capabilities { speakers, audio_down_hz, .. } = self.capabilities;
        speakers > 0 && audio_down_hz > 0 && self.formats.down.is_none()
    }
}

/// What the core is told about the device.
fn info(id: &str, user: &str, capabilities: &Capabilities, formats: &Agreed) -> DeviceInfo {
    DeviceInfo {
        id: id.to_owned(),
        user: user.to_owned(),
        display: display(capabilities),
        bitmaps: capabilities.display.kind == DisplayKind::Pixels,
        speaker: formats.down.is_some(),
        echo_cancelled: capabilities.echo_cancelled,
        captions: capabilities.display.captions,
    }
}

/// Size of the display in characters; `None`: no display.
pub(super) fn display(capabilities: &Capabilities) -> Option<DisplaySize> {
    let screen = &capabilities.display;
    (screen.kind != DisplayKind::None).then_some(DisplaySize::new(screen.columns, screen.rows))
}
