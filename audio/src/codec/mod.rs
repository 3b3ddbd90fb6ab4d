//! Packet codecs: PCM16, Opus and LC3.
//!
//! One packet carries 10, 20, 40 or 60 ms of mono sound; of LC3, whole frames of up to 60 ms. For any input a decoder returns samples or an
//! [`Error`]; it never panics and never writes more than one frame of the longest duration.

mod conceal;
mod contained;
pub mod lc3;
#[cfg(feature = "opus")]
mod opus;
mod pcm;

pub use contained::silence_contained_panics;

use crate::frame::{FRAME_US, us_to_samples};

/// How a packet is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Signed 16-bit little-endian samples, mono.
    Pcm16,
    /// Opus (RFC 6716), mono, one packet per frame, no container.
    Opus,
    /// LC3, mono, one or more frames of this format per packet, without anything between them.
    Lc3(lc3::Format),
}

impl Codec {
    /// Microseconds of a packet that is asked for as `us`: the same where such a packet exists, and of LC3 as many whole
    /// frames as fit; `None`: the codec has no such packet.
    pub fn packet_us(self, us: u64) -> Option<u64> {
        match self {
            Self::Pcm16 | Self::Opus => FRAME_DURATIONS_US.contains(&us).then_some(us),
            Self::Lc3(format) => format.packet_us(us),
        }
    }

    /// Microseconds of a usual packet: 20 ms, or as many whole frames of LC3 as fit.
    pub fn usual_packet_us(self) -> u64 {
        self.packet_us(FRAME_US).unwrap_or(FRAME_US)
    }

    /// Microseconds of the longest packet at `rate_hz` that has at most `bytes_max` bytes, 10 ms at least. Only PCM16 can be
    /// too large: 60 ms of Opus at the highest of [`BITRATES`], or of LC3, have 960 bytes.
    pub fn longest_packet_us(self, rate_hz: u32, bytes_max: usize) -> u64 {
        let fits = |us: &u64| self != Self::Pcm16 || 2 * us_to_samples(*us, rate_hz) <= bytes_max as u64;
        FRAME_DURATIONS_US.into_iter().rev().find(fits).unwrap_or(FRAME_DURATIONS_US[0])
    }

    /// Whether a packet may carry a copy of the one before it.
    pub fn has_copies(self) -> bool {
        self == Self::Opus
    }
}

/// Sample rates that PCM16 and Opus accept, in hertz: common device rates that Opus supports. Those of LC3 are
/// [`lc3::RATES_HZ`].
pub const RATES_HZ: [u32; 5] = [8_000, 12_000, 16_000, 24_000, 48_000];

/// Accepted packet durations of PCM16 and Opus, in microseconds. Shorter ones cost a header per few samples, longer ones delay the end of
/// turn.
pub const FRAME_DURATIONS_US: [u64; 4] = [10_000, 20_000, 40_000, 60_000];

/// Longest frame in microseconds.
pub const FRAME_US_MAX: u64 = 60_000;

/// Largest packet in bytes: 60 ms of PCM16 at 48 kHz. A 60 ms Opus packet is smaller
/// (three frames of at most 1,275 bytes).
pub const PACKET_BYTES_MAX: usize = 5_760;

/// Bit rates that an Opus encoder accepts, in bits per second. Below, speech is not intelligible; above, mono speech
/// gains nothing.
pub const BITRATES: std::ops::RangeInclusive<u32> = 6_000..=128_000;

/// Packet loss in percent that Opus' error correction is tuned for until the link is known: a poor Wi-Fi link.
const LOSS_PERCENT: u8 = 10;

