//! The section `oauth` of a model: how to log in to it.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::problems::Problems;

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

pub(super) fn check(problems: &mut Problems<'_>, oauth: &Spanned<OAuth>) -> OAuth {
    let given = oauth.get_ref();
    if given.authorize_url.is_none() && given.device_url.is_none() {
        problems.at(oauth.span(), "`oauth` needs `authorize_url` (with a browser here) or `device_url` (with a code)");
    }
    if !given.redirect_path.starts_with('/') || given.redirect_path.contains(['?', '#', ' ']) {
        problems.at(oauth.span(), "`redirect_path` is a path such as /callback");
    }
    given.clone()
}
