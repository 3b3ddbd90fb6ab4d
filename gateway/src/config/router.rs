//! The section `[router]`: who chooses the tools that a model is offered.

use std::path::Path;

use audio::models::{CATALOGUE, Entry, catalogue};
use serde::Deserialize;
use toml::Spanned;

use super::{
    Checked, Problems,
    model::{Model, Written},
    options::Place,
    raw::unwritten,
};

/// How long a request waits for sentence embeddings: some ten times what one takes on an idle core.
const SENTENCES_MS: u32 = 80;

/// As it is written.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Router {
    tools: Spanned<usize>,
    by: Option<Spanned<Named>>,
    sentences_ms: Spanned<u32>,
    model: Option<Written>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Named {
    Words,
    Sentences,
    Model,
}

impl Default for Router {
    fn default() -> Self {
        let tools = unwritten(tools::router::Config::default().picked_max);
        Self { tools, by: None, sentences_ms: unwritten(SENTENCES_MS), model: None }
    }
}

/// Who chooses.
#[derive(Clone, Debug, PartialEq)]
pub enum RouterBy {
    /// The words of what was said.
    Words,
    /// Words and sentence embeddings.
    Sentences {
        /// How long a request waits for them.
        wait_ms: u32,
    },
    /// A cheap model.
    Model(Model),
}

impl Problems<'_> {
    pub(super) fn router(&mut self, raw: &super::Raw, data_dir: &Path) -> (tools::router::Config, RouterBy) {
        let router = &raw.router;
        let config = tools::router::Config {
            picked_max: self.between(&router.tools, "router.tools", 1..=10_000),
            ..tools::router::Config::default()
        };
        let model = router.model.as_ref().and_then(|model| self.model(Place::Router, model, data_dir));
        let model = model.filter(|model| *model != Model::Offline);
        let wait_ms = self.between(&router.sentences_ms, "router.sentences_ms", 10..=5_000);
        let by = match (router.by.as_ref().map(|by| *by.get_ref()), model) {
            (Some(Named::Sentences), _) => RouterBy::Sentences { wait_ms },
            (Some(Named::Model) | None, Some(model)) => RouterBy::Model(model),
            (Some(Named::Model), None) => {
                let span = router.by.as_ref().map_or(0..0, Spanned::span);
                self.at(span, "`router.by` is \"model\", but `router.model` names no model behind a server; see [model] for its keys");
                RouterBy::Words
            }
            (Some(Named::Words) | None, _) => RouterBy::Words,
        };
        (config, by)
    }
}

impl Checked {
    /// The models that this configuration needs, beside those that an operator brings.
    pub fn models_wanted(&self) -> Vec<&'static Entry> {
        let by_sentences = matches!(self.router_by, RouterBy::Sentences { .. });
        let is_wanted = |entry: &Entry| match entry.id {
            catalogue::MINILM => by_sentences,
            catalogue::SMART_TURN => self.end_of_turn,
            // Nothing needs it, but where it was fetched it is used.
            catalogue::WHISPER_BASE => self.asr_second_model == Some(self.models_dir.join(super::SECOND_MODEL)),
            _ => entry.needed,
        };
        CATALOGUE.iter().filter(|entry| is_wanted(entry)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check;

    fn by(text: &str) -> RouterBy {
        check(&format!("[router]\n{text}\n"), "x.toml").unwrap_or_else(|problems| panic!("{problems:?}")).router_by
    }

    const MODEL: &str = "model = { kind = \"chat_completions\", base_url = \"http://127.0.0.1:1/v1\", model = \"m\" }";

    #[test]
    fn who_chooses_is_named_or_follows_from_the_model() {
        assert_eq!(by(""), RouterBy::Words);
        assert_eq!(by("by = \"sentences\""), RouterBy::Sentences { wait_ms: 80 });
        assert!(matches!(by(MODEL), RouterBy::Model(_)));
        assert!(matches!(by(&format!("by = \"model\"\n{MODEL}")), RouterBy::Model(_)));
        // One word turns a model off again.
        assert_eq!(by(&format!("by = \"words\"\n{MODEL}")), RouterBy::Words);
        let longer = by(&format!("{MODEL}\nby = \"sentences\"\nsentences_ms = 500"));
        assert_eq!(longer, RouterBy::Sentences { wait_ms: 500 });
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, words) in [
            ("by = \"meaning\"", "expected one of `words`, `sentences`, `model`"),
            ("by = \"model\"", "`router.model` names no model"),
            ("tools = 0", "between 1 and 10000"),
            ("sentences_ms = 1", "between 10 and 5000"),
        ] {
            let problems = check(&format!("[router]\n{text}\n"), "x.toml").unwrap_err();
            assert!(problems[0].line == 2 && problems[0].what.contains(words), "{problems:?}");
        }
    }

    #[test]
    fn models_are_wanted_by_what_uses_them() {
        let ids = |text: &str| {
            let config = check(text, "x.toml").unwrap();
            config.models_wanted().iter().map(|entry| entry.id).collect::<Vec<_>>()
        };
        let always = [catalogue::WHISPER_TINY_EN, catalogue::SILERO, catalogue::HIBARI];
        // Whatever is fetched on this machine.
        let alone = "[hearing]\nsecond_model = \"\"\n";
        assert_eq!(ids(alone), always);
        let with = |more: &'static str| [&always[..], &[more]].concat();
        assert_eq!(ids(&format!("{alone}[router]\nby = \"sentences\"\n")), with(catalogue::MINILM));
        assert_eq!(ids(&format!("{alone}end_of_turn = true\n")), with(catalogue::SMART_TURN));
        let second = "models_dir = \"/x\"\n[hearing]\nsecond_model = ";
        assert!(ids(&format!("{second}\"/x/whisper-base.bin\"\n")).contains(&catalogue::WHISPER_BASE));
        assert_eq!(ids(&format!("{second}\"/x/own.bin\"\n")), always);
    }
}
