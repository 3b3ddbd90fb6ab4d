//! Which chat model answers.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use chat_models::{
    ChatModel,
    anthropic::{self, Anthropic},
    auth,
    chat_completions::{self, ChatCompletions},
    commands_first::CommandsFirst,
    gemini::{self, Gemini},
    http::{Credentials, Endpoint, Http, KeyHeader},
    intents,
    keyring::Keyring,
    oauth::{Flow, HeaderStyle, Login},
    provider::Provider,
    responses::{self, Responses},
};
use serde_json::{Map, Value};

use tools::router::Router;

use crate::{
    chooser::Chooser,
    config::{Flavour, Model, ModelKey, ModelKind, OAuth, Remote},
    routed::Routed,
};

/// The model that the configuration names.
///
/// # Errors
/// Its key cannot be read, or its address is wrong.
pub(crate) fn chat_model(model: &Model, choosing: &Choosing) -> Result<Arc<dyn ChatModel>> {
    let Model::Remote(remote) = model else {
        return Ok(Arc::new(intents::Engine::new()));
    };
    // Inside the commands: those need the phrases of all tools.
    let Choosing { router, chooser } = choosing.clone();
    let model = Arc::new(Routed::new(served(remote)?, router, chooser));
    Ok(if remote.commands_offline { Arc::new(CommandsFirst::new(model)) } else { model })
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
        let model = match model {
            Some(Model::Remote(remote)) => Some(served(remote).context("`router.model`")?),
            Some(Model::Offline) | None => None,
        };
        Ok(Self { router: Arc::new(Router::new(router)), chooser: model.map(|model| Arc::new(Chooser::new(model))) })
    }
}

/// A model behind its provider's server, with nothing in front of it.
fn served(remote: &Remote) -> Result<Arc<dyn ChatModel>> {
    // Only the first call in a process counts.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut endpoint = Endpoint::new(base_url(remote));
    endpoint.credentials = credentials(remote)?;
    endpoint.headers = headers(remote)?;
    Ok(Arc::new(Http::new(endpoint, provider(remote))?))
}
