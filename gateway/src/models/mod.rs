//! Sets up the configured chat models.

pub(crate) mod chain;
pub(crate) mod metered;
pub(crate) mod settings;
pub mod spending;
pub(crate) mod tool_selection;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use chat_models::{
    ChatModel, auth,
    commands_first::CommandsFirst,
    http::{Credentials, Endpoint, Http, KeyHeader},
    intents,
    keyring::Keyring,
    oauth::{Flow, HeaderStyle, Login},
    settings::Common,
};
use tools::router::Router;

use self::{
    metered::{Metered, Meters, OFFLINE, SELECTING},
    settings::{CodeSettings, KeySource, Model, OAuth, ProviderConfig, RouterBy, SelectionSettings},
    tool_selection::{BySentences, ToolSelector, selecting::SelectingModel},
};
use crate::environment;

/// Sets up one configured model.
///
/// # Errors
/// Its key cannot be read, or its address is wrong.
pub(crate) fn chat_model(model: &Model, rank: usize, selection: &ToolSelection) -> Result<Arc<dyn ChatModel>> {
    let offline = || selection.meters.of(OFFLINE);
    let Model::Provider(config) = model else {
        let engine = Arc::new(intents::Engine::sharing(selection.grammars.clone()));
        return Ok(Arc::new(Metered::engine(engine, offline())));
    };
    // Inside the offline commands, which need the phrases of all tools.
    let ToolSelection { router, selector, grammars, code, meters } = selection.clone();
    let model = Arc::new(Metered::served(served(config)?, meters.of(&metered::name_of(rank))));
    let model = SelectingModel::new(model, router, selector, code.of(&config.base_url));
    let model = Arc::new(model);
    Ok(if config.commands_offline {
        let model = CommandsFirst::with_engine(intents::Engine::sharing(grammars), model);
        Arc::new(Metered::on_box(Arc::new(model), offline()))
    } else {
        model
    })
}

/// Tool selection for requests, with the state that all models share.
#[derive(Clone)]
pub(crate) struct ToolSelection {
    router: Arc<Router>,
    selector: Option<Arc<ToolSelector>>,
    grammars: intents::Grammars,
    code: CodeSettings,
    meters: Meters,
}

impl ToolSelection {
    /// From the configuration; `sentences`: the sentence embeddings, if they select. The models count under their names.
    ///
    /// # Errors
    /// The key of the selecting model cannot be read, or its address is wrong.
    pub(crate) fn new(
        settings: &SelectionSettings,
        code: CodeSettings,
        sentences: Option<Arc<BySentences>>,
        meters: &Meters,
    ) -> Result<Self> {
        let model = match &settings.by {
            RouterBy::Model(Model::Provider(config)) => Some(served(config).context("`router.model`")?),
            RouterBy::Model(Model::Offline) | RouterBy::Sentences { .. } | RouterBy::Words => None,
        };
        let model = model.map(|model| Arc::new(Metered::served(model, meters.of(SELECTING))));
        let selector = model.map(|model| ToolSelector::model(model)).or(sentences.map(ToolSelector::Sentences));
        let (router, grammars) = (Arc::new(Router::new(settings.router)), intents::Grammars::default());
        Ok(Self { router, selector: selector.map(Arc::new), grammars, code, meters: meters.clone() })
    }
}

/// The model at its provider's server, without wrappers.
fn served(config: &ProviderConfig) -> Result<Arc<dyn ChatModel>> {
    // Only the first call in a process counts.
    drop(rustls::crypto::ring::default_provider().install_default());
    let section = config.settings.section();
    let mut endpoint = Endpoint::new(section.address(&config.base_url));
    endpoint.credentials = credentials(config)?;
    endpoint.headers = headers(config)?;
    let common = Common { model: &config.model, tools: config.tools, images: config.images };
    Ok(Arc::new(Http::new(endpoint, section.provider(common))?))
}

/// Checks that the files with a model's key are usable. Variables and logins are not checked: a variable belongs to the
/// gateway's process, and a login may still follow.
///
/// # Errors
/// A file is missing, contains no key, or is readable by others.
pub(crate) fn check_key(model: &Model) -> Result<()> {
    let Model::Provider(config) = model else {
        return Ok(());
    };
    match &config.key {
        KeySource::File(path) => auth::Key::from_file(path).map(drop).context("`key_file`"),
        KeySource::Login(name) => Keyring::new(&config.keyring).get(name).map(drop).context("`login`"),
        KeySource::None | KeySource::Env(_) => Ok(()),
    }
}