/// Why a codec could not be created or a packet could not be coded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The rate is not one of [`RATES_HZ`].
    #[error("sample rate {rate_hz} Hz is not supported; use 8000, 12000, 16000, 24000 or 48000")]
    Rate {
        /// The requested rate.
        rate_hz: u32,
    },
    /// The bit rate is outside [`BITRATES`].
    #[error("bit rate {bitrate} is not supported; use 6000 to 128000 bits per second")]
    Bitrate {
        /// The requested bit rate.
        bitrate: u32,
    },
    /// The codec is not part of this build.
    #[error("codec {codec:?} is not part of this build; build with the feature that brings it")]
    Unavailable {
        /// The requested codec.
        codec: Codec,
    },
    /// An empty packet, or one longer than [`PACKET_BYTES_MAX`].
    #[error("audio packet has {bytes} bytes; allowed are 1 to {PACKET_BYTES_MAX}")]
    PacketLength {
        /// Bytes of the packet.
        bytes: usize,
    },
    /// The number of samples is not one of [`FRAME_DURATIONS_US`] at the rate.
    #[error("{samples} samples at {rate_hz} Hz are not a frame of 10, 20, 40 or 60 ms")]
    Duration {
        /// Samples per channel in the packet or frame.
        samples: usize,
        /// The sample rate.
        rate_hz: u32,
    },
    /// A PCM16 packet that ends within a sample.
    #[error("PCM16 packet of {bytes} bytes ends within a sample")]
    HalfSample {
        /// Bytes of the packet.
        bytes: usize,
    },
    /// Frames of LC3 that are not accepted.
    #[error(
        "LC3 frames of {frame_us} us and {frame_bytes} bytes are not supported; use 7500 or 10000 us and 20 to 120 bytes"
    )]
    Lc3Format {
        /// Microseconds of a frame.
        frame_us: u32,
        /// Length of each coded frame.
        frame_bytes: u16,
    },
    /// The rate is not one of [`lc3::RATES_HZ`].
    #[error("LC3 at {rate_hz} Hz is not supported; use 8000, 16000, 24000 or 48000")]
    Lc3Rate {
        /// The requested rate.
        rate_hz: u32,
    },
    /// The rate is not one of [`lc3::ENCODER_RATES_HZ`].
    #[error("LC3 at {rate_hz} Hz can be decoded, and not be encoded")]
    Lc3Encoder {
        /// The requested rate.
        rate_hz: u32,
    },
    /// An LC3 packet that does not consist of whole frames, or has too many.
    #[error("LC3 packet of {bytes} bytes is not whole frames of {frame_bytes} bytes, 60 ms at most")]
    Lc3Packet {
        /// Bytes of the packet.
        bytes: usize,
        /// Bytes of an agreed frame.
        frame_bytes: u16,
    },
    /// Samples that are not whole LC3 frames, or too many.
    #[error("{samples} samples are not whole LC3 frames of {frame_samples}, 60 ms at most")]
    Lc3Samples {
        /// As many as were given.
        samples: usize,
        /// Those of one frame.
        frame_samples: usize,
    },
    /// An LC3 frame over which the coder failed. It begins anew.
    #[error("LC3 frame that the coder cannot handle")]
    Lc3Frame,
    /// The codec library refused the packet or the setting.
    #[error("Opus {what} failed: {reason}")]
    Opus {
        /// `decoding`, `bit rate` and the like.
        what: &'static str,
        /// The library's error message.
        reason: &'static str,
    },
}

/// Decodes one device's stream. Its state, some 20 kB for Opus, is made with the first packet.
pub struct Decoder {
    codec: Codec,
    rate_hz: u32,
    inner: Option<DecoderKind>,
}

enum DecoderKind {
    Pcm(pcm::Decoder),
    Lc3(Box<lc3::Decoder>),
    #[cfg(feature = "opus")]
    Opus(opus::Decoder),
}

impl DecoderKind {
    fn new(codec: Codec, rate_hz: u32) -> Result<Self, Error> {
        Ok(match codec {
            Codec::Pcm16 => Self::Pcm(pcm::Decoder::new(rate_hz)),
            Codec::Lc3(format) => Self::Lc3(Box::new(lc3::Decoder::new(format, rate_hz)?)),
            #[cfg(feature = "opus")]
            Codec::Opus => Self::Opus(opus::Decoder::new(rate_hz)?),
            #[cfg(not(feature = "opus"))]
            Codec::Opus => return Err(Error::Unavailable { codec }),
        })
    }
}

