//! OAuth 2.0 for accounts without a key: one login, then token renewal.
//!
//! Sources: RFC 6749 (authorization code, refresh), RFC 7636 (PKCE), RFC 8252 (loopback redirection), RFC 8628 (device
//! code). Addresses and client ids are configured by the operator: none is built in.

pub(crate) mod device;
pub(crate) mod exchange;
mod login;
pub(crate) mod loopback;

use thiserror::Error;

use crate::auth::Key;

pub use device::{Device, DevicePrompt};
pub use login::{HeaderStyle, Login};
pub use loopback::Loopback;

/// The login configuration of one provider.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Identifies this program to the provider.
    pub client_id: String,
    /// Required by some providers even of programs that cannot keep it secret.
    pub client_secret: Option<Key>,
    /// Authorization endpoint, for [`Loopback`].
    pub authorize_url: Option<String>,
    /// Device authorization endpoint, for [`Device`].
    pub device_url: Option<String>,
    /// Token endpoint: exchanges codes and refresh tokens for tokens.
    pub token_url: String,
    /// The requested scopes.
    pub scopes: Vec<String>,
    /// Port and path on this machine for the redirect; port 0: any.
    pub redirect: (u16, String),
    /// The token endpoint takes JSON instead of a form.
    pub json: bool,
    /// Further parameters of the authorization address.
    pub extra: Vec<(String, String)>,
}

/// Why no token was obtained. Contains no secret.
#[derive(Debug, Error)]
pub enum OAuthError {
    /// The configuration is incomplete.
    #[error("`{0}` is missing in the section `oauth`")]
    Missing(&'static str),
    /// An address is invalid.
    #[error("`{0}` must be an https address, or http on this machine")]
    Url(&'static str),
    /// The server does not answer, or sends an invalid response.
    #[error("the login server {0}")]
    Server(String),
    /// The provider refused.
    #[error("the provider refuses: {0}")]
    Refused(String),
    /// The wearer did not agree in time.
    #[error("nobody agreed in time; start the login again")]
    TimedOut,
    /// The browser's response does not match the request.
    #[error("the answer does not belong to this login; start it again, and follow only the link that it prints")]
    Foreign,
    /// An error on this machine.
    #[error("{0}")]
    Local(String),
}

impl OAuthError {
    /// Whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Server(_))
    }
}

/// Random bytes as text.
fn random_text() -> Result<String, OAuthError> {
    use base64::Engine as _;
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| OAuthError::Local(format!("no random numbers: {error}")))?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

/// Checks that an address is secure: tokens travel only over https or loopback.
fn checked_url(text: &str, key: &'static str) -> Result<reqwest::Url, OAuthError> {
    let url = reqwest::Url::parse(text).map_err(|_| OAuthError::Url(key))?;
    let local = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
    let fine = url.scheme() == "https" || (url.scheme() == "http" && local);
    if fine && url.has_host() { Ok(url) } else { Err(OAuthError::Url(key)) }
}
