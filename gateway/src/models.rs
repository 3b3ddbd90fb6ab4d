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

use crate::{chooser::Chooser, config::Model, routed::Routed};

/// The model that the configuration names.
///
/// # Errors
/// Its key cannot be read, or its address is wrong.
pub(crate) fn chat_model(model: &Model, choosing: &Choosing) -> Result<Arc<dyn ChatModel>> {
    let Model::ChatCompletions { commands_offline, .. } = model else {
        return Ok(Arc::new(intents::Engine::new()));
    };
    // Inside the commands: those need the phrases of all tools.
    let Choosing { router, chooser } = choosing.clone();
    let model = Arc::new(Routed::new(provider(model)?, router, chooser));
    Ok(if *commands_offline { Arc::new(CommandsFirst::new(model)) } else { model })
}

/// How tools are chosen for each request.
#[derive(Clone)]
pub(crate) struct Choosing {
    router: Arc<Router>,
    chooser: Option<Arc<Chooser>>,
}

impl Choosing {
    /// As the configuration says.
    ///
    /// # Errors
    /// The key of the model that chooses cannot be read, or its address is wrong.
    pub(crate) fn new(router: tools::router::Config, model: Option<&Model>) -> Result<Self> {
        let model = model.map(provider).transpose().context("`router.model`")?;
        Ok(Self { router: Arc::new(Router::new(router)), chooser: model.map(|model| Arc::new(Chooser::new(model))) })
    }
}

/// The model itself, with nothing in front of it.
fn provider(model: &Model) -> Result<Arc<dyn ChatModel>> {
    let Model::ChatCompletions { base_url, model, tools, key_env, key_file, .. } = model else {
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
    Ok(Arc::new(Http::new(endpoint, Arc::new(ChatCompletions::new(options)))?))
}
