//! Login and token renewal, against a local OAuth server.

mod common;

use std::{
    os::unix::fs::PermissionsExt,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::Engine as _;
use chat_models::{
    ChatModel,
    auth::Key,
    chat_completions::{ChatCompletions, Options},
    http::{Credentials, Endpoint, Http},
    keyring::{Entry, Keyring, Token},
    oauth::{Device, Flow, HeaderStyle, Login, Loopback, OAuthError},
};
use common::{
    request,
    server::{Server, serve, status, streamed},
};
use gateway_core::vocab::{FailureKind, ModelEvent};
use sha2::{Digest, Sha256};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::mpsc,
};
use tokio_util::sync::CancellationToken;

fn flow(server: &Server) -> Flow {
    Flow {
        client_id: "lorgnette-test".into(),
        client_secret: None,
        authorize_url: Some("https://provider.example/authorize?tenant=1".into()),
        device_url: Some(format!("{}device", server.url)),
        token_url: format!("{}token", server.url),
        scopes: vec!["chat".into(), "offline".into()],
        redirect: (0, "/callback".into()),
        json: false,
        extra: vec![("prompt".into(), "consent".into())],
    }
}

fn json(body: &str) -> Vec<common::server::Act> {
    status("200 OK", "content-type: application/json\r\n", body)
}

fn token(number: u32) -> Vec<common::server::Act> {
    let body = format!(
        r#"{{"access_token":"planted-access-{number}","refresh_token":"planted-refresh-{number}","expires_in":3600}}"#
    );
    json(&body)
}

