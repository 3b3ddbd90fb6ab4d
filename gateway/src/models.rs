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
    chooser::{BySentences, Chooser},
    config::{Flavour, Model, ModelKey, ModelKind, OAuth, Remote, RouterBy},
    routed::Routed,
};

/// The model that the configuration names.
///
/// # Errors
/// Its key cannot be read, or its address is wrong.
pub(crate) fn chat_model(model: &Model, choosing: &Choosing) -> Result<Arc<dyn ChatModel>> {
    let Model::Remote(remote) = model else {
        return Ok(Arc::new(intents::Engine::sharing(choosing.grammars.clone())));
    };
    // Inside the commands: those need the phrases of all tools.
    let Choosing { router, chooser, grammars } = choosing.clone();
    let model = Arc::new(Routed::new(served(remote)?, router, chooser));
    Ok(if remote.commands_offline {
        Arc::new(CommandsFirst::with_engine(intents::Engine::sharing(grammars), model))
    } else {
        model
    })
}

/// How tools are chosen for each request, and what all models share of them.
#[derive(Clone)]
pub(crate) struct Choosing {
    router: Arc<Router>,
    chooser: Option<Arc<Chooser>>,
    grammars: intents::Grammars,
}

impl Choosing {
    /// As the configuration says; with `sentences`, those choose.
    ///
    /// # Errors
    /// The key of the model that chooses cannot be read, or its address is wrong.
    pub(crate) fn new(
        router: tools::router::Config,
        by: &RouterBy,
        sentences: Option<Arc<BySentences>>,
    ) -> Result<Self> {
        let model = match by {
            RouterBy::Model(Model::Remote(remote)) => Some(served(remote).context("`router.model`")?),
            RouterBy::Model(Model::Offline) | RouterBy::Sentences { .. } | RouterBy::Words => None,
        };
        let chooser = model.map(Chooser::model).or(sentences.map(Chooser::Sentences));
        let (router, grammars) = (Arc::new(Router::new(router)), intents::Grammars::default());
        Ok(Self { router, chooser: chooser.map(Arc::new), grammars })
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

/// Whether the files that hold a model's key can be used. A variable belongs to the gateway's process, and somebody may
/// still log in: neither is looked at.
///
/// # Errors
/// A file is missing, holds no key, or others may read it.
pub(crate) fn check_key(model: &Model) -> Result<()> {
    let Model::Remote(remote) = model else {
        return Ok(());
    };
    match &remote.key {
        ModelKey::File(path) => auth::Key::from_file(path).map(drop).context("`key_file`"),
        ModelKey::Login(name) => Keyring::new(&remote.keyring).get(name).map(drop).context("`login`"),
        ModelKey::None | ModelKey::Env(_) => Ok(()),
    }
}

/// How to log in to a model, where it has more than a key.
///
/// # Errors
/// The client's secret is not in its variable.
pub(crate) fn flow(oauth: &OAuth) -> Result<Flow> {
    let client_secret = match &oauth.client_secret_env {
        Some(variable) => Some(auth::Key::from_env(variable).context("`oauth.client_secret_env`")?),
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

/// Azure wants its version in the query of every request.
fn base_url(remote: &Remote) -> String {
    match &remote.api_version {
        Some(version) => {
            let joint = if remote.base_url.contains('?') { '&' } else { '?' };
            let pair = form_urlencoded::Serializer::new(String::new()).append_pair("api-version", version).finish();
            format!("{}{joint}{pair}", remote.base_url)
        }
        None => remote.base_url.clone(),
    }
}

fn style(remote: &Remote) -> HeaderStyle {
    match remote.kind {
        ModelKind::Anthropic => HeaderStyle::Named(anthropic::KEY_HEADER),
        ModelKind::Gemini => HeaderStyle::Named(gemini::KEY_HEADER),
        _ if remote.azure => HeaderStyle::Named("api-key"),
        _ => HeaderStyle::Bearer,
    }
}

fn credentials(remote: &Remote) -> Result<Option<Arc<dyn Credentials>>> {
    let key = match &remote.key {
        ModelKey::None => return Ok(None),
        ModelKey::Env(variable) => auth::Key::from_env(variable).context("`key_env`")?,
        ModelKey::File(path) => auth::Key::from_file(path).context("`key_file`")?,
        ModelKey::Login(name) => {
            let flow = remote.oauth.as_ref().map(flow).transpose()?;
            let keyring = Keyring::new(&remote.keyring);
            return Ok(Some(Arc::new(Login::new(name, keyring, flow, style(remote)))));
        }
    };
    Ok(Some(Arc::new(match style(remote) {
        HeaderStyle::Bearer => KeyHeader::bearer(key),
        HeaderStyle::Named(name) => KeyHeader::named(name, key),
    })))
}

/// The operator's headers win over those of an envelope.
fn headers(remote: &Remote) -> Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    if remote.flavour == Some(Flavour::Chatgpt) {
        headers.push(("openai-beta".to_owned(), "responses=experimental".to_owned()));
        headers.push(("originator".to_owned(), "lorgnette".to_owned()));
        headers.push(("session_id".to_owned(), random_id()?));
        headers.extend(remote.account.clone().map(|account| ("chatgpt-account-id".to_owned(), account)));
    }
    let given = &remote.headers.0;
    headers.retain(|(name, _)| !given.keys().any(|own| own.eq_ignore_ascii_case(name)));
    headers.extend(given.clone());
    Ok(headers)
}

/// One of this process's own, in the form of a UUID.
fn random_id() -> Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    let number = u128::from_be_bytes(bytes);
    let (a, b, c) = (number >> 96, (number >> 80) & 0xffff, (number >> 64) & 0xfff);
    let (d, e) = ((number >> 48) & 0xfff, number & 0xffff_ffff_ffff);
    Ok(format!("{a:08x}-{b:04x}-4{c:03x}-a{d:03x}-{e:012x}"))
}

fn provider(remote: &Remote) -> Arc<dyn Provider> {
    match remote.kind {
        // Offline models are no providers, and never come here.
        ModelKind::Offline | ModelKind::ChatCompletions => {
            let mut options = chat_completions::Options::new(&remote.model);
            options.temperature = remote.temperature;
            options.tools = remote.tools;
            options.images = remote.images;
            options.extra = with_max_tokens(remote, &options.max_tokens_field);
            if let Some(effort) = &remote.reasoning_effort {
                options.extra.insert("reasoning_effort".into(), effort.clone().into());
            }
            Arc::new(ChatCompletions::new(options))
        }
        ModelKind::Responses => {
            let chatgpt = remote.flavour == Some(Flavour::Chatgpt);
            let mut options = responses::Options::new(&remote.model);
            options.temperature = remote.temperature;
            options.reasoning_effort = remote.reasoning_effort.clone();
            options.tools = remote.tools;
            options.images = remote.images;
            options.serial_follow_ups = chatgpt;
            options.length = !chatgpt;
            options.extra = if chatgpt { remote.extra.clone() } else { with_max_tokens(remote, "max_output_tokens") };
            Arc::new(Responses::new(options))
        }
        ModelKind::Anthropic => {
            let mut options = anthropic::Options::new(&remote.model);
            options.temperature = remote.temperature;
            options.max_tokens = remote.max_tokens.unwrap_or(options.max_tokens);
            options.thinking_tokens = remote.thinking_tokens;
            options.tools = remote.tools;
            options.images = remote.images;
            options.extra = remote.extra.clone();
            if remote.flavour == Some(Flavour::ClaudeCode) {
                options.flavour = anthropic::Flavour::ClaudeCode {
                    beta: remote.beta.clone().unwrap_or_else(|| anthropic::OAUTH_BETA.to_owned()),
                    system: remote.system_first.clone(),
                    user_id: remote.account.clone(),
                };
            }
            Arc::new(Anthropic::new(options))
        }
        ModelKind::Gemini => {
            let mut options = gemini::Options::new(&remote.model);
            options.temperature = remote.temperature;
            options.max_tokens = remote.max_tokens;
            options.thinking_tokens = remote.thinking_tokens;
            options.tools = remote.tools;
            options.images = remote.images;
            options.extra = remote.extra.clone();
            if remote.flavour == Some(Flavour::CloudCode) {
                options.flavour = gemini::Flavour::CloudCode { project: remote.project.clone() };
            }
            Arc::new(Gemini::new(options))
        }
    }
}

/// A request's own limit is written over this one.
fn with_max_tokens(remote: &Remote, field: &str) -> Map<String, Value> {
    let mut extra = remote.extra.clone();
    if let Some(tokens) = remote.max_tokens {
        extra.entry(field).or_insert_with(|| tokens.into());
    }
    extra
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::config::check;

    fn remote(text: &str) -> Remote {
        let text = format!("[model]\nmodel = \"m\"\n{text}\n");
        let mut checked = check(&text, "x.toml").unwrap_or_else(|problems| panic!("{problems:?}"));
        let Model::Remote(remote) = checked.ranks.models.remove(0) else { panic!("remote") };
        *remote
    }

    fn choosing() -> Choosing {
        Choosing::new(tools::router::Config::default(), &RouterBy::Words, None).unwrap()
    }

    #[test]
    fn every_kind_can_be_set_up() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key");
        std::fs::write(&key, "sk-planted").unwrap();
        let set = |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o644);
        let open = Model::Remote(Box::new(remote(&format!("kind = \"gemini\"\nkey_file = {key:?}"))));
        for error in [chat_model(&open, &choosing()).err().unwrap(), check_key(&open).unwrap_err()] {
            let error = format!("{error:#}");
            assert!(error.contains("`key_file`") && error.contains("chmod 600"), "{error}");
            assert!(!error.contains("planted"), "{error}");
        }
        set(0o600);
        check_key(&open).unwrap();
        for kind in ["responses", "anthropic", "gemini"] {
            let model = Model::Remote(Box::new(remote(&format!("kind = \"{kind}\"\nkey_file = {key:?}"))));
            assert_eq!(chat_model(&model, &choosing()).unwrap().name(), "m");
        }
        for flavour in ["kind = \"gemini\"\nflavour = \"cloud_code\"", "kind = \"responses\"\nflavour = \"chatgpt\""] {
            let oauth = "[model.oauth]\nclient_id = \"x\"\ntoken_url = \"https://t.example\"\ndevice_url = \"https://d.example\"";
            let model = Model::Remote(Box::new(remote(&format!("{flavour}\nlogin = \"x\"\n{oauth}"))));
            assert!(chat_model(&model, &choosing()).is_ok());
        }
        let missing = Model::Remote(Box::new(remote("kind = \"gemini\"\nkey_file = \"/nonexistent\"")));
        let error = format!("{:#}", chat_model(&missing, &choosing()).err().unwrap());
        assert!(error.contains("key_file") && error.contains("/nonexistent"), "{error}");
    }

    #[test]
    fn azure_has_a_query_and_a_header_of_its_own() {
        let azure = remote(
            "kind = \"chat_completions\"\nbase_url = \"https://x.openai.azure.com/openai/deployments/d\"\n\
             azure = true\napi_version = \"2024-10-21\"\nlogin = \"azure\"",
        );
        assert_eq!(base_url(&azure), "https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21");
        assert_eq!(style(&azure), HeaderStyle::Named("api-key"));
    }

    #[test]
    fn an_operators_header_wins() {
        let text = "kind = \"responses\"\nflavour = \"chatgpt\"\nlogin = \"c\"\naccount = \"a-1\"\n\
                    headers = { Originator = \"mine\" }";
        let headers = headers(&remote(text)).unwrap();
        let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["openai-beta", "session_id", "chatgpt-account-id", "Originator"]);
    }
}
