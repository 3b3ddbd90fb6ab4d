//! Who asks: what a provider wants to see in a request's headers before it answers.

use async_trait::async_trait;
use gateway_core::vocab::FailureKind;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use thiserror::Error;

use crate::auth::Key;

/// Headers with secrets in them.
pub type Headers = Vec<(HeaderName, HeaderValue)>;

/// Why there are no credentials for a request. The message holds no secret.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct NoCredentials {
    /// What the agent makes of it: `Auth` where somebody has to log in, `Transient` where it may work later.
    pub kind: FailureKind,
    /// In words, with what to do.
    pub message: String,
}

/// Where the headers come from that tell a provider who asks. The shell marks their values as secrets and takes
/// them out of every error.
#[async_trait]
pub trait Credentials: Send + Sync {
    /// Headers for the next attempt; asked before each. May renew a token that is about to expire.
    ///
    /// # Errors
    /// There is nothing to send.
    async fn headers(&self) -> Result<Headers, NoCredentials>;

    /// The server has answered 401 to `sent`, which [`Credentials::headers`] gave. True: something else can be
    /// sent now, so that one more attempt is worth it. Another request may have renewed the token meanwhile.
    async fn handle_unauthorized(&self, sent: &Headers) -> bool {
        let _ = sent;
        false
    }
}

/// A key in a header.
#[derive(Clone)]
pub struct KeyHeader {
    name: HeaderName,
    prefix: &'static str,
    key: Key,
}

impl KeyHeader {
    /// `Authorization: Bearer KEY`, as OpenAI and most others have it.
    pub fn bearer(key: Key) -> Self {
        Self { name: AUTHORIZATION, prefix: "Bearer ", key }
    }

    /// The bare key under a name of the provider's own: `x-api-key`, `x-goog-api-key`, Azure's `api-key`.
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
