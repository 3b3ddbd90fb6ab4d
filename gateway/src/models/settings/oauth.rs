//! The section `oauth` of a model: its login flow.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::problems::Problems;

/// Login flow: addresses and names, none of them built in.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct OAuth {
    /// Identifies this program to the provider.
    pub client_id: String,
    /// Variable with the client secret that some providers also require.
    #[serde(default)]
    pub client_secret_env: Option<String>,
    /// Where codes and refresh tokens are exchanged for tokens.
    pub token_url: String,
    /// Where the wearer authorises in a browser.
    #[serde(default)]
    pub authorize_url: Option<String>,
    /// Where a code for another device is requested.
    #[serde(default)]
    pub device_url: Option<String>,
    /// Requested scopes.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Port of the browser's redirect; 0: any.
    #[serde(default)]
    pub redirect_port: u16,
    /// Path at which the browser comes back, on this machine.
    #[serde(default = "redirect_path")]
    pub redirect_path: String,
    /// The token address expects JSON instead of a form.
    #[serde(default)]
    pub json: bool,
    /// Additional parameters of the authorisation address.
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
