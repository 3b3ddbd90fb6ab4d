//! Credentials: the request headers that identify the client to a provider.

use async_trait::async_trait;
use gateway_core::vocab::FailureKind;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use thiserror::Error;

use crate::auth::Key;

/// Headers with secrets in them.
pub type Headers = Vec<(HeaderName, HeaderValue)>;

/// Why there are no credentials for a request. The message contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct NoCredentials {
    /// The kind for the agent: `Auth` if a login is needed, `Transient` if it may work later.
    pub kind: FailureKind,
    /// Message with a remedy.
    pub message: String,
}

/// Source of the authentication headers. The HTTP shell marks their values as secrets and removes them from every
/// error.
#[async_trait]
pub trait Credentials: Send + Sync {
    /// Headers for the next attempt; called before each. May renew a token that is about to expire.
    ///
    /// # Errors
    /// No credentials are available.
    async fn headers(&self) -> Result<Headers, NoCredentials>;

    /// The server answered 401 to `sent`, which came from [`Credentials::headers`]. Returns true if other headers are
    /// now available, so that one more attempt is worthwhile. Another request may have renewed the token meanwhile.
    async fn handle_unauthorized(&self, sent: &Headers) -> bool {
        let _ = sent;
        false
    }
}

/// The request header with which a provider is given a key: its name, a prefix, and the key.
#[derive(Clone)]
pub struct KeyHeader {
    name: HeaderName,
    prefix: &'static str,
    key: Key,
}

impl KeyHeader {
    /// `Authorization: Bearer KEY`, as used by OpenAI and most others.
    pub fn bearer(key: Key) -> Self {
        Self { name: AUTHORIZATION, prefix: "Bearer ", key }
    }

    /// The bare key in a provider-specific header: `x-api-key`, `x-goog-api-key`, Azure's `api-key`.
    pub fn named(name: &'static str, key: Key) -> Self {
        Self { name: HeaderName::from_static(name), prefix: "", key }
    }
}

#[async_trait]
impl Credentials for KeyHeader {
    async fn headers(&self) -> Result<Headers, NoCredentials> {
        let value = format!("{}{}", self.prefix, self.key.secret());
        let value = HeaderValue::from_str(&value).map_err(|_| NoCredentials {
            kind: FailureKind::Auth,
            message: "the key holds characters that no header can carry".to_owned(),
        })?;
        Ok(vec![(self.name.clone(), value)])
    }
}
