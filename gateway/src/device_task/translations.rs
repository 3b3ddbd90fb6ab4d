//! Utterances in English: for the wearer, who has talk translated, and for apps that listen to translations.

use std::collections::BTreeSet;

use audio::asr::{Error, Language};
use gateway_core::{input::Input, vocab::Translation};

use super::app_feed::AppFeed;
use crate::{mailbox::Translated, speech::ear::Ear};

/// Utterances that are being translated. Each is translated once, for the wearer and for all apps.
#[derive(Default)]
pub(super) struct Translations {
    /// Not ended yet. No more than there is room for in the queue of recognition.
    under_way: BTreeSet<u32>,
    /// Those of them that the wearer waits for.
    for_wearer: BTreeSet<u32>,
}

impl Translations {
    /// Has an utterance that ended translated for the wearer, from whatever language. Returns what the core is told if that cannot
    /// be done.
    pub(super) fn for_wearer(&mut self, utterance: u32, ear: Option<&mut Ear>) -> Option<Input> {
        if self.begin(utterance, &[], ear) {
            self.for_wearer.insert(utterance);
            return None;
        }
        self.for_wearer.remove(&utterance);
        Some(Input::Translated { utterance, translation: None })
    }

    /// The words of an utterance are told: apps want its translation as well, which is from one of these languages.
    pub(super) fn for_apps(&mut self, utterance: u32, from: &[Language], ear: Option<&mut Ear>) {
        if !self.under_way.contains(&utterance) {
            self.begin(utterance, from, ear);
        }
    }

    /// Has an utterance that ended translated into English; `false`: its sound is not kept, or recognition has no time.
    fn begin(&mut self, utterance: u32, from: &[Language], ear: Option<&mut Ear>) -> bool {
        let taken = ear.is_some_and(|ear| ear.translate(utterance, from));
        if taken {
            self.under_way.insert(utterance);
        }
        taken
    }

    /// A translation has ended. Returns what the core is told of it, if the wearer waits for it.
    pub(super) fn ended(&mut self, translated: Translated, ear: Option<&mut Ear>, apps: &mut AppFeed) -> Option<Input> {
        let Translated { utterance, report } = translated;
        self.under_way.remove(&utterance);
        let wearer_waits = self.for_wearer.remove(&utterance);
        if let Some(ear) = ear {
            ear.translation_ended(utterance);
        }
        let translation = match report.result {
            Ok(result) => {
                let language = result.language.unwrap_or(Language::ENGLISH);
                apps.translated(utterance, &result.text, language.code());
                let from = (language != Language::ENGLISH).then(|| language.name());
                Some(Translation { text: result.text, from })
            }
            // The microphone was switched off: it is not missed.
            Err(Error::Cancelled) => return None,
            Err(error) => {
                tracing::debug!(utterance, %error, "an utterance is not translated");
                None
            }
        };
        wearer_waits.then_some(Input::Translated { utterance, translation })
    }
}
