//! `/try`: a page with simulated glasses, to talk to the gateway from a browser.
//!
//! The page is a device like any other: it has its own key and uses the JSON form of the protocol on `/glasses`. It is
//! paired by its code, or, with the link that the operator got, by itself: see [`pair`].

use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::to_bytes,
    extract::{Request, State},
    http::{
        HeaderMap, Method, StatusCode, Uri,
        header::{self, HeaderName, HeaderValue},
    },
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::any,
};
use gateway_core::conversation::Config;
use reqwest::Url;
use serde_json::{Value, json};
use tokio::time::timeout;
use tools::apps::manifest::App;

use super::{
    origin::{host, host_is_loopback},
    peer::Peer,
    reply::{self, NOTHING_HERE, Text, to_wrong_key},
    try_link::TryLink,
};
use crate::{
    clock,
    device_task::settings::Current,
    identity::{Pairings, fingerprint, grant::Grant},
    models::settings::Model,
    store::Store,
};

/// The page itself.
const PATH: &str = "/try";
/// Folder of its files.
const FOLDER: &str = "/try/";
/// Path of the page's pairing request.
const PAIR: &str = "/try/pair";
/// What the page shows about the gateway before it connects.
const ABOUT: &str = "/try/about.json";
/// Carries the token of the link. Only a script of the same origin can set it: for others a browser sends a preflight
/// request, which is not answered here.
const PAIR_HEADER: &str = "x-lorgnette-try";
/// A public key in hexadecimal digits.
const KEY_DIGITS: usize = 64;
/// How long its short body may take, in milliseconds.
const BODY_MS_MAX: u64 = 2_000;
/// The page's user: the default of pairing.
const USER: &str = "wearer";
/// Its name in the list of devices.
const NAME: &str = "Browser";

/// For other machines, and where the page is switched off.
const NO_PAGE: Text =
    (StatusCode::NOT_FOUND, "nothing here; the page is for this machine only, with `listen.try_page = true`\n");

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const ICON: &str = "image/svg+xml";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Path, type, content.
const FILES: &[(&str, &str, &str)] = &[
    (PATH, HTML, include_str!("static/try.html")),
    ("/try/icon.svg", ICON, include_str!("static/icon.svg")),
    ("/try/look.css", CSS, include_str!("static/look.css")),
    ("/try/try.css", CSS, include_str!("static/try.css")),
    ("/try/app.js", SCRIPT, include_str!("static/app.js")),
    ("/try/bytes.js", SCRIPT, include_str!("static/bytes.js")),
    ("/try/connection.js", SCRIPT, include_str!("static/connection.js")),
    ("/try/conversation.js", SCRIPT, include_str!("static/conversation.js")),
    ("/try/identity.js", SCRIPT, include_str!("static/identity.js")),
    ("/try/link.js", SCRIPT, include_str!("static/link.js")),
    ("/try/loss.js", SCRIPT, include_str!("static/loss.js")),
    ("/try/resume.js", SCRIPT, include_str!("static/resume.js")),
    ("/try/sequences.js", SCRIPT, include_str!("static/sequences.js")),
    ("/try/session.js", SCRIPT, include_str!("static/session.js")),
    ("/try/display.js", SCRIPT, include_str!("static/display.js")),
    ("/try/tools.js", SCRIPT, include_str!("static/tools.js")),
    ("/try/journal.js", SCRIPT, include_str!("static/journal.js")),
    ("/try/microphone.js", SCRIPT, include_str!("static/microphone.js")),
    ("/try/capture.js", SCRIPT, include_str!("static/capture.js")),
    ("/try/clock.js", SCRIPT, include_str!("static/clock.js")),
    ("/try/ticker.js", SCRIPT, include_str!("static/ticker.js")),
    ("/try/question.js", SCRIPT, include_str!("static/question.js")),
    ("/try/screen.js", SCRIPT, include_str!("static/screen.js")),
    ("/try/sound.js", SCRIPT, include_str!("static/sound.js")),
    ("/try/talk.js", SCRIPT, include_str!("static/talk.js")),
    ("/try/typing.js", SCRIPT, include_str!("static/typing.js")),
    ("/try/waits.js", SCRIPT, include_str!("static/waits.js")),
    ("/try/words.js", SCRIPT, include_str!("static/words.js")),
    ("/try/speeches.js", SCRIPT, include_str!("static/speeches.js")),
    ("/try/speaker.js", SCRIPT, include_str!("static/speaker.js")),
    ("/try/playout.js", SCRIPT, include_str!("static/playout.js")),
];

