//! The sections of models: `[model]`, `[[fallback]]`, `[budgets]`, `[router]` and `[code]`.

mod code;
mod model;
mod oauth;
mod options;
mod raw;
mod router;
mod routing;

pub(crate) use code::CodeSettings;
pub(crate) use model::{KeySource, Model, ProviderConfig};
pub(crate) use oauth::OAuth;
pub(crate) use raw::RawModel;
pub(crate) use router::RawRouter;
pub(crate) use router::{RouterBy, SelectionSettings};
pub(crate) use routing::{RawBudgets, RawRouting};

/// The models that answer, and tool selection for them.
#[derive(Clone, Debug)]
pub struct Models {
    /// Settings of each model: the best first, then its fallbacks.
    pub chain: Vec<Model>,
    /// Tool selection of a request.
    pub tools: SelectionSettings,
    /// Whether they may write programs.
    pub code: CodeSettings,
}

impl Models {
    /// Those that answer, and the one that selects tools if a model does: all that have a key.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Model> {
        let selecting = match &self.tools.by {
            RouterBy::Model(model) => Some(model),
            RouterBy::Words | RouterBy::Sentences { .. } => None,
        };
        self.chain.iter().chain(selecting)
    }
}
