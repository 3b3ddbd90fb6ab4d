//! Decodes foreign sound files: MP3 and WAV, from bytes to mono samples at one rate.
//!
//! The bytes may be malicious: for any input the result is samples or an [`Error`], within a length that the caller
//! sets. Memory use is that of the output samples; the work is bounded by the input bytes.

use std::borrow::Cow;
use std::io::Cursor;

use hound::{SampleFormat, WavReader};
use nanomp3_core::{Channels, Decoder, MAX_SAMPLES_PER_FRAME};

use crate::resample::{self, Resampler};

/// Bytes of an MP3 given to the decoder at once: it accepts a frame only together with the frames that follow, and the
/// largest frame has 2.3 kB.
const WINDOW_BYTES: usize = 64 * 1024;
/// Bytes kept of a window in which nothing was found: a frame may begin at its end.
const OVERLAP_BYTES: usize = 16 * 1024;
/// Bytes of an MP3 without a frame before decoding stops. Tags at the start are skipped by their length; what is left
/// is a tag at the end, or damage. A search costs far more than decoding.
const JUNK_BYTES_MAX: usize = 512 * 1024;
/// Samples converted at a time.
const CHUNK_SAMPLES: usize = 4_096;

/// Why a file could not be decoded.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// Neither of the two formats.
    #[error("this is neither an MP3 nor a WAV file")]
    Unknown,
    /// The format is known, but the content is not valid sound.
    #[error("the {format} file is damaged: {why}")]
    Damaged {
        /// `MP3` or `WAV`.
        format: &'static str,
        /// What is wrong.
        why: String,
    },
    /// Longer than the caller allows.
    #[error("the sound is longer than {seconds_max} s")]
    TooLong {
        /// The caller's limit, in seconds.
        seconds_max: u32,
    },
    /// A rate that cannot be converted.
    #[error(transparent)]
    Rate(#[from] resample::Error),
}

fn damaged(format: &'static str, why: impl Into<String>) -> Error {
    Error::Damaged { format, why: why.into() }
}

/// Decodes a file to mono samples at `rate_hz`. Channels are averaged. A truncated file is decoded as far as it goes.
///
/// # Errors
/// See [`Error`].
pub fn decode(bytes: &[u8], rate_hz: u32, seconds_max: u32) -> Result<Vec<i16>, Error> {
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WAVE") {
        return wav(bytes, rate_hz, seconds_max);
    }
    let sound = without_tags(bytes);
    // A frame begins with eleven set bits; a file tagged as MP3 may have padding before its first frame.
    let begins = matches!(sound, [0xff, second, ..] if second & 0xe0 == 0xe0);
    if begins || sound.len() < bytes.len() {
        return mp3(sound, rate_hz, seconds_max);
    }
    Err(Error::Unknown)
}

/// Attenuates a sound: `volume` is a factor from 0 to 1; any other value counts as 1.
pub fn attenuate(pcm: &mut [i16], volume: f32) {
    if !(0.0..1.0).contains(&volume) {
        return;
    }
    for sample in pcm {
        *sample = (f32::from(*sample) * volume).round() as i16;
    }
}

/// The bytes after the ID3v2 tags at a file's beginning: tags hold pictures, in which a search would find frames.
fn without_tags(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let [b'I', b'D', b'3', _, _, flags, a, b, c, d, ..] = rest {
        // Seven bits in each byte.
        let length = [a, b, c, d].iter().fold(0, |sum, byte| (sum << 7) | usize::from(**byte & 0x7f));
        let footer = if flags & 0x10 != 0 { 10 } else { 0 };
        rest = rest.get(10 + length + footer..).unwrap_or_default();
    }
    rest
}

fn mp3(bytes: &[u8], rate_hz: u32, seconds_max: u32) -> Result<Vec<i16>, Error> {
    let mut decoder = Decoder::new();
    let mut frame = [0i16; MAX_SAMPLES_PER_FRAME];
    let mut sink: Option<Sink> = None;
    let mut rest = bytes;
    let mut junk = 0;
    while !rest.is_empty() {
        let window = rest.get(..WINDOW_BYTES).unwrap_or(rest);
        let (consumed, result) = decoder.decode(window, &mut frame);
        let searched = result.err().is_some_and(|error| error.frame_info().is_none());
        let mut taken = consumed.clamp(1, window.len());
        if searched && window.len() < rest.len() {
            taken = taken.min(WINDOW_BYTES - OVERLAP_BYTES);
        }
        rest = rest.get(taken..).unwrap_or_default();
        let Ok(info) = result else {
            junk += taken;
            if junk > JUNK_BYTES_MAX {
                break;
            }
            continue;
        };
        let sink = match &mut sink {
            Some(sink) => sink,
            none => none.insert(Sink::new(info.sample_rate, rate_hz, seconds_max)?),
        };
        // A frame of another rate does not belong to this sound: it is junk that looks like a frame, or a second file
        // appended.
        if info.sample_rate == sink.from_hz {
            let channels = if info.channels == Channels::Stereo { 2 } else { 1 };
            let samples = frame.get(..info.samples_produced * channels).unwrap_or_default();
            sink.push(samples, channels)?;
        }
    }
    match sink {
        Some(sink) if sink.frames > 0 => Ok(sink.finish()),
        _ => Err(damaged("MP3", "no sound was found in it")),
    }
}

