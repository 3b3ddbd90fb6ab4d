//! A model's section, as it is written and as it is used: `[model]`, and each `[[fallback]]`.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use chat_models::{
    keyring,
    kinds::{Kind, Settings},
};
use serde::{Deserialize, Deserializer, de::Error as _};
use toml::Spanned;

use super::{
    Problems,
    budgets::Price,
    options::{Place, Read, listed},
};

/// Who answers, as it is written: the box, or a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelKind {
    /// The embedded intent engine.
    Offline,
    /// What speaks a provider's protocol.
    Provider(Kind),
}

/// As the embedded engine is written.
const OFFLINE: &str = "offline";

impl ModelKind {
    /// As it is written.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Offline => OFFLINE,
            Self::Provider(kind) => kind.name(),
        }
    }

    /// Whether the options of its section may be those of this provider.
    pub(super) fn passes_to(self, kind: Kind) -> bool {
        self == Self::Offline || self == Self::Provider(kind)
    }

    /// What its section may have, beside what every model's has.
    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Offline => &[],
            Self::Provider(kind) => kind.options(),
        }
    }
}

impl<'de> Deserialize<'de> for ModelKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = String::deserialize(deserializer)?;
        if given == OFFLINE {
            return Ok(Self::Offline);
        }
        let known = Kind::ALL.iter().find(|kind| kind.name() == given);
        known.map(|kind| Self::Provider(*kind)).ok_or_else(|| {
            let names = listed([OFFLINE].into_iter().chain(Kind::ALL.iter().map(|kind| kind.name())));
            D::Error::custom(format!("unknown variant `{given}`, expected one of {names}"))
        })
    }
}

/// What every model's section may have, as it is written. Other keys are options of its provider.
#[derive(Debug, Deserialize)]
#[serde(default)]
pub(super) struct Written {
    pub(super) kind: Spanned<ModelKind>,
    base_url: Option<Spanned<String>>,
    model: String,
    tools: bool,
    pub(super) images: bool,
    pub(super) price: Spanned<Price>,
    commands_offline: bool,
    key_env: Option<String>,
    key_file: Option<PathBuf>,
    login: Option<Spanned<String>>,
    headers: BTreeMap<String, String>,
    oauth: Option<Spanned<OAuth>>,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            kind: Spanned::new(0..0, ModelKind::Offline),
            base_url: None,
            model: String::new(),
            tools: true,
            images: false,
            price: Spanned::new(0..0, Price::default()),
            commands_offline: false,
            key_env: None,
            key_file: None,
            login: None,
            headers: BTreeMap::new(),
            oauth: None,
        }
    }
}

/// How to log in: addresses and names, none of them built in.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct OAuth {
    /// Names this program to the provider.
    pub client_id: String,
    /// Variable that holds a secret which some providers want besides.
    #[serde(default)]
    pub client_secret_env: Option<String>,
    /// Where codes and refresh tokens are changed for tokens.
    pub token_url: String,
    /// Where the wearer agrees in a browser.
    #[serde(default)]
    pub authorize_url: Option<String>,
    /// Where a code for another device is got.
    #[serde(default)]
    pub device_url: Option<String>,
    /// What is asked for.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Port that the browser comes back to; 0: any.
    #[serde(default)]
    pub redirect_port: u16,
    /// Path that it comes back to.
    #[serde(default = "redirect_path")]
    pub redirect_path: String,
    /// The token address takes JSON instead of a form.
    #[serde(default)]
    pub json: bool,
    /// Further parameters of the address where the wearer agrees.
    #[serde(default)]
    pub extra: BTreeMap<String, String>,
}

fn redirect_path() -> String {
    "/callback".to_owned()
}

/// Who answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// The embedded intent engine.
    Offline,
    /// A provider.
    Remote(Box<Remote>),
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offline => f.write_str("offline engine"),
            Self::Remote(remote) => write!(f, "{} {} at {}", remote.kind.name(), remote.model, remote.base_url),
        }
    }
}

/// A model behind HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct Remote {
    /// Its protocol.
    pub kind: Kind,
    /// Everything before the protocol's own path.
    pub base_url: String,
    /// The provider's name of the model.
    pub model: String,
    /// Whether it is offered tools.
    pub tools: bool,
    /// Whether it is shown pictures.
    pub images: bool,
    /// Whether the offline engine answers what it understands, before the model is asked.
    pub commands_offline: bool,
    /// Where its key is.
    pub key: Key,
    /// Folder of what was logged in with.
    pub keyring: PathBuf,
    /// How to log in, where that is more than a key.
    pub oauth: Option<OAuth>,
    /// Further headers.
    pub headers: Headers,
    /// What only its provider knows.
    pub settings: Settings,
}

/// Where a key is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// Nobody asks for one.
    None,
    /// In a variable.
    Env(String),
    /// In a file.
    File(PathBuf),
    /// Under this name in the keyring, by `lorgnette login`.
    Login(String),
}

