//! The forms of sound: clips, and what a gateway asks for.

use audio::codec::{Codec, lc3};
use device_protocol::down::AudioFormat;

/// Sample rate of all clips in hertz.
pub const CLIP_HZ: u32 = 16_000;

/// How sound in this format is coded.
///
/// # Errors
/// A codec of a later version, or LC3 frames that do not exist.
pub(crate) fn codec_of(format: &AudioFormat) -> Result<Codec, String> {
    match format.codec {
        device_protocol::Codec::Opus => Ok(Codec::Opus),
        device_protocol::Codec::Pcm16 => Ok(Codec::Pcm16),
        device_protocol::Codec::Lc3 => {
            let frames = lc3::Format::new(format.lc3_frame_us.into(), format.lc3_frame_bytes);
            frames.map(Codec::Lc3).map_err(|error| error.to_string())
        }
        device_protocol::Codec::Other(number) => Err(format!("the gateway wants codec {number}")),
    }
}
