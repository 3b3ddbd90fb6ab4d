//! A recogniser on another machine: what it is told with the sound, and what is made of its text.

use super::{
    Heard, Language, Options, SAMPLE_RATE_HZ, Spoken, Transcription, context, filter,
    prompt::{self, Sentences, Tails},
};

impl Options {
    /// Words to expect, in the form of a text that precedes the sound, as recognisers of Whisper's kind take it; empty: none.
    pub fn prompt(&self) -> String {
        let set = self.sentences().filter(|_| !self.without_prompt);
        set.map_or_else(String::new, |set| {
            prompt::prompt_with(&self.vocabulary, &self.wake_phrases, (Tails::Usual, set))
        })
    }

    /// Sentences of the language that is spoken; `None` where it has none, or is to be detected.
    fn sentences(&self) -> Option<&'static Sentences> {
        match self.spoken.unwrap_or(Spoken::Is(Language::ENGLISH)) {
            Spoken::Is(language) => prompt::sentences_of(language),
            Spoken::Detected => None,
        }
    }
}

impl Transcription {
    /// Of sound (16 kHz, one channel) in which there is nothing to recognise: under 100 ms, or too quiet for speech. `None`:
    /// it has to be recognised.
    pub fn of_nothing(pcm: &[i16]) -> Option<Self> {
        let heard = if pcm.len() < context::SAMPLES_MIN {
            Heard::TooShort
        } else if filter::is_silent(&pcm.iter().map(|sample| f32::from(*sample) / 32_768.0).collect::<Vec<_>>()) {
            Heard::Silence
        } else {
            return None;
        };
        Some(Self::without_text(heard, audio_us(pcm)))
    }

    /// Of the text that a recogniser on another machine has written for this sound, in `decode_us`. Whisper's habits are undone:
    /// a repeated wake phrase, and sentences of the prompt at the end. (It is not asked once more with another prompt, which would
    /// tell an echo in the middle from what was said.) It tells no probabilities, so its texts count as certain. `detected`: the
    /// language that it told, where it was to detect that.
    pub fn written_elsewhere(
        text: &str,
        detected: Option<Language>,
        pcm: &[i16],
        options: &Options,
        decode_us: u64,
    ) -> Self {
        let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        text.retain(|letter| !letter.is_control());
        if !options.without_prompt {
            if let Some(first) = prompt::first_of_loop(&text, &options.wake_phrases, false).map(str::len) {
                text.truncate(first);
            }
            if let Some(set) = options.sentences() {
                Tails::Usual.cut_echo_at_end(&mut text, &options.wake_phrases, set);
            }
        }
        let is_speech = text.chars().any(char::is_alphanumeric);
        let language = match options.spoken {
            Some(Spoken::Is(language)) => Some(language),
            Some(Spoken::Detected) | None => detected,
        };
        Self {
            text: if is_speech { text } else { String::new() },
            no_speech_probability: if is_speech { 0.0 } else { 1.0 },
            decode_us,
            language,
            ..Self::without_text(if is_speech { Heard::Speech } else { Heard::NoSpeech }, audio_us(pcm))
        }
    }
}

fn audio_us(pcm: &[i16]) -> u64 {
    pcm.len() as u64 * 1_000_000 / u64::from(SAMPLE_RATE_HZ)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options { wake_phrases: ["hey mentra".to_owned()].into(), ..Options::default() }
    }

    #[test]
    fn sound_without_speech_is_sent_nowhere() {
        let heard = |pcm: &[i16]| Transcription::of_nothing(pcm).map(|nothing| nothing.heard);
        assert_eq!(heard(&[9_000; 1_599]), Some(Heard::TooShort));
        assert_eq!(heard(&[3; 16_000]), Some(Heard::Silence));
        assert_eq!(heard(&[9_000; 16_000]), None);
    }

    #[test]
    fn a_text_from_elsewhere_is_one_clean_line() {
        let written = |text: &str| Transcription::written_elsewhere(text, None, &[0; 32_000], &options(), 7);
        let said = written(" Hey Mentra,\n what time\u{7} is it? ");
        assert_eq!(
            (said.text.as_str(), said.heard, said.confidence()),
            ("Hey Mentra, what time is it?", Heard::Speech, 1.0)
        );
        assert_eq!((said.audio_us, said.decode_us), (2_000_000, 7));
        let nothing = written(" ... ");
        assert_eq!((nothing.text.as_str(), nothing.heard, nothing.no_speech_probability), ("", Heard::NoSpeech, 1.0));
        assert_eq!(written("Hey Mentra. Hey Mentra. Hey Mentra.").text, "Hey Mentra.");
        assert_eq!(written("Stop the timer. Hey Mentra, good morning.").text, "Stop the timer.");
        assert_eq!(written("The train was late again. Hey Mentra, good morning.").heard, Heard::NoSpeech);
        assert!(options().prompt().contains("Hey Mentra"));
        assert_eq!(Options { without_prompt: true, ..options() }.prompt(), "");
    }

    #[test]
    fn words_of_the_prompt_with_others_around_them_were_said() {
        for text in [
            "Hey Mentra, good morning, what's on my calendar?",
            "Hey Mentra, good morning. What's on my calendar?",
            "Hey Mentra, tell Ann good morning.",
            "Good morning.",
        ] {
            assert_eq!(Transcription::written_elsewhere(text, None, &[0; 32_000], &options(), 7).text, text);
        }
    }

    #[test]
    fn a_text_from_elsewhere_has_the_language_that_was_told_there_or_from_there() {
        let (german, italian) = (Language::of("de"), Language::of("it"));
        for (spoken, detected, expected) in [
            (german.map(Spoken::Is), None, german),
            (german.map(Spoken::Is), italian, german),
            (Some(Spoken::Detected), italian, italian),
            (Some(Spoken::Detected), None, None),
        ] {
            let options = Options { spoken, ..options() };
            let heard = Transcription::written_elsewhere("Ja.", detected, &[0; 32_000], &options, 7);
            assert_eq!(heard.language, expected, "{spoken:?} {detected:?}");
        }
    }
}