/// Headers that may hold secrets: their values are not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(pub BTreeMap<String, String>);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Problems<'_> {
    /// Checks a section; `data_dir` is where the keyring is.
    pub(super) fn model(&mut self, place: Place, written: &Written, data_dir: &Path) -> Option<Model> {
        let span = written.kind.span();
        let kind = match *written.kind.get_ref() {
            ModelKind::Provider(kind) => kind,
            ModelKind::Offline => {
                self.known_options(place, ModelKind::Offline);
                if let Some(url) = &written.base_url {
                    let names = listed(Kind::ALL.iter().map(|kind| kind.name()));
                    let what = format!(
                        "`kind = \"{OFFLINE}\"` asks no server: write what speaks there ({names}; docs/models.md), or take \
                         `base_url` away"
                    );
                    self.at(url.span(), what);
                }
                return Some(Model::Offline);
            }
        };
        let Read { settings, wants_login } = self.options(place, kind)?;
        let home = settings.section().base_url();
        let given = written.base_url.as_ref().map(|url| url.get_ref().as_str()).filter(|url| !url.is_empty());
        let Some(base_url) = given.or(home).filter(|_| !written.model.is_empty()) else {
            let name = kind.name();
            let what = match home {
                Some(_) => format!("`kind = \"{name}\"` needs `model`"),
                None => {
                    format!("`kind = \"{name}\"` needs `base_url` (such as http://127.0.0.1:11434/v1) and `model`")
                }
            };
            self.at(span, what);
            return None;
        };
        if let Some(url) = written.base_url.as_ref().filter(|_| !is_http(base_url)) {
            self.at(url.span(), "`base_url` must begin with http:// or https:// and name a host");
        }
        if let Some((option, span)) = wants_login.filter(|_| written.login.is_none()) {
            self.at(span, format!("a `{option}` needs `login`, and the section `oauth` that says how to log in"));
            return None;
        }
        let key = self.key(kind, written, given.is_none());
        Some(Model::Remote(Box::new(Remote {
            kind,
            base_url: base_url.to_owned(),
            model: written.model.clone(),
            tools: written.tools,
            images: written.images,
            commands_offline: written.commands_offline,
            key: key?,
            keyring: data_dir.join("credentials"),
            oauth: self.oauth(written),
            headers: Headers(written.headers.clone()),
            settings,
        })))
    }

    /// `public`: the provider's own address, where nobody is served without a key.
    fn key(&mut self, kind: Kind, written: &Written, public: bool) -> Option<Key> {
        let mut keys = Vec::new();
        keys.extend(written.key_env.clone().map(Key::Env));
        keys.extend(written.key_file.clone().map(Key::File));
        if let Some(login) = &written.login {
            if !keyring::is_name(login.get_ref()) {
                let what = "`login` is the name of what you log in to: lower-case letters, digits, '-' and '_'";
                self.at(login.span(), what);
                return None;
            }
            keys.push(Key::Login(login.get_ref().clone()));
        }
        match (keys.pop(), keys.is_empty()) {
            (Some(key), true) => Some(key),
            (None, _) if !public => Some(Key::None),
            (None, _) => {
                let name = kind.name();
                let what =
                    format!("`kind = \"{name}\"` at its public address needs one of `key_env`, `key_file` and `login`");
                self.at(written.kind.span(), what);
                None
            }
            (Some(_), false) => {
                self.at(written.kind.span(), "only one of `key_env`, `key_file` and `login` can hold the key");
                None
            }
        }
    }

    fn oauth(&mut self, written: &Written) -> Option<OAuth> {
        let oauth = written.oauth.as_ref()?;
        let given = oauth.get_ref();
        if given.authorize_url.is_none() && given.device_url.is_none() {
            self.at(oauth.span(), "`oauth` needs `authorize_url` (with a browser here) or `device_url` (with a code)");
        }
        if !given.redirect_path.starts_with('/') || given.redirect_path.contains(['?', '#', ' ']) {
            self.at(oauth.span(), "`redirect_path` is a path such as /callback");
        }
        Some(given.clone())
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

    fn remote(text: &str) -> Remote {
        let mut checked = check(text, "x.toml").unwrap_or_else(|problems| panic!("{problems:?}"));
        let Model::Remote(remote) = checked.ranks.models.remove(0) else { panic!("remote") };
        *remote
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
            assert_eq!(remote(&format!("[model]\n{text}\nmodel = \"m\"\n{key}\n")).base_url, url);
        }
    }

    #[test]
    fn keys_are_where_they_are_said_to_be() {
        let at_home = "[model]\nkind = \"chat_completions\"\nbase_url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n";
        assert_eq!(remote(at_home).key, Key::None);
        assert_eq!(remote(&format!("{at_home}login = \"box\"\n")).key, Key::Login("box".into()));
        assert_eq!(remote(&format!("{at_home}key_file = \"/k\"\n")).key, Key::File("/k".into()));
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
            assert_eq!(problems[0].line, line, "{text}: {problems:?}");
            assert!(problems[0].what.contains(word), "{text}: {problems:?}");
        }
    }

    #[test]
    fn the_examples_of_the_page_are_valid() {
        let page = include_str!("../../../docs/models.md");
        let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        let sections: Vec<&str> = blocks.filter(|block| block.contains("[model]")).collect();
        assert!(sections.len() >= 2, "{}", sections.len());
        for section in sections {
            remote(section);
        }
    }

    #[test]
    fn header_values_are_not_shown() {
        let text = "[model]\nkind = \"gemini\"\nmodel = \"m\"\nkey_env = \"K\"\nheaders = { x-secret = \"planted\" }\n";
        let shown = format!("{:?}", remote(text));
        assert!(shown.contains("x-secret") && !shown.contains("planted"), "{shown}");
    }
}
