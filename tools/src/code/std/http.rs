//! `http`: requests to the hosts that the operator lists. A request is sent only to an address that was judged
//! ([`super::address`]), follows redirects only if it is for reading and within its origin, and is bounded in size and time.
//! Secrets are filled in here, and redacted from what comes back.

use std::{collections::BTreeMap, error::Error as StdError, sync::Arc, time::Duration};

use reqwest::{
    Client, Method, Response, Url,
    header::{HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use thiserror::Error;
use tokio::time::timeout;

use super::{
    address::{Judged, Lookup, Reach, RefusedAddress, System},
    policy::{HostRule, StdPolicy, address_of},
    values::{content, error, to_base64},
};
use crate::{
    code::HostError,
    secret::{REDACTED, Secret},
};

/// Time of a request with its response.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes of a request: address, headers and body.
const REQUEST_BYTES_MAX: usize = 64 * 1024;
/// Bytes of an address.
const URL_BYTES_MAX: usize = 4 * 1024;
/// Headers of a request, and of a response that a program gets.
const HEADERS_MAX: usize = 32;
/// Bytes of a header of a response that a program gets.
const HEADER_BYTES_MAX: usize = 1024;
/// Bytes of a response's body.
const RESPONSE_BYTES_MAX: usize = 1024 * 1024;
/// Redirects that are followed.
const REDIRECTS_MAX: usize = 5;
/// Headers that belong to the connection, not to the program.
const OWN_HEADERS: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// How a secret is named in a header.
const PLACEHOLDER: &str = "${secret:";

/// The client for programs could not be created.
#[derive(Debug, Error)]
#[error("the HTTP client for programs cannot be made: {0}")]
pub struct HttpClientError(#[from] reqwest::Error);

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Verb {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl From<Verb> for Method {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Get => Self::GET,
            Verb::Head => Self::HEAD,
            Verb::Post => Self::POST,
            Verb::Put => Self::PUT,
            Verb::Patch => Self::PATCH,
            Verb::Delete => Self::DELETE,
        }
    }
}

/// The arguments of `http.request`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    url: String,
    #[serde(default)]
    method: Verb,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    text: Option<String>,
    bytes: Option<String>,
}

/// Clients for public hosts and for private ones: each for requests that read, and for others.
pub(super) struct Http(Option<[[Client; 2]; 2]>);

impl Http {
    /// # Errors
    /// The system's certificates cannot be used.
    pub(super) fn new(policy: &StdPolicy) -> Result<Self, HttpClientError> {
        Self::with_lookup(policy, Arc::new(System))
    }

    /// Without hosts there is no client.
    pub(super) fn with_lookup(policy: &StdPolicy, lookup: Arc<dyn Lookup>) -> Result<Self, HttpClientError> {
        if !policy.has_hosts() {
            return Ok(Self(None));
        }
        let client = |reach, redirects| {
            Client::builder()
                .dns_resolver(Arc::new(Judged { lookup: Arc::clone(&lookup), reach }))
                .redirect(redirects)
                .referer(false)
                .no_proxy()
                // Nothing is sent over a connection whose end is only found out by sending.
                .pool_max_idle_per_host(0)
                .build()
        };
        let both = |reach| -> Result<[Client; 2], HttpClientError> {
            Ok([client(reach, redirect::Policy::custom(within_origin))?, client(reach, redirect::Policy::none())?])
        };
        Ok(Self(Some([both(Reach::Public)?, both(Reach::Private)?])))
    }

    /// Sends a request and returns `{status, url, headers, text | bytes}`. Its texts may still quote secrets.
    pub(super) async fn request(&self, policy: &StdPolicy, user: &str, request: Request) -> Result<Value, HostError> {
        let url = parse(&request.url)?;
        let rule = policy.rule(user, &url)?;
        let host = url.host_str().unwrap_or_default();
        if let Some(address) = address_of(host) {
            rule.reach().check(host, address).map_err(|refused| error("not_allowed", refused.to_string()))?;
        }
        let body = match (request.text, request.bytes) {
            (None, None) => Vec::new(),
            (text, bytes) => content(text, bytes)?,
        };
        let headers = fill_in(policy, user, rule, host, request.headers)?;
        let bytes =
            body.len() + url.as_str().len() + headers.iter().map(|(n, v)| n.as_str().len() + v.len()).sum::<usize>();
        if bytes > REQUEST_BYTES_MAX {
            let message = format!("the request has {bytes} bytes, {REQUEST_BYTES_MAX} are the maximum");
            return Err(error("too_large", message));
        }
        let Some([public, private]) = &self.0 else {
            return Err(error("not_allowed", "http is off until the operator lists hosts in [code.http]"));
        };
        let [reading, changing] = if rule.reach() == Reach::Private { private } else { public };
        let changes = !matches!(request.method, Verb::Get | Verb::Head);
        // Requests that change something follow no redirect: the first server has received them already, so a later
        // failure does not mean that nothing was done.
        let client = if changes { changing } else { reading };
        let request = client.request(request.method.into(), url).headers(headers).body(body);
        let exchange = async {
            let response = request.send().await.map_err(failed)?;
            answer(policy, response).await.map_err(|error| if changes { unknown(error) } else { error })
        };
        timeout(TIME_MAX, exchange).await.unwrap_or_else(|_| {
            let message = format!("the server did not answer within {} s", TIME_MAX.as_secs());
            Err(HostError { retryable: !changes, ..error("timeout", message) })
        })
    }
}

/// Follows redirects to the same scheme, host and port.
fn within_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let origin = attempt.previous().first().map(Url::origin);
    if attempt.previous().len() > REDIRECTS_MAX {
        return attempt.error(RefusedRedirect(format!("the server redirects more than {REDIRECTS_MAX} times")));
    }
    if origin.is_some_and(|origin| origin == attempt.url().origin()) {
        return attempt.follow();
    }
    let to = attempt.url().origin().ascii_serialization();
    attempt.error(RefusedRedirect(format!("the server redirects to {to}, which is not followed: request it there")))
}