/// On every answer. Nothing is loaded from elsewhere, no frame may embed the page (it could lure clicks), and nothing
/// is cached, so that the next version takes effect.
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

/// What the page shows about the gateway before it connects.
#[derive(Clone)]
pub(crate) struct About {
    current: Current,
    model: Value,
    texts: Vec<String>,
    hears: Value,
    console: bool,
    apps: InstalledApps,
}

/// Reads which mini-apps are installed.
pub(crate) type InstalledApps = Arc<dyn Fn() -> Vec<Arc<App>> + Send + Sync>;

impl About {
    /// Of the settings of sessions, and the models that answer. `texts`: the addresses of all servers that may be sent text.
    /// `hears`: the address of a recogniser at a server, and whether all sound is sent to it. `console`: there is one.
    /// `apps`: mini-apps, which come and go.
    pub(crate) fn new(
        current: Current,
        models: &[Model],
        texts: &[&str],
        hears: Option<(&str, bool)>,
        console: bool,
        apps: InstalledApps,
    ) -> Self {
        let model = models.iter().find_map(|model| match model {
            Model::Provider(config) => Some(config),
            Model::Offline => None,
        });
        let model = model.map(|config| {
            let (host, here) = host_of(&config.base_url);
            json!({"name": config.model, "here": here, "host": host})
        });
        let hears = hears.map(|(base_url, always)| {
            let (host, here) = host_of(base_url);
            json!({"always": always, "here": here, "host": host})
        });
        let texts = hosts_elsewhere(texts.iter().copied());
        Self { current, model: model.into(), texts, hears: hears.into(), console, apps }
    }

    /// `{"phrases": [...], "always": false, "model": null, "texts": [], "hears": null, "apps": [], "console": true}`: the wake
    /// phrases, whether none is needed, the model that answers what the box itself does not: `{"name": "...", "host": "...",
    /// "here": false}`; the hosts, other than this machine, that may be sent text; the recogniser that is sent sound, always or
    /// when this machine's fails: `{"host": "...", "here": false, "always": true}`; the hosts, other than this machine, of
    /// mini-apps that may get the microphone's sound and text; and whether there is a console.
    fn text(&self) -> String {
        let settings = self.current.get();
        let Config { wake_phrases, always_listening, .. } = &settings.conversation;
        let apps = (self.apps)();
        let hearing = apps.iter().filter(|app| app.may("MICROPHONE"));
        json!({
            "phrases": wake_phrases,
            "always": always_listening,
            "model": self.model,
            "texts": self.texts,
            "hears": self.hears,
            "apps": hosts_elsewhere(hearing.map(|app| app.public_url.as_str())),
            "console": self.console,
        })
        .to_string()
    }
}

