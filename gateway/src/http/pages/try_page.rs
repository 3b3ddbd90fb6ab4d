//! `/try`: a page with drawn glasses, so that a newcomer can talk to the gateway from a browser.
//!
//! The page is a device like any other: it has a key of its own and speaks the JSON form of the
//! protocol on `/glasses`. Only its pairing is shorter, see [`pair`].

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use gateway_core::conversation::Config;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{
    HeaderMap, Method, Request, StatusCode, Uri,
    body::Incoming,
    header::{self, HeaderName, HeaderValue},
};
use serde_json::json;
use tokio::time::timeout;

use super::Pages;
use super::{host, host_is_loopback};
use crate::{
    clock,
    identity::{fingerprint, pairing::Grant},
    models::settings::Model,
    reply::{Reply, plain},
};

/// The page itself.
pub(super) const PATH: &str = "/try";
/// What belongs to it.
pub(super) const FOLDER: &str = "/try/";
/// Where the page asks to be paired.
const PAIR: &str = "/try/pair";
/// What the page tells of the gateway before it connects.
const ABOUT: &str = "/try/about.json";
/// A header that only a script of the same origin can set: for others a browser asks first, by a
/// request that nobody here answers.
const PAIR_HEADER: &str = "x-lorgnette-try";
/// A public key in hexadecimal digits.
const KEY_DIGITS: usize = 64;
/// How long its few bytes may take.
const BODY_MS_MAX: u64 = 2_000;
/// Whose glasses the page is: the user that pairing takes where none is named.
const USER: &str = "wearer";
/// What the list of devices calls it.
const NAME: &str = "Browser";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const ICON: &str = "image/svg+xml";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const JSON: &str = "application/json";

/// Path, type, content.
const FILES: &[(&str, &str, &str)] = &[
    (PATH, HTML, include_str!("static/try.html")),
    ("/try/icon.svg", ICON, include_str!("static/icon.svg")),
    ("/try/try.css", CSS, include_str!("static/try.css")),
    ("/try/app.js", SCRIPT, include_str!("static/app.js")),
    ("/try/bytes.js", SCRIPT, include_str!("static/bytes.js")),
    ("/try/connection.js", SCRIPT, include_str!("static/connection.js")),
    ("/try/conversation.js", SCRIPT, include_str!("static/conversation.js")),
    ("/try/identity.js", SCRIPT, include_str!("static/identity.js")),
    ("/try/link.js", SCRIPT, include_str!("static/link.js")),
    ("/try/session.js", SCRIPT, include_str!("static/session.js")),
    ("/try/display.js", SCRIPT, include_str!("static/display.js")),
    ("/try/tools.js", SCRIPT, include_str!("static/tools.js")),
    ("/try/journal.js", SCRIPT, include_str!("static/journal.js")),
    ("/try/microphone.js", SCRIPT, include_str!("static/microphone.js")),
    ("/try/capture.js", SCRIPT, include_str!("static/capture.js")),
    ("/try/question.js", SCRIPT, include_str!("static/question.js")),
    ("/try/screen.js", SCRIPT, include_str!("static/screen.js")),
    ("/try/sound.js", SCRIPT, include_str!("static/sound.js")),
    ("/try/talk.js", SCRIPT, include_str!("static/talk.js")),
    ("/try/typing.js", SCRIPT, include_str!("static/typing.js")),
    ("/try/waits.js", SCRIPT, include_str!("static/waits.js")),
    ("/try/words.js", SCRIPT, include_str!("static/words.js")),
    ("/try/speaker.js", SCRIPT, include_str!("static/speaker.js")),
    ("/try/playout.js", SCRIPT, include_str!("static/playout.js")),
];

/// On every answer. Nothing from elsewhere is loaded, nobody frames the page (a frame could lure
/// clicks), nothing is kept in a cache that the next version would have to fight.
static HEADERS: [(HeaderName, &str); 8] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CACHE_CONTROL, "no-store"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "microphone=(self), camera=(), geolocation=()"),
];

/// Whether the page exists for who asks from there.
pub(super) fn is_for(peer: SocketAddr, pages: &Pages) -> bool {
    pages.try_page.is_some() && peer.ip().is_loopback()
}

/// From the root to the page: who opens the bare address looks for it.
pub(super) fn lead() -> Reply {
    let mut reply = plain(StatusCode::SEE_OTHER, "the page is at /try\n");
    reply.headers_mut().insert(header::LOCATION, HeaderValue::from_static(PATH));
    reply
}

