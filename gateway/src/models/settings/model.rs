//! A checked model section: `[model]`, or a `[[fallback]]`.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use chat_models::{
    keyring,
    kinds::{Kind, Settings},
};

use super::{
    oauth::{self, OAuth},
    options::{self, Place, Read},
    raw::{ModelKind, OFFLINE, RawModel},
};
use crate::problems::{Problems, listed};

/// The kind of model.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// The embedded intent engine.
    Offline,
    /// A server, through the adapter of its kind.
    Provider(Box<ProviderConfig>),
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offline => f.write_str("offline engine"),
            Self::Provider(config) => write!(f, "{} {} at {}", config.kind.name(), config.model, config.base_url),
        }
    }
}

/// A model at a provider's HTTP API.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderConfig {
    /// The protocol that it speaks.
    pub kind: Kind,
    /// The URL before the protocol's own path.
    pub base_url: String,
    /// The provider's model name.
    pub model: String,
    /// Whether it gets tools.
    pub tools: bool,
    /// Whether it gets pictures.
    pub images: bool,
    /// Whether the offline engine answers the commands that it understands, before the model is asked.
    pub commands_offline: bool,
    /// Source of its key.
    pub key: KeySource,
    /// Folder of stored logins.
    pub keyring: PathBuf,
    /// The login flow, if it is more than a key.
    pub oauth: Option<OAuth>,
    /// Additional headers.
    pub headers: Headers,
    /// Options of its provider.
    pub settings: Settings,
}

/// Source of a provider's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// No key is required.
    None,
    /// An environment variable.
    Env(String),
    /// The content of this file.
    File(PathBuf),
    /// The keyring entry of this name, written by `lorgnette login`.
    Login(String),
}

/// Headers that may contain secrets: their values are not printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(pub BTreeMap<String, String>);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl RawModel {
    /// Checks a section; `data_dir` contains the keyring.
    pub(super) fn check(&self, problems: &mut Problems<'_>, place: Place, data_dir: &Path) -> Option<Model> {
        match *self.kind.get_ref() {
            ModelKind::Offline => {
                self.check_offline(problems, place);
                Some(Model::Offline)
            }
            ModelKind::Provider(kind) => {
                let config = self.check_provider(problems, place, kind, data_dir)?;
                Some(Model::Provider(Box::new(config)))
            }
        }
    }

    fn check_offline(&self, problems: &mut Problems<'_>, place: Place) {
        options::known(problems, place, ModelKind::Offline);
        if let Some(url) = &self.base_url {
            let names = listed(Kind::ALL.iter().map(|kind| kind.name()));
            let what = format!(
                "`kind = \"{OFFLINE}\"` asks no server: write what speaks there ({names}; docs/models.md), or take \
                 `base_url` away"
            );
            problems.at(url.span(), what);
        }
    }

    fn check_provider(
        &self,
        problems: &mut Problems<'_>,
        place: Place,
        kind: Kind,
        data_dir: &Path,
    ) -> Option<ProviderConfig> {
        let Read { settings, wants_login } = options::read(problems, place, kind)?;
        let home = settings.section().base_url();
        let given = self.base_url.as_ref().map(|url| url.get_ref().as_str()).filter(|url| !url.is_empty());
        let Some(base_url) = given.or(home).filter(|_| !self.model.is_empty()) else {
            let name = kind.name();
            let what = match home {
                Some(_) => format!("`kind = \"{name}\"` needs `model`"),
                None => {
                    format!("`kind = \"{name}\"` needs `base_url` (such as http://127.0.0.1:11434/v1) and `model`")
                }
            };
            problems.at(self.kind.span(), what);
            return None;
        };
        if let Some(url) = self.base_url.as_ref().filter(|_| !is_http(base_url)) {
            problems.at(url.span(), "`base_url` must begin with http:// or https:// and name a host");
        }
        if let Some((option, span)) = wants_login.filter(|_| self.login.is_none()) {
            problems.at(span, format!("a `{option}` needs `login`, and the section `oauth` that says how to log in"));
            return None;
        }
        let key = self.key(problems, kind, given.is_none());
        Some(ProviderConfig {
            kind,
            base_url: base_url.to_owned(),
            model: self.model.clone(),
            tools: self.tools,
            images: self.images,
            commands_offline: self.commands_offline,
            key: key?,
            keyring: data_dir.join("credentials"),
            oauth: self.oauth.as_ref().map(|oauth| oauth::check(problems, oauth)),
            headers: Headers(self.headers.clone()),
            settings,
        })
    }

    /// `public`: the provider's own address, which requires a key.
    fn key(&self, problems: &mut Problems<'_>, kind: Kind, public: bool) -> Option<KeySource> {
        let mut keys = Vec::new();
        keys.extend(self.key_env.clone().map(KeySource::Env));
        keys.extend(self.key_file.clone().map(KeySource::File));
        if let Some(login) = &self.login {
            if !keyring::is_name(login.get_ref()) {
                let what = "`login` is the name of what you log in to: lower-case letters, digits, '-' and '_'";
                problems.at(login.span(), what);
                return None;
            }
            keys.push(KeySource::Login(login.get_ref().clone()));
        }
        match (keys.pop(), keys.is_empty()) {
            (Some(key), true) => Some(key),
            (None, _) if !public => Some(KeySource::None),
            (None, _) => {
                let name = kind.name();
                let what =
                    format!("`kind = \"{name}\"` at its public address needs one of `key_env`, `key_file` and `login`");
                problems.at(self.kind.span(), what);
                None
            }
            (Some(_), false) => {
                problems.at(self.kind.span(), "only one of `key_env`, `key_file` and `login` can hold the key");
                None
            }
        }
    }
}

