//! Requests to a token endpoint, and their responses.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::{Client, StatusCode, header::CONTENT_TYPE, redirect};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{auth::Key, keyring::Token};

use super::{Flow, OAuthError, checked_url};

/// Longest response that is read.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Longest error message of a server that is passed on.
const WORDS_CHARS_MAX: usize = 200;
/// Longest accepted token lifetime in seconds: a year.
const EXPIRES_S_MAX: i64 = 366 * 24 * 3600;
/// Time limit for a request.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What a token endpoint sends.
#[derive(Deserialize)]
pub(crate) struct Answer {
    access_token: String,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    expires_in: Option<f64>,
}

/// An OAuth error, with the server's code.
pub(crate) enum Failed {
    /// `error` in the response, for example `authorization_pending`.
    Code(String, OAuthError),
    Other(OAuthError),
}

impl From<Failed> for OAuthError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Code(_, error) | Failed::Other(error) => error,
        }
    }
}

pub(super) fn client() -> Result<Client, OAuthError> {
    // Without one the client would panic; only the first call in a process counts.
    drop(rustls::crypto::ring::default_provider().install_default());
    Client::builder()
        .timeout(TIMEOUT)
        .redirect(redirect::Policy::none())
        .build()
        .map_err(|error| OAuthError::Local(format!("the HTTP client cannot be made: {}", error.without_url())))
}

/// Milliseconds since the Unix epoch.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Requests a token. If the server sends no new refresh token, the old one stays valid.
pub(super) async fn token(
    client: &Client,
    flow: &Flow,
    fields: &[(&str, &str)],
    refresh: Option<&Key>,
) -> Result<Token, Failed> {
    let mut all: Vec<(&str, &str)> = fields.to_vec();
    all.push(("client_id", &flow.client_id));
    if let Some(secret) = &flow.client_secret {
        all.push(("client_secret", secret.secret()));
    }
    let answer: Answer = post(client, &flow.token_url, "token_url", &all, flow.json).await?;
    token_of(answer, refresh)
}

/// The token in an answer.
pub(crate) fn token_of(answer: Answer, refresh: Option<&Key>) -> Result<Token, Failed> {
    let unusable = || Failed::Other(OAuthError::Server("sent a token that no header can carry".into()));
    let access = Key::new(&answer.access_token).map_err(|_| unusable())?;
    let renewed = match answer.refresh_token.filter(|token| !token.is_empty()) {
        Some(token) => Some(Key::new(&token).map_err(|_| unusable())?),
        None => refresh.cloned(),
    };
    let seconds = answer.expires_in.filter(|seconds| seconds.is_finite()).map(|seconds| seconds as i64);
    let expires_at_ms = seconds.map(|seconds| now_ms() + seconds.clamp(0, EXPIRES_S_MAX) * 1000);
    Ok(Token { access, refresh: renewed, expires_at_ms })
}

/// Posts fields as a form or as JSON.
pub(super) async fn post<T: DeserializeOwned>(
    client: &Client,
    url: &str,
    key: &'static str,
    fields: &[(&str, &str)],
    json: bool,
) -> Result<T, Failed> {
    let url = checked_url(url, key).map_err(Failed::Other)?;
    let (kind, body) = if json {
        let map: serde_json::Map<String, Value> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
        ("application/json", Value::Object(map).to_string())
    } else {
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        ("application/x-www-form-urlencoded", form)
    };
    let server = |what: &str| Failed::Other(OAuthError::Server(what.to_owned()));
    let sent = client.post(url).header(CONTENT_TYPE, kind).header("accept", "application/json").body(body).send();
    let mut response = sent.await.map_err(|_| server("cannot be reached"))?;
    let status = response.status();
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|_| server("broke off"))? {
        if bytes.len() + piece.len() > BODY_BYTES_MAX {
            return Err(server("answers at too great a length"));
        }
        bytes.extend_from_slice(&piece);
    }
    read(status, &bytes, fields)
}

/// A response to these fields.
pub(crate) fn read<T: DeserializeOwned>(
    status: StatusCode,
    bytes: &[u8],
    fields: &[(&str, &str)],
) -> Result<T, Failed> {
    let server = |what: &str| Failed::Other(OAuthError::Server(what.to_owned()));
    if status.is_success() {
        // serde's message would quote the response, including tokens.
        return serde_json::from_slice(bytes).map_err(|_| server("sent something that is no OAuth answer"));
    }
    let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let code = document.get("error").and_then(Value::as_str);
    match code {
        Some(code) if status.is_client_error() => {
            let words = document.get("error_description").and_then(Value::as_str).unwrap_or_default();
            let words = cleaned(&format!("{code} {words}"), fields);
            Err(Failed::Code(code.chars().take(WORDS_CHARS_MAX).collect(), OAuthError::Refused(words)))
        }
        _ if status.is_client_error() && status.as_u16() != 429 => {
            Err(Failed::Other(OAuthError::Refused(format!("the answer was {status}"))))
        }
        _ => Err(server(&format!("answered {status}"))),
    }
}

/// A server's message, bounded, without the values sent to it.
fn cleaned(words: &str, fields: &[(&str, &str)]) -> String {
    // Shorter values are words such as a grant type, not secrets.
    const SECRET_BYTES_MIN: usize = 6;
    const OPEN: [&str; 4] = ["grant_type", "client_id", "redirect_uri", "scope"];
    let mut words = words.to_owned();
    for (name, value) in fields {
        if value.len() >= SECRET_BYTES_MIN && !OPEN.contains(name) {
            words = words.replace(value, "[hidden]");
        }
    }
    words.trim().chars().filter(|c| !c.is_control()).take(WORDS_CHARS_MAX).collect()
}
