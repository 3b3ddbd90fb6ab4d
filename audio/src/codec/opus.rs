//! Opus packets through libopus.

use super::{Coding, Error, FRAME_US_MAX, check_duration};
use crate::frame::us_to_samples;
use crate::samples::Samples;

/// Largest Opus packet that the encoder may write: one frame of at most 1,275 bytes (RFC 6716,
/// section 3.2.1), up to three of them in 60 ms, and their header.
const ENCODED_BYTES_MAX: usize = 4_000;

/// Encoder effort from 0 to 10. Speech at 24 kbit/s sounds the same at 5 as at 10, at half the cost.
const COMPLEXITY: i32 = 5;

pub(super) struct Decoder {
    inner: opus::Decoder,
    rate_hz: u32,
    /// Samples in the last good packet: the assumed length of a lost one.
    frame_samples: usize,
    scratch: Samples,
}

impl Decoder {
    pub(super) fn new(rate_hz: u32) -> Result<Self, Error> {
        let inner = opus::Decoder::new(rate_hz, opus::Channels::Mono).map_err(failed("decoder"))?;
        let scratch = Samples::from(vec![0_i16; us_to_samples(FRAME_US_MAX, rate_hz) as usize]);
        Ok(Self { inner, rate_hz, frame_samples: rate_hz as usize / 50, scratch })
    }

    pub(super) fn decode(&mut self, packet: &[u8], out: &mut Vec<i16>) -> Result<usize, Error> {
        let announced = self.inner.get_nb_samples(packet).map_err(failed("packet header"))?;
        check_duration(announced, self.rate_hz)?;
        let samples = self.inner.decode(packet, &mut self.scratch, false).map_err(failed("decoding"))?;
        self.frame_samples = samples;
        out.extend_from_slice(self.scratch.get(..samples).unwrap_or_default());
        Ok(samples)
    }

    pub(super) fn conceal(&mut self, out: &mut Vec<i16>) -> usize {
        // An empty packet asks libopus for its own concealment.
        self.stand_in(&[], false, out)
    }

    pub(super) fn recover(&mut self, next: &[u8], out: &mut Vec<i16>) -> usize {
        self.stand_in(next, true, out)
    }

    /// Writes one frame in place of a lost packet, as long as the last good one.
    fn stand_in(&mut self, packet: &[u8], copy: bool, out: &mut Vec<i16>) -> usize {
        let frame = self.frame_samples.min(self.scratch.len());
        let room = &mut self.scratch[..frame];
        let samples = match self.inner.decode(packet, room, copy) {
            Ok(samples) => samples.min(frame),
            Err(_) => {
                room.fill(0);
                frame
            }
        };
        out.extend_from_slice(&self.scratch[..samples]);
        samples
    }
}

pub(super) struct Encoder {
    inner: opus::Encoder,
}

impl Encoder {
    pub(super) fn new(rate_hz: u32, coding: Coding) -> Result<Self, Error> {
        let mut inner =
            opus::Encoder::new(rate_hz, opus::Channels::Mono, opus::Application::Voip).map_err(failed("encoder"))?;
        // Only the speech coder writes copies of lost packets; by default the encoder may choose the music coder.
        inner.set_signal(opus::Signal::Voice).map_err(failed("kind of sound"))?;
        inner.set_complexity(COMPLEXITY).map_err(failed("complexity"))?;
        inner.set_inband_fec(true).map_err(failed("error correction"))?;
        let mut encoder = Self { inner };
        encoder.set(coding)?;
        Ok(encoder)
    }

    pub(super) fn set(&mut self, Coding { bitrate, loss_percent, pauses }: Coding) -> Result<(), Error> {
        self.inner.set_bitrate(opus::Bitrate::Bits(bitrate as i32)).map_err(failed("bit rate"))?;
        self.inner.set_packet_loss_perc(loss_percent.min(100).into()).map_err(failed("expected loss"))?;
        self.inner.set_dtx(pauses).map_err(failed("discontinuous transmission"))
    }

    pub(super) fn encode(&mut self, pcm: &[i16]) -> Result<Vec<u8>, Error> {
        self.inner.encode_vec(pcm, ENCODED_BYTES_MAX).map_err(failed("encoding"))
    }
}

fn failed(what: &'static str) -> impl Fn(opus::Error) -> Error {
    move |error| Error::Opus { what, reason: error.code().description() }
}
