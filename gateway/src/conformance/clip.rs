//! What the judge says: the voice, where it is installed, else a tone.

use std::{f64::consts::TAU, path::Path};

use anyhow::{Context as _, Result};
use audio::{
    codec::{Codec, Encoder, lc3},
    resample::Resampler,
    tts::Voice,
};
use device_protocol::down::AudioFormat;

/// The clauses that are spoken.
const CLAUSES: [&str; 3] = [
    "This is the judge of the Lorgnette protocol.",
    "Now the sound stops for a moment, and goes on.",
    "The last clause ends here.",
];
/// Without a voice: the pitch of each clause in hertz, and its length.
const TONES_HZ: [f64; 3] = [440.0, 550.0, 660.0];
const TONE_MS: u32 = 1_500;
/// Loudness of the tone: a quarter of the most.
const TONE_PEAK: f64 = 8_000.0;
/// Bits per second of Opus.
const BITRATE: u32 = 24_000;

/// Samples of each clause at [`Voice::RATE_HZ`].
pub(super) struct Clip(Vec<Vec<i16>>);

/// A packet of a speech.
pub(super) struct Packet {
    pub(super) position_us: u64,
    pub(super) duration_us: u32,
    pub(super) payload: Vec<u8>,
}

impl Clip {
    /// The voice of this folder, or a tone if there is none. Takes seconds.
    pub(super) fn load(voice: &Path) -> Self {
        let spoken =
            Voice::load(voice).and_then(|voice| CLAUSES.iter().map(|text| voice.synthesize(text, 1.0)).collect());
        match spoken {
            Ok(clauses) => Self(clauses),
            Err(error) => {
                tracing::info!(%error, "no voice: the judge plays a tone");
                Self(TONES_HZ.iter().map(|hertz| tone(*hertz)).collect())
            }
        }
    }

    /// Its packets in this format, and the lengths of its clauses in microseconds. A clause fills its last packet with
    /// silence.
    pub(super) fn packets(&self, format: AudioFormat) -> Result<(Vec<Packet>, Vec<u64>)> {
        let codec = codec_of(format).context("a codec that is spoken")?;
        let mut encoder = Encoder::new(codec, format.rate_hz, BITRATE)?;
        let duration_us = u32::try_from(codec.packet_us(u64::from(format.frame_ms) * 1_000).context("a length")?)?;
        let samples = usize::try_from(u64::from(format.rate_hz) * u64::from(duration_us) / 1_000_000)?;
        let (mut packets, mut lengths) = (Vec::new(), Vec::new());
        let mut position_us = 0;
        for clause in &self.0 {
            let (start_us, mut pcm) = (position_us, Vec::new());
            Resampler::new(Voice::RATE_HZ, format.rate_hz)?.push(clause, &mut pcm);
            for piece in pcm.chunks(samples) {
                let mut piece = piece.to_vec();
                piece.resize(samples, 0);
                let payload = encoder.encode(&piece).context("encoding speech")?;
                packets.push(Packet { position_us, duration_us, payload });
                position_us += u64::from(duration_us);
            }
            lengths.push(position_us - start_us);
        }
        Ok((packets, lengths))
    }
}

/// How sound in this format is coded; `None`: a codec of a later version, or LC3 without its frames.
pub(super) fn codec_of(format: AudioFormat) -> Option<Codec> {
    match format.codec {
        device_protocol::Codec::Pcm16 => Some(Codec::Pcm16),
        device_protocol::Codec::Opus => Some(Codec::Opus),
        device_protocol::Codec::Lc3 => {
            lc3::Format::new(format.lc3_frame_us.into(), format.lc3_frame_bytes).ok().map(Codec::Lc3)
        }
        device_protocol::Codec::Other(_) => None,
    }
}

fn tone(hertz: f64) -> Vec<i16> {
    let samples = Voice::RATE_HZ / 1_000 * TONE_MS;
    let at = |place: u32| (f64::from(place) * hertz * TAU / f64::from(Voice::RATE_HZ)).sin() * TONE_PEAK;
    (0..samples).map(|place| at(place) as i16).collect()
}
