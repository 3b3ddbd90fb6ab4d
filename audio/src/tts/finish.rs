//! Finishes a sentence: trims the silence around it, fades its ends, converts samples to PCM16.

use super::Voice;

/// Louder than this counts as sound (-50 dB of full scale).
const SOUND_LEVEL: f32 = 0.003;
/// Kept before the first sound, so that a soft onset is not clipped. The network gives 240 to 315 ms, which would delay
/// the answer.
const LEAD_MS: usize = 20;
/// Kept after the last sound, as the pause before the next sentence. The network gives 310 to 460 ms.
const TAIL_MS: usize = 250;
/// Length of the fade at each end: inaudible, but long enough to avoid a click.
const FADE_MS: usize = 4;

const SAMPLES_PER_MS: usize = Voice::RATE_HZ as usize / 1_000;

/// Trims and fades the sentence `samples`, and appends it to `pcm`.
pub(super) fn finish(samples: &mut [f32], pcm: &mut Vec<i16>) {
    let is_sound = |sample: &f32| sample.abs() > SOUND_LEVEL;
    let first = samples.iter().position(is_sound).unwrap_or(0);
    let last = samples.iter().rposition(is_sound).unwrap_or(0);
    let start = first.saturating_sub(LEAD_MS * SAMPLES_PER_MS);
    let end = (last + 1 + TAIL_MS * SAMPLES_PER_MS).min(samples.len());
    let samples = samples.get_mut(start..end).unwrap_or_default();
    let fade = (FADE_MS * SAMPLES_PER_MS).min(samples.len() / 2);
    let len = samples.len();
    for n in 0..fade {
        let gain = n as f32 / fade as f32;
        samples[n] *= gain;
        samples[len - 1 - n] *= gain;
    }
    // A NaN becomes 0: the cast saturates.
    pcm.extend(samples.iter().map(|sample| (sample.clamp(-1.0, 1.0) * 32_767.0).round() as i16));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_silence_is_cut_and_ends_fade() {
        let mut samples = vec![0.0; 2_400];
        samples.extend(vec![0.5; 4_800]);
        let mut pcm = Vec::new();
        finish(&mut samples, &mut pcm);
        assert_eq!(pcm.len(), 4_800 + LEAD_MS * SAMPLES_PER_MS);
        assert_eq!((pcm[0], pcm[pcm.len() - 1]), (0, 0));
        let step = pcm.windows(2).skip(LEAD_MS * SAMPLES_PER_MS + 1).map(|pair| (pair[1] - pair[0]).abs()).max();
        assert!(step < Some(200), "{step:?}");
    }

    #[test]
    fn odd_values_stay_in_range() {
        let mut pcm = Vec::new();
        finish(&mut [f32::NAN, 9.0, -9.0, f32::INFINITY, 0.25, 1.0, -1.0, 0.0], &mut pcm);
        assert_eq!(pcm.len(), 8);
        finish(&mut [], &mut pcm);
        assert_eq!(pcm.len(), 8);
    }

    #[test]
    fn a_long_tail_is_cut() {
        let mut samples = vec![0.5; 2_400];
        samples.extend(vec![0.001; 24_000]);
        let mut pcm = Vec::new();
        finish(&mut samples, &mut pcm);
        assert_eq!(pcm.len(), 2_400 + TAIL_MS * SAMPLES_PER_MS);
    }
}