/// The host of a server's address, and whether it is this machine.
fn host_of(base_url: &str) -> (String, bool) {
    let url = Url::parse(base_url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_here = address.map_or(host == "localhost", |address| address.to_canonical().is_loopback());
    (host.to_owned(), is_here)
}

/// The hosts of servers' addresses but for this machine, each once.
fn hosts_elsewhere<'a>(base_urls: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut hosts = Vec::new();
    for (host, _) in base_urls.map(host_of).filter(|(_, is_here)| !is_here) {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts
}

/// The page, as a gateway serves it.
#[derive(Clone)]
pub(crate) struct TryPage {
    /// What it shows about the gateway.
    pub(crate) about: About,
    /// Pairs one browser.
    pub(crate) link: Arc<TryLink>,
}

/// State of the page's routes.
#[derive(Clone)]
struct Page {
    /// `None`: there is no page.
    page: Option<TryPage>,
    pairings: Arc<Pairings>,
    store: Store,
}

impl Page {
    /// Whether the page exists for this peer.
    fn is_for(&self, peer: &Peer) -> bool {
        self.page.is_some() && peer.is_here()
    }
}

pub(super) fn routes(page: Option<TryPage>, pairings: Arc<Pairings>, store: Store) -> Router {
    let page = Page { page, pairings, store };
    Router::new()
        .route(PATH, any(file))
        .route(FOLDER, any(file))
        .route("/try/{*file}", any(file))
        .route(ABOUT, any(about))
        .route(PAIR, any(pair))
        .layer(from_fn_with_state(page.clone(), guard))
        .route("/", any(lead))
        .with_state(page)
}

/// Redirects from the root to the page.
async fn lead(State(page): State<Page>, peer: Peer) -> Response {
    if !page.is_for(&peer) {
        return NO_PAGE.into_response();
    }
    (StatusCode::SEE_OTHER, [(header::LOCATION, PATH)], "the page is at /try\n").into_response()
}

/// Before all routes of the page: for other machines, and if it is switched off, the page does not exist.
async fn guard(State(page): State<Page>, peer: Peer, request: Request, next: Next) -> Response {
    let mut response = if !page.is_for(&peer) {
        NO_PAGE.into_response()
    } else if !host(request.headers()).is_some_and(host_is_loopback) {
        (StatusCode::FORBIDDEN, "open this page as http://localhost or http://127.0.0.1\n").into_response()
    } else {
        next.run(request).await
    };
    for (name, value) in &HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn file(method: Method, uri: Uri) -> Response {
    let wanted = match uri.path() {
        FOLDER => PATH,
        path => path,
    };
    let Some((_, kind, content)) = FILES.iter().find(|(path, _, _)| *path == wanted) else {
        return (StatusCode::NOT_FOUND, "the page has no such file\n").into_response();
    };
    if method != Method::GET {
        return only("GET");
    }
    ([(header::CONTENT_TYPE, *kind)], *content).into_response()
}

async fn about(State(page): State<Page>, method: Method) -> Response {
    if method != Method::GET {
        return only("GET");
    }
    // The guard has found that the page exists.
    match page.page {
        Some(page) => reply::json(StatusCode::OK, page.about.text()),
        None => NOTHING_HERE.into_response(),
    }
}

fn only(method: &'static str) -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, method)], "wrong method\n").into_response()
}

/// Opens the pairing window for exactly the key that the page sends, as the operator would with `lorgnette devices`.
///
/// The operator agrees by opening the link that `lorgnette serve` printed: its token, which the page sends, works once and
/// expires.
/// An address of this machine proves nothing, since every program of every user here has it. A page of another site
/// fails by its Origin, by the header that it may not set, and by the Host if its own name resolves to 127.0.0.1;
/// another machine fails by its address, a proxy by the headers it adds. A key that is paired, revoked or waiting
/// already is for the operator to decide about.
async fn pair(State(page): State<Page>, request: Request) -> Response {
    if request.method() != Method::POST {
        return only("POST");
    }
    // The guard has found that the page exists.
    let Some(TryPage { link, .. }) = &page.page else { return NOTHING_HERE.into_response() };
    let (token, key) = match token_and_key_in(request).await {
        Ok(sent) => sent,
        Err(refusal) => return refusal.into_response(),
    };
    let fingerprint = fingerprint(&key);
    match link.redeem(clock::mono_us(), &token, || page.open_window(&fingerprint)) {
        Some(Ok(())) => {
            tracing::info!(device = fingerprint, "the page on this machine is paired by the operator's link");
            (StatusCode::OK, "the window is open\n").into_response()
        }
        Some(Err(refusal)) => refusal.into_response(),
        None => {
            let told =
                "this is not the link that the gateway printed, or it was used or has expired: pair by the code\n";
            to_wrong_key((StatusCode::FORBIDDEN, told)).await
        }
    }
}

impl Page {
    fn open_window(&self, fingerprint: &str) -> Result<(), (StatusCode, String)> {
        let known = self.store.disk().device(fingerprint);
        let known = known.map_err(|error| (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")))?;
        if known.is_some() {
            let told = "this key is paired already, or was revoked: see `lorgnette devices list`\n";
            return Err((StatusCode::CONFLICT, told.to_owned()));
        }
        let grant = Grant { user: USER.to_owned(), name: NAME.to_owned() };
        let opened = self.pairings.open_window(clock::mono_us(), fingerprint, grant);
        opened.map_err(|error| (StatusCode::CONFLICT, format!("{error}\n")))
    }
}

/// The link's token and the device key that the page sends.
async fn token_and_key_in(request: Request) -> Result<(String, [u8; 32]), Text> {
    const FOREIGN: Text = (StatusCode::FORBIDDEN, "only the page of this gateway may ask for this\n");
    if !is_from_our_page(request.headers()) {
        return Err(FOREIGN);
    }
    let token = request.headers().get(PAIR_HEADER).and_then(|token| token.to_str().ok()).ok_or(FOREIGN)?.to_owned();
    let body = timeout(Duration::from_millis(BODY_MS_MAX), to_bytes(request.into_body(), KEY_DIGITS)).await;
    let Ok(Ok(body)) = body else {
        return Err((StatusCode::BAD_REQUEST, "send the device key only\n"));
    };
    let key =
        key_of(&body).ok_or((StatusCode::BAD_REQUEST, "the public key of the device has 64 hexadecimal digits\n"))?;
    Ok((token, key))
}

/// Stricter than for a WebSocket: the Origin must be present, and the request must not be forwarded.
fn is_from_our_page(headers: &HeaderMap) -> bool {
    let origin = headers
        .get(header::ORIGIN)
        .and_then(|origin| origin.to_str().ok())
        .and_then(|origin| origin.strip_prefix("http://"));
    let forwarded = ["forwarded", "x-forwarded-for", "x-real-ip", "via"].iter().any(|name| headers.contains_key(*name));
    origin.is_some() && origin == host(headers) && !forwarded
}

pub(super) fn key_of(digits: &[u8]) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    let pairs = digits.chunks_exact(2);
    if digits.len() != KEY_DIGITS || !pairs.remainder().is_empty() {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(pairs) {
        // Checked first: the parser would accept a sign.
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
    use crate::{device_task::settings::Changeable, speech::settings::Voice};

    fn about(texts: &[&str], hears: Option<(&str, bool)>, apps: Vec<Arc<App>>) -> Value {
        let voice = Voice { speed: 1.0, volume_percent: 100 };
        let settings = Changeable { gateway_name: String::new(), voice, conversation: Config::default() };
        serde_json::from_str(
            &About::new(Current::new(settings), &[], texts, hears, true, Arc::new(move || apps.clone())).text(),
        )
        .unwrap()
    }

    #[test]
    fn the_page_is_told_of_every_other_machine_that_may_be_sent_text() {
        let texts =
            ["http://localhost:1/v1", "https://a.example/v1", "https://ann:secret@b.example", "https://a.example"];
        assert_eq!(about(&texts, None, vec![])["texts"], json!(["a.example", "b.example"]));
        assert_eq!(about(&texts[..1], None, vec![])["texts"], json!([]));
    }

    #[test]
    fn the_page_is_told_where_sound_is_sent() {
        for (hears, expected) in [
            (None, Value::Null),
            (Some(("http://127.0.0.1:9/v1", true)), json!({"host": "127.0.0.1", "here": true, "always": true})),
            (Some(("http://127.0.0.2:9/v1", true)), json!({"host": "127.0.0.2", "here": true, "always": true})),
            (Some(("http://[::1]:9/v1", false)), json!({"host": "[::1]", "here": true, "always": false})),
            (Some(("http://192.0.2.1:9/v1", true)), json!({"host": "192.0.2.1", "here": false, "always": true})),
            (
                Some(("https://ann:secret@ears.example/v1?key=secret", false)),
                json!({"host": "ears.example", "here": false, "always": false}),
            ),
        ] {
            assert_eq!(about(&[], hears, vec![])["hears"], expected);
        }
    }

    #[test]
    fn the_page_is_told_of_mini_apps_on_other_machines_that_may_hear() {
        let app = |url: &str, permission: &str| {
            Arc::new(App { public_url: url.into(), permissions: vec![permission.into()], ..App::default() })
        };
        let apps = vec![
            app("https://captions.example", "MICROPHONE"),
            app("https://captions.example/v2", "ALL"),
            app("https://map.example", "LOCATION"),
            app("http://localhost:3000", "MICROPHONE"),
        ];
        assert_eq!(about(&[], None, apps)["apps"], json!(["captions.example"]));
    }

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
