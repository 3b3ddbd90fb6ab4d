//! Telling speech from silence and noise, before and after decoding.
//!
//! Whisper was trained on subtitles and writes "you" or "Thank you." into silence. The voice
//! activity detector keeps most of that away; this keeps the rest.

use super::SAMPLE_RATE_HZ;

/// Loudness is looked at in windows of 100 ms: a short word fills one.
const WINDOW: usize = SAMPLE_RATE_HZ as usize / 10;
/// Root mean square of the loudest window below which there is nothing to hear: -60 dB of full
/// scale, 33 steps of 16-bit samples. Microphone noise lies below, whispered speech above.
const RMS_MIN: f32 = 0.001;

/// Whether nothing in the sound (-1 to 1) is loud enough to be speech.
pub(super) fn is_silent(samples: &[f32]) -> bool {
    samples.chunks(WINDOW).all(|window| {
        let energy: f32 = window.iter().map(|sample| sample * sample).sum();
        // Also true for what is not a number.
        !(energy / window.len() as f32 >= RMS_MIN * RMS_MIN)
    })
}

/// Whether a decoding is what Whisper makes of noise.
pub(super) fn is_no_speech(no_speech_probability: f32, mean_log_probability: f32) -> bool {
    no_speech_probability > 0.6 && mean_log_probability < -0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_is_silent_and_a_short_word_is_not() {
        assert!(is_silent(&[]));
        assert!(is_silent(&vec![0.0; 16_000]));
        assert!(is_silent(&vec![0.0005; 16_000]));
        assert!(is_silent(&vec![f32::NAN; 16_000]));
        let mut word = vec![0.0; 160_000];
        word[80_000..81_600].fill(0.01);
        assert!(!is_silent(&word));
    }
}
