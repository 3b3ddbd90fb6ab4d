//! Credentials from the keyring: a key unchanged, a token renewed before it expires and once after a 401.

use async_trait::async_trait;
use gateway_core::vocab::FailureKind;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use tokio::sync::Mutex;

use crate::{
    auth::Key,
    http::{Credentials, Headers, NoCredentials},
    keyring::{Entry, Keyring, KeyringError, Token},
};

use super::{Flow, OAuthError, exchange};

/// How long before its expiry a token is renewed: the longest time until an answer begins.
const EARLY_MS: i64 = 60_000;

/// The header for a key. Tokens are always bearers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderStyle {
    /// `Authorization: Bearer KEY`
    Bearer,
    /// The bare key in the header of this name.
    Named(&'static str),
}

/// Credentials of one login.
pub struct Login {
    name: String,
    keyring: Keyring,
    flow: Option<Flow>,
    style: HeaderStyle,
    /// Locked during a renewal, so that concurrent requests renew once.
    entry: Mutex<Option<Entry>>,
}

impl Login {
    /// The keyring's entry of this name, read on first use, as a login may happen while the gateway runs.
    pub fn new(name: impl Into<String>, keyring: Keyring, flow: Option<Flow>, style: HeaderStyle) -> Self {
        Self { name: name.into(), keyring, flow, style, entry: Mutex::new(None) }
    }

    fn headers_of(&self, entry: &Entry) -> Result<Headers, NoCredentials> {
        let (name, text) = match (entry, self.style) {
            (Entry::Token(token), _) => (AUTHORIZATION, format!("Bearer {}", token.access.secret())),
            (Entry::Key(key), HeaderStyle::Bearer) => (AUTHORIZATION, format!("Bearer {}", key.secret())),
            (Entry::Key(key), HeaderStyle::Named(name)) => (HeaderName::from_static(name), key.secret().to_owned()),
        };
        let value = HeaderValue::from_str(&text).map_err(|_| self.log_in("what is kept fits in no header"))?;
        Ok(vec![(name, value)])
    }

    fn log_in(&self, why: &str) -> NoCredentials {
        let message = format!("{why}; run `lorgnette login {}`", self.name);
        NoCredentials { kind: FailureKind::Auth, message }
    }

    /// Reads the file off the runtime: storage may be slow.
    async fn read(&self) -> Result<Option<Entry>, NoCredentials> {
        let (keyring, name) = (self.keyring.clone(), self.name.clone());
        let read = tokio::task::spawn_blocking(move || keyring.get(&name)).await;
        match read {
            Ok(Ok(entry)) => Ok(entry),
            Ok(Err(error)) => Err(NoCredentials { kind: FailureKind::Auth, message: error.to_string() }),
            Err(_) => Err(NoCredentials { kind: FailureKind::Transient, message: "the keyring was not read".into() }),
        }
    }

    async fn write(&self, token: Token) -> Result<(), KeyringError> {
        let (keyring, name) = (self.keyring.clone(), self.name.clone());
        let written = tokio::task::spawn_blocking(move || keyring.put(&name, &Entry::Token(token))).await;
        written.unwrap_or(Ok(()))
    }

    /// Renews the token. The new one is used even if it cannot be stored, because the old one may be invalid now.
    async fn renew(&self, token: &Token) -> Result<Token, NoCredentials> {
        let (Some(flow), Some(refresh)) = (&self.flow, &token.refresh) else {
            return Err(self.log_in("the login has expired and cannot be renewed"));
        };
        let renewed = refreshed(flow, refresh).await.map_err(|error| {
            if error.is_transient() {
                NoCredentials { kind: FailureKind::Transient, message: format!("the login was not renewed: {error}") }
            } else {
                self.log_in(&format!("the login was not renewed: {error}"))
            }
        })?;
        tracing::debug!(login = self.name, "a token was renewed");
        if let Err(error) = self.write(renewed.clone()).await {
            tracing::warn!(login = self.name, %error, "a renewed token holds only until the gateway stops");
        }
        Ok(renewed)
    }
}

async fn refreshed(flow: &Flow, refresh: &Key) -> Result<Token, OAuthError> {
    let client = exchange::client()?;
    let scope = flow.scopes.join(" ");
    let mut fields = vec![("grant_type", "refresh_token"), ("refresh_token", refresh.secret())];
    if !scope.is_empty() {
        fields.push(("scope", &scope));
    }
    Ok(exchange::token(&client, flow, &fields, Some(refresh)).await?)
}

fn same(one: &Token, other: &Token) -> bool {
    one.access.secret() == other.access.secret()
}

#[async_trait]
impl Credentials for Login {
    async fn headers(&self) -> Result<Headers, NoCredentials> {
        let mut kept = self.entry.lock().await;
        if kept.is_none() {
            *kept = self.read().await?;
        }
        let Some(entry) = kept.as_ref() else {
            return Err(self.log_in("nobody has logged in"));
        };
        if let Entry::Token(token) = entry
            && let Some(expires) = token.expires_at_ms.filter(|expires| exchange::now_ms() >= expires - EARLY_MS)
        {
            // A new login, or a renewal by another process, may have replaced it.
            let newer = match self.read().await {
                Ok(Some(Entry::Token(newer))) if !same(&newer, token) => Some(newer),
                _ => None,
            };
            let fresh = |token: &Token| token.expires_at_ms.is_none_or(|at| exchange::now_ms() < at - EARLY_MS);
            let renewed = match newer {
                Some(newer) if fresh(&newer) => Ok(newer),
                Some(newer) => self.renew(&newer).await,
                None => self.renew(token).await,
            };
            match renewed {
                Ok(renewed) => *kept = Some(Entry::Token(renewed)),
                // It is still valid for a moment, and the server may be back by then.
                Err(error) if error.kind == FailureKind::Transient && exchange::now_ms() < expires => {}
                Err(error) => {
                    *kept = None;
                    return Err(error);
                }
            }
        }
        match kept.as_ref() {
            Some(entry) => self.headers_of(entry),
            None => Err(self.log_in("nobody has logged in")),
        }
    }

    async fn handle_unauthorized(&self, sent: &Headers) -> bool {
        let mut kept = self.entry.lock().await;
        let is_new = |entry: &Entry| self.headers_of(entry).is_ok_and(|headers| headers != *sent);
        // Another request has renewed it already.
        if kept.as_ref().is_some_and(is_new) {
            return true;
        }
        if let Ok(Some(stored)) = self.read().await
            && is_new(&stored)
        {
            *kept = Some(stored);
            return true;
        }
        let Some(Entry::Token(token)) = kept.as_ref() else {
            *kept = None;
            return false;
        };
        match self.renew(token).await {
            Ok(renewed) => {
                *kept = Some(Entry::Token(renewed));
                true
            }
            Err(_) => {
                *kept = None;
                false
            }
        }
    }
}