impl Decoder {
    /// A decoder to mono samples at `rate_hz`.
    ///
    /// For PCM16 and LC3 this is the rate of the packets. An Opus packet describes itself, so `rate_hz` is only the output
    /// rate, whatever the encoder's input was.
    ///
    /// # Errors
    /// [`Error::Rate`], [`Error::Unavailable`], or an error of the library.
    pub fn new(codec: Codec, rate_hz: u32) -> Result<Self, Error> {
        check_rate(rate_hz)?;
        DecoderKind::new(codec, rate_hz)?;
        Ok(Self { codec, rate_hz, inner: None })
    }

    /// Frees the state: the next packet is the first one of a stream.
    pub fn release(&mut self) {
        self.inner = None;
    }

    fn inner(&mut self) -> Result<&mut DecoderKind, Error> {
        let inner = match self.inner.take() {
            Some(inner) => inner,
            None => DecoderKind::new(self.codec, self.rate_hz)?,
        };
        Ok(self.inner.insert(inner))
    }

    /// Decodes `packet` and appends its samples to `out`; returns how many.
    ///
    /// # Errors
    /// Any packet that is not one frame of an accepted duration; `out` is unchanged then.
    pub fn decode(&mut self, packet: &[u8], out: &mut Vec<i16>) -> Result<usize, Error> {
        if packet.is_empty() || packet.len() > PACKET_BYTES_MAX {
            return Err(Error::PacketLength { bytes: packet.len() });
        }
        match self.inner()? {
            DecoderKind::Pcm(decoder) => decoder.decode(packet, out),
            DecoderKind::Lc3(decoder) => decoder.decode(packet, out),
            #[cfg(feature = "opus")]
            DecoderKind::Opus(decoder) => decoder.decode(packet, out),
        }
    }

    /// Appends concealment for one lost packet, as long as the last good one (20 ms before the first); returns the
    /// number of samples. Repeated calls fade to silence.
    pub fn conceal(&mut self, out: &mut Vec<i16>) -> usize {
        match self.inner() {
            // As in `new`, where it did not fail.
            Err(_) => 0,
            Ok(DecoderKind::Pcm(decoder)) => decoder.conceal(out),
            Ok(DecoderKind::Lc3(decoder)) => decoder.conceal(out),
            #[cfg(feature = "opus")]
            Ok(DecoderKind::Opus(decoder)) => decoder.conceal(out),
        }
    }

    /// Appends the one lost packet before `next`, which is not decoded yet; returns the number of samples. Opus packets
    /// may carry a low-quality copy of the packet before them; without one this is [`conceal`](Self::conceal).
    pub fn recover(&mut self, next: &[u8], out: &mut Vec<i16>) -> usize {
        match self.inner() {
            #[cfg(feature = "opus")]
            Ok(DecoderKind::Opus(decoder)) if !next.is_empty() && next.len() <= PACKET_BYTES_MAX => {
                decoder.recover(next, out)
            }
            _ => self.conceal(out),
        }
    }
}

/// Encodes one device's stream. Its state, some 30 kB for Opus, is made with the first packet.
pub struct Encoder {
    codec: Codec,
    rate_hz: u32,
    coding: Coding,
    inner: Option<EncoderKind>,
}

/// How an Opus encoder codes.
#[derive(Clone, Copy)]
struct Coding {
    /// Bits per second.
    bitrate: u32,
    /// Percentage of packets that is expected to be lost.
    loss_percent: u8,
    /// Whether it pauses in silence.
    pauses: bool,
}

enum EncoderKind {
    Pcm,
    Lc3(Box<lc3::Encoder>),
    #[cfg(feature = "opus")]
    Opus(opus::Encoder),
}

impl EncoderKind {
    fn new(codec: Codec, rate_hz: u32, coding: Coding) -> Result<Self, Error> {
        Ok(match codec {
            Codec::Pcm16 => Self::Pcm,
            Codec::Lc3(format) => Self::Lc3(Box::new(lc3::Encoder::new(format, rate_hz)?)),
            #[cfg(feature = "opus")]
            Codec::Opus => Self::Opus(opus::Encoder::new(rate_hz, coding)?),
            #[cfg(not(feature = "opus"))]
            Codec::Opus => return Err(Error::Unavailable { codec }),
        })
    }
}

