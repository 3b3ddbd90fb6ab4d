//! Tool selection for a request by more than words: by a model or by sentence embeddings.

mod model;
pub(crate) mod selecting;
mod sentences;

use std::sync::Arc;

use chat_models::ChatModel;
use tools::{
    registry::Specs,
    router::{Choice, Query, Router},
};

use self::model::ByModel;
pub(crate) use self::sentences::BySentences;

/// The selector. If it fails, the router selects by words, or all tools are offered.
pub(crate) enum ToolSelector {
    /// A cheap model.
    Model(ByModel),
    /// Sentence embeddings.
    Sentences(Arc<BySentences>),
}

impl ToolSelector {
    /// Selection by this model.
    pub(crate) fn model(model: Arc<dyn ChatModel>) -> Self {
        Self::Model(ByModel::new(model))
    }

    /// The tools to offer, at most `tools_max`.
    pub(crate) async fn choose(&self, router: &Router, tools: &Specs, said: &Query, tools_max: usize) -> Choice {
        match self {
            Self::Model(model) => model.choose(router, tools, said, tools_max).await,
            Self::Sentences(sentences) => sentences.choose(router, tools, said, tools_max).await,
        }
    }
}
