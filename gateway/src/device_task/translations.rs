//! Utterances in English, for apps that listen to translations.

use audio::asr::Language;

use super::session::Session;
use crate::mailbox::Translated;

impl Session {
    /// Has an utterance that ended translated into English, while recognition has time for it.
    pub(super) fn translate(&mut self, utterance: u32) {
        if let Some(ear) = &mut self.ear {
            ear.translate(utterance);
        }
    }

    /// A translation has ended.
    pub(super) fn translated(&mut self, translated: Translated) {
        let Translated { utterance, report } = translated;
        match report.result {
            Ok(result) => {
                let language = result.language.unwrap_or(Language::ENGLISH).code();
                self.tap.translated(utterance, &result.text, language);
            }
            Err(error) => tracing::debug!(utterance, %error, "an utterance is not translated"),
        }
    }
}