fn error(code: &str) -> Vec<common::server::Act> {
    status("400 Bad Request", "", &format!(r#"{{"error":"{code}","error_description":"of planted-refresh-0"}}"#))
}

fn sent(server: &Server) -> Vec<String> {
    server.requests.lock().expect("unpoisoned").clone()
}

fn field(form: &str, name: &str) -> Option<String> {
    let body = form.split("\r\n\r\n").last().unwrap_or_default();
    let found = form_urlencoded::parse(body.as_bytes()).find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}

/// Requests a loopback address as a browser does.
async fn browse(redirect: &str, path_and_query: &str) -> String {
    let address = redirect.strip_prefix("http://localhost:").expect("loopback");
    let port: u16 = address.split('/').next().expect("a port").parse().expect("a port");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("connected");
    let get = format!("GET {path_and_query} HTTP/1.1\r\nhost: localhost:{port}\r\n\r\n");
    stream.write_all(get.as_bytes()).await.expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

fn parameter(url: &str, name: &str) -> String {
    let url: reqwest::Url = url.parse().expect("an address");
    let found = url.query_pairs().find(|(key, _)| key == name);
    found.unwrap_or_else(|| panic!("no {name}")).1.into_owned()
}

#[tokio::test]
async fn a_browser_on_this_machine_brings_the_code() {
    let server = serve(vec![token(1)]).await;
    let flow = flow(&server);
    let login = Loopback::bind(&flow).await.expect("a port");
    let url = login.url();
    assert!(url.starts_with("https://provider.example/authorize?tenant=1&response_type=code&"), "{url}");
    assert_eq!(parameter(&url, "code_challenge_method"), "S256");
    assert_eq!(parameter(&url, "scope"), "chat offline");
    assert_eq!(parameter(&url, "prompt"), "consent");
    let (redirect, state) = (parameter(&url, "redirect_uri"), parameter(&url, "state"));
    let browser = async {
        // An unused connection of a browser, and its request for an icon.
        drop(TcpStream::connect(("127.0.0.1", redirect[17..].split('/').next().unwrap().parse().unwrap())).await);
        assert!(browse(&redirect, "/favicon.ico").await.starts_with("HTTP/1.1 404"));
        browse(&redirect, &format!("/callback?code=planted-code&state={state}")).await
    };
    let (token, page) = tokio::join!(login.wait(Duration::from_secs(20)), browser);
    let token = token.expect("a token");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("You can close this page"), "{page}");
    assert!(!page.contains("planted"));
    assert!(token.expires_at_ms.is_some());
    let asked = &sent(&server)[0];
    assert_eq!(field(asked, "grant_type").as_deref(), Some("authorization_code"));
    assert_eq!(field(asked, "code").as_deref(), Some("planted-code"));
    assert_eq!(field(asked, "redirect_uri"), Some(redirect.clone()));
    let verifier = field(asked, "code_verifier").expect("a verifier");
    let challenge = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
    assert_eq!(parameter(&url, "code_challenge"), challenge);
}

#[tokio::test]
async fn an_answer_of_another_login_is_not_believed() {
    let server = serve(vec![token(1)]).await;
    let flow = flow(&server);
    for query in ["code=x&state=guessed", "code=x", "error=access_denied&state=guessed", ""] {
        let login = Loopback::bind(&flow).await.expect("a port");
        let redirect = parameter(&login.url(), "redirect_uri");
        let target = format!("/callback?{query}");
        let (result, _) = tokio::join!(login.wait(Duration::from_secs(20)), browse(&redirect, &target));
        assert!(matches!(result, Err(OAuthError::Foreign)), "{query}: {result:?}");
    }
    let login = Loopback::bind(&flow).await.expect("a port");
    let (redirect, state) = (parameter(&login.url(), "redirect_uri"), parameter(&login.url(), "state"));
    let target = format!("/callback?error=access_denied&state={state}");
    let (result, _) = tokio::join!(login.wait(Duration::from_secs(20)), browse(&redirect, &target));
    assert!(matches!(result, Err(OAuthError::Refused(_))), "{result:?}");
    let login = Loopback::bind(&flow).await.expect("a port");
    assert!(matches!(login.wait(Duration::ZERO).await, Err(OAuthError::TimedOut)));
    assert!(sent(&server).is_empty());
}

#[tokio::test]
async fn a_code_is_typed_on_another_device() {
    let granted = json(
        r#"{"device_code":"planted-device","user_code":"ABCD-1234","verification_uri":"https://p.example/device",
            "expires_in":600,"interval":0}"#,
    );
    let pending = || error("authorization_pending");
    let server = serve(vec![granted.clone(), pending(), status("502 Bad Gateway", "", ""), token(1)]).await;
    let flow = flow(&server);
    let device = Device::start(&flow).await.expect("a code");
    let prompt = device.prompt();
    assert_eq!((prompt.url.as_str(), prompt.code.as_str()), ("https://p.example/device", "ABCD-1234"));
    device.wait().await.expect("a token");
    let asked = sent(&server);
    assert_eq!(field(&asked[0], "scope").as_deref(), Some("chat offline"));
    assert_eq!(field(&asked[3], "device_code").as_deref(), Some("planted-device"));
    assert_eq!(asked.len(), 4);

    for (code, timed_out) in [("access_denied", false), ("expired_token", true)] {
        let server = serve(vec![granted.clone(), error(code)]).await;
        let flow = self::flow(&server);
        let failed = Device::start(&flow).await.expect("a code").wait().await.expect_err("refused");
        assert_eq!(matches!(failed, OAuthError::TimedOut), timed_out, "{failed}");
    }
}

#[tokio::test]
async fn tokens_travel_only_where_nobody_listens() {
    let server = serve(vec![token(1)]).await;
    let mut flow = flow(&server);
    flow.device_url = Some("http://provider.example/device".into());
    assert!(matches!(Device::start(&flow).await.err(), Some(OAuthError::Url("device_url"))));
    flow.authorize_url = Some("ftp://x".into());
    assert!(matches!(Loopback::bind(&flow).await.err(), Some(OAuthError::Url("authorize_url"))));
    flow.authorize_url = None;
    assert!(matches!(Loopback::bind(&flow).await.err(), Some(OAuthError::Missing("authorize_url"))));
}

struct Fixture {
    folder: tempfile::TempDir,
    keyring: Keyring,
}

/// A keyring with token number 0, which expires at this time.
fn fixture(expires_at_ms: Option<i64>) -> Fixture {
    let folder = tempfile::tempdir().expect("a folder");
    let keyring = Keyring::new(folder.path().join("credentials"));
    let key = |text: &str| Key::new(text).expect("a key");
    let token = Token { access: key("planted-access-0"), refresh: Some(key("planted-refresh-0")), expires_at_ms };
    keyring.put("p", &Entry::Token(token)).expect("written");
    Fixture { folder, keyring }
}

impl Fixture {
    fn login(&self, server: &Server) -> Login {
        Login::new("p", self.keyring.clone(), Some(flow(server)), HeaderStyle::Bearer)
    }
}

async fn bearer(login: &Login) -> String {
    let headers = login.headers().await.expect("credentials");
    headers[0].1.to_str().expect("text").to_owned()
}

#[tokio::test]
async fn many_requests_renew_an_expired_token_once() {
    let server = serve(vec![token(1), error("invalid_grant")]).await;
    let fixture = fixture(Some(1));
    let login = fixture.login(&server);
    let all = tokio::join!(bearer(&login), bearer(&login), bearer(&login), bearer(&login));
    assert_eq!([all.0, all.1, all.2, all.3], ["Bearer planted-access-1"; 4]);
    let asked = sent(&server);
    assert_eq!(asked.len(), 1);
    assert_eq!(field(&asked[0], "grant_type").as_deref(), Some("refresh_token"));
    assert_eq!(field(&asked[0], "refresh_token").as_deref(), Some("planted-refresh-0"));
    // Stored for the next start, readable by the owner only.
    let path = fixture.folder.path().join("credentials/p.json");
    assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(path).expect("read").contains("planted-refresh-1"));
    let again = fixture.login(&server);
    assert_eq!(bearer(&again).await, "Bearer planted-access-1");
    assert_eq!(sent(&server).len(), 1);
}

