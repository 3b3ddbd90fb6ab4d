//! A mini-app on the Rust kit with a real gateway, from its author's view: installed, tried, debugged, removed.

#[path = "../../tools/kit/examples/reminders/main.rs"]
#[allow(dead_code)]
mod reminders;

use std::{net::SocketAddr, os::unix::fs::PermissionsExt as _, path::Path};

use firmware_sim::{Glasses, Seen};
use tokio::task::JoinHandle;

use crate::{
    process::{Process, fails, succeeds},
    world::{self, WAIT},
};

async fn serve(key: &str) -> (SocketAddr, JoinHandle<()>) {
    let bound = reminders::app().key(key).bind("127.0.0.1:0").await.unwrap();
    (bound.address(), tokio::spawn(bound.serve()))
}

/// Waits until the glasses show this; returns the position to continue from.
async fn shown(glasses: &Glasses, from: u64, words: &str) -> u64 {
    let shows = |seen: &Seen| matches!(seen, Seen::Display { text, .. } if text.contains(words));
    let found = tokio::time::timeout(WAIT, glasses.log().find(from, |event| shows(&event.seen))).await;
    found.unwrap_or_else(|_| panic!("{words:?} was not shown: {:#?}", glasses.log().since(from))).1
}

struct Operator(String);

impl Operator {
    fn of(data: &Path) -> Self {
        Self(data.with_extension("toml").display().to_string())
    }

    async fn does(&self, words: &[&str]) -> String {
        succeeds(&[&["apps"], words, &["--config", &self.0]].concat()).await
    }

