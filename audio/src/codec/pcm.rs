//! PCM16 packets: little-endian samples, and a fading repeat in place of a lost packet.

use super::{Error, check_duration};
use crate::samples::Samples;

/// Gain of each repeat of the last packet: about -6 dB per lost packet.
const REPEAT_GAIN_PERCENT: i32 = 50;

/// Repeats before concealment is silence; more repeats are audible as a loop.
const REPEATS_MAX: u32 = 3;

pub(super) struct Decoder {
    rate_hz: u32,
    /// The last frame returned, concealed or not.
    last: Samples,
    repeats: u32,
}

impl Decoder {
    pub(super) fn new(rate_hz: u32) -> Self {
        Self { rate_hz, last: vec![0_i16; rate_hz as usize / 50].into(), repeats: 0 }
    }

    pub(super) fn decode(&mut self, packet: &[u8], out: &mut Vec<i16>) -> Result<usize, Error> {
        let (samples, rest) = packet.as_chunks::<2>();
        if !rest.is_empty() {
            return Err(Error::HalfSample { bytes: packet.len() });
        }
        check_duration(samples.len(), self.rate_hz)?;
        self.last.clear();
        self.last.extend(samples.iter().map(|bytes| i16::from_le_bytes(*bytes)));
        self.repeats = 0;
        out.extend_from_slice(&self.last);
        Ok(self.last.len())
    }

    pub(super) fn conceal(&mut self, out: &mut Vec<i16>) -> usize {
        if self.repeats >= REPEATS_MAX {
            self.last.fill(0);
        } else {
            self.repeats += 1;
            // Played backwards, the repeat starts at the sample where the sound ended.
            self.last.reverse();
            for sample in self.last.iter_mut() {
                *sample = (i32::from(*sample) * REPEAT_GAIN_PERCENT / 100) as i16;
            }
        }
        out.extend_from_slice(&self.last);
        self.last.len()
    }
}

pub(super) fn encode(pcm: &[i16]) -> Vec<u8> {
    pcm.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}
