//! Which chat model answers.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use chat_models::{
    ChatModel,
    auth::Key,
    chat_completions::{ChatCompletions, Options},
    commands_first::CommandsFirst,
    http::{Endpoint, Http, KeyHeader},
    intents,
};

use tools::router::Router;

use crate::{config::Model, routed::Routed};

/// The model that the configuration names.
///
/// # Errors
/// Its key cannot be read, or its address is wrong.
pub(crate) fn chat_model(model: &Model, router: &Arc<Router>) -> Result<Arc<dyn ChatModel>> {
    let Model::ChatCompletions { base_url, model, tools, commands_offline, key_env, key_file } = model else {
        return Ok(Arc::new(intents::Engine::new()));
    };
    // Only the first call in a process counts.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut endpoint = Endpoint::new(base_url);
    let key = match (key_env, key_file) {
        (Some(variable), _) => Some(Key::from_env(variable).context("`model.key_env`")?),
        (None, Some(path)) => Some(Key::from_file(path).context("`model.key_file`")?),
        (None, None) => None,
    };
    endpoint.credentials = key.map(|key| Arc::new(KeyHeader::bearer(key)) as Arc<_>);
    let options = Options { tools: *tools, ..Options::new(model) };
    let model = Arc::new(Http::new(endpoint, Arc::new(ChatCompletions::new(options)))?);
    // Inside the commands: those need the phrases of all tools.
    let model = Arc::new(Routed::new(model, router.clone()));
    Ok(if *commands_offline { Arc::new(CommandsFirst::new(model)) } else { model })
}
