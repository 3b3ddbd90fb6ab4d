//! An app on the unmodified alpha of `@mentra/sdk` 3 from npm, with its new `MiniAppServer`.
//!
//! Needs the same as `sdk.rs`; Bun, on which 3.x runs, comes from npm as well.

use std::path::PathBuf;

use firmware_sim::Seen;
use gateway::control::{Answer, Request, apps::AppsRequest, attempt::Tried};
use serde_json::json;

use super::sdk::{NodeApp, node, pressed, shown};
use crate::{
    cache::{Cache, run},
    process::Process,
    world::{USER, ask, connect, floor, say, until},
};

const PACKAGES: [&str; 2] = ["@mentra/sdk@3.0.0-alpha.4", "bun@1.4.4"];
const PACKAGE: &str = "com.example.third";
const SOUND: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../audio/tests/data/speech-22050.mp3");

/// Bun, and the folder with the SDK.
fn sdk() -> (PathBuf, PathBuf) {
    let (_, npm) = node();
    let cache = Cache::lock("mentra-sdk-3");
    cache.once(&PACKAGES.join(" "), |folder| {
        let mut install = std::process::Command::new(&npm[0]);
        install.args(&npm[1..]).args(["install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts"]);
        run(install.arg("--prefix").arg(folder).args(PACKAGES), "a registry that npm reaches");
    });
    // Without its install script the program is in the package of this machine's platform.
    let programs = std::fs::read_dir(cache.folder().join("node_modules/@oven")).expect("Bun for this machine");
    let bun = programs.filter_map(|entry| Some(entry.ok()?.path().join("bin/bun"))).find(|bun| bun.exists());
    (bun.expect("Bun for this machine"), cache.folder().to_owned())
}

fn manifest(port: u16) -> String {
    json!({
        "packageName": PACKAGE,
        "name": "Third",
        "description": "Uses what the third SDK has.",
        "version": "1.0.0",
        "publicUrl": format!("http://127.0.0.1:{port}"),
        "appType": "standard",
        "permissions": [{"type": "MICROPHONE"}, {"type": "CAMERA"}],
        "settings": [],
        "tools": [{
            "id": "tell",
            "description": "Tells a number.",
            "activationPhrases": ["which number is"],
            "parameters": {"what": {"type": "string", "description": "A number.", "required": true}},
        }],
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_on_the_third_sdk_is_served() {
    let _floor = floor().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let port = gateway.web.port();
    let (bun, sdk) = tokio::task::spawn_blocking(sdk).await.expect("the SDK");
    let address = format!("http://{}", gateway.web);
    let mut app = NodeApp::run(&bun, "third.mjs", &sdk, &[&address, SOUND]).await;
    super::install(&data, manifest(app.port), format!("http://127.0.0.1:{}", app.port), super::fake::KEY).await;
    let mut options = gateway.options();
    options.reconnect = true;
    let mut glasses = connect(&data, options).await;
    super::start(&data, PACKAGE).await;

    let session = app.told("session").await;
    assert_eq!((&session[2], &session[3]), (&json!(USER), &json!("Lorgnette simulator")));
    let permissions = app.told("permissions").await;
    assert_eq!((&permissions[1], &permissions[2]), (&json!(true), &json!(true)));
    shown(&mut glasses, "third is ready").await;
    assert_eq!(app.told("stored").await[1], "yes");
    let spoken = app.told("spoken").await;
    assert_eq!(spoken[1], true, "{spoken}");
    app.told("streaming").await;
    let whole = |event: &firmware_sim::Event| {
        matches!(&event.seen, Seen::SpeechHeard { text, complete: true, played_us, .. }
            if text.is_empty() && *played_us > 2_500_000)
    };
    until(&mut glasses, "the stream of sound", whole).await;
    let photo = app.told("photo").await;
    assert_eq!(photo[1], "data:image/png;", "{photo}");

    let request = AppsRequest::Try { text: "which number is seven".into(), user: USER.into(), device: None, run: true };
    let Ok(Answer::Tried { tried: Tried::Calls(calls) }) = ask(&data, Request::Apps { request }).await else {
        panic!("no call")
    };
    let result = calls[0].result.as_ref().expect("it was run");
    assert_eq!(result.say.as_deref(), Some("It is seven."), "{result:?}");
    let call = app.told("tool").await;
    assert_eq!((&call[1], &call[3], &call[4]), (&json!("tell"), &json!(USER), &json!(true)));

    say(&mut glasses, "The weather in the mountains is wonderful today.").await;
    let heard = app.told("heard").await;
    assert!(heard[1].as_str().is_some_and(|text| text.to_lowercase().contains("mountains")), "{heard}");

    assert_eq!(app.count("error"), 0, "{:#?}", app.seen);
    // A gateway that was killed and restarted is only a reconnect to the app.
    gateway.kill().await;
    let gateway = Process::start_at(&data, port).await;
    app.told("disconnected").await;
    app.told("reconnected").await;
    until(&mut glasses, "a session", |event| matches!(event.seen, Seen::Welcome { .. })).await;
    pressed(&mut glasses, &mut app).await;

    super::stop(&data, PACKAGE).await;
    let stop = app.told("stop").await;
    assert_eq!((&stop[1], &stop[2]), (&json!(USER), &json!("user_disabled")));
    assert_eq!(app.count("session"), 1, "{:#?}", app.seen);
    gateway.kill().await;
}
