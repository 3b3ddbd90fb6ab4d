//! Whisper's mel filter bank, computed instead of stored.
//!
//! 80 triangles on Slaney's mel scale from 0 to 8 kHz over the 201 bins of a 400-point transform at 16 kHz, each
//! normalised to unit area in hertz. This equals `librosa.filters.mel(sr=16000, n_fft=400, n_mels=80)`, the source of
//! Whisper's own table.

/// Number of triangles.
pub(super) const MELS: usize = 80;
/// Bins of the Fourier transform.
pub(super) const BINS: usize = 201;

const SAMPLE_RATE_HZ: f64 = 16_000.0;
const TRANSFORM: f64 = 400.0;
/// Slaney's scale is linear below this and logarithmic above.
const BREAK_HZ: f64 = 1_000.0;
const HZ_PER_MEL: f64 = 200.0 / 3.0;
const BREAK_MEL: f64 = BREAK_HZ / HZ_PER_MEL;

/// The filters, row by row: `[mel][bin]`.
pub(super) fn filters() -> Vec<f32> {
    let top = mel_from_hz(SAMPLE_RATE_HZ / 2.0);
    let corner = |index: usize| hz_from_mel(top * index as f64 / (MELS + 1) as f64);
    let mut filters = Vec::with_capacity(MELS * BINS);
    for mel in 0..MELS {
        let (low, centre, high) = (corner(mel), corner(mel + 1), corner(mel + 2));
        for bin in 0..BINS {
            let hz = bin as f64 * SAMPLE_RATE_HZ / TRANSFORM;
            let rising = (hz - low) / (centre - low);
            let falling = (high - hz) / (high - centre);
            let height = rising.min(falling).max(0.0);
            filters.push((height * 2.0 / (high - low)) as f32);
        }
    }
    filters
}

fn log_step() -> f64 {
    6.4f64.ln() / 27.0
}

fn mel_from_hz(hz: f64) -> f64 {
    if hz < BREAK_HZ { hz / HZ_PER_MEL } else { BREAK_MEL + (hz / BREAK_HZ).ln() / log_step() }
}

fn hz_from_mel(mel: f64) -> f64 {
    if mel < BREAK_MEL { mel * HZ_PER_MEL } else { BREAK_HZ * ((mel - BREAK_MEL) * log_step()).exp() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_has_its_known_points() {
        assert!((mel_from_hz(1_000.0) - 15.0).abs() < 1e-12);
        assert!((mel_from_hz(6_400.0) - 42.0).abs() < 1e-12);
        for hz in [0.0, 440.0, 999.0, 1_000.0, 4_321.0, 8_000.0] {
            assert!((hz_from_mel(mel_from_hz(hz)) - hz).abs() < 1e-9, "{hz}");
        }
    }

    #[test]
    fn triangles_have_unit_area_where_bins_are_dense() {
        let filters = filters();
        assert_eq!(filters.len(), MELS * BINS);
        assert!(filters.iter().all(|weight| *weight >= 0.0));
        // The last triangles span many bins of 40 Hz, so the sum is close to the integral.
        for mel in 60..MELS {
            let area: f32 = filters[mel * BINS..(mel + 1) * BINS].iter().sum::<f32>() * 40.0;
            assert!((area - 1.0).abs() < 0.02, "mel {mel}: {area}");
        }
    }
}