/// Answers for the page; to other machines, and where it is switched off, it does not exist.
pub(super) async fn answer(request: Request<Incoming>, peer: SocketAddr, pages: &Pages) -> Reply {
    let mut reply = if !is_for(peer, pages) {
        plain(StatusCode::NOT_FOUND, "nothing here; the page is for this machine only, with `listen.try_page = true`\n")
    } else if !host(request.headers()).is_some_and(host_is_loopback) {
        plain(StatusCode::FORBIDDEN, "open this page as http://localhost or http://127.0.0.1\n")
    } else if request.uri().path() == PAIR {
        pair(request, pages).await
    } else if let Some(about) = pages.try_page.as_ref().filter(|_| request.uri().path() == ABOUT) {
        about.answer(&request)
    } else {
        file(&request)
    };
    for (name, value) in &HEADERS {
        reply.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    reply
}

fn file(request: &Request<Incoming>) -> Reply {
    let wanted = match request.uri().path() {
        FOLDER => PATH,
        path => path,
    };
    let Some((_, kind, content)) = FILES.iter().find(|(path, _, _)| *path == wanted) else {
        return plain(StatusCode::NOT_FOUND, "the page has no such file\n");
    };
    if request.method() != Method::GET {
        return only(Method::GET);
    }
    let mut reply = plain(StatusCode::OK, content);
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// What the page tells of the gateway before it connects.
pub struct About(String);

impl About {
    /// `{"phrases": [...], "always": false, "model": null}`: the wake phrases, whether none is needed, and who answers
    /// what the box itself does not: `{"name": "...", "host": "...", "here": false}`.
    pub fn new(conversation: &Config, models: &[Model]) -> Self {
        let model = models.iter().find_map(|model| match model {
            Model::Provider(config) => Some(config),
            Model::Offline => None,
        });
        let model = model.map(|config| {
            let host = config.base_url.parse::<Uri>().ok().and_then(|url| url.host().map(str::to_owned));
            let host = host.unwrap_or_default();
            json!({"name": config.model, "here": host_is_loopback(&host), "host": host})
        });
        let Config { wake_phrases, always_listening, .. } = conversation;
        Self(json!({"phrases": wake_phrases, "always": always_listening, "model": model}).to_string())
    }

    fn answer(&self, request: &Request<Incoming>) -> Reply {
        if request.method() != Method::GET {
            return only(Method::GET);
        }
        let mut reply = Reply::new(Full::new(Bytes::from(self.0.clone())).boxed());
        reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        reply
    }
}

fn only(method: Method) -> Reply {
    let mut reply = plain(StatusCode::METHOD_NOT_ALLOWED, "wrong method\n");
    if let Ok(allowed) = HeaderValue::from_str(method.as_str()) {
        reply.headers_mut().insert(header::ALLOW, allowed);
    }
    reply
}

/// Opens the pairing window for exactly the key that the page sends, as the operator would with
/// `lorgnette devices`.
///
/// This is safe because whoever loads pages from loopback is the operator of this machine: who can
/// connect from here, under a loopback name, with a script of this very origin, has this machine's
/// browser in hand. A page of another site fails by its Origin, by the header that it may not set,
/// and by the Host if it had its own name resolve to 127.0.0.1; another machine fails by its address;
/// a proxy on this machine, which would lend its address to strangers, fails by the headers it adds.
/// The window admits one device that proves this key, once. Who shares the machine with people who
/// must not talk to the gateway sets `listen.try_page = false`.
async fn pair(request: Request<Incoming>, pages: &Pages) -> Reply {
    if request.method() != Method::POST {
        return only(Method::POST);
    }
    if !is_from_our_page(request.headers()) {
        return plain(StatusCode::FORBIDDEN, "only the page of this gateway may ask for this\n");
    }
    let body = Limited::new(request.into_body(), KEY_DIGITS).collect();
    let Ok(Ok(body)) = timeout(Duration::from_millis(BODY_MS_MAX), body).await else {
        return plain(StatusCode::BAD_REQUEST, "send the device key only\n");
    };
    let Some(key) = key_of(&body.to_bytes()) else {
        return plain(StatusCode::BAD_REQUEST, "the public key of the device has 64 hexadecimal digits\n");
    };
    let fingerprint = fingerprint(&key);
    let grant = Grant { user: USER.to_owned(), name: NAME.to_owned() };
    pages.pairings.by_fingerprint(clock::mono_us(), &fingerprint, grant);
    tracing::info!(device = fingerprint, "the page on this machine asks to be paired");
    plain(StatusCode::OK, "the window is open\n")
}

/// Stricter than for a WebSocket: the Origin must be there, and nothing may have forwarded this.
fn is_from_our_page(headers: &HeaderMap) -> bool {
    let origin = headers
        .get(header::ORIGIN)
        .and_then(|origin| origin.to_str().ok())
        .and_then(|origin| origin.strip_prefix("http://"));
    let forwarded = ["forwarded", "x-forwarded-for", "x-real-ip", "via"].iter().any(|name| headers.contains_key(*name));
    origin.is_some() && origin == host(headers) && headers.contains_key(PAIR_HEADER) && !forwarded
}

fn key_of(digits: &[u8]) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    let pairs = digits.chunks_exact(2);
    if digits.len() != KEY_DIGITS || !pairs.remainder().is_empty() {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(pairs) {
        // Judged first: the parser would take a sign.
        if !pair.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_64_digits_and_nothing_else() {
        assert_eq!(key_of("0a".repeat(32).as_bytes()), Some([10; 32]));
        for bad in [String::new(), "0a".repeat(31), "0a".repeat(33), "+a".repeat(32), "zz".repeat(32)] {
            assert_eq!(key_of(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn the_page_names_only_files_that_are_served() {
        let named: Vec<&str> = FILES
            .iter()
            .flat_map(|(_, _, content)| content.split('"'))
            .filter(|part| part.starts_with(FOLDER) || part.starts_with("./"))
            .collect();
        assert!(named.len() > 10, "{named:?}");
        for name in named {
            let path = name.replace("./", FOLDER);
            assert!(
                [PAIR, ABOUT].contains(&path.as_str()) || FILES.iter().any(|(served, _, _)| *served == path),
                "{name}"
            );
        }
    }
}
