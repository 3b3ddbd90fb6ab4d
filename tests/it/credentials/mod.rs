//! Keys and tokens from end to end: login by command, a gateway that uses and renews stored tokens, files that others
//! may read, and the envelopes of coding assistants as sent.

mod accounts;
mod command;
mod envelopes;

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use serde_json::Value;

use self::{
    accounts::{Accounts, Verdict},
    command::{Login, kept},
};
use crate::{
    assistant::provider::{Answer, Provider},
    process::{Process, configure, fails, succeeds},
    world::{self, answered, text},
};

/// The settings of a model that uses the credentials of `lorgnette login house`.
fn settings(accounts: &Accounts, kind: &str, base_url: &str, further: &str) -> String {
    format!(
        "[model]\nkind = \"{kind}\"\nbase_url = \"{base_url}\"\nmodel = \"scripted\"\nlogin = \"house\"\n{further}{}",
        accounts.section()
    )
}

struct Place {
    _folder: tempfile::TempDir,
    data: PathBuf,
    config: PathBuf,
}

/// A folder with a configuration, and no gateway.
fn place(settings: &str) -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let config = configure(&data, settings);
    Place { _folder: folder, data, config }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("there").permissions().mode() & 0o7777
}

/// Logs in with a device code, which is granted at once.
async fn log_in(accounts: &Accounts, config: &Path) {
    accounts.say(Verdict::Granted);
    let ended = Login::start(config, &["--device"]).end().await;
    assert!(ended.status.success(), "{}", ended.told);
}

fn parameter(url: &str, name: &str) -> String {
    let url: reqwest::Url = url.parse().expect("an address");
    let found = url.query_pairs().find(|(key, _)| key == name);
    found.unwrap_or_else(|| panic!("no {name} in {url}")).1.into_owned()
}

/// Requests the redirect URL as a browser does.
async fn browse(redirect: &str, query: &str) -> String {
    // `localhost` is replaced, since some machines do not resolve it.
    let url = format!("{}?{query}", redirect.replace("localhost", "127.0.0.1"));
    get(url).await.expect("an answer").text().await.expect("a page")
}