    async fn fails(&self, words: &[&str]) -> String {
        fails(&[&["apps"], words, &["--config", &self.0]].concat()).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_from_its_manifest_to_its_removal() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let operator = Operator::of(&data);
    assert!(operator.does(&["list"]).await.contains("no apps"));

    // The key is printed once; the app is started with it, and serves its own manifest.
    let file = folder.path().join("app_config.json");
    std::fs::write(&file, reminders::app().manifest("http://127.0.0.1:9").to_string()).unwrap();
    let told = operator.does(&["add", &file.display().to_string()]).await;
    assert!(told.contains("installed Reminders (com.example.reminders)"), "{told}");
    assert!(told.contains("tool com.example.reminders.keep"), "{told}");
    let key = told.split_whitespace().find(|word| word.len() == 64).expect("a key").to_owned();
    let (address, server) = serve(&key).await;
    let again = operator.does(&["add", &format!("http://{address}/app_config.json")]).await;
    assert!(again.contains("the same as before") && !again.contains(&key), "{again}");
    let list = operator.does(&["list"]).await;
    assert!(list.contains("com.example.reminders.show") && list.contains("  standard  "), "{list}");
    assert!(!list.contains("the last: ") && !list.contains("runs for"), "{list}");

    // A trial run only prints what a sentence would do.
    let sentence = "keep in mind the dentist at noon";
    let told = operator.does(&["try", sentence]).await;
    assert_eq!(told.trim(), r#"com.example.reminders.keep {"text":"the dentist at noon"}"#);
    let told = operator.does(&["try", "paint the town"]).await;
    assert!(told.starts_with("no tool"), "{told}");
    assert!(told.contains("\"keep in mind [that|to] {text}\" would call com.example.reminders.keep"), "{told}");
    // The most similar sentence comes first.
    let told = operator.does(&["try", "what do you keep"]).await;
    let first = told.lines().nth(1).unwrap_or_default();
    assert!(first.contains("would call com.example.reminders.show"), "{told}");
    // A tool that is switched off is not called, and reported as off.
    let config = operator.0.as_str();
    succeeds(&["tools", "deny", "com.example.reminders.show", "--config", config]).await;
    let told = operator.does(&["try", "what should I keep in mind"]).await;
    let hint = "`lorgnette tools allow com.example.reminders.show --user wearer` switches it on";
    assert!(told.contains(&format!("com.example.reminders.show is switched off; {hint}")), "{told}");
    assert!(!told.contains("would call com.example.reminders.show"), "{told}");
    succeeds(&["tools", "allow", "com.example.reminders.show", "--config", config]).await;

    // In a real run its result is shown and stored.
    let glasses = world::connect(&data, gateway.options()).await;
    let told = operator.does(&["try", sentence, "--run"]).await;
    assert!(told.contains("said: I'll keep in mind the dentist at noon."), "{told}");
    let mark = shown(&glasses, 0, "the dentist at noon").await;
    let told = operator.does(&["try", "keep in mind milk", "--run"]).await;
    assert!(told.contains("milk"), "{told}");
    shown(&glasses, mark, "milk").await;
    operator.does(&["restart", "com.example.reminders"]).await;
    let list = operator.does(&["list"]).await;
    assert!(list.contains("runs for wearer"), "{list}");
    let logs = operator.does(&["logs", "com.example.reminders"]).await;
    for words in ["start  it runs", "stop  it has stopped", "drawing  ", "ms  {\"text\":\"milk\"}  ->  "] {
        assert!(logs.contains(words), "{words}: {logs}");
    }
    let told = operator.does(&["try", "what should I keep in mind", "--run"]).await;
    assert!(told.contains("said: the dentist at noon, milk"), "{told}");
    glasses.goodbye().await;

    // A gateway that was killed and restarted has the app and its data.
    gateway.kill().await;
    let gateway = Process::start(&data, "", &[]).await;
    let glasses = world::connect(&data, gateway.options()).await;
    let told = operator.does(&["try", "what should I keep in mind", "--run"]).await;
    assert!(told.contains("said: the dentist at noon, milk"), "{told}");

    // A server that is gone is reported, with the failed request.
    server.abort();
    drop(server.await);
    operator.does(&["stop", "com.example.reminders"]).await;
    let told = operator.does(&["try", sentence, "--run"]).await;
    assert!(told.contains("APP_NOT_AVAILABLE") && told.contains("said: I couldn't start"), "{told}");
    let list = operator.does(&["list"]).await;
    assert!(list.contains("the last: ") && list.contains("its server does not answer"), "{list}");
    let logs = operator.does(&["logs", "com.example.reminders"]).await;
    assert!(logs.contains("request: POST http://127.0.0.1") && logs.contains("session_request"), "{logs}");
    assert!(!logs.contains(&key), "{logs}");

    operator.does(&["remove", "com.example.reminders"]).await;
    let told = operator.does(&["try", sentence]).await;
    assert!(!told.contains("com.example.reminders"), "{told}");
    for words in [["remove", "com.example.reminders"], ["logs", "com.example.reminders"]] {
        let error = operator.fails(&words).await;
        assert!(error.contains("apps list"), "{error}");
    }
    glasses.goodbye().await;
    gateway.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_manifest_is_told_key_by_key() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let operator = Operator::of(&data);
    let file = folder.path().join("app.toml");
    let path = file.display().to_string();
    std::fs::write(&file, "name = \"Todo\"\n[[tools]]\nid = \"add\"\nparameters = 7\n").unwrap();
    let error = operator.fails(&["add", &path]).await;
    for words in ["3 problems:", "packageName: is missing", "publicUrl: is missing", "tools/0/parameters"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    std::fs::write(&file, "name = \"Todo\"\n[[tools]]\nid = \"add\"\ndescription = \"Adds.\"\n").unwrap();
    let given = [
        "add",
        &path,
        "--package",
        "com.example.todo",
        "--url",
        "http://127.0.0.1:9",
        "--api-key",
        "a-secret-of-the-app",
    ];
    let told = operator.does(&given).await;
    assert!(told.contains("com.example.todo.add") && !told.contains("a-secret"), "{told}");
    assert!(told.contains("warning: nothing answers at http://127.0.0.1:9 ("), "{told}");
    // The same with a key that is in no argument.
    let key = folder.path().join("key");
    std::fs::write(&key, "another-secret-of-the-app\nnot this\n").unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let key = key.display().to_string();
    let of_file = [&given[..6], &["--api-key-file", &key]].concat();
    assert!(operator.fails(&of_file).await.contains("chmod 600"));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let told = operator.does(&of_file).await;
    assert!(told.contains("its key is the one that was given") && !told.contains("another-secret"), "{told}");
    // Nothing is on standard input.
    let error = operator.fails(&[&given[..6], &["--api-key-file", "-"]].concat()).await;
    assert!(error.contains("visible ASCII characters"), "{error}");
    let error = operator.fails(&[&given[..], &["--api-key-file", &key]].concat()).await;
    assert!(error.contains("cannot be used with"), "{error}");
    // Without a manifest the address, the package and the name suffice.
    let (address, _server) = serve("key").await;
    let (url, own) = (format!("http://{address}"), "com.example.reminders");
    let given = ["add", "--url", &url, "--package", own, "--name", "Plain", "--permission", "MICROPHONE"];
    let told = operator.does(&given).await;
    assert!(told.contains("installed Plain (com.example.reminders)") && !told.contains("warning"), "{told}");
    let error = operator.fails(&["add", "--url", &url]).await;
    assert!(error.contains("give --package") && error.contains("give --name"), "{error}");
    // The server names the package under which it will connect.
    let given = ["add", "--url", &url, "--package", "com.example.other", "--name", "Other"];
    let told = operator.does(&given).await;
    assert!(told.contains("warning: ") && told.contains("says that it is `com.example.reminders`"), "{told}");
    // The address of a server that serves its manifest suffices.
    let told = operator.does(&["add", &url]).await;
    assert!(told.contains("installed Reminders") && told.contains("com.example.reminders.keep"), "{told}");
    for words in [["add", "http://127.0.0.1:9/webhook"].as_slice(), &["add", "--url", "http://127.0.0.1:9/webhook/"]] {
        let error = operator.fails(words).await;
        assert!(error.contains("address: http://127.0.0.1:9"), "{error}");
    }
    let error = operator.fails(&["add", "/nowhere/app.toml"]).await;
    assert!(error.contains("reading /nowhere/app.toml"), "{error}");
    let error = operator.fails(&["add", "http://127.0.0.1:9/app_config.json"]).await;
    assert!(error.contains("fetching http://127.0.0.1:9"), "{error}");
    gateway.terminate().await;
}