#[derive(Debug, Error)]
#[error("{0}")]
struct RefusedRedirect(String);

fn parse(text: &str) -> Result<Url, HostError> {
    let wrong = |why: String| Err(error("invalid_arguments", why));
    if text.len() > URL_BYTES_MAX {
        return wrong(format!("the address has {} bytes, {URL_BYTES_MAX} are the maximum", text.len()));
    }
    if text.contains(PLACEHOLDER) {
        return wrong("secrets are filled in in the values of headers only".to_owned());
    }
    let mut url = match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "https" | "http") && url.has_host() => url,
        Ok(_) => return wrong("the address must begin with https:// or http://".to_owned()),
        Err(why) => return wrong(format!("the address is none: {why}")),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("the address must not have a user or a password: use a header with ${secret:NAME}".to_owned());
    }
    url.set_fragment(None);
    Ok(url)
}

/// The headers with their secrets.
fn fill_in(
    policy: &StdPolicy,
    user: &str,
    rule: &HostRule,
    host: &str,
    headers: BTreeMap<String, String>,
) -> Result<HeaderMap, HostError> {
    if headers.len() > HEADERS_MAX {
        return Err(error("invalid_arguments", format!("at most {HEADERS_MAX} headers")));
    }
    let mut filled = HeaderMap::new();
    for (name, value) in headers {
        let shown: String = name.chars().take(64).collect();
        let wrong = |why: &str| error("invalid_arguments", format!("the header '{shown}' {why}"));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong("has no valid name"))?;
        if OWN_HEADERS.contains(&name.as_str()) {
            return Err(wrong("is set by the gateway"));
        }
        let mut rest = value.as_str();
        let mut text = String::new();
        while let Some((before, named)) = rest.split_once(PLACEHOLDER) {
            let (secret, after) = named.split_once('}').ok_or_else(|| wrong("names a secret without a '}'"))?;
            text.push_str(before);
            text.push_str(policy.for_host(user, secret, rule, host)?.expose());
            rest = after;
        }
        let is_secret = !text.is_empty();
        text.push_str(rest);
        let mut value =
            HeaderValue::from_str(&text).map_err(|_| wrong("has a character that is not ASCII, or a line break"))?;
        value.set_sensitive(is_secret);
        if filled.insert(name, value).is_some() {
            return Err(wrong("is there twice"));
        }
    }
    Ok(filled)
}

