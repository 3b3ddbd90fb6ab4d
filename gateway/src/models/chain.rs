//! The fallback chain: all models that may answer, best first.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use chat_models::ChatModel;

use super::{ToolSelection, chat_model, settings::Model};

/// The models by rank: if one fails, the core asks for the next.
pub(crate) type ModelChain = Arc<[Arc<dyn ChatModel>]>;

/// Sets up the models of the configuration.
///
/// # Errors
/// A key cannot be read, or an address is wrong.
pub(crate) fn set_up(chain: &[Model], selection: &ToolSelection) -> Result<ModelChain> {
    let model = |(rank, model)| {
        chat_model(model, rank, selection).with_context(|| match rank {
            0 => "`[model]`".to_owned(),
            rank => format!("`[[fallback]]` number {rank}"),
        })
    };
    chain.iter().enumerate().map(model).collect()
}
