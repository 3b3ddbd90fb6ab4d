//! The stored log: what the program logs is found by its tools and by the command line, and never holds what was said.

use std::process::Stdio;

use gateway::control::{Answer, Request};
use gateway_core::vocab::ErrorCode;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
    time::timeout,
};

use crate::{
    durability::{disk::READ_ONLY, power::compile},
    process::{Process, binary, configure, lorgnette, succeeds},
    world::{self, USER, answered, floor, say, text, understood},
};

/// The data of a call, as an operator makes it; `None`: there were too many of late.
async fn try_call(data: &std::path::Path, name: &str, arguments: Value) -> Option<Value> {
    let request = Request::CallTool { user: USER.to_owned(), name: name.to_owned(), arguments };
    match world::ask(data, request).await.expect("an answer") {
        Answer::ToolResult { result, .. } => match &result.error {
            Some(error) if error.code == ErrorCode::RateLimited => None,
            Some(error) => panic!("{error:?}"),
            None => Some(result.data.expect("data")),
        },
        other => panic!("{other:?}"),
    }
}

async fn call(data: &std::path::Path, name: &str, arguments: Value) -> Value {
    try_call(data, name, arguments).await.expect("a call in between")
}

/// Lines are stored within a second: asks until they are as wanted.
async fn until(data: &std::path::Path, arguments: Value, wanted: impl Fn(&Value) -> bool) -> Value {
    let looking = async {
        loop {
            let found = try_call(data, "query_logs", arguments.clone()).await;
            if let Some(found) = found.filter(&wanted) {
                return found;
            }
        }
    };
    tokio::time::timeout(world::WAIT, looking).await.expect("the lines in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_gateway_logs_is_found_and_nothing_that_was_said() {
    let _floor = floor().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // Nothing is hidden by the level of standard error, and nothing more is stored for it.
    for level in ["off", "trace"] {
        let gateway = Process::start(&data, "", &[("RUST_LOG", level)]).await;
        let mut glasses = world::connect(&data, gateway.options()).await;
        say(&mut glasses, "Hey Mentra, take a note: buy a red umbrella.").await;
        assert!(understood(&mut glasses).await.contains("umbrella"));
        answered(&mut glasses).await;
        text(&mut glasses, "take a note visit the elephant").await;
        answered(&mut glasses).await;
        text(&mut glasses, "the walrus sings at midnight").await;
        answered(&mut glasses).await;
        let device = glasses.fingerprint().replace(['-', ':', ' '], "").to_lowercase();
        glasses.goodbye().await;
        let source = format!("device:{device}");
        let closed = json!({"source": source, "text": "session over", "limit": 1000});
        let found = until(&data, closed, |found| found["count"] != 0).await;
        assert_eq!(found["logs"][0]["level"], "info", "{found}");
        let stats = loop {
            if let Some(stats) = try_call(&data, "get_log_stats", json!({})).await {
                break stats;
            }
        };
        assert!(stats["by_source"][&source].as_u64() > Some(2), "{stats}");
        assert_eq!(stats["dropped"], 0, "{stats}");
        has_counted(&data).await;
        let (status, _) = gateway.terminate().await;
        assert!(status.success(), "{status}");
        // All of the file, not only what a query returns.
        let bytes = std::fs::read(data.join("log/data.mdb")).unwrap();
        let bytes = bytes.to_ascii_lowercase();
        assert!(bytes.windows(device.len()).any(|window| window == device.as_bytes()), "it is the right file");
        for word in ["umbrella", "elephant", "walrus", "midnight"] {
            assert!(!bytes.windows(word.len()).any(|window| window == word.as_bytes()), "{level}: {word}");
        }
    }
    // The last lines of the last run are there, and the command line shows them.
    let gateway = Process::start(&data, "", &[]).await;
    let config = configure_of(&data);
    let shown = succeeds(&["logs", "--config", &config, "--text", "stopping", "--limit", "5"]).await;
    assert_eq!(shown.lines().count(), 2, "{shown}");
    assert!(shown.lines().all(|line| line.contains(" info  gateway::cli::serve: stopping")), "{shown}");
    let rows = succeeds(&["logs", "--config", &config, "--context", "turn", "--since", "1h", "--json"]).await;
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), 6, "{rows:#?}");
    assert!(rows.iter().all(|row| row["message"].as_str().is_some_and(|text| text.starts_with("turn device="))));
    assert_eq!(succeeds(&["logs", "--config", &config, "--source", "app:none"]).await, "no such lines\n");
    // The turns of both runs, which this one knows nothing of.
    let turns = succeeds(&["turns", "--config", &config, "--since", "1h", "--json"]).await;
    let turns: Vec<Value> = turns.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(turns.len(), 6, "{turns:#?}");
    assert!(turns.is_sorted_by_key(|turn| turn["ended_wall_ms"].as_i64()), "{turns:#?}");
    let shares = succeeds(&["turns", "--config", &config, "--since", "1h", "--percentiles"]).await;
    // In each run one was spoken and two were typed.
    for line in ["milliseconds after the last word; 2 spoken turns", "milliseconds after the text; 4 typed turns"] {
        assert!(shares.lines().any(|other| other == line), "{line}: {shares}");
    }
    let finals: Vec<&str> = shares.lines().filter(|line| line.starts_with("final ")).collect();
    assert!(
        matches!(finals[..], [spoken, typed] if spoken.starts_with("final         2") && typed.starts_with("final         4")),
        "{shares}"
    );
    let none = succeeds(&["turns", "--config", &config]).await;
    assert_eq!(none, "no turns since the gateway was started\n");
    gateway.terminate().await;
}

