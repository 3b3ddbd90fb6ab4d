//! A real Prometheus reads `/metrics`, and its own tool judges them and the alert rules in `deploy/prometheus`. Both come from
//! the Debian package `prometheus`, which is unpacked and not installed, so that no service is started.

use std::{
    fs,
    io::Write as _,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    time::timeout,
};

use crate::{
    cache::{Cache, run},
    world::{WAIT, World, answered, text},
};

/// The package, as apt knows it.
const PACKAGE: &str = "prometheus";

/// The folder with `prometheus` and `promtool`.
fn programs() -> PathBuf {
    let cache = Cache::lock(PACKAGE);
    cache.once(PACKAGE, |folder| {
        let needs = "a Debian system with package lists: `apt-get update` as root; or no network";
        let apt = |arguments: &[&str]| {
            let mut command = Command::new("apt-get");
            command.args(["-o", "APT::Sandbox::User=root", "-o", "DPkg::Lock::Timeout=300"]).args(arguments);
            command.current_dir(folder);
            command
        };
        // The lists may be missing or old; who is not root cannot refresh them.
        let is_there = apt(&["download", PACKAGE]).output().is_ok_and(|output| output.status.success());
        if !is_there {
            run(&mut apt(&["update", "--quiet"]), needs);
            run(&mut apt(&["download", PACKAGE]), needs);
        }
        let files = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
        let package =
            files.into_iter().find(|path| path.extension().is_some_and(|end| end == "deb")).expect("a package");
        run(Command::new("dpkg").arg("-x").arg(&package).arg(folder), "dpkg");
        fs::remove_file(package).expect("removed");
    });
    cache.folder().join("usr/bin")
}

/// What `promtool` says; it must approve.
fn approves(arguments: &[&str], input: &str) -> String {
    let mut command = Command::new(programs().join("promtool"));
    command.args(arguments).current_dir(rules()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("promtool runs");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
    said
}

fn rules() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/prometheus")
}

#[test]
fn the_alert_rules_are_right_and_fire_when_they_should() {
    let checked = approves(&["check", "rules", "lorgnette.rules.yml"], "");
    assert!(checked.contains("9 rules found"), "{checked}");
    approves(&["test", "rules", "lorgnette.rules.test.yml"], "");
}

/// The value of a query, if it has one.
async fn queried(api: &str, query: &str) -> Option<String> {
    let mut url = reqwest::Url::parse(&format!("{api}/query")).expect("an address");
    url.query_pairs_mut().append_pair("query", query);
    let answer = reqwest::get(url).await.expect("an answer").text().await.expect("its text");
    let answer: Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["status"], "success", "{answer}");
    Some(answer["data"]["result"][0]["value"][1].as_str()?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_reads_the_numbers_of_a_gateway() {
    let programs = tokio::task::spawn_blocking(programs).await.expect("the programs");
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "what is two plus two").await;
    answered(&mut glasses).await;
    let target = format!("127.0.0.1:{}", world.web().port());
    let metrics = reqwest::get(format!("http://{target}/metrics")).await.expect("metrics");
    let metrics = metrics.text().await.expect("text");
    tokio::task::spawn_blocking(move || approves(&["check", "metrics"], &metrics)).await.expect("approved");

    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("prometheus.yml");
    let rules = rules().join("lorgnette.rules.yml").canonicalize().unwrap();
    let text = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [{rules:?}]\nscrape_configs:\n  \
         - job_name: lorgnette\n    static_configs: [{{targets: [{target:?}]}}]\n"
    );
    fs::write(&config, text).unwrap();
    // It cannot be asked which port it has chosen itself.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut prometheus = tokio::process::Command::new(programs.join("prometheus"))
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("prometheus runs");
    let mut log = BufReader::new(prometheus.stderr.take().expect("piped")).lines();
    let ready = async {
        let mut told = Vec::new();
        while let Ok(Some(line)) = log.next_line().await {
            if line.contains("Server is ready to receive web requests") {
                return;
            }
            told.push(line);
        }
        panic!("prometheus ended: {told:#?}");
    };
    timeout(WAIT, ready).await.expect("prometheus in time");
    // It goes on reading its log, so that it is not held up by it.
    let reading = tokio::spawn(async move { while let Ok(Some(_)) = log.next_line().await {} });
    let api = format!("http://127.0.0.1:{port}/api/v1");
    let scraped = async {
        loop {
            if let Some(up) = queried(&api, "up{job=\"lorgnette\"}").await {
                return up;
            }
        }
    };
    assert_eq!(timeout(WAIT, scraped).await.expect("a scrape in time"), "1");
    assert_eq!(queried(&api, "lorgnette_sessions").await.as_deref(), Some("1"));
    let built_in = "lorgnette_tool_call_seconds_count{source=\"built_in\",outcome=\"ok\"}";
    assert_eq!(queried(&api, built_in).await.as_deref(), Some("1"));
    assert_eq!(queried(&api, "count(ALERTS{alertstate=\"firing\"})").await, None, "all is well");
    let targets = reqwest::get(format!("{api}/targets")).await.expect("targets").text().await.expect("text");
    let targets: Value = serde_json::from_str(&targets).expect("JSON");
    assert_eq!(targets["data"]["activeTargets"][0]["lastError"], "", "{targets}");
    prometheus.kill().await.expect("ended");
    reading.await.expect("its log ends");
    world.stop().await;
}
