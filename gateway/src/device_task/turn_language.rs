//! In which language commands are read and models are asked: that of the words themselves. Each utterance has its own, and a turn
//! keeps that of its request, whatever else is heard meanwhile: a bystander, or the assistant's own voice.

use std::collections::BTreeMap;

use audio::asr::Language;
use gateway_core::vocab::Turn;

/// Utterances whose languages are kept at once: one is open, and the core waits for the last words of a few.
const UTTERANCES_MAX: usize = 8;

/// The languages of a device's conversation.
pub(super) struct TurnLanguage {
    /// Tag of the device's own: of what is typed, and where none is detected.
    own: String,
    /// Those of the utterances whose last words have not come.
    utterances: BTreeMap<u32, Detected>,
    /// Tag of the language of what was last said or typed to the assistant.
    request: String,
    /// The last turn, and the tag of the language of its request.
    turn: Option<(u32, String)>,
    /// Tag of the language for which models were prepared last.
    prepared: String,
}

/// What was detected in the latest decode of an utterance.
struct Detected {
    /// The core's number of that decode.
    revision: u16,
    /// `None`: the recogniser does not tell it.
    language: Option<Language>,
}

impl TurnLanguage {
    pub(super) fn new(tag: String) -> Self {
        Self { own: tag.clone(), utterances: BTreeMap::new(), request: tag.clone(), turn: None, prepared: tag }
    }

    /// This language was detected in a decode of an utterance. One that is older than what is known changes nothing: decodes end in
    /// any order.
    pub(super) fn detected(&mut self, (utterance, revision): (u32, u16), language: Option<Language>) {
        if self.utterances.get(&utterance).is_some_and(|known| known.revision > revision) {
            return;
        }
        if self.utterances.len() >= UTTERANCES_MAX && !self.utterances.contains_key(&utterance) {
            self.utterances.pop_first();
        }
        self.utterances.insert(utterance, Detected { revision, language });
    }

    /// The language that was detected in an utterance whose last words have not come; `None`: none.
    pub(super) fn detected_in(&self, utterance: u32) -> Option<Language> {
        self.utterances.get(&utterance).and_then(|detected| detected.language)
    }

    /// Tag of the language in which the words of an utterance are read.
    pub(super) fn tag_of(&self, utterance: u32) -> &str {
        match self.detected_in(utterance) {
            Some(language) => language.code(),
            None => &self.own,
        }
    }

    /// Tag of an utterance's language, if models were last prepared for another one. They are prepared for it now.
    pub(super) fn take_unprepared(&mut self, utterance: u32) -> Option<&str> {
        let tag = self.tag_of(utterance);
        if tag == self.prepared {
            return None;
        }
        self.prepared = tag.to_owned();
        Some(&self.prepared)
    }

    /// The last words of an utterance have come; `addressed`: they are meant for the assistant.
    pub(super) fn last_words(&mut self, utterance: u32, addressed: bool) {
        if addressed {
            self.request = self.tag_of(utterance).to_owned();
        }
        self.utterances.remove(&utterance);
    }

    /// Something was typed. Nothing is detected in it.
    pub(super) fn typed(&mut self) {
        self.request.clone_from(&self.own);
    }

    /// A turn has begun. One that is announced once more keeps its language.
    pub(super) fn begun(&mut self, turn: Turn) {
        if self.turn.as_ref().is_none_or(|(id, _)| *id != turn.id) {
            self.reopened(turn);
        }
    }

    /// The wearer has said more of a turn's request: its language is that of the last words.
    pub(super) fn reopened(&mut self, turn: Turn) {
        self.turn = Some((turn.id, self.request.clone()));
    }

    /// Tag of the language of this turn.
    pub(super) fn of(&self, turn: Turn) -> &str {
        match &self.turn {
            Some((id, tag)) if *id == turn.id => tag,
            _ => &self.own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Turn = Turn { id: 1, revision: 0 };
    const SECOND: Turn = Turn { id: 2, revision: 0 };

    /// Hears an utterance to its end.
    fn say(languages: &mut TurnLanguage, utterance: u32, tag: &str, addressed: bool) {
        languages.detected((utterance, 1), Language::of(tag));
        languages.last_words(utterance, addressed);
    }

    #[test]
    fn a_turn_keeps_its_language_until_it_is_reopened() {
        let mut languages = TurnLanguage::new("en".into());
        say(&mut languages, 1, "de", true);
        languages.begun(FIRST);
        say(&mut languages, 2, "en", true);
        languages.begun(FIRST);
        assert_eq!(languages.of(FIRST), "de", "it is announced once more");
        assert_eq!(languages.of(Turn { revision: 1, ..FIRST }), "de", "another model is asked");
        languages.reopened(Turn { revision: 2, ..FIRST });
        assert_eq!(languages.of(Turn { revision: 2, ..FIRST }), "en");
        assert_eq!(languages.of(SECOND), "en", "the device's own");
    }

    #[test]
    fn an_older_utterance_that_is_decoded_later_does_not_change_a_request() {
        let mut languages = TurnLanguage::new("de".into());
        languages.detected((2, 1), Language::of("es"));
        languages.detected((1, 4), Language::of("en"));
        languages.last_words(1, false);
        assert_eq!(languages.tag_of(2), "es", "its commands are looked for in its own language");
        languages.last_words(2, true);
        languages.begun(FIRST);
        assert_eq!(languages.of(FIRST), "es");
    }

    #[test]
    fn what_is_typed_is_in_the_devices_own_language_whatever_was_heard() {
        for addressed in [false, true] {
            let mut languages = TurnLanguage::new("de-CH".into());
            say(&mut languages, 1, "en", addressed);
            languages.typed();
            languages.begun(FIRST);
            assert_eq!(languages.of(FIRST), "de-CH");
        }
    }

    #[test]
    fn what_is_not_meant_for_the_assistant_changes_no_request() {
        let mut languages = TurnLanguage::new("de".into());
        say(&mut languages, 1, "es", true);
        say(&mut languages, 2, "en", false);
        languages.begun(FIRST);
        assert_eq!(languages.of(FIRST), "es");
    }

    #[test]
    fn an_utterance_is_in_the_language_of_its_latest_decode() {
        let mut languages = TurnLanguage::new("de-CH".into());
        assert_eq!((languages.detected_in(1), languages.tag_of(1)), (None, "de-CH"));
        languages.detected((1, 3), Language::of("it"));
        languages.detected((1, 2), Language::of("en"));
        assert_eq!(languages.tag_of(1), "it", "a decode of less of it has ended late");
        languages.detected((1, 4), None);
        assert_eq!(languages.tag_of(1), "de-CH", "a recogniser that does not tell it");
    }

    #[test]
    fn models_are_prepared_for_a_language_once() {
        let mut languages = TurnLanguage::new("de-CH".into());
        languages.detected((1, 1), None);
        assert_eq!(languages.take_unprepared(1), None);
        languages.detected((1, 2), Language::of("it"));
        assert_eq!(languages.take_unprepared(1), Some("it"));
        assert_eq!(languages.take_unprepared(1), None);
    }

    #[test]
    fn of_utterances_without_last_words_the_oldest_are_forgotten() {
        let mut languages = TurnLanguage::new("en".into());
        for utterance in 1..=100 {
            languages.detected((utterance, 1), Language::of("it"));
            languages.detected((utterance, 2), Language::of("it"));
            assert_eq!(languages.tag_of(utterance), "it");
        }
        assert_eq!(languages.utterances.len(), UTTERANCES_MAX);
    }
}
