//! Fits texts and sound into frames that the device can receive.

use device_protocol::{Layout, down as message, limits, up::Capabilities};

use crate::text::crop;

/// Bytes of a frame other than its long texts or its packet: header, stamp, numbers and lengths of the message that has
/// most of them.
const BESIDES_BYTES: usize = 96;

/// Bytes of the long texts of one frame, or of its packet.
#[derive(Clone, Copy)]
pub(super) struct FrameLimits(usize);

impl FrameLimits {
    /// From the device's announced frame size.
    pub(super) fn of(capabilities: &Capabilities) -> Self {
        let frame = match usize::try_from(capabilities.frame_bytes_max).unwrap_or(usize::MAX) {
            0 => limits::FRAME_BYTES_MAX,
            bytes => bytes.clamp(limits::DEVICE_FRAME_BYTES_MIN, limits::FRAME_BYTES_MAX),
        };
        Self(frame - BESIDES_BYTES)
    }

    /// The longest prefix of a text of at most `bytes_max`, next to `besides` bytes of other texts.
    pub(super) fn crop(self, text: &str, bytes_max: usize, besides: usize) -> &str {
        crop(text, bytes_max.min(self.0.saturating_sub(besides)))
    }

    /// Bytes of a packet of sound.
    pub(super) fn packet_bytes(self) -> usize {
        limits::AUDIO_PACKET_BYTES_MAX.min(self.0)
    }

    /// Whether texts of this many bytes fit.
    pub(super) fn holds(self, bytes: usize) -> bool {
        bytes <= self.0
    }

    /// A display that fits: a picture is replaced by its words, and long words are cut.
    pub(super) fn fit<'a>(self, display: message::Display<'a>) -> message::Display<'a> {
        let message::Display { mut content, mut bitmap, .. } = display;
        if bitmap.is_some_and(|picture| !self.holds(picture.pixels.len() + content.first.len())) {
            bitmap = None;
            content.layout = Layout::TextWall;
        }
        let besides = bitmap.map_or(0, |picture| picture.pixels.len());
        content.first = self.crop(content.first, limits::DISPLAY_TEXT_BYTES_MAX, besides);
        content.second = self.crop(content.second, limits::DISPLAY_TEXT_BYTES_MAX, besides + content.first.len());
        message::Display { content, bitmap, ..display }
    }
}

#[cfg(test)]
mod tests {
    use device_protocol::{
        Buttons, Codecs, DisplayAction, DisplayKind, Down, Frame, Sensors, Stamp, View, encode,
        up::{Capabilities, Screen},
    };
    use proptest::prelude::*;

    use super::*;

    fn frame_limits(frame_bytes_max: u32) -> FrameLimits {
        let screen = Screen {
            kind: DisplayKind::Pixels,
            width_px: 0,
            height_px: 0,
            columns: 0,
            rows: 0,
            colour_bits: 1,
            captions: false,
        };
        FrameLimits::of(&Capabilities {
            codecs_up: Codecs::EMPTY,
            codecs_down: Codecs::EMPTY,
            audio_up_hz: 0,
            audio_down_hz: 0,
            display: screen,
            speakers: 0,
            buttons: Buttons::EMPTY,
            sensors: Sensors::EMPTY,
            echo_cancelled: false,
            tools: 0,
            frame_bytes_max,
            heartbeat_ms: 0,
            image_bytes_max: 0,
            hardware: 0,
            lc3_frame_us: 0,
            lc3_frame_bytes: 0,
        })
    }

    fn bytes(message: Down<'_>) -> usize {
        let stamp = Stamp { sequence: u32::MAX, turn: u32::MAX, time_us: u64::MAX };
        encode(&Frame::new(stamp, message), &mut vec![0; limits::FRAME_BYTES_MAX]).unwrap()
    }

    proptest! {
        /// For any speech and display, the frame is not larger than announced; what fits is left unchanged.
        #[test]
        fn no_frame_is_larger_than_the_device_can_receive(
            frame in prop_oneof![Just(0u32), Just(1), 2_048u32..70_000],
            first in "[a-zé🕶]{0,6000}",
            second in "[a-z]{0,6000}",
            picture in prop::option::of(0usize..16_000),
        ) {
            let frames = frame_limits(frame);
            let max = match frame { 0 => limits::FRAME_BYTES_MAX, frame => (frame as usize).clamp(2_048, limits::FRAME_BYTES_MAX) };
            let pixels = vec![0; picture.unwrap_or(0)];
            let wanted = message::Display {
                action: DisplayAction::Replace,
                view: View::Main,
                priority: 255,
                duration_ms: u32::MAX,
                revision: u32::MAX,
                content: message::Content { layout: Layout::Bitmap, first: crop(&first, 4_096), second: crop(&second, 4_096), permille: 0 },
                bitmap: picture.map(|_| message::Bitmap { width_px: u16::MAX, height_px: u16::MAX, pixels: &pixels }),
                countdown_ms: u32::MAX,
            };
            let shown = frames.fit(wanted);
            prop_assert!(bytes(Down::Display(shown)) <= max);
            if bytes(Down::Display(wanted)) + BESIDES_BYTES <= max {
                prop_assert_eq!(shown, wanted);
            }
            prop_assert!(first.starts_with(shown.content.first));
            let text = frames.crop(&first, limits::TEXT_BYTES_MAX, 0);
            let numbers = u32::MAX;
            let codec = device_protocol::Codec::Opus;
            let start = message::SpeechStart { speech: numbers, codec, rate_hz: numbers, text };
            prop_assert!(bytes(Down::SpeechStart(start)) <= max);
            let transcript = message::Transcript { utterance: numbers, revision: numbers, is_final: true, addressed: true, text };
            prop_assert!(bytes(Down::Transcript(transcript)) <= max);
            let title = crop(&second, limits::LABEL_BYTES_MAX);
            let message = frames.crop(&first, limits::DISPLAY_TEXT_BYTES_MAX, title.len());
            let request = message::ApprovalRequest { approval: numbers, title, message, expires_ms: numbers };
            prop_assert!(bytes(Down::ApprovalRequest(request)) <= max);
            let payload = vec![0; frames.packet_bytes()];
            let (position_us, clause) = (u64::MAX, u16::MAX);
            let (payload, duration_us) = (payload.as_slice(), numbers);
            let chunk = message::SpeechChunk { speech: numbers, clause, position_us, duration_us, payload };
            prop_assert!(bytes(Down::SpeechChunk(chunk)) <= max);
        }
    }
}
