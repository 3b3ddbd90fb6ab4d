//! LC3 packets (Bluetooth SIG, *Low Complexity Communication Codec*, version 1.0): one or more frames of the same length,
//! one behind the other.
//!
//! The frames of a stream have one size, which both sides agree on beforehand. The coder is the crate `lc3-codec`. It may
//! panic over a frame that no encoder writes, so it is only called where a panic is contained.

use lc3_codec::{
    common::{
        complex::Complex,
        config::{FrameDuration, SamplingFrequency},
    },
    decoder::lc3_decoder::Lc3Decoder,
    encoder::lc3_encoder::Lc3Encoder,
};
use self_cell::{MutBorrow, self_cell};

use super::{Error, FRAME_US_MAX, conceal::Concealer, contained::contained};
use crate::frame::{FRAME_US, us_to_samples};
use crate::samples::Samples;

/// Sample rates of LC3 that are accepted, in hertz.
pub const RATES_HZ: [u32; 4] = [8_000, 16_000, 24_000, 48_000];

/// Sample rates that can be encoded, in hertz. The encoder panics at the lowest one as it is made: its detector of the
/// bandwidth looks for a table of it, though there is nothing to detect.
pub const ENCODER_RATES_HZ: [u32; 3] = [16_000, 24_000, 48_000];

/// Lengths of a frame, in microseconds.
pub const FRAME_LENGTHS_US: [u32; 2] = [7_500, 10_000];

/// Bytes of a frame: the fewest of the specification, and the most that are of use to one channel of speech.
pub const FRAME_BYTES: std::ops::RangeInclusive<u16> = 20..=120;

/// A byte of a frame that is given to the decoder for a lost one. A frame of such bytes names a spectral line beyond the
/// last one, at each rate, so the decoder takes it as damaged and repeats its last spectrum with random signs.
const LOST: u8 = 0xff;

/// Frames of LC3: how long, and of how many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Format {
    frame_us: u32,
    frame_bytes: u16,
}

impl Format {
    /// Frames of 7,500 or 10,000 microseconds and of 20 to 120 bytes.
    ///
    /// # Errors
    /// [`Error::Lc3Format`].
    pub fn new(frame_us: u32, frame_bytes: u16) -> Result<Self, Error> {
        if FRAME_LENGTHS_US.contains(&frame_us) && FRAME_BYTES.contains(&frame_bytes) {
            Ok(Self { frame_us, frame_bytes })
        } else {
            Err(Error::Lc3Format { frame_us, frame_bytes })
        }
    }

    /// Microseconds of one frame.
    pub fn frame_us(self) -> u64 {
        self.frame_us.into()
    }

    /// Coded length of a frame in bytes, the same for all frames of a packet.
    pub fn frame_bytes(self) -> usize {
        self.frame_bytes.into()
    }

    /// Bits per second of the frames alone.
    pub fn bitrate(self) -> u32 {
        u32::from(self.frame_bytes) * 8 * 1_000_000 / self.frame_us
    }

    /// Microseconds of the longest packet of whole frames that lasts at most `us`; `None`: not one fits, or `us` is more
    /// than a packet may have.
    pub fn packet_us(self, us: u64) -> Option<u64> {
        let frames = us / self.frame_us();
        (frames > 0 && us <= FRAME_US_MAX).then_some(frames * self.frame_us())
    }

    /// Microseconds of a packet of so many bytes.
    ///
    /// # Errors
    /// [`Error::Lc3Packet`]: it is not whole frames, or too many.
    pub fn duration_us(self, bytes: usize) -> Result<u64, Error> {
        Ok(self.frames(bytes)? as u64 * self.frame_us())
    }

    /// Frames in a packet of so many bytes.
    fn frames(self, bytes: usize) -> Result<usize, Error> {
        let frames = bytes / self.frame_bytes();
        let is_whole = frames > 0 && bytes.is_multiple_of(self.frame_bytes());
        if is_whole && frames as u64 * self.frame_us() <= FRAME_US_MAX {
            Ok(frames)
        } else {
            Err(Error::Lc3Packet { bytes, frame_bytes: self.frame_bytes })
        }
    }

    fn samples(self, rate_hz: u32) -> usize {
        us_to_samples(self.frame_us(), rate_hz) as usize
    }

    fn duration(self) -> FrameDuration {
        if self.frame_us == 7_500 { FrameDuration::SevenPointFiveMs } else { FrameDuration::TenMs }
    }
}

fn rate(rate_hz: u32) -> Result<SamplingFrequency, Error> {
    match rate_hz {
        8_000 => Ok(SamplingFrequency::Hz8000),
        16_000 => Ok(SamplingFrequency::Hz16000),
        24_000 => Ok(SamplingFrequency::Hz24000),
        48_000 => Ok(SamplingFrequency::Hz48000),
        _ => Err(Error::Lc3Rate { rate_hz }),
    }
}

/// Working memory of one coder.
struct Buffers {
    integers: Vec<i16>,
    reals: Vec<f32>,
    complexes: Vec<Complex>,
}

self_cell! {
    struct DecoderCell {
        owner: MutBorrow<Buffers>,
        #[not_covariant]
        dependent: Lc3Decoder,
    }
}

self_cell! {
    struct EncoderCell {
        owner: MutBorrow<Buffers>,
        #[not_covariant]
        dependent: Lc3Encoder,
    }
}