impl Encoder {
    /// An encoder for mono speech at `rate_hz`; `bitrate` in bits per second is for Opus only.
    ///
    /// # Errors
    /// [`Error::Rate`], [`Error::Bitrate`], [`Error::Unavailable`], or an error of the library.
    pub fn new(codec: Codec, rate_hz: u32, bitrate: u32) -> Result<Self, Error> {
        check_rate(rate_hz)?;
        if codec == Codec::Opus && !BITRATES.contains(&bitrate) {
            return Err(Error::Bitrate { bitrate });
        }
        let coding = Coding { bitrate, loss_percent: LOSS_PERCENT, pauses: false };
        EncoderKind::new(codec, rate_hz, coding)?;
        Ok(Self { codec, rate_hz, coding, inner: None })
    }

    /// Frees the state, between two stretches of speech: the next packet is the first one of a stream.
    pub fn release(&mut self) {
        self.inner = None;
    }

    /// Opus from now on (the others stay as they are): bits per second, and the percentage of packets that is expected to be lost, which decides how
    /// much each one tells of the one before it.
    ///
    /// # Errors
    /// [`Error::Bitrate`], or an error of the library.
    pub fn set_coding(&mut self, bitrate: u32, loss_percent: u8) -> Result<(), Error> {
        if !BITRATES.contains(&bitrate) {
            return Err(Error::Bitrate { bitrate });
        }
        self.set(Coding { bitrate, loss_percent, ..self.coding })
    }

    /// Discontinuous transmission: in silence most packets are [`is_pause`] and need not be sent.
    ///
    /// # Errors
    /// An error of the library.
    pub fn pause_in_silence(&mut self) -> Result<(), Error> {
        self.set(Coding { pauses: true, ..self.coding })
    }

    fn set(&mut self, coding: Coding) -> Result<(), Error> {
        self.coding = coding;
        match &mut self.inner {
            #[cfg(feature = "opus")]
            Some(EncoderKind::Opus(encoder)) => encoder.set(coding),
            _ => Ok(()),
        }
    }

    /// Encodes 10, 20, 40 or 60 ms, or whole frames of LC3, into one packet.
    ///
    /// # Errors
    /// [`Error::Duration`] or [`Error::Lc3Samples`] for any other length, or an error of the library.
    pub fn encode(&mut self, pcm: &[i16]) -> Result<Vec<u8>, Error> {
        if !matches!(self.codec, Codec::Lc3(_)) {
            check_duration(pcm.len(), self.rate_hz)?;
        }
        let inner = match self.inner.take() {
            Some(inner) => inner,
            None => EncoderKind::new(self.codec, self.rate_hz, self.coding)?,
        };
        match self.inner.insert(inner) {
            EncoderKind::Pcm => Ok(pcm::encode(pcm)),
            EncoderKind::Lc3(encoder) => encoder.encode(pcm),
            #[cfg(feature = "opus")]
            EncoderKind::Opus(encoder) => encoder.encode(pcm),
        }
    }
}

/// Whether a packet begins or continues a pause of discontinuous transmission: an Opus packet whose frame is empty, but
/// for a padding byte that some encoders write.
pub fn is_pause(codec: Codec, packet: &[u8]) -> bool {
    codec == Codec::Opus && matches!(packet.len(), 1 | 2)
}

fn check_rate(rate_hz: u32) -> Result<(), Error> {
    if RATES_HZ.contains(&rate_hz) { Ok(()) } else { Err(Error::Rate { rate_hz }) }
}

/// Whether `samples` at `rate_hz` are one of the accepted frame durations.
fn check_duration(samples: usize, rate_hz: u32) -> Result<(), Error> {
    let fits = FRAME_DURATIONS_US.iter().any(|us| samples as u64 * 1_000_000 == us * u64::from(rate_hz));
    if fits { Ok(()) } else { Err(Error::Duration { samples, rate_hz }) }
}