fn is_http(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['/', '?', ':']))
}

#[cfg(test)]
mod tests {
    use chat_models::{anthropic, gemini, responses};

    use super::*;
    use crate::config::check;

    fn provider(text: &str) -> ProviderConfig {
        let mut config = check(text, "x.toml").unwrap_or_else(|problems| panic!("{problems:?}"));
        let Model::Provider(provider) = config.models.chain.remove(0) else { panic!("a provider") };
        *provider
    }

    #[test]
    fn every_kind_knows_its_home() {
        let cases = [
            ("kind = \"responses\"", responses::BASE_URL),
            ("kind = \"anthropic\"", anthropic::BASE_URL),
            ("kind = \"gemini\"", gemini::BASE_URL),
            ("kind = \"chat_completions\"\nbase_url = \"http://127.0.0.1:1/v1\"", "http://127.0.0.1:1/v1"),
            ("kind = \"gemini\"\nflavour = \"cloud_code\"\nlogin = \"g\"", gemini::CLOUD_CODE_URL),
            ("kind = \"responses\"\nflavour = \"chatgpt\"\nlogin = \"c\"", responses::CHATGPT_URL),
        ];
        for (text, url) in cases {
            let key = if text.contains("login") { "" } else { "key_env = \"K\"" };
            assert_eq!(provider(&format!("[model]\n{text}\nmodel = \"m\"\n{key}\n")).base_url, url);
        }
    }

    #[test]
    fn keys_are_where_they_are_said_to_be() {
        let at_home = "[model]\nkind = \"chat_completions\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n";
        assert_eq!(provider(at_home).key, KeySource::None);
        assert_eq!(provider(&format!("{at_home}login = \"box\"\n")).key, KeySource::Login("box".into()));
        assert_eq!(provider(&format!("{at_home}key_file = \"/k\"\n")).key, KeySource::File("/k".into()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let cases = [
            ("[model]\nkind = \"chat_completions\"\n", 2, "base_url"),
            ("[model]\nkind = \"anthropic\"\nkey_env = \"K\"\n", 2, "needs `model`"),
            ("[model]\nkind = \"gemini\"\nmodel = \"m\"\n", 2, "one of `key_env`"),
            ("[model]\nkind = \"gemini\"\nmodel = \"m\"\nkey_env = \"K\"\nlogin = \"g\"\n", 2, "only one of"),
            ("[model]\nkind = \"gemini\"\nmodel = \"m\"\nlogin = \"../x\"\n", 4, "lower-case"),
            ("[model]\nkind = \"gemini\"\nmodel = \"m\"\nflavour = \"chatgpt\"\nlogin = \"g\"\n", 4, "responses"),
            ("[model]\nkind = \"gemini\"\nmodel = \"m\"\nflavour = \"cloud_code\"\nkey_env = \"K\"\n", 4, "login"),
            ("[model]\nkind = \"gemini\"\nmodel = \"m\"\nkey_env = \"K\"\ntemperature = 3.0\n", 5, "temperature"),
            (
                "[model]\nkind = \"anthropic\"\nmodel = \"m\"\nkey_env = \"K\"\nthinking_tokens = 1\n",
                5,
                "thinking_tokens",
            ),
            ("[model]\nkind = \"responses\"\nmodel = \"m\"\nkey_env = \"K\"\nbase_url = \"host/v1\"\n", 5, "http://"),
            ("[model]\nkind = \"claude\"\n", 2, "unknown variant"),
            (
                "[model]\nkind = \"responses\"\nmodel = \"m\"\nlogin = \"c\"\n[model.oauth]\nclient_id = \"x\"\ntoken_url = \"https://t\"\n",
                5,
                "authorize_url",
            ),
            ("[[fallback]]\nkind = \"gemini\"\nmodel = \"m\"\n", 2, "one of `key_env`"),
        ];
        for (text, line, word) in cases {
            let problems = check(text, "x.toml").unwrap_err();
            assert_eq!(problems[0].line, Some(line), "{text}: {problems:?}");
            assert!(problems[0].what.contains(word), "{text}: {problems:?}");
        }
    }

    #[test]
    fn the_examples_of_the_page_are_valid() {
        let page = include_str!("../../../../docs/models.md");
        let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        let sections: Vec<&str> = blocks.filter(|block| block.contains("[model]")).collect();
        assert!(sections.len() >= 2, "{}", sections.len());
        for section in sections {
            provider(section);
        }
    }

    #[test]
    fn header_values_are_not_shown() {
        let text = "[model]\nkind = \"gemini\"\nmodel = \"m\"\nkey_env = \"K\"\nheaders = { x-secret = \"planted\" }\n";
        let shown = format!("{:?}", provider(text));
        assert!(shown.contains("x-secret") && !shown.contains("planted"), "{shown}");
    }
}
