//! OAuth 2.0 for who has an account instead of a key: logging in once, and renewing the token from then on.
//!
//! Sources: RFC 6749 (authorization code, refresh), RFC 7636 (PKCE), RFC 8252 (loopback redirection), RFC 8628 (device
//! code). Addresses and client ids are the operator's: none is built in.

mod device;
mod exchange;
mod login;
mod loopback;

use thiserror::Error;

use crate::auth::Key;

pub use device::{Device, DevicePrompt};
pub use login::{HeaderStyle, Login};
pub use loopback::Loopback;

/// How to log in at one provider.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Names this program to the provider.
    pub client_id: String,
    /// Some providers give one even to programs that cannot keep it.
    pub client_secret: Option<Key>,
    /// Where the wearer agrees, for [`Loopback`].
    pub authorize_url: Option<String>,
    /// Where a device code is got, for [`Device`].
    pub device_url: Option<String>,
    /// Where codes and refresh tokens are changed for tokens.
    pub token_url: String,
    /// What is asked for.
    pub scopes: Vec<String>,
    /// Port and path on this machine that the provider sends the browser back to; port 0: any.
    pub redirect: (u16, String),
    /// The token address takes JSON instead of a form.
    pub json: bool,
    /// Further parameters of the address where the wearer agrees.
    pub extra: Vec<(String, String)>,
}

/// Why there is no token. Holds no secret.
#[derive(Debug, Error)]
pub enum OAuthError {
    /// The configuration lacks something.
    #[error("`{0}` is missing in the section `oauth`")]
    Missing(&'static str),
    /// An address cannot be used.
    #[error("`{0}` must be an https address, or http on this machine")]
    Url(&'static str),
    /// Nothing answers, or nothing sensible.
    #[error("the login server {0}")]
    Server(String),
    /// The provider says no.
    #[error("the provider refuses: {0}")]
    Refused(String),
    /// The wearer did not agree in time.
    #[error("nobody agreed in time; start the login again")]
    TimedOut,
    /// The browser brought something else than what was asked for.
    #[error("the answer does not belong to this login; start it again, and follow only the link that it prints")]
    Foreign,
    /// This machine refuses.
    #[error("{0}")]
    Local(String),
}

impl OAuthError {
    /// Whether the same may work later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Server(_))
    }
}

/// Bytes that nobody can guess, as text.
fn random_text() -> Result<String, OAuthError> {
    use base64::Engine as _;
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| OAuthError::Local(format!("no random numbers: {error}")))?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

/// Tokens travel only where nobody can listen.
fn checked_url(text: &str, key: &'static str) -> Result<reqwest::Url, OAuthError> {
    let url = reqwest::Url::parse(text).map_err(|_| OAuthError::Url(key))?;
    let local = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
    let fine = url.scheme() == "https" || (url.scheme() == "http" && local);
    if fine && url.has_host() { Ok(url) } else { Err(OAuthError::Url(key)) }
}
