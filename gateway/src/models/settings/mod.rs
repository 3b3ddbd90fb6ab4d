//! The sections of models: `[model]`, `[[fallback]]`, `[budgets]` and `[router]`.

mod model;
mod oauth;
mod options;
mod raw;
mod router;
mod routing;

pub(crate) use model::{KeySource, Model, ProviderConfig};
pub(crate) use oauth::OAuth;
pub(crate) use raw::RawModel;
pub(crate) use router::RawRouter;
pub(crate) use router::{RouterBy, SelectionSettings};
pub(crate) use routing::{RawBudgets, RawRouting};

/// Which models answer, and how tools are chosen for them.
#[derive(Clone, Debug)]
pub struct Models {
    /// How each is reached: the best first, then those that are asked in its place.
    pub chain: Vec<Model>,
    /// How the tools of a request are chosen.
    pub tools: SelectionSettings,
}
