//! The section `[router]`: how tools are selected for a model.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::{
    model::Model,
    options::Place,
    raw::{RawModel, RawPrice},
};
use crate::problems::{Problems, unwritten};

/// How long a request waits for sentence embeddings, in milliseconds: about ten times what one takes on an idle core.
const SENTENCES_MS: u32 = 80;

/// `[router]` as configured.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawRouter {
    tools: Spanned<usize>,
    by: Option<Spanned<Named>>,
    sentences_ms: Spanned<u32>,
    model: Option<RawModel>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Named {
    Words,
    Sentences,
    Model,
}

impl Default for RawRouter {
    fn default() -> Self {
        let tools = unwritten(tools::router::Config::default().picked_max);
        Self { tools, by: None, sentences_ms: unwritten(SENTENCES_MS), model: None }
    }
}

/// By what the tools are chosen that a model is offered.
#[derive(Clone, Debug, PartialEq)]
pub enum RouterBy {
    /// The words of the request.
    Words,
    /// Words and sentence embeddings.
    Sentences {
        /// How long a request waits for the embeddings, in milliseconds.
        wait_ms: u32,
    },
    /// A cheap model.
    Model(Model),
}

/// Tool selection of a request.
#[derive(Clone, Debug)]
pub struct SelectionSettings {
    /// How many tools are offered, and from which scores on.
    pub router: tools::router::Config,
    /// What ranks the tools.
    pub by: RouterBy,
}

impl RawRouter {
    /// Checks the section; `data_dir` contains the keyring of its model.
    pub(crate) fn check(&self, problems: &mut Problems<'_>, data_dir: &Path) -> SelectionSettings {
        let router = tools::router::Config {
            picked_max: problems.between(&self.tools, "router.tools", 1..=10_000),
            ..tools::router::Config::default()
        };
        if let Some(price) = self.model.as_ref().map(|model| &model.price)
            && *price.get_ref() != RawPrice::default()
        {
            let what = "what this model costs is not counted towards [budgets]: leave `price` out";
            problems.at(price.span(), what);
        }
        let model = self.model.as_ref().and_then(|model| model.check(problems, Place::Router, data_dir));
        let model = model.filter(|model| *model != Model::Offline);
        let wait_ms = problems.between(&self.sentences_ms, "router.sentences_ms", 10..=5_000);
        let by = match (self.by.as_ref().map(|by| *by.get_ref()), model) {
            (Some(Named::Sentences), _) => RouterBy::Sentences { wait_ms },
            (Some(Named::Model) | None, Some(model)) => RouterBy::Model(model),
            (Some(Named::Model), None) => {
                let span = self.by.as_ref().map_or(0..0, Spanned::span);
                problems.at(span, "`router.by` is \"model\", but `router.model` names no model behind a server; see [model] for its keys");
                RouterBy::Words
            }
            (Some(Named::Words) | None, _) => RouterBy::Words,
        };
        SelectionSettings { router, by }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check;

    fn by(text: &str) -> RouterBy {
        check(&format!("[router]\n{text}\n"), "x.toml")
            .unwrap_or_else(|problems| panic!("{problems:?}"))
            .models
            .tools
            .by
    }

    const MODEL: &str = "model = { kind = \"chat_completions\", base_url = \"http://127.0.0.1:1/v1\", model = \"m\" }";

    #[test]
    fn who_chooses_is_named_or_follows_from_the_model() {
        assert_eq!(by(""), RouterBy::Words);
        assert_eq!(by("by = \"sentences\""), RouterBy::Sentences { wait_ms: 80 });
        assert!(matches!(by(MODEL), RouterBy::Model(_)));
        assert!(matches!(by(&format!("by = \"model\"\n{MODEL}")), RouterBy::Model(_)));
        // The word is enough to switch a model off again.
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
            ("model.price = { input = 1.0 }", "not counted towards [budgets]"),
            ("sentences_ms = 1", "between 10 and 5000"),
        ] {
            let problems = check(&format!("[router]\n{text}\n"), "x.toml").unwrap_err();
            assert!(problems[0].line == Some(2) && problems[0].what.contains(words), "{problems:?}");
        }
    }
}
