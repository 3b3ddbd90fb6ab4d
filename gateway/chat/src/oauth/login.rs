//! Credentials from the keyring: a key unchanged, a token renewed before it expires and once after a 401.
//!
//! A refresh token is often good for one use, so that a renewal that has begun runs to its end and is stored, even if the
//! request for which it began is withdrawn meanwhile.

use std::sync::Arc;

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
pub struct Login(Arc<Renewing>);

/// Reads and renews an entry of the keyring.
struct Renewing {
    name: String,
    keyring: Keyring,
    flow: Option<Flow>,
    style: HeaderStyle,
    /// Locked during a renewal, so that concurrent requests renew once.
    unstored: Mutex<Option<Unstored>>,
}

/// A renewed token that could not be stored.
struct Unstored {
    /// The one that the keyring still has.
    stored: Token,
    renewed: Token,
}

impl Login {
    /// The keyring's entry of this name, read for each request: a login may be changed or forgotten while the gateway runs.
    pub fn new(name: impl Into<String>, keyring: Keyring, flow: Option<Flow>, style: HeaderStyle) -> Self {
        Self(Arc::new(Renewing { name: name.into(), keyring, flow, style, unstored: Mutex::new(None) }))
    }
}

#[async_trait]
impl Credentials for Login {
    async fn headers(&self) -> Result<Headers, NoCredentials> {
        let renewing = self.0.clone();
        let read = tokio::spawn(async move { renewing.headers().await }).await;
        read.unwrap_or_else(|_| {
            let message = "the login was not read".into();
            Err(NoCredentials { kind: FailureKind::Transient, message })
        })
    }

    async fn handle_unauthorized(&self, sent: &Headers) -> bool {
        let (renewing, sent) = (self.0.clone(), sent.clone());
        tokio::spawn(async move { renewing.handle_unauthorized(&sent).await }).await.unwrap_or(false)
    }
}

impl Renewing {
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

    /// What to send now: the keyring's entry, or its renewed token that could not be stored.
    async fn current(&self, unstored: &mut Option<Unstored>) -> Result<Entry, NoCredentials> {
        let stored = self.read().await?;
        match (stored, unstored.as_ref()) {
            (Some(Entry::Token(token)), Some(newer)) if same(&token, &newer.stored) => {
                Ok(Entry::Token(newer.renewed.clone()))
            }
            (stored, _) => {
                *unstored = None;
                stored.ok_or_else(|| self.log_in("nobody has logged in"))
            }
        }
    }

    /// Stores a token in place of another one; returns false if the keyring has that one no more.
    async fn replace(&self, stored: Token, renewed: Token) -> Result<bool, KeyringError> {
        let (keyring, name) = (self.keyring.clone(), self.name.clone());
        let written = tokio::task::spawn_blocking(move || match keyring.get(&name)? {
            Some(Entry::Token(token)) if same(&token, &stored) => {
                keyring.put(&name, &Entry::Token(renewed)).map(|()| true)
            }
            _ => Ok(false),
        });
        written.await.unwrap_or(Ok(false))
    }

    /// Renews the current token; returns what to send now. The new one is used even if it cannot be stored, because the old
    /// one may be invalid now.
    async fn renew(&self, token: &Token, unstored: &mut Option<Unstored>) -> Result<Entry, NoCredentials> {
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
        let stored = unstored.take().map_or_else(|| token.clone(), |older| older.stored);
        match self.replace(stored.clone(), renewed.clone()).await {
            Ok(true) => Ok(Entry::Token(renewed)),
            // Meanwhile somebody has logged in anew, or the login was forgotten.
            Ok(false) => self.current(unstored).await,
            Err(error) => {
                tracing::warn!(login = self.name, %error, "a renewed token holds only until the gateway stops");
                *unstored = Some(Unstored { stored, renewed: renewed.clone() });
                Ok(Entry::Token(renewed))
            }
        }
    }

    async fn headers(&self) -> Result<Headers, NoCredentials> {
        let mut unstored = self.unstored.lock().await;
        let entry = self.current(&mut unstored).await?;
        if let Entry::Token(token) = &entry
            && let Some(expires) = token.expires_at_ms.filter(|expires| exchange::now_ms() >= expires - EARLY_MS)
        {
            return match self.renew(token, &mut unstored).await {
                Ok(renewed) => self.headers_of(&renewed),
                // It is still valid for a moment, and the server may be back by then.
                Err(error) if error.kind == FailureKind::Transient && exchange::now_ms() < expires => {
                    self.headers_of(&entry)
                }
                Err(error) => Err(error),
            };
        }
        self.headers_of(&entry)
    }

    async fn handle_unauthorized(&self, sent: &Headers) -> bool {
        let mut unstored = self.unstored.lock().await;
        let is_new = |entry: &Entry| self.headers_of(entry).is_ok_and(|headers| headers != *sent);
        match self.current(&mut unstored).await {
            // Another request has renewed it already, or somebody has logged in anew.
            Ok(entry) if is_new(&entry) => true,
            Ok(Entry::Token(token)) => self.renew(&token, &mut unstored).await.is_ok(),
            Ok(Entry::Key(_)) | Err(_) => false,
        }
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
