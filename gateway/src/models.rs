//! Which chat model answers.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use chat_models::ChatModel;

/// A model behind an OpenAI-compatible server.
///
/// # Errors
/// The key cannot be read.
pub fn chat_completions(
    _base_url: &str,
    _model: &str,
    key_env: Option<&str>,
    key_file: Option<&Path>,
) -> Result<Arc<dyn ChatModel>> {
    let _key = key(key_env, key_file)?;
    anyhow::bail!("not yet")
}

fn key(variable: Option<&str>, file: Option<&Path>) -> Result<Option<String>> {
    if let Some(name) = variable {
        let key = std::env::var(name)
            .with_context(|| format!("the variable {name} (`model.key_env`) is not set"))?;
        return Ok(Some(key));
    }
    let Some(path) = file else { return Ok(None) };
    let key = std::fs::read_to_string(path)
        .with_context(|| format!("reading {} (`model.key_file`)", path.display()))?;
    Ok(Some(key.trim().to_owned()))
}