/// The wearer goes on speaking while the token is renewed: the server takes the old one only once.
#[tokio::test]
async fn a_renewal_whose_request_is_withdrawn_runs_to_its_end() {
    let server = serve(vec![token(1), error("invalid_grant")]).await;
    let fixture = fixture(Some(1));
    let login = fixture.login(&server);
    let asked = async {
        while sent(&server).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = asked => {}
        _ = login.headers() => panic!("it should still be waiting"),
    }
    assert_eq!(bearer(&login).await, "Bearer planted-access-1");
    assert_eq!(sent(&server).len(), 1);
}

#[tokio::test]
async fn a_token_that_is_refused_is_renewed_once() {
    // Only the first call in a process has an effect.
    drop(rustls::crypto::ring::default_provider().install_default());
    let provider = serve(vec![
        status("401 Unauthorized", "", r#"{"error":{"message":"planted-access-0 is stale"}}"#),
        streamed(
            "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
            64,
        ),
        status("401 Unauthorized", "", r#"{"error":{"message":"planted-access-2 is stale"}}"#),
    ])
    .await;
    let server = serve(vec![token(1), token(2), error("invalid_grant")]).await;
    let fixture = fixture(None);
    let mut endpoint = Endpoint::new(&provider.url);
    endpoint.credentials = Some(Arc::new(fixture.login(&server)));
    let model = Http::new(endpoint, Arc::new(ChatCompletions::new(Options::new("m")))).expect("a model");
    let events = ask(&model).await;
    assert!(matches!(&events[0], ModelEvent::Text(text) if text == "Hi"), "{events:?}");
    let asked = sent(&provider);
    assert!(asked[0].contains("Bearer planted-access-0") && asked[1].contains("Bearer planted-access-1"));
    // From here on the provider rejects every token: one more renewal, then an error without a secret.
    let events = ask(&model).await;
    let [ModelEvent::Failed { kind: FailureKind::Auth, message }] = &events[..] else { panic!("{events:?}") };
    assert!(!message.contains("planted"), "{message}");
    assert_eq!((sent(&provider).len(), sent(&server).len()), (4, 2));
}

async fn ask(model: &Http) -> Vec<ModelEvent> {
    let (events, mut seen) = mpsc::channel(64);
    model.stream(request("Hello", &Arc::from([])), events, CancellationToken::new()).await;
    let mut all = Vec::new();
    while let Some(event) = seen.recv().await {
        all.push(event);
    }
    all
}

#[tokio::test]
async fn who_cannot_renew_is_told_what_to_do_and_no_secret() {
    let written = Arc::new(Mutex::new(Vec::new()));
    let sink = written.clone();
    let logs = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || Sink(sink.clone()))
        .finish();
    let _guard = tracing::subscriber::set_default(logs);
    let server = serve(vec![error("invalid_grant"), status("503 Service Unavailable", "", ""), token(1)]).await;
    let fixture = fixture(Some(1));
    let login = fixture.login(&server);
    let error = login.headers().await.expect_err("refused");
    assert_eq!(error.kind, FailureKind::Auth);
    assert!(
        error.message.contains("lorgnette login p") && error.message.contains("invalid_grant"),
        "{}",
        error.message
    );
    assert!(!error.message.contains("planted"), "{}", error.message);
    let error = login.headers().await.expect_err("nobody there");
    assert_eq!(error.kind, FailureKind::Transient);
    assert_eq!(bearer(&login).await, "Bearer planted-access-1");
    let logs = String::from_utf8(written.lock().expect("unpoisoned").clone()).expect("text");
    assert!(logs.contains("a token was renewed") && !logs.contains("planted"), "{logs}");
}

#[derive(Clone)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("unpoisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn somebody_may_log_in_while_the_gateway_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let keyring = Keyring::new(folder.path());
    let login = Login::new("p", keyring.clone(), None, HeaderStyle::Named("x-api-key"));
    let error = login.headers().await.expect_err("nobody yet");
    assert!(error.message.contains("lorgnette login p"), "{}", error.message);
    keyring.put("p", &Entry::Key(Key::new("planted-key").expect("a key"))).expect("written");
    let headers = login.headers().await.expect("a key");
    assert_eq!((headers[0].0.as_str(), headers[0].1.to_str().expect("text")), ("x-api-key", "planted-key"));
    // Rejected, and there is no other token until one is added.
    assert!(!login.handle_unauthorized(&headers).await);
    keyring.put("p", &Entry::Key(Key::new("planted-other").expect("a key"))).expect("written");
    assert_eq!(login.headers().await.expect("a key")[0].1.to_str().expect("text"), "planted-other");
    assert!(login.handle_unauthorized(&headers).await); // Nor does a new one wait until the old one is rejected.
    keyring.put("p", &Entry::Key(Key::new("planted-third").expect("a key"))).expect("written");
    assert_eq!(login.headers().await.expect("a key")[0].1.to_str().expect("text"), "planted-third");
}

