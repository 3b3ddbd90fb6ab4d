//! Whisper weights in bfloat16, for processors that multiply it: with AVX512-BF16 a decode takes about a sixth less time than in f16,
//! at the same word error rate (docs/measurements-hearing.md, "Beside faster-whisper").
//!
//! The files stay in f16: a number of either form has two bytes, so one is written over the other in memory.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use half::slice::HalfFloatSliceExt as _;
use half::{bf16, f16};

use super::ggml::{self, BF16_FILE_TYPE, BF16_TENSOR_TYPE};
use super::{Error, Result};

/// Position of the header's storage: behind the magic number and ten others.
const FILE_TYPE_AT: usize = 4 * 11;
/// Numbers that are converted at once.
const PART: usize = 4_096;

/// A GGML model file with its matrices in bfloat16, rounded to the nearest; `None` if they are not in f16.
///
/// # Errors
/// As [`ggml::validate`].
pub(crate) fn of_file(path: &Path) -> Result<Option<Vec<u8>>> {
    let mut model = fs::read(path).map_err(Error::io("read", path))?;
    let (length, what) = (model.len() as u64, path.display().to_string());
    let (_, matrices) = ggml::walk(Cursor::new(model.as_slice()), length, &what)?;
    if matrices.is_empty() {
        return Ok(None);
    }
    write(&mut model, FILE_TYPE_AT, BF16_FILE_TYPE);
    for matrix in matrices {
        // All positions are within the model, which is in memory.
        let (begin, end) = (matrix.data.start as usize, matrix.data.end as usize);
        write(&mut model, matrix.type_at as usize, BF16_TENSOR_TYPE);
        convert(&mut model[begin..end]);
    }
    Ok(Some(model))
}

fn write(model: &mut [u8], at: usize, number: i32) {
    model[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

fn convert(halves: &mut [u8]) {
    let (mut from, mut between, mut to) = ([f16::ZERO; PART], [0.0; PART], [bf16::ZERO; PART]);
    for bytes in halves.chunks_mut(2 * PART) {
        let count = bytes.len() / 2;
        for (number, pair) in from.iter_mut().zip(bytes.chunks_exact(2)) {
            *number = f16::from_le_bytes([pair[0], pair[1]]);
        }
        from[..count].convert_to_f32_slice(&mut between[..count]);
        to[..count].convert_from_f32_slice(&between[..count]);
        for (pair, number) in bytes.chunks_exact_mut(2).zip(to) {
            pair.copy_from_slice(&number.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_the_nearest() {
        // The last two lie between two numbers of bfloat16, one on each side of the middle.
        let numbers = [0.0_f32, -2.5, 65_504.0, 6.103_515_6e-5, 1.001_953_1, 1.006_836];
        let expected = [0.0_f32, -2.5, 65_536.0, 6.103_515_6e-5, 1.0, 1.007_812_5];
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| f16::from_f32(*number).to_le_bytes()).collect();
        convert(&mut bytes);
        let converted = bytes.chunks_exact(2).map(|pair| bf16::from_le_bytes([pair[0], pair[1]]).to_f32());
        assert_eq!(converted.collect::<Vec<f32>>(), expected);
    }
}
