//! WAV files: 16-bit integer, any rate and number of channels in, mono out.

use std::io::{Cursor, Seek, Write};
use std::path::Path;

use crate::resample::{self, Resampler};

/// Longest file accepted, in samples of one channel at 48 kHz: an hour.
const SAMPLES_MAX: u32 = 48_000 * 3_600;

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say what the fields are")]
pub enum Error {
    /// The file is missing, damaged or no WAV file.
    #[error("{path}: cannot be read or written as a WAV file: {source}")]
    File { path: String, source: hound::Error },
    /// An unsupported sample format.
    #[error("{path}: {bits}-bit {format} samples; save it as 16-bit PCM")]
    Format {
        path: String,
        /// Bits per sample.
        bits: u16,
        /// Integer or floating point.
        format: &'static str,
    },
    /// The file is longer than an hour.
    #[error("{path}: longer than an hour; cut it")]
    TooLong { path: String },
    /// The rate cannot be converted.
    #[error("{path}: {source}")]
    Rate { path: String, source: resample::Error },
}

/// Reads a file as mono at `rate_hz`. Channels are averaged.
///
/// # Errors
/// See [`Error`].
pub fn read(path: &Path, rate_hz: u32) -> Result<Vec<i16>, Error> {
    let name = || path.display().to_string();
    let file = |source| Error::File { path: name(), source };
    let mut reader = hound::WavReader::open(path).map_err(file)?;
    let spec = reader.spec();
    if spec.sample_format != hound::SampleFormat::Int || spec.bits_per_sample != 16 {
        let format = if spec.sample_format == hound::SampleFormat::Int { "integer" } else { "float" };
        return Err(Error::Format { path: name(), bits: spec.bits_per_sample, format });
    }
    if reader.duration() > SAMPLES_MAX {
        return Err(Error::TooLong { path: name() });
    }
    let samples = reader.samples::<i16>().collect::<Result<Vec<_>, _>>().map_err(file)?;
    let channels = usize::from(spec.channels.max(1));
    let mono: Vec<i16> = if channels == 1 {
        samples
    } else {
        let mean = |frame: &[i16]| {
            let sum: i32 = frame.iter().map(|sample| i32::from(*sample)).sum();
            (sum / i32::from(spec.channels.max(1))) as i16
        };
        samples.chunks_exact(channels).map(mean).collect()
    };
    convert(&mono, spec.sample_rate, rate_hz).map_err(|source| Error::Rate { path: name(), source })
}

/// Converts a whole sound and removes the filter's delay.
///
/// # Errors
/// Rates without a simple ratio.
pub fn convert(pcm: &[i16], from_hz: u32, to_hz: u32) -> Result<Vec<i16>, resample::Error> {
    if from_hz == to_hz {
        return Ok(pcm.to_vec());
    }
    let mut resampler = Resampler::new(from_hz, to_hz)?;
    let mut out = Vec::new();
    resampler.push(pcm, &mut out);
    resampler.push(&vec![0; resampler.tail_samples()], &mut out);
    // Rounded to the nearest sample: the filter's delay is not a whole number of samples.
    let delay = ((resampler.delay_us() * u64::from(to_hz) + 500_000) / 1_000_000) as usize;
    let length = (pcm.len() as u64 * u64::from(to_hz) / u64::from(from_hz)) as usize;
    Ok(out.into_iter().skip(delay).take(length).collect())
}

/// Writes mono 16-bit samples.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, pcm: &[i16], rate_hz: u32) -> Result<(), Error> {
    let file = |source| Error::File { path: path.display().to_string(), source };
    fill(hound::WavWriter::create(path, spec(rate_hz)).map_err(file)?, pcm).map_err(file)
}

/// Mono 16-bit samples as the bytes of a WAV file; `None`: there are more than such a file can hold.
pub fn encode(pcm: &[i16], rate_hz: u32) -> Option<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    fill(hound::WavWriter::new(&mut bytes, spec(rate_hz)).ok()?, pcm).ok()?;
    Some(bytes.into_inner())
}

fn spec(rate_hz: u32) -> hound::WavSpec {
    hound::WavSpec { channels: 1, sample_rate: rate_hz, bits_per_sample: 16, sample_format: hound::SampleFormat::Int }
}

fn fill<W: Write + Seek>(mut writer: hound::WavWriter<W>, pcm: &[i16]) -> hound::Result<()> {
    for sample in pcm {
        writer.write_sample(*sample)?;
    }
    writer.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_keeps_place_and_length_through_file_and_rate() {
        let tone: Vec<i16> = (0..48_000_u32)
            .map(|i| ((f64::from(i) * std::f64::consts::TAU * 440.0 / 48_000.0).sin() * 10_000.0) as i16)
            .collect();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tone.wav");
        write(&path, &tone, 48_000).unwrap();
        assert_eq!(encode(&tone, 48_000).unwrap(), std::fs::read(&path).unwrap());
        let read = read(&path, 16_000).unwrap();
        assert_eq!(read.len(), 16_000);
        for (i, sample) in read.iter().enumerate().skip(200).take(15_000) {
            let wanted = tone[i * 3];
            assert!((i32::from(*sample) - i32::from(wanted)).abs() < 400, "{i}: {sample} for {wanted}");
        }
    }

    #[test]
    fn what_is_no_wav_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.wav");
        std::fs::write(&path, b"RIFF nonsense").unwrap();
        assert!(
            read(&path, 16_000).unwrap_err().to_string().contains("x.wav: cannot be read or written as a WAV file: ")
        );
    }
}