async fn answer(policy: &StdPolicy, response: Response) -> Result<Value, HostError> {
    let (status, url) = (response.status().as_u16(), response.url().to_string());
    let mut headers = Map::new();
    for name in response.headers().keys().take(HEADERS_MAX) {
        let values = response.headers().get_all(name).iter().filter_map(|value| value.to_str().ok());
        let value = values.collect::<Vec<_>>().join(", ");
        if value.len() <= HEADER_BYTES_MAX {
            headers.insert(name.as_str().to_owned(), value.into());
        }
    }
    let mut answer = json!({"status": status, "url": url, "headers": headers});
    let (key, content) = match String::from_utf8(bounded(response).await?) {
        // Texts are redacted with the rest of the answer.
        Ok(text) => ("text", Value::from(text)),
        Err(other) => ("bytes", to_base64(&policy.secrets().fold(other.into_bytes(), redact)).into()),
    };
    if let Value::Object(fields) = &mut answer {
        fields.insert(key.to_owned(), content);
    }
    Ok(answer)
}

/// The body, of which no more is received than may be.
async fn bounded(mut response: Response) -> Result<Vec<u8>, HostError> {
    let too_large = || error("too_large", format!("the response has more than {RESPONSE_BYTES_MAX} bytes"));
    if response.content_length().is_some_and(|bytes| bytes > RESPONSE_BYTES_MAX as u64) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > RESPONSE_BYTES_MAX {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// A body that is no text, without a secret.
fn redact(body: Vec<u8>, secret: &Secret) -> Vec<u8> {
    let secret = secret.expose().as_bytes();
    let Some(first) = find(&body, secret) else { return body };
    let (mut kept, mut at) = (Vec::with_capacity(body.len()), 0);
    let mut next = Some(first);
    while let Some(found) = next {
        kept.extend_from_slice(body.get(at..at + found).unwrap_or_default());
        kept.extend_from_slice(REDACTED.as_bytes());
        at += found + secret.len();
        next = find(body.get(at..).unwrap_or_default(), secret);
    }
    kept.extend_from_slice(body.get(at..).unwrap_or_default());
    kept
}

fn find(body: &[u8], wanted: &[u8]) -> Option<usize> {
    body.windows(wanted.len().max(1)).position(|window| window.first() == wanted.first() && window == wanted)
}

/// A request that may have changed something has reached the server.
fn unknown(failure: HostError) -> HostError {
    let message = format!("{}; whether the request was carried out is unknown", failure.message);
    HostError { retryable: false, ..error("http_failed", message) }
}

/// Why a request failed: what the program must not do, or what went wrong.
fn failed(failure: reqwest::Error) -> HostError {
    let mut cause: &(dyn StdError + 'static) = &failure;
    loop {
        if let Some(refused) = cause.downcast_ref::<RefusedAddress>() {
            return error("not_allowed", refused.to_string());
        }
        if let Some(refused) = cause.downcast_ref::<RefusedRedirect>() {
            return error("not_allowed", refused.to_string());
        }
        let Some(inner) = cause.source() else { break };
        cause = inner;
    }
    let why = if failure.is_connect() { "the server was not reached" } else { "the connection broke" };
    HostError { retryable: failure.is_connect(), ..error("http_failed", format!("{why}: {cause}")) }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
