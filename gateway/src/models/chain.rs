//! The fallback chain: all models that may answer, best first.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use chat_models::ChatModel;

use super::{
    ToolSelection, chat_model,
    metered::Meters,
    settings::{Model, Models},
    tool_selection::BySentences,
};

/// The models by rank: if one fails, the core asks for the next.
pub(crate) type ModelChain = Arc<[Arc<dyn ChatModel>]>;

/// Sets up the configured models with their keys, and what selects tools for them. They count under their names.
///
/// # Errors
/// A key cannot be read, or an address or a header is wrong.
pub(crate) fn set_up(models: &Models, sentences: Option<Arc<BySentences>>, meters: &Meters) -> Result<ModelChain> {
    let selection = ToolSelection::new(&models.tools, models.code.clone(), sentences, meters)?;
    let model = |(rank, model): (usize, &Model)| {
        chat_model(model, rank, &selection).with_context(|| match rank {
            0 => "`[model]`".to_owned(),
            rank => format!("`[[fallback]]` number {rank}"),
        })
    };
    models.chain.iter().enumerate().map(model).collect()
}
