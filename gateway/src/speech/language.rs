//! Which language is spoken to a device, and in which one it is answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use audio::asr::{Language, Spoken};
use gateway_core::{language, vocab::TranscriptKind};

/// Which languages are spoken, and which the recogniser knows.
#[derive(Clone, Debug)]
pub struct Languages {
    /// What the operator says is spoken; `None`: each device's own language.
    pub usual: Option<Spoken>,
    /// The same for single users, by name; it comes first.
    pub users: Arc<BTreeMap<String, Spoken>>,
    /// Whether there are weights of many languages, or a recogniser elsewhere, which is taken to know them.
    pub multilingual: bool,
    /// Whether there are weights that translate into English.
    pub translates: bool,
}

impl Languages {
    /// What is understood of this user.
    pub fn of(&self, user: &str) -> Understood {
        let Self { usual, ref users, multilingual, translates } = *self;
        let own = users.get(user).copied();
        Understood { own, configured: own.or(usual), multilingual, translates }
    }
}

/// What the recogniser understands of one user.
#[derive(Clone, Copy, Debug)]
pub struct Understood {
    /// What the operator says that this user speaks.
    pub own: Option<Spoken>,
    /// The same, or else what all users speak; `None`: each device's own language.
    pub configured: Option<Spoken>,
    /// See [`Languages`].
    pub multilingual: bool,
    /// See [`Languages`].
    pub translates: bool,
}

impl Understood {
    /// What is spoken to a device whose wearer chose the language of this tag. English weights hear English only.
    pub fn spoken(self, tag: &str) -> Spoken {
        let own = Language::of(tag).filter(|_| self.multilingual).unwrap_or(Language::ENGLISH);
        self.configured.unwrap_or(Spoken::Is(own))
    }

    /// Whether words of this language are heard, by one of the devices to which these are spoken. As long as there are none, some
    /// may come to which it is.
    pub fn hears(self, language: Language, spoken: &[Spoken]) -> bool {
        let is_it = |spoken: &Spoken| [Spoken::Is(language), Spoken::Detected].contains(spoken);
        let is_spoken = match self.configured {
            Some(configured) => is_it(&configured),
            None => spoken.is_empty() || spoken.iter().any(is_it),
        };
        is_spoken && self.knows(language)
    }

    /// Whether the recogniser understands this language.
    pub fn knows(self, language: Language) -> bool {
        self.multilingual || language == Language::ENGLISH
    }

    /// The languages of which an utterance may be that apps want translated from these, said to a device of that language; empty: any.
    /// It may always be English, or the wearer's own.
    pub fn translated_from(own: Language, wanted: &[Spoken]) -> Vec<Language> {
        let mut from = vec![Language::ENGLISH];
        for wanted in [Spoken::Is(own)].iter().chain(wanted) {
            match *wanted {
                Spoken::Detected => return Vec::new(),
                Spoken::Is(language) if !from.contains(&language) => from.push(language),
                Spoken::Is(_) => {}
            }
        }
        from
    }

    /// Whether the language that was detected for this transcript is that of its utterance: where none was, it is the device's own.
    pub fn is_detected(self, kind: TranscriptKind, text: &str) -> bool {
        language::is_detected(self.configured == Some(Spoken::Detected), kind, text)
    }

    /// The tag of the language in which commands of that device are read and models answer; `hears`: whether it has a
    /// microphone.
    pub fn answered(self, tag: &str, hears: bool) -> String {
        let spoken = match self.spoken(tag) {
            Spoken::Is(only) => Some(only.code()),
            Spoken::Detected => None,
        };
        let code = Language::of(tag).map(Language::code);
        let is_users_own = self.own.is_some();
        language::answered(language::Languages { tag, code, spoken, is_users_own, hears }).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(tag: &str) -> Spoken {
        Spoken::of(tag).expect("a language")
    }

    #[test]
    fn each_device_has_its_language_where_the_weights_know_it() {
        let many = Understood { own: None, configured: None, multilingual: true, translates: true };
        let english = Understood { multilingual: false, translates: false, ..many };
        assert_eq!((many.spoken("de-CH"), english.spoken("de-CH")), (is("de"), is("en")));
        assert_eq!((many.spoken("tlh"), many.spoken("")), (is("en"), is("en")));
        assert_eq!(many.answered("de-CH", true), "de-CH");
        assert_eq!((english.answered("de-CH", true), english.answered("de-CH", false)), ("en".into(), "de-CH".into()));
        assert_eq!(english.answered("en-GB", true), "en-GB");
    }

    #[test]
    fn what_the_operator_says_is_spoken_comes_first() {
        let french = Understood { own: None, configured: Some(is("fr")), multilingual: true, translates: true };
        assert_eq!((french.spoken("de"), french.answered("de", true)), (is("fr"), "fr".to_owned()));
        let any = Understood { configured: Some(Spoken::Detected), ..french };
        assert_eq!((any.spoken("de"), any.answered("de", true)), (Spoken::Detected, "de".to_owned()));
        let is_detected = |understood: Understood| understood.is_detected(TranscriptKind::Final, "Ciao.");
        assert_eq!((is_detected(any), is_detected(french)), (true, false));
    }

    #[test]
    fn a_language_is_heard_by_devices_to_which_it_is_spoken() {
        let many = Understood { own: None, configured: None, multilingual: true, translates: true };
        let english = Understood { multilingual: false, translates: false, ..many };
        let spanish = is("es").language();
        for (spoken, heard) in [
            (vec![], true),
            (vec![is("en")], false),
            (vec![is("en"), is("es")], true),
            (vec![is("de"), Spoken::Detected], true),
        ] {
            assert_eq!(many.hears(spanish, &spoken), heard, "{spoken:?}");
            assert!(!english.hears(spanish, &spoken), "{spoken:?}");
        }
        let configured = |tag| Understood { configured: Spoken::of(tag), ..many }.hears(spanish, &[is("en")]);
        assert_eq!(["es", "fr", "auto"].map(configured), [true, false, true]);
    }

    #[test]
    fn what_is_translated_is_in_english_in_the_wearers_own_language_or_in_one_that_is_wanted() {
        let of = |own: &str, tags: &[&str]| {
            let wanted: Vec<Spoken> = tags.iter().map(|tag| is(tag)).collect();
            let from = Understood::translated_from(Language::of(own).expect("a language"), &wanted);
            from.into_iter().map(Language::code).collect::<Vec<_>>()
        };
        assert_eq!(of("en", &["es", "es"]), ["en", "es"]);
        assert_eq!(of("de", &["es", "fr"]), ["en", "de", "es", "fr"]);
        assert!(of("de", &["es", "auto"]).is_empty(), "it may be any");
    }

    #[test]
    fn the_language_of_a_user_comes_before_those_of_devices_and_of_all_users() {
        let users = [("ann".to_owned(), is("de")), ("bob".to_owned(), Spoken::Detected)];
        let languages =
            Languages { usual: Some(is("fr")), users: Arc::new(users.into()), multilingual: true, translates: true };
        let ann = languages.of("ann");
        assert_eq!((ann.spoken("en"), ann.answered("en", true)), (is("de"), "de".to_owned()));
        assert_eq!(ann.answered("de-CH", true), "de-CH", "the region is kept");
        assert_eq!(ann.answered("en", false), "de", "also of what is typed");
        assert!(languages.of("bob").is_detected(TranscriptKind::Final, "Ciao."));
        assert_eq!(languages.of("eve").spoken("en"), is("fr"));
    }
}