/// Models have counted what the wearer caused, and what is stored of the wearer is found.
async fn has_counted(data: &std::path::Path) {
    let called = async |name: &str, arguments: Value| loop {
        if let Some(found) = try_call(data, name, arguments.clone()).await {
            break found;
        }
    };
    let stats = called("get_inference_stats", json!({})).await;
    for id in ["whisper-tiny.en", "silero-v6-16k", "webrtc-vad", "hibari", "offline"] {
        let all = stats["models"].as_array().expect("models");
        let model = all.iter().find(|model| model["id"] == id).unwrap_or_else(|| panic!("{id}: {stats}"));
        assert!(model["count"].as_u64() > Some(0) && model["mean_ms"].is_number(), "{model}");
        assert!(model["p50_ms"].as_f64() <= model["p95_ms"].as_f64() && model["last_at"].is_string(), "{model}");
    }
    let whisper = called("get_model_info", json!({"model_id": "whisper-tiny.en"})).await;
    assert_eq!(whisper["files"][0]["sha256"].as_str().map(str::len), Some(64), "{whisper}");
    assert!(whisper["memory_usage_bytes"].as_u64() > Some(10_000_000), "{whisper}");
    let nodes = called("search_nodes", json!({"query": "elephant", "node_type": "document"})).await;
    assert!(nodes["nodes"][0]["text"].as_str().is_some_and(|text| text.contains("elephant")), "{nodes}");
    let table = admitted(&["models", "stats", "--config", &configure_of(data)]).await;
    assert!(table.lines().any(|line| line.starts_with("hibari ")), "{table}");
}

/// What a command prints that calls a tool, once it may: the calls before it have used up what a user may do at once.
async fn admitted(arguments: &[&str]) -> String {
    loop {
        let ended = lorgnette(arguments).await;
        if !String::from_utf8_lossy(&ended.stderr).contains("Too many calls") {
            assert!(ended.status.success(), "{ended:?}");
            return String::from_utf8(ended.stdout).expect("UTF-8");
        }
    }
}