fn decoder(format: Format, rate_hz: u32) -> Result<DecoderCell, Error> {
    let (duration, rate) = (format.duration(), rate(rate_hz)?);
    let (reals, complexes) = Lc3Decoder::calc_working_buffer_lengths(1, duration, rate);
    let buffers =
        Buffers { integers: Vec::new(), reals: vec![0.0; reals], complexes: vec![Complex::default(); complexes] };
    Ok(DecoderCell::new(MutBorrow::new(buffers), |buffers| {
        let buffers = buffers.borrow_mut();
        Lc3Decoder::new(1, duration, rate, &mut buffers.reals, &mut buffers.complexes)
    }))
}

fn encoder(format: Format, rate_hz: u32) -> Result<EncoderCell, Error> {
    let (duration, rate) = (format.duration(), rate(rate_hz)?);
    if !ENCODER_RATES_HZ.contains(&rate_hz) {
        return Err(Error::Lc3Encoder { rate_hz });
    }
    let (integers, reals, complexes) = Lc3Encoder::calc_working_buffer_lengths(1, duration, rate);
    let buffers = Buffers {
        integers: vec![0; integers],
        reals: vec![0.0; reals],
        complexes: vec![Complex::default(); complexes],
    };
    Ok(EncoderCell::new(MutBorrow::new(buffers), |buffers| {
        let Buffers { integers, reals, complexes } = buffers.borrow_mut();
        Lc3Encoder::new(1, duration, rate, integers, reals, complexes)
    }))
}

pub(super) struct Decoder {
    format: Format,
    rate_hz: u32,
    cell: DecoderCell,
    concealer: Concealer,
    /// Frames in the last good packet: the assumed length of a lost one.
    frames: usize,
    scratch: Samples,
}

impl Decoder {
    pub(super) fn new(format: Format, rate_hz: u32) -> Result<Self, Error> {
        Ok(Self {
            format,
            rate_hz,
            cell: decoder(format, rate_hz)?,
            concealer: Concealer::new(rate_hz),
            frames: (FRAME_US / format.frame_us()) as usize,
            scratch: Samples::default(),
        })
    }

    pub(super) fn decode(&mut self, packet: &[u8], out: &mut Vec<i16>) -> Result<usize, Error> {
        let (frames, size) = (self.format.frames(packet.len())?, self.format.samples(self.rate_hz));
        self.scratch.clear();
        self.scratch.extend(std::iter::repeat_n(0, frames * size));
        let coded = packet.chunks_exact(self.format.frame_bytes());
        for (bytes, frame) in coded.zip(self.scratch.chunks_exact_mut(size)) {
            if !decode_frame(&mut self.cell, bytes, frame) {
                self.cell = decoder(self.format, self.rate_hz)?;
                return Err(Error::Lc3Frame);
            }
        }
        for frame in self.scratch.chunks_exact_mut(size) {
            self.concealer.good(frame);
        }
        self.frames = frames;
        out.extend_from_slice(&self.scratch);
        Ok(self.scratch.len())
    }

    pub(super) fn conceal(&mut self, out: &mut Vec<i16>) -> usize {
        let size = self.format.samples(self.rate_hz);
        let lost = vec![LOST; self.format.frame_bytes()];
        self.scratch.clear();
        self.scratch.extend(std::iter::repeat_n(0, self.frames * size));
        for frame in self.scratch.chunks_exact_mut(size) {
            // Without it the decoder would join the next good frame to the one before the loss.
            if !decode_frame(&mut self.cell, &lost, frame) {
                frame.fill(0);
                if let Ok(cell) = decoder(self.format, self.rate_hz) {
                    self.cell = cell;
                }
            }
            self.concealer.lost(frame);
        }
        out.extend_from_slice(&self.scratch);
        self.scratch.len()
    }
}

fn decode_frame(cell: &mut DecoderCell, bytes: &[u8], frame: &mut [i16]) -> bool {
    contained(|| cell.with_dependent_mut(|_, decoder| decoder.decode_frame(16, 0, bytes, frame)))
}

pub(super) struct Encoder {
    format: Format,
    rate_hz: u32,
    cell: EncoderCell,
}

impl Encoder {
    pub(super) fn new(format: Format, rate_hz: u32) -> Result<Self, Error> {
        Ok(Self { format, rate_hz, cell: encoder(format, rate_hz)? })
    }

    pub(super) fn encode(&mut self, pcm: &[i16]) -> Result<Vec<u8>, Error> {
        let (size, most) = (self.format.samples(self.rate_hz), us_to_samples(FRAME_US_MAX, self.rate_hz) as usize);
        if pcm.is_empty() || !pcm.len().is_multiple_of(size) || pcm.len() > most {
            return Err(Error::Lc3Samples { samples: pcm.len(), frame_samples: size });
        }
        let mut packet = vec![0; pcm.len() / size * self.format.frame_bytes()];
        for (frame, bytes) in pcm.chunks_exact(size).zip(packet.chunks_exact_mut(self.format.frame_bytes())) {
            if !contained(|| self.cell.with_dependent_mut(|_, encoder| encoder.encode_frame(0, frame, bytes))) {
                self.cell = encoder(self.format, self.rate_hz)?;
                return Err(Error::Lc3Frame);
            }
        }
        Ok(packet)
    }
}
