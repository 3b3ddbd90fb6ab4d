//! The last touch on a clause: leading silence cut, ends faded, samples as PCM16.

use super::Voice;

/// Louder than this counts as sound (-46 dB of full scale); the voice's own floor is far below.
const SOUND_LEVEL: f32 = 0.005;
/// What is kept before the first sound, so that a soft onset is not clipped.
const LEAD_MS: usize = 15;
/// Length of the fade at each end: too short to hear, long enough not to click.
const FADE_MS: usize = 4;

const SAMPLES_PER_MS: usize = Voice::RATE_HZ as usize / 1_000;

/// Trims, fades and converts.
pub(super) fn finish(mut samples: Vec<f32>) -> Vec<i16> {
    let sound = samples.iter().position(|sample| sample.abs() > SOUND_LEVEL).unwrap_or(0);
    samples.drain(..sound.saturating_sub(LEAD_MS * SAMPLES_PER_MS));
    let fade = (FADE_MS * SAMPLES_PER_MS).min(samples.len() / 2);
    let len = samples.len();
    for n in 0..fade {
        let gain = n as f32 / fade as f32;
        samples[n] *= gain;
        samples[len - 1 - n] *= gain;
    }
    // A NaN becomes 0: the cast saturates.
    samples.into_iter().map(|sample| (sample.clamp(-1.0, 1.0) * 32_767.0).round() as i16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_silence_is_cut_and_ends_fade() {
        let mut samples = vec![0.0; 2_400];
        samples.extend(vec![0.5; 4_800]);
        let pcm = finish(samples);
        assert_eq!(pcm.len(), 4_800 + LEAD_MS * SAMPLES_PER_MS);
        assert_eq!((pcm[0], pcm[pcm.len() - 1]), (0, 0));
        let step = pcm.windows(2).skip(LEAD_MS * SAMPLES_PER_MS + 1).map(|pair| (pair[1] - pair[0]).abs()).max();
        assert!(step < Some(200), "{step:?}");
    }

    #[test]
    fn odd_values_stay_in_range() {
        let pcm = finish(vec![f32::NAN, 9.0, -9.0, f32::INFINITY, 0.25, 1.0, -1.0, 0.0]);
        assert_eq!(pcm.len(), 8);
        assert!(finish(Vec::new()).is_empty());
    }
}
