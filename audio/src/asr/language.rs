//! Languages that Whisper knows.

use std::fmt;

/// Longest name of a language: "haitian creole" has 14 bytes.
const NAME_BYTES_MAX: usize = 24;

/// One of Whisper's languages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Language(i32);

/// What is spoken in an utterance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// This language.
    Is(Language),
    /// The language that Whisper detects: the encoder runs once more for it.
    Detected,
}

impl Language {
    /// English, which all weights know.
    pub const ENGLISH: Self = Self(0);

    /// The language of an ISO 639-1 code such as "de", or of a BCP 47 tag such as "de-CH"; `None` if Whisper does not
    /// know it.
    pub fn of(tag: &str) -> Option<Self> {
        let code = tag.split(['-', '_']).next().unwrap_or("");
        // Only lower-case letters reach whisper.cpp's look-up, so a NUL byte cannot.
        let code = code.to_ascii_lowercase();
        let plain = (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_lowercase());
        plain.then(|| whisper_rs::get_lang_id(&code)).flatten().map(Self)
    }

    /// The language that a recogniser on another machine names: by a code or tag, or in English ("German").
    pub fn named(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        // As above.
        let plain =
            lower.len() <= NAME_BYTES_MAX && lower.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b' ');
        Self::of(name).or_else(|| plain.then(|| whisper_rs::get_lang_id(&lower)).flatten().map(Self))
    }

    /// A number of whisper.cpp.
    pub(super) fn of_id(id: i32) -> Option<Self> {
        whisper_rs::get_lang_str(id).map(|_| Self(id))
    }

    /// The likeliest of these; `None`: there are none. `probabilities`: those of all languages, by whisper.cpp's numbers.
    pub(super) fn likeliest(among: &[Self], probabilities: &[f32]) -> Option<Self> {
        let of = |language: &Self| {
            let probability = usize::try_from(language.0).ok().and_then(|id| probabilities.get(id));
            probability.copied().unwrap_or_default()
        };
        among.iter().copied().max_by(|one, other| of(one).total_cmp(&of(other)))
    }

    /// Its English name, such as "German".
    pub fn name(self) -> String {
        let name = whisper_rs::get_lang_str_full(self.0).unwrap_or("english");
        let (first, rest) = name.split_at_checked(1).unwrap_or((name, ""));
        first.to_ascii_uppercase() + rest
    }

    /// Its ISO 639-1 code.
    pub fn code(self) -> &'static str {
        whisper_rs::get_lang_str(self.0).unwrap_or("en")
    }
}

impl fmt::Debug for Language {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.code())
    }
}

impl Spoken {
    /// What a setting says: "auto", or a code or tag of a language.
    pub fn of(setting: &str) -> Option<Self> {
        if setting == "auto" { Some(Self::Detected) } else { Language::of(setting).map(Self::Is) }
    }

    /// The language; English until one is detected.
    pub fn language(self) -> Language {
        match self {
            Self::Is(language) => language,
            Self::Detected => Language::ENGLISH,
        }
    }

    /// What the setting says of it.
    pub fn setting(self) -> &'static str {
        match self {
            Self::Is(language) => language.code(),
            Self::Detected => "auto",
        }
    }

    /// Whether English weights suffice.
    pub fn is_english(self) -> bool {
        self == Self::Is(Language::ENGLISH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_languages_the_likeliest_is_taken() {
        let [spanish, french, catalan] = ["es", "fr", "ca"].map(|code| Language::of(code).unwrap());
        let mut probabilities = vec![0.0; 100];
        for (language, probability) in [(catalan, 0.5), (spanish, 0.4), (french, 0.02), (Language::ENGLISH, 0.01)] {
            probabilities[language.0 as usize] = probability;
        }
        let likeliest = |among: &[Language]| Language::likeliest(among, &probabilities);
        assert_eq!(likeliest(&[Language::ENGLISH, french, spanish]), Some(spanish));
        assert_eq!(likeliest(&[spanish, catalan]), Some(catalan));
        assert_eq!(likeliest(&[]), None);
        assert_eq!(Language::likeliest(&[french], &[]), Some(french));
    }

    #[test]
    fn languages_are_known_by_their_codes() {
        assert_eq!(Language::of("en"), Some(Language::ENGLISH));
        for (tag, code) in [("de-CH", "de"), ("ES", "es"), ("fr_CA", "fr"), ("it", "it"), ("ru-RU", "ru")] {
            assert_eq!(Language::of(tag).map(Language::code), Some(code), "{tag}");
        }
        for tag in ["", "xx", "german", "d\0", "auto", "klingon!!", "--"] {
            assert_eq!(Language::of(tag), None, "{tag}");
        }
        for (name, code) in [("german", "de"), ("Haitian Creole", "ht"), ("it", "it"), ("pt-BR", "pt")] {
            assert_eq!(Language::named(name).map(Language::code), Some(code), "{name}");
        }
        for name in ["", "klingon", "german\0", "deutsch!", &"german".repeat(9)] {
            assert_eq!(Language::named(name), None, "{name}");
        }
        let names = ["en", "de", "es", "ru"].map(|code| Language::of(code).map(Language::name).unwrap_or_default());
        assert_eq!(names, ["English", "German", "Spanish", "Russian"]);
        assert_eq!(Spoken::of("auto"), Some(Spoken::Detected));
        assert!(Spoken::of("en").is_some_and(Spoken::is_english) && !Spoken::Detected.is_english());
    }
}