#[tokio::test]
async fn a_login_that_was_forgotten_is_used_no_more_and_does_not_come_back() {
    let server = serve(vec![token(1)]).await;
    for expires_at_ms in [None, Some(1)] {
        let fixture = fixture(None);
        let login = fixture.login(&server);
        let headers = login.headers().await.expect("credentials");
        if expires_at_ms.is_some() {
            let key = |text: &str| Key::new(text).expect("a key");
            let token = Token { access: key("planted-old"), refresh: Some(key("planted-refresh-0")), expires_at_ms };
            fixture.keyring.put("p", &Entry::Token(token)).expect("written");
        }
        assert!(fixture.keyring.remove("p").expect("removed"));
        let error = login.headers().await.expect_err("forgotten");
        assert!(error.message.contains("nobody has logged in"), "{}", error.message);
        assert!(!login.handle_unauthorized(&headers).await);
        assert!(fixture.keyring.get("p").expect("readable").is_none());
    }
    assert!(sent(&server).is_empty());
}

#[tokio::test]
async fn a_renewed_token_that_cannot_be_stored_is_used_until_the_login_changes() {
    let server = serve(vec![token(1)]).await;
    let fixture = fixture(Some(1));
    let login = fixture.login(&server);
    // Even root cannot write where a folder has the name of the new file.
    let in_the_way = fixture.folder.path().join("credentials/.p.new");
    std::fs::create_dir(&in_the_way).expect("made");
    for _ in 0..2 {
        assert_eq!(bearer(&login).await, "Bearer planted-access-1");
    }
    assert_eq!(sent(&server).len(), 1);
    std::fs::remove_dir(&in_the_way).expect("removed");
    fixture.keyring.put("p", &Entry::Key(Key::new("planted-key").expect("a key"))).expect("written");
    assert_eq!(bearer(&login).await, "Bearer planted-key");
    fixture.keyring.remove("p").expect("removed");
    assert!(login.headers().await.is_err());
}