fn configure_of(data: &std::path::Path) -> String {
    configure(data, "").display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_the_log_is_told_that_the_gateway_stops() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut command = Command::new(binary());
    command.args(["logs", "--follow", "--config", &configure_of(&data)]).kill_on_drop(true);
    let mut following = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(following.stdout.take().expect("piped")).lines();
    let line = timeout(world::WAIT, lines.next_line()).await.expect("a line in time");
    assert!(line.expect("a line").is_some());
    gateway.terminate().await;
    let ended = timeout(world::WAIT, following.wait_with_output()).await.expect("it ends in time").expect("a status");
    let words = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && words.contains("the gateway sends no more"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_root_cannot_be_written_is_read_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (data, switch) = (folder.path().join("data"), folder.path().join("switch"));
    let [library, below, file] =
        [&compile(folder.path(), READ_ONLY), &data.join("log"), &switch].map(|path| path.display().to_string());
    let environment = [("LD_PRELOAD", &*library), ("FOLDER", &*below), ("SWITCH", &*file)];
    let gateway = Process::start(&data, "", &environment).await;
    let over = json!({"text": "session over"});
    world::connect(&data, gateway.options()).await.goodbye().await;
    until(&data, over.clone(), |found| found["count"] == 1).await;
    // The first commit from now on fails at its root, and LMDB gives the file up; those behind it fail before theirs.
    std::fs::write(&switch, "root").unwrap();
    world::connect(&data, gateway.options()).await.goodbye().await;
    let dropping = async {
        loop {
            let stats = try_call(&data, "get_log_stats", json!({})).await;
            if stats.is_some_and(|stats| stats["dropped"].as_u64() > Some(0)) {
                return;
            }
        }
    };
    timeout(world::WAIT, dropping).await.expect("lines are dropped");
    until(&data, over.clone(), |found| found["count"] == 1).await;
    std::fs::remove_file(&switch).unwrap();
    world::connect(&data, gateway.options()).await.goodbye().await;
    until(&data, over, |found| found["count"].as_u64() > Some(1)).await;
    gateway.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_user_is_gone_from_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    text(&mut glasses, "what is two plus two").await;
    answered(&mut glasses).await;
    let device = glasses.fingerprint().replace(['-', ':', ' '], "").to_lowercase();
    glasses.goodbye().await;
    until(&data, json!({"text": "session over"}), |found| found["count"] == 1).await;
    let config = configure_of(&data);
    succeeds(&["ask", "what is two plus two", "--user", USER, "--config", &config]).await;
    until(&data, json!({"text": "transport=text outcome="}), |found| found["count"] == 1).await;
    let erase = ["users", "erase", USER, "--devices", "--yes", "--config", &configure_of(&data)].map(str::to_owned);
    succeeds(&erase.each_ref().map(String::as_str)).await;
    // A line that names nobody: it is stored after the others.
    let found = until(&data, json!({"text": "everything of a user was erased"}), |found| found["count"] == 1).await;
    assert_eq!(found["logs"][0]["source"], "gateway", "{found}");
    let bytes = std::fs::read(data.join("log/data.mdb")).unwrap();
    // Typed turns as well, which no glasses had: their lines and their records.
    for word in [device.as_str(), "transport=text outcome=", r#""transport":"text""#] {
        assert!(!bytes.windows(word.len()).any(|window| window == word.as_bytes()), "{word}");
    }
    let turns = succeeds(&["turns", "--json", "--config", &config]).await;
    assert!(!turns.contains(&device) && !turns.contains(r#""transport":"text""#), "{turns}");
    gateway.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_the_gateway_is_told_to_programs_and_to_wearers() {
    let world = crate::world::World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let data = world.data();
    let sessions = call(&data, "system.sessions", json!({})).await;
    assert_eq!((&sessions["count"], &sessions["sessions"][0]["user"]), (&json!(1), &json!(USER)), "{sessions}");
    assert_eq!(sessions["sessions"][0]["transport"], "wss", "{sessions}");
    let limits = call(&data, "system.limits", json!({})).await;
    assert_eq!(limits["sessions"], json!({"used": 1, "max": 128}), "{limits}");
    assert!(
        limits["store_bytes"]["used"].as_u64() > Some(0)
            && limits["queues"].as_array().is_some_and(|all| all.len() > 3)
    );
    let transports = call(&data, "system.transports", json!({})).await;
    let carried: Vec<_> =
        transports["transports"].as_array().into_iter().flatten().map(|of| of["sessions"].clone()).collect();
    assert_eq!(carried, [1, 0, 0], "{transports}");
    assert_eq!(call(&data, "system.servers", json!({})).await["count"], 0);
    let status = call(&data, "system.status", json!({})).await;
    assert_eq!((&status["version"], &status["problems"]), (&json!(env!("CARGO_PKG_VERSION")), &json!([])), "{status}");
    assert!(status["memory"]["gateway_bytes"].as_u64() > Some(1_000_000), "{status}");
    text(&mut glasses, "is the box all right").await;
    let told = answered(&mut glasses).await;
    assert!(told.contains("the gateway is all right."), "{told}");
    world.stop().await;
}
