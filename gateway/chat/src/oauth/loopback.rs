//! Login with a browser on this machine: the provider redirects it to a port opened for this one response. RFC 8252
//! with RFC 7636.

use std::time::Duration;

use base64::Engine as _;
use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use crate::keyring::Token;

use super::{Flow, OAuthError, checked_url, exchange, random_text};

/// Longest browser request that is read.
const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// Most connections before the response: browsers open some that they do not use.
const CONNECTIONS_MAX: usize = 16;
/// Time limit for one connection to send its request; the next one waits meanwhile.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// A login that waits for a browser.
pub struct Loopback<'a> {
    flow: &'a Flow,
    client: reqwest::Client,
    listener: TcpListener,
    redirect: String,
    state: String,
    verifier: String,
    authorize: reqwest::Url,
}

impl<'a> Loopback<'a> {
    /// Opens the port, on loopback only.
    ///
    /// # Errors
    /// The configuration is incomplete, or the port is in use.
    pub async fn bind(flow: &'a Flow) -> Result<Self, OAuthError> {
        let authorize = flow.authorize_url.as_deref().ok_or(OAuthError::Missing("authorize_url"))?;
        let authorize = checked_url(authorize, "authorize_url")?;
        let client = exchange::client()?;
        let (port, path) = &flow.redirect;
        let failed = |error| OAuthError::Local(format!("port {port} of this machine cannot be opened: {error}"));
        let listener = TcpListener::bind(("127.0.0.1", *port)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let redirect = format!("http://localhost:{port}{path}");
        Ok(Self { flow, client, listener, redirect, state: random_text()?, verifier: random_text()?, authorize })
    }

    /// The address that the wearer opens.
    pub fn url(&self) -> String {
        let challenge = Sha256::digest(self.verifier.as_bytes());
        let challenge = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(challenge);
        let mut url = self.authorize.clone();
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &self.flow.client_id)
                .append_pair("redirect_uri", &self.redirect)
                .append_pair("state", &self.state)
                .append_pair("code_challenge", &challenge)
                .append_pair("code_challenge_method", "S256");
            if !self.flow.scopes.is_empty() {
                query.append_pair("scope", &self.flow.scopes.join(" "));
            }
            for (name, value) in &self.flow.extra {
                query.append_pair(name, value);
            }
        }
        url.into()
    }

    /// Waits for the response, and exchanges its code for a token.
    ///
    /// # Errors
    /// No response in time, the wearer refused, or the response belongs to another login.
    pub async fn wait(self, limit: Duration) -> Result<Token, OAuthError> {
        let code = timeout(limit, self.code()).await.map_err(|_| OAuthError::TimedOut)??;
        // The port is closed from here on.
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code.as_str()),
            ("redirect_uri", self.redirect.as_str()),
            ("code_verifier", self.verifier.as_str()),
        ];
        if self.flow.json {
            // Servers that take JSON require the state too.
            fields.push(("state", &self.state));
        }
        Ok(exchange::token(&self.client, self.flow, &fields, None).await?)
    }

    async fn code(&self) -> Result<String, OAuthError> {
        for _ in 0..CONNECTIONS_MAX {
            let accepted = self.listener.accept().await;
            let (mut stream, _) =
                accepted.map_err(|error| OAuthError::Local(format!("no connection can be taken: {error}")))?;
            let Ok(Some(target)) = timeout(REQUEST_TIMEOUT, read_target(&mut stream)).await else {
                continue;
            };
            let (path, query) = target.split_once('?').unwrap_or((&target, ""));
            if path != self.flow.redirect.1 {
                answer(&mut stream, "404 Not Found", "There is nothing here.").await;
                continue;
            }
            let code = read_query(query, &self.state);
            let words = match &code {
                Ok(_) => "Logged in. You can close this page.",
                Err(_) => "The login failed. The terminal says why.",
            };
            answer(&mut stream, "200 OK", words).await;
            return code;
        }
        Err(OAuthError::Foreign)
    }
}

/// The code in a browser's request; `state` is that of this login.
pub(crate) fn read_query(query: &str, state: &str) -> Result<String, OAuthError> {
    let value = |name: &str| {
        form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    };
    // Checked first: without the right state the request is not from this login.
    if value("state").as_deref() != Some(state) {
        return Err(OAuthError::Foreign);
    }
    if let Some(error) = value("error") {
        let words: String = error.chars().filter(|c| !c.is_control()).take(200).collect();
        return Err(OAuthError::Refused(words));
    }
    value("code").filter(|code| !code.is_empty()).ok_or(OAuthError::Foreign)
}

/// The target of a GET request; `None` for anything else.
async fn read_target(stream: &mut TcpStream) -> Option<String> {
    let mut request = Vec::new();
    let mut piece = [0_u8; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut piece).await.ok()?;
        if read == 0 || request.len() + read > REQUEST_BYTES_MAX {
            return None;
        }
        request.extend_from_slice(piece.get(..read)?);
    }
    target_of(request)
}

pub(crate) fn target_of(request: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(request).ok()?;
    let mut words = text.lines().next()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned)).flatten()
}

async fn answer(stream: &mut TcpStream, status: &str, words: &str) {
    let page = format!("<!doctype html><meta charset=utf-8><title>Lorgnette</title><p>{words}");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\n\r\n{page}",
        page.len()
    );
    // A closed browser needs no reply.
    let _ = timeout(REQUEST_TIMEOUT, async {
        stream.write_all(head.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}
