//! Telling speech from silence and noise, before and after decoding.
//!
//! Whisper was trained on subtitles and writes "you" or "Thank you." for silence. The voice activity detector removes
//! most silence; this module removes the rest.

use super::SAMPLE_RATE_HZ;

/// Loudness is measured in windows of 100 ms: a short word fills one.
const WINDOW: usize = SAMPLE_RATE_HZ as usize / 10;
/// Root mean square of the loudest window below which the sound counts as silence: -60 dB of full scale, 33 steps of
/// 16-bit samples. Microphone noise lies below, whispered speech above.
const RMS_MIN: f32 = 0.001;

/// Fewest words of a repeated unit; people repeat shorter ones.
const REPEATED_WORDS_MIN: usize = 3;

/// Whether nothing in the sound (-1 to 1) is loud enough to be speech.
pub(super) fn is_silent(samples: &[f32]) -> bool {
    samples.chunks(WINDOW).all(|window| {
        let energy: f32 = window.iter().map(|sample| sample * sample).sum();
        let square = energy / window.len() as f32;
        square.is_nan() || square < RMS_MIN * RMS_MIN
    })
}

/// No-speech probability, computed without a prompt, above which the sound counts as noise. Measured on tiny.en: at
/// most 0.21 on 74 clips of speech, at least 0.82 on ten of white and brown noise, hum, knocks, chords and beeps.
const NO_SPEECH_MAX: f32 = 0.6;

/// Whether Whisper decoded noise. The probability of the text itself does not show it: with a prompt Whisper is quite
/// sure of "I'm" in white noise.
pub(super) fn is_no_speech(no_speech_probability: f32) -> bool {
    no_speech_probability.is_nan() || no_speech_probability > NO_SPEECH_MAX
}

/// The probability (softmax) of one of the tokens; 1 when there is no such token.
pub(super) fn probability_of(index: usize, logits: &[f32]) -> f32 {
    let Some(wanted) = logits.get(index) else {
        return 1.0;
    };
    let highest = logits.iter().copied().fold(f32::MIN, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - highest).exp()).sum();
    (f64::from(wanted - highest).exp() / sum) as f32
}

/// Whether a text is the same three or more words at least twice, as a looping decoder writes. People repeat single
/// words ("no, no"); decoding those again costs only time.
pub(super) fn is_repetition(text: &str) -> bool {
    let letters =
        |word: &str| word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect::<String>();
    let words: Vec<String> = text.split_whitespace().map(letters).filter(|word| !word.is_empty()).collect();
    (REPEATED_WORDS_MIN..=words.len() / 2).any(|unit| words.iter().zip(words.iter().skip(unit)).all(|(a, b)| a == b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softmax_has_its_known_values() {
        assert!((probability_of(0, &[0.0, 0.0]) - 0.5).abs() < 1e-6);
        assert!((probability_of(1, &[0.0, 3f32.ln()]) - 0.75).abs() < 1e-6);
        assert!(probability_of(0, &[1000.0, 0.0]) > 0.999);
        assert_eq!(probability_of(2, &[0.0, 0.0]), 1.0);
    }

    #[test]
    fn repetitions_are_found() {
        for text in ["Go forward 10 meters. Go forward 10 meters.", "a b c a b c a b", "one two three, one two three"] {
            assert!(is_repetition(text), "{text}");
        }
        for text in
            ["", "no no no", "five five", "bye bye bye", "go on go on", "a b c d a b c", "go forward ten meters"]
        {
            assert!(!is_repetition(text), "{text}");
        }
    }

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
