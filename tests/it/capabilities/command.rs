//! `lorgnette capabilities` on a running gateway.

use serde_json::Value;

use crate::process::{Process, fails, succeeds};

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_builds_lists_and_shows_what_may_be_called() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let config = data.with_extension("toml").display().to_string();
    let said = |words: &[&str]| {
        let words: Vec<String> = words.iter().chain(&["--config", &config]).map(ToString::to_string).collect();
        async move { succeeds(&words.iter().map(String::as_str).collect::<Vec<_>>()).await }
    };
    let list = said(&["capabilities", "list"]).await;
    assert!(list.contains("@capabilities/timer-set  timerSet\n") && list.contains("noteClear?"), "{list}");
    let shown = said(&["capabilities", "show", "timer-set"]).await;
    assert!(shown.starts_with("declare module '@capabilities/timer-set' {\n"), "{shown}");
    assert!(shown.contains("export function timerSet(params: TimerSetParams): Promise<"), "{shown}");

    let out = folder.path().join("out");
    let built = || said(&["capabilities", "build", "--out", out.to_str().expect("UTF-8")]);
    let first = built().await;
    assert!(first.contains("written to") && first.contains(", 0 unchanged"), "{first}");
    let lines = said(&["capabilities", "list", "--json"]).await;
    for line in lines.lines() {
        let known: Value = serde_json::from_str(line).expect("JSON");
        let words = |key: &str| known[key].as_str().expect("a text").to_owned();
        let place = out.join(words("name")).join(words("version"));
        let read = |file: &str| std::fs::read_to_string(place.join(file)).expect("a file");
        assert!(read("index.d.ts").starts_with("declare module '@capabilities/"));
        assert!(read("index.js").starts_with("import { call as $call } from '@lorgnette/bridge';\n"));
        let mut meta: Value = serde_json::from_str(&read("meta.json")).expect("JSON");
        let built_ms = meta.as_object_mut().and_then(|meta| meta.remove("built_ms"));
        assert!(built_ms.is_some_and(|at| at.is_i64()) && meta == known, "{meta}");
        let schema: Value = serde_json::from_str(&read("schema.json")).expect("JSON");
        assert_eq!(
            schema["functions"].as_object().map(|all| all.len()),
            known["functions"].as_object().map(|all| all.len())
        );
    }
    assert!(built().await.starts_with("0 modules written"));

    // What is switched off is no longer offered to programs.
    said(&["tools", "deny", "timer.set"]).await;
    assert!(!said(&["capabilities", "list"]).await.contains("timerSet"));
    let error = fails(&["capabilities", "show", "timer-set", "--config", &config]).await;
    assert!(error.contains("`timer-set`") && error.contains("capabilities list"), "{error}");
    assert!(gateway.terminate().await.0.success());
}
