//! In which language models are asked: that of the wearer's words. A turn keeps the one in which it was begun, whatever else is
//! heard while it goes on: a bystander, or the assistant's own voice.

use gateway_core::vocab::Turn;

/// The language of a device's conversation, by its tag.
pub(super) struct TurnLanguage {
    /// The device's own.
    own: String,
    now: String,
    /// That of the last turn for which a model was asked.
    of_turn: Option<(Turn, String)>,
}

impl TurnLanguage {
    pub(super) fn new(tag: String) -> Self {
        Self { own: tag.clone(), now: tag, of_turn: None }
    }

    /// The one that was heard last.
    pub(super) fn now(&self) -> &str {
        &self.now
    }

    /// The wearer now speaks the language of this code, or one that is not known: the device's own, then. `true`: another one
    /// than before.
    pub(super) fn turn_to(&mut self, code: Option<&str>) -> bool {
        let tag = code.unwrap_or(&self.own).to_owned();
        let is_other = tag != self.now;
        self.now = tag;
        is_other
    }

    /// That of this turn, from now on. A turn that is reopened has another one, if its last words have.
    pub(super) fn of(&mut self, turn: Turn) -> String {
        if self.of_turn.as_ref().is_none_or(|(of, _)| *of != turn) {
            self.of_turn = Some((turn, self.now.clone()));
        }
        self.of_turn.as_ref().map_or_else(|| self.now.clone(), |(_, language)| language.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_keeps_its_language_until_it_is_reopened() {
        let mut language = TurnLanguage::new("en".into());
        let turn = Turn { id: 1, revision: 0 };
        assert!(language.turn_to(Some("de")));
        assert_eq!(language.of(turn), "de");
        assert!(language.turn_to(Some("en")), "the assistant's voice");
        assert_eq!((language.of(turn).as_str(), language.now()), ("de", "en"));
        assert_eq!(language.of(Turn { revision: 1, ..turn }), "en");
        assert_eq!(language.of(Turn { id: 2, revision: 0 }), "en");
    }

    #[test]
    fn a_language_that_is_not_known_is_the_devices_own() {
        let mut language = TurnLanguage::new("de-CH".into());
        assert!(!language.turn_to(None));
        assert!(language.turn_to(Some("it")) && language.turn_to(None));
        assert_eq!(language.now(), "de-CH");
    }
}
