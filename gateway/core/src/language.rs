//! In which language a device is answered, and which transcripts say in which language an utterance is.

use crate::vocab::TranscriptKind;

/// What is known of a device's languages when its session begins. Codes are those of ISO 639-1.
#[derive(Clone, Copy, Debug)]
pub struct Languages<'a> {
    /// BCP 47 tag of the language that its wearer chose.
    pub tag: &'a str,
    /// Code of that language, if the recogniser knows it.
    pub code: Option<&'a str>,
    /// Code of the language that is spoken to it; `None`: that is detected in each utterance.
    pub spoken: Option<&'a str>,
    /// Whether the operator says which language this very user speaks.
    pub is_users_own: bool,
    /// Whether it has a microphone.
    pub hears: bool,
}

/// The tag of the language in which commands of that device are read and models answer. What is only typed need not be
/// heard; of a user's own language it is all the same. The region of the device's own language is kept.
pub fn answered(languages: Languages<'_>) -> &str {
    let Languages { tag, code, spoken, is_users_own, hears } = languages;
    match spoken {
        Some(spoken) if (hears || is_users_own) && code != Some(spoken) => spoken,
        Some(_) | None => tag,
    }
}

/// Whether a transcript of this kind says in which language its utterance is, where languages are detected (`detects`): in the one
/// that was detected for it, or, where a recogniser does not tell that, in the device's own. One without words does not, nor one of a
/// further pass: it may not count.
pub fn is_detected(detects: bool, kind: TranscriptKind, text: &str) -> bool {
    let is_further = matches!(kind, TranscriptKind::SecondPass | TranscriptKind::ThirdPass);
    detects && !is_further && !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spoken_counts_where_it_is_heard_or_the_users_own() {
        let swiss = Languages { tag: "de-CH", code: Some("de"), spoken: Some("de"), is_users_own: false, hears: true };
        assert_eq!(answered(swiss), "de-CH", "the region is kept");
        assert_eq!(answered(Languages { spoken: None, ..swiss }), "de-CH", "until another one is detected");
        let english = Languages { spoken: Some("en"), ..swiss };
        assert_eq!(answered(english), "en");
        assert_eq!(answered(Languages { hears: false, ..english }), "de-CH", "what is typed need not be heard");
        assert_eq!(answered(Languages { hears: false, is_users_own: true, ..english }), "en");
        let unknown = Languages { tag: "tlh", code: None, ..english };
        assert_eq!(answered(unknown), "en");
    }

    #[test]
    fn a_first_text_with_words_says_the_language_where_it_is_detected() {
        for first in [TranscriptKind::Partial, TranscriptKind::Speculative, TranscriptKind::Final] {
            assert!(is_detected(true, first, "Buongiorno."));
            assert!(!is_detected(true, first, "") && !is_detected(false, first, "Buongiorno."));
        }
        for further in [TranscriptKind::SecondPass, TranscriptKind::ThirdPass] {
            assert!(!is_detected(true, further, "Buongiorno."));
        }
    }
}