async fn get(url: String) -> reqwest::Result<reqwest::Response> {
    // Only the first call in a process counts.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::get(url).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_told_for_another_device_and_its_token_kept() {
    let accounts = Accounts::start().await;
    let place = place(&settings(&accounts, "chat_completions", "http://127.0.0.1:9/v1", ""));
    let mut login = Login::start(&place.config, &["--device"]);
    assert_eq!(login.line().await, format!("Open {}/activate and type ABCD-1234", accounts.url()));
    // It polls repeatedly while the owner has not decided.
    accounts.until(3).await;
    assert_eq!(kept(&place.data), Vec::<PathBuf>::new());
    accounts.say(Verdict::Granted);
    let line = login.line().await;
    let folder = place.data.join("credentials");
    assert_eq!(
        line,
        format!("house is kept in {}; a gateway that runs uses it from its next request on", folder.display())
    );
    let ended = login.end().await;
    assert!(ended.status.success() && !ended.told.contains("planted"), "{ended:?}");
    let file = folder.join("house.json");
    assert_eq!(kept(&place.data), std::slice::from_ref(&file));
    assert_eq!((mode(&file), mode(&folder)), (0o600, 0o700));
    let held: Value = serde_json::from_slice(&std::fs::read(&file).expect("read")).expect("JSON");
    assert_eq!(
        (&held["access_token"], &held["refresh_token"]),
        (&"planted-access-1".into(), &"planted-refresh-1".into())
    );
    let forms = accounts.forms();
    assert_eq!((forms[0].path.as_str(), forms[0].get("scope")), ("/device", "chat"));
    assert!(forms[1..].iter().all(|form| form.path == "/token" && form.get("device_code") == "planted-device"));

    // Stored credentials are removed by command.
    let config = place.config.display().to_string();
    assert_eq!(succeeds(&["login", "house", "--forget", "--config", &config]).await.trim(), "house is forgotten");
    assert_eq!(kept(&place.data), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_on_this_machine_brings_a_code_and_its_token_is_kept() {
    let accounts = Accounts::start().await;
    let place = place(&settings(&accounts, "chat_completions", "http://127.0.0.1:9/v1", ""));
    let mut login = Login::start(&place.config, &[]);
    assert_eq!(login.line().await, "Open this address in a browser on this machine:");
    let url = login.line().await;
    assert!(url.starts_with(&format!("{}/authorize?", accounts.url())), "{url}");
    assert_eq!(parameter(&url, "code_challenge_method"), "S256");
    let (redirect, state) = (parameter(&url, "redirect_uri"), parameter(&url, "state"));
    let page = browse(&redirect, &format!("code=planted-code&state={state}")).await;
    assert!(page.contains("Logged in. You can close this page."), "{page}");
    let ended = login.end().await;
    assert!(ended.status.success() && !ended.told.contains("planted"), "{ended:?}");
    assert_eq!(mode(&kept(&place.data)[0]), 0o600);
    let asked = accounts.until(1).await;
    assert_eq!((asked.get("grant_type"), asked.get("redirect_uri")), ("authorization_code", redirect.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_and_a_code_that_is_too_old_keep_nothing() {
    let accounts = Accounts::start().await;
    let place = place(&settings(&accounts, "chat_completions", "http://127.0.0.1:9/v1", ""));
    for (code, words) in
        [("access_denied", "the provider refuses: access_denied"), ("expired_token", "start the login again")]
    {
        accounts.say(Verdict::Refused(code));
        let mut login = Login::start(&place.config, &["--device"]);
        assert!(login.line().await.ends_with("ABCD-1234"));
        let ended = login.end().await;
        assert!(!ended.status.success() && ended.told.contains(words), "{ended:?}");
        assert!(!ended.told.contains("planted") && !ended.told.contains("panicked"), "{ended:?}");
    }
    for (query, words) in
        [("error=access_denied", "the provider refuses: access_denied"), ("code=wrong", "invalid_grant")]
    {
        let mut login = Login::start(&place.config, &[]);
        login.line().await;
        let url = login.line().await;
        let (redirect, state) = (parameter(&url, "redirect_uri"), parameter(&url, "state"));
        browse(&redirect, &format!("{query}&state={state}")).await;
        let ended = login.end().await;
        assert!(!ended.status.success() && ended.told.contains(words), "{ended:?}");
        assert!(!ended.told.contains("planted"), "{ended:?}");
    }
    assert_eq!(kept(&place.data), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_leaves_nothing_behind() {
    let accounts = Accounts::start().await;
    let place = place(&settings(&accounts, "chat_completions", "http://127.0.0.1:9/v1", ""));
    let mut login = Login::start(&place.config, &["--device"]);
    login.line().await;
    login.interrupt().await;
    assert!(!login.end().await.status.success());
    let mut login = Login::start(&place.config, &[]);
    login.line().await;
    let redirect = parameter(&login.line().await, "redirect_uri").replace("localhost", "127.0.0.1");
    login.interrupt().await;
    assert!(!login.end().await.status.success());
    assert!(get(redirect).await.is_err(), "the port is closed");
    assert!(!place.data.join("credentials").exists());

    // Existing credentials remain unchanged.
    log_in(&accounts, &place.config).await;
    let file = place.data.join("credentials/house.json");
    let before = std::fs::read(&file).expect("read");
    accounts.say(Verdict::Pending);
    let mut login = Login::start(&place.config, &["--device"]);
    login.line().await;
    login.interrupt().await;
    assert!(!login.end().await.status.success());
    assert_eq!((kept(&place.data), std::fs::read(&file).expect("read")), (vec![file.clone()], before));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_talks_with_the_token_and_renews_it() {
    let (accounts, provider) = (Accounts::start().await, Provider::start().await);
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let settings = settings(&accounts, "chat_completions", &provider.url("one"), "");
    let gateway = Process::start(&data, &settings, &[("RUST_LOG", "debug")]).await;
    let config = data.with_extension("toml");
    let mut glasses = world::connect(&data, gateway.options()).await;
    let bearers = || -> Vec<String> {
        let last = |value: &str| value.trim_start_matches("Bearer planted-").to_owned();
        provider.asked().iter().map(|asked| last(&asked.headers["authorization"])).collect()
    };
    let held = || std::fs::read_to_string(data.join("credentials/house.json")).expect("kept");

    // A login while the gateway runs, with a token that is about to expire: it is renewed before use.
    accounts.next_lives(30);
    log_in(&accounts, &config).await;
    assert!(held().contains("planted-access-1"));
    provider.then("one", Answer::Says("The capital of France is Paris.", 40, 8));
    text(&mut glasses, "what is the capital of France").await;
    let told = answered(&mut glasses).await;
    assert!(told.contains("paris"), "{told}");
    assert_eq!(bearers(), ["access-2"]);
    assert!(held().contains("planted-access-2") && held().contains("planted-refresh-2"));
    let last = accounts.forms().pop().expect("a form");
    assert_eq!((last.get("grant_type"), last.get("refresh_token")), ("refresh_token", "planted-refresh-1"));

    // The provider rejects it before it expires: it is renewed once more, in the same turn.
    provider.then("one", Answer::Refuses(401)).then("one", Answer::Says("The capital of Italy is Rome.", 40, 8));
    text(&mut glasses, "and of Italy").await;
    let told = answered(&mut glasses).await;
    assert!(told.contains("rome"), "{told}");
    assert_eq!(bearers(), ["access-2", "access-2", "access-3"]);
    assert!(held().contains("planted-access-3"));
    assert_eq!(mode(&data.join("credentials/house.json")), 0o600);

    let (status, log) = gateway.terminate().await;
    assert!(status.success());
    assert!(log.iter().any(|line| line.contains("a token was renewed")), "{log:#?}");
    assert!(!log.iter().any(|line| line.contains("planted")), "{log:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_file_that_others_may_read_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, key) = (folder.path().join("data"), folder.path().join("key"));
    std::fs::write(&key, "sk-planted-0815\n").expect("written");
    let set = |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).expect("set");
    let model = format!(
        "[model]\nkind = \"chat_completions\"\nbase_url = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\nkey_file = {:?}\n",
        key.display().to_string()
    );
    let file = configure(&data, &model).display().to_string();
    set(0o644);
    for command in [&["check", &file][..], &["serve", "--config", &file][..]] {
        let told = fails(command).await;
        assert!(told.contains("`key_file`") && told.contains("has mode 0644"), "{told}");
        assert!(told.contains(&format!("chmod 600 {}", key.display())), "{told}");
        assert!(!told.contains("planted"), "{told}");
    }
    set(0o600);
    assert!(succeeds(&["check", &file]).await.contains("is valid"));
    // Its content is checked, too.
    std::fs::write(&key, "sk planted 0815\n").expect("written");
    let told = fails(&["check", &file]).await;
    assert!(told.contains("holds no usable key") && !told.contains("planted"), "{told}");
}
