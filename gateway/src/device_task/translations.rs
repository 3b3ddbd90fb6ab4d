//! Utterances in English: for the wearer, who has talk translated, and for apps that listen to translations.

use std::collections::BTreeSet;

use audio::asr::{Error, Language};
use gateway_core::{input::Input, vocab::Translation};

use super::session::Session;
use crate::mailbox::Translated;

/// Utterances that are being translated. Each is translated once, for the wearer and for all apps.
#[derive(Default)]
pub(super) struct Translations {
    /// Not ended yet. No more than there is room for in the queue of recognition.
    under_way: BTreeSet<u32>,
    /// Those of them that the wearer waits for.
    for_wearer: BTreeSet<u32>,
}

impl Session {
    /// Has an utterance that ended translated for the wearer.
    pub(super) fn translate_for_wearer(&mut self, utterance: u32) {
        self.translations.for_wearer.insert(utterance);
        if !self.translate(utterance) {
            self.translations.for_wearer.remove(&utterance);
            self.input(Input::Translated { utterance, translation: None });
        }
    }

    /// The words of an utterance are told: apps want its translation as well.
    pub(super) fn translate_for_apps(&mut self, utterance: u32) {
        if !self.translations.under_way.contains(&utterance) {
            self.translate(utterance);
        }
    }

    /// Has an utterance that ended translated into English; `false`: its sound is not kept, or recognition has no time.
    fn translate(&mut self, utterance: u32) -> bool {
        let taken = self.ear.as_mut().is_some_and(|ear| ear.translate(utterance));
        if taken {
            self.translations.under_way.insert(utterance);
        }
        taken
    }

    /// A translation has ended.
    pub(super) fn translated(&mut self, translated: Translated) {
        let Translated { utterance, report } = translated;
        self.translations.under_way.remove(&utterance);
        self.ear.iter_mut().for_each(|ear| ear.translation_ended(utterance));
        let translation = match report.result {
            Ok(result) => {
                let language = result.language.unwrap_or(Language::ENGLISH);
                self.tap.translated(utterance, &result.text, language.code());
                let from = (language != Language::ENGLISH).then(|| language.name());
                Some(Translation { text: result.text, from })
            }
            // The microphone was switched off: it is not missed.
            Err(Error::Cancelled) => {
                self.translations.for_wearer.remove(&utterance);
                return;
            }
            Err(error) => {
                tracing::debug!(utterance, %error, "an utterance is not translated");
                None
            }
        };
        if self.translations.for_wearer.remove(&utterance) {
            self.input(Input::Translated { utterance, translation });
        }
    }
}