/// The login flow of a model, if it has one.
///
/// # Errors
/// The client's secret is not in its variable.
pub(crate) fn flow(oauth: &OAuth) -> Result<Flow> {
    let client_secret = match &oauth.client_secret_env {
        Some(variable) => {
            Some(auth::Key::from_env(variable, environment::variable).context("`oauth.client_secret_env`")?)
        }
        None => None,
    };
    Ok(Flow {
        client_id: oauth.client_id.clone(),
        client_secret,
        authorize_url: oauth.authorize_url.clone(),
        device_url: oauth.device_url.clone(),
        token_url: oauth.token_url.clone(),
        scopes: oauth.scopes.clone(),
        redirect: (oauth.redirect_port, oauth.redirect_path.clone()),
        json: oauth.json,
        extra: oauth.extra.clone().into_iter().collect(),
    })
}

fn credentials(config: &ProviderConfig) -> Result<Option<Arc<dyn Credentials>>> {
    let style = config.settings.section().key_style();
    let key = match &config.key {
        KeySource::None => return Ok(None),
        KeySource::Env(variable) => auth::Key::from_env(variable, environment::variable).context("`key_env`")?,
        KeySource::File(path) => auth::Key::from_file(path).context("`key_file`")?,
        KeySource::Login(name) => {
            let flow = config.oauth.as_ref().map(flow).transpose()?;
            let keyring = Keyring::new(&config.keyring);
            return Ok(Some(Arc::new(Login::new(name, keyring, flow, style))));
        }
    };
    Ok(Some(Arc::new(match style {
        HeaderStyle::Bearer => KeyHeader::bearer(key),
        HeaderStyle::Named(name) => KeyHeader::named(name, key),
    })))
}

/// The operator's headers take precedence over those of an envelope.
fn headers(config: &ProviderConfig) -> Result<Vec<(String, String)>> {
    let own = config.settings.section().headers().map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    let given = &config.headers.0;
    let own = own.into_iter().filter(|(name, _)| !given.keys().any(|other| other.eq_ignore_ascii_case(name)));
    Ok(own.map(|(name, value)| (name.to_owned(), value)).chain(given.clone()).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::config::check;

    fn model(text: &str) -> Model {
        let text = format!("[model]\nmodel = \"m\"\n{text}\n");
        let mut config = check(&text, "x.toml").unwrap_or_else(|problems| panic!("{problems:?}"));
        config.models.chain.remove(0)
    }

    fn selection() -> ToolSelection {
        let settings = SelectionSettings { router: tools::router::Config::default(), by: RouterBy::Words };
        ToolSelection::new(&settings, CodeSettings::default(), None, &Meters::default()).unwrap()
    }

    #[test]
    fn every_kind_can_be_set_up() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        std::fs::write(&key, "sk-planted").unwrap();
        let set = |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o644);
        let open = model(&format!("kind = \"gemini\"\nkey_file = {key:?}"));
        for error in [chat_model(&open, 0, &selection()).err().unwrap(), check_key(&open).unwrap_err()] {
            let error = format!("{error:#}");
            assert!(error.contains("`key_file`") && error.contains("chmod 600"), "{error}");
            assert!(!error.contains("planted"), "{error}");
        }
        set(0o600);
        check_key(&open).unwrap();
        for kind in ["responses", "anthropic", "gemini"] {
            let model = model(&format!("kind = \"{kind}\"\nkey_file = {key:?}"));
            assert_eq!(chat_model(&model, 0, &selection()).unwrap().name(), "m");
        }
        for flavour in ["kind = \"gemini\"\nflavour = \"cloud_code\"", "kind = \"responses\"\nflavour = \"chatgpt\""] {
            let oauth = "[model.oauth]\nclient_id = \"x\"\ntoken_url = \"https://t.example\"\ndevice_url = \"https://d.example\"";
            let model = model(&format!("{flavour}\nlogin = \"x\"\n{oauth}"));
            assert!(chat_model(&model, 0, &selection()).is_ok());
        }
        let missing = model("kind = \"gemini\"\nkey_file = \"/nonexistent\"");
        let error = format!("{:#}", chat_model(&missing, 0, &selection()).err().unwrap());
        assert!(error.contains("key_file") && error.contains("/nonexistent"), "{error}");
    }

    #[test]
    fn an_operators_header_wins() {
        let text = "kind = \"responses\"\nflavour = \"chatgpt\"\nlogin = \"c\"\naccount = \"a-1\"\n\
                    headers = { Originator = \"mine\" }";
        let Model::Provider(config) = model(text) else { panic!("a provider") };
        let headers = headers(&config).unwrap();
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["openai-beta", "session_id", "chatgpt-account-id", "Originator"]);
    }
}
