//! Files of embeddings: real speech as training needs it, a fiftieth of its size as sound and not to be heard again.
//!
//! Format: the eight bytes `LGWAKE1\n`; then for each clip a little-endian u32 with its number of embeddings, and each
//! embedding as 96 numbers of 16 bits (IEEE 754 binary16, little-endian).

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::Path;

use super::Error;
use super::clips::Clip;
use crate::wake::EMBEDDING;

const MARK: &[u8; 8] = b"LGWAKE1\n";

/// Largest file: some 30 hours.
pub const BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Longest clip: an hour.
const CLIP_MAX: u32 = 45_000;

/// Reads all clips of a file.
///
/// # Errors
/// [`Error::Stored`]: the file is missing, too large, truncated, or another one.
pub fn read(path: &Path) -> Result<Vec<Clip>, Error> {
    let wrong = |reason: String| Error::Stored { path: path.display().to_string(), reason };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| wrong(error.to_string()))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(wrong(format!("it has more than {BYTES_MAX} bytes")));
    }
    parse(&bytes).map_err(wrong)
}

/// Reads all clips.
///
/// # Errors
/// In words.
pub fn parse(bytes: &[u8]) -> Result<Vec<Clip>, String> {
    let mut rest = bytes.strip_prefix(MARK).ok_or("it is no file of wake-word embeddings")?;
    let mut clips = Vec::new();
    while !rest.is_empty() {
        let (count, behind) = rest.split_first_chunk().ok_or("it is truncated")?;
        let count = u32::from_le_bytes(*count);
        if count > CLIP_MAX {
            return Err(format!("clip {} has {count} embeddings; at most {CLIP_MAX} are allowed", clips.len()));
        }
        let (values, behind) = behind.split_at_checked(count as usize * EMBEDDING * 2).ok_or("it is truncated")?;
        rest = behind;
        let values: Vec<f32> =
            values.as_chunks::<2>().0.iter().map(|bytes| from_half(u16::from_le_bytes(*bytes))).collect();
        if values.iter().any(|value| !value.is_finite()) {
            return Err(format!("clip {} has a value that is no number", clips.len()));
        }
        clips.push(Clip::stored(values));
    }
    Ok(clips)
}

/// Writes clips to a file.
///
/// # Errors
/// [`Error::Stored`]: the file cannot be written.
pub fn write(path: &Path, clips: &[Clip]) -> Result<(), Error> {
    let wrong = |error: io::Error| Error::Stored { path: path.display().to_string(), reason: error.to_string() };
    let mut out = BufWriter::new(File::create(path).map_err(wrong)?);
    format(clips, &mut out).and_then(|()| out.flush()).map_err(wrong)
}

/// Writes clips in the format of such files.
///
/// # Errors
/// Those of `out`.
pub fn format(clips: &[Clip], out: &mut impl io::Write) -> io::Result<()> {
    out.write_all(MARK)?;
    for clip in clips {
        let values = clip.embeddings();
        out.write_all(&((values.len() / EMBEDDING) as u32).to_le_bytes())?;
        for value in values {
            out.write_all(&to_half(*value).to_le_bytes())?;
        }
    }
    Ok(())
}

/// The nearest binary16; embeddings are far from its limits.
fn to_half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x477f_e000 {
        // The largest finite value.
        return sign | 0x7bff;
    }
    if magnitude < 0x3880_0000 {
        // Below the smallest normal one: multiples of 2^-24.
        return sign | (f32::from_bits(magnitude) * 16_777_216.0).round() as u16;
    }
    let rounded = magnitude + 0x0fff + ((magnitude >> 13) & 1) - 0x3800_0000;
    sign | (rounded >> 13) as u16
}

fn from_half(half: u16) -> f32 {
    let (exponent, fraction) = ((half >> 10) & 31, half & 1_023);
    let magnitude = match exponent {
        0 => f32::from(fraction) / 16_777_216.0,
        31 => f32::NAN,
        _ => f32::from_bits((u32::from(exponent) + 112) << 23 | u32::from(fraction) << 13),
    };
    if half & 0x8000 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_near_and_come_back_the_same() {
        for value in [0.0, 1.0, -1.0, 0.1, 33.333, -180.25, 1e-5, 6e-8, 65_504.0, 1e9] {
            let half = from_half(to_half(value));
            let wanted = value.clamp(-65_504.0, 65_504.0);
            assert!((half - wanted).abs() <= wanted.abs() / 2_000.0 + 3e-8, "{value}: {half}");
        }
        for half in (0..0x7c00_u16).step_by(7) {
            assert_eq!(to_half(from_half(half)), half);
        }
    }

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let values = |count: usize| (0..count * EMBEDDING).map(|n| (n % 61) as f32 - 30.0).collect::<Vec<f32>>();
        let clips = [20, 0, 31].map(|count| Clip::stored(values(count)));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("speech.f16");
        write(&path, &clips).unwrap();
        let read_again = read(&path).unwrap();
        assert_eq!(read_again.len(), 3);
        for (a, b) in clips.iter().zip(&read_again) {
            assert_eq!(a.embeddings(), b.embeddings());
        }
        let whole = std::fs::read(&path).unwrap();
        for kept in [0, 5, 9, 11, 100, whole.len() - 1] {
            assert!(parse(&whole[..kept]).is_err(), "{kept}");
        }
        let mut wild = whole.clone();
        wild[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(parse(&wild).unwrap_err().contains("at most"));
        wild[8..12].copy_from_slice(&20_u32.to_le_bytes());
        wild[12..14].copy_from_slice(&0x7e00_u16.to_le_bytes());
        assert!(parse(&wild).unwrap_err().contains("no number"));
        assert!(read(&dir.path().join("none")).unwrap_err().to_string().contains("none"));
    }
}