/// A WAV file whose header counts no more samples than there are: one that was written while it was made states the most that
/// can be, or nothing sensible.
fn counted(bytes: &[u8]) -> Cow<'_, [u8]> {
    let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let (mut at, mut frame_bytes) = (12, 1);
    while let Some(length) = number(at + 4) {
        let rest = bytes.len() - at - 8;
        match bytes.get(at..at + 4) {
            Some(b"data") if length as usize > rest => {
                let whole = u32::try_from(rest - rest % frame_bytes).unwrap_or(u32::MAX);
                let mut bytes = bytes.to_vec();
                if let Some(field) = bytes.get_mut(at + 4..at + 8) {
                    field.copy_from_slice(&whole.to_le_bytes());
                }
                return Cow::Owned(bytes);
            }
            Some(b"data") => break,
            Some(b"fmt ") => frame_bytes = number(at + 20).map_or(1, |align| usize::max((align & 0xffff) as usize, 1)),
            _ => {}
        }
        // Chunks are padded to an even length.
        at = match (length as usize).checked_next_multiple_of(2).and_then(|length| (at + 8).checked_add(length)) {
            Some(next) if next < bytes.len() => next,
            _ => break,
        };
    }
    Cow::Borrowed(bytes)
}

fn wav(bytes: &[u8], rate_hz: u32, seconds_max: u32) -> Result<Vec<i16>, Error> {
    let bytes = counted(bytes);
    let mut reader = WavReader::new(Cursor::new(bytes.as_ref())).map_err(|error| damaged("WAV", error.to_string()))?;
    let spec = reader.spec();
    let channels = usize::from(spec.channels);
    if channels == 0 || spec.bits_per_sample == 0 || spec.bits_per_sample > 32 {
        return Err(damaged("WAV", format!("{channels} channels of {} bits", spec.bits_per_sample)));
    }
    let mut sink = Sink::new(spec.sample_rate, rate_hz, seconds_max)?;
    let shift = i32::from(spec.bits_per_sample) - 16;
    let mut ended = None;
    let mut chunk = Vec::with_capacity(CHUNK_SAMPLES * channels);
    while ended.is_none() {
        chunk.clear();
        while chunk.len() < CHUNK_SAMPLES * channels {
            let sample = match spec.sample_format {
                SampleFormat::Float => reader.samples::<f32>().next().map(|sample| sample.map(of_float)),
                SampleFormat::Int => reader.samples::<i32>().next().map(|sample| sample.map(|it| of_int(it, shift))),
            };
            match sample {
                Some(Ok(sample)) => chunk.push(sample),
                // The file is truncated: the samples so far are kept.
                Some(Err(error)) => ended = Some(error.to_string()),
                None => ended = Some("it holds no samples".to_owned()),
            }
            if ended.is_some() {
                break;
            }
        }
        sink.push(&chunk, channels)?;
    }
    if sink.frames == 0 {
        return Err(damaged("WAV", ended.unwrap_or_default()));
    }
    Ok(sink.finish())
}

/// Casts from floats saturate and turn NaN into silence.
fn of_float(sample: f32) -> i16 {
    (sample * 32_767.0).round() as i16
}

fn of_int(sample: i32, shift: i32) -> i16 {
    let scaled = if shift >= 0 { sample >> shift } else { sample << -shift };
    scaled.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

/// Takes interleaved samples, mixes them to mono and converts the rate.
struct Sink {
    from_hz: u32,
    to_hz: u32,
    resampler: Resampler,
    out: Vec<i16>,
    mono: Vec<i16>,
    /// Samples per channel so far.
    frames: u64,
    seconds_max: u32,
}

impl Sink {
    fn new(from_hz: u32, to_hz: u32, seconds_max: u32) -> Result<Self, Error> {
        let resampler = Resampler::new(from_hz, to_hz)?;
        Ok(Self { from_hz, to_hz, resampler, out: Vec::new(), mono: Vec::new(), frames: 0, seconds_max })
    }

    fn push(&mut self, samples: &[i16], channels: usize) -> Result<(), Error> {
        self.mono.clear();
        let mean = |frame: &[i16]| {
            let sum: i64 = frame.iter().map(|sample| i64::from(*sample)).sum();
            (sum / frame.len().max(1) as i64) as i16
        };
        self.mono.extend(samples.chunks_exact(channels.max(1)).map(mean));
        self.frames += self.mono.len() as u64;
        if self.frames > u64::from(self.from_hz) * u64::from(self.seconds_max) {
            return Err(Error::TooLong { seconds_max: self.seconds_max });
        }
        self.resampler.push(&self.mono, &mut self.out);
        Ok(())
    }

    /// The whole sound, without the filter's delay.
    fn finish(mut self) -> Vec<i16> {
        if self.from_hz == self.to_hz {
            return self.out;
        }
        self.resampler.push(&vec![0; self.resampler.tail_samples()], &mut self.out);
        let delay = ((self.resampler.delay_us() * u64::from(self.to_hz) + 500_000) / 1_000_000) as usize;
        let length = self.frames * u64::from(self.to_hz) / u64::from(self.from_hz);
        self.out.drain(..delay.min(self.out.len()));
        self.out.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        self.out
    }
}

#[cfg(test)]
#[path = "sound_file_tests.rs"]
mod tests;
