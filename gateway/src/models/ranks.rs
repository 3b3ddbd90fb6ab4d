//! All models that may answer, best first.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use chat_models::ChatModel;

use crate::{config, models};

/// The models by their rank.
pub type Ranks = Arc<[Arc<dyn ChatModel>]>;

/// Sets them up as the configuration says.
///
/// # Errors
/// A key cannot be read, or an address is wrong.
pub(crate) fn set_up(ranks: &config::Ranks, selection: &models::ToolSelection) -> Result<Ranks> {
    let model = |(rank, model)| {
        models::chat_model(model, selection).with_context(|| match rank {
            0 => "`[model]`".to_owned(),
            rank => format!("`[[fallback]]` number {rank}"),
        })
    };
    ranks.models.iter().enumerate().map(model).collect()
}
