//! The official conformance suite on the gateway's server. The expected tools, prompts and resources are in the
//! fixture, a server behind the gateway.

use std::{collections::BTreeMap, path::Path};

use serde_json::Value;
use tokio::process::Command;

use super::{fixture, up};
use crate::{programs::Programs, world::World};

/// Scenarios that do not apply, by revision, with the reason. Fixed before the code; docs/mcp.md lists the same.
const NOT_APPLICABLE: [(&str, &str, &str); 1] = [(
    "2025-11-25",
    "server-sse-polling",
    "SEP-1699: a server MAY close its stream in the middle of a call; the scenario wants a tool that makes the server \
     under test do so, and a tool behind a gateway cannot reach the gateway's stream",
)];

/// Results by scenario: passed and failed checks.
type Judgement = BTreeMap<String, (u32, u32)>;

/// `✓ ping: 2 passed, 0 failed`
fn verdict(line: &str) -> Option<(String, (u32, u32))> {
    let rest = line.strip_prefix("✓ ").or_else(|| line.strip_prefix("✗ "))?;
    let (name, counts) = rest.split_once(": ")?;
    let (passed, failed) = counts.split_once(" passed, ")?;
    Some((name.to_owned(), (passed.parse().ok()?, failed.split(' ').next()?.parse().ok()?)))
}

/// The failed checks, with their reasons.
fn failures(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for scenario in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let checks = std::fs::read_to_string(scenario.path().join("checks.json")).unwrap_or_default();
        let checks: Vec<Value> = serde_json::from_str(&checks).unwrap_or_default();
        found.extend(
            checks.into_iter().filter(|check| check["status"] == "FAILURE" || check["status"] == "WARNING").map(
                |check| {
                    let name = scenario.file_name().display().to_string();
                    format!("{} {name} {}: {}", check["status"], check["id"], check["errorMessage"])
                },
            ),
        );
    }
    found
}

async fn judge(revision: &str) {
    let tools = Programs::mcp();
    let fixture = fixture::serve().await;
    let world = World::with(&format!(
        "[mcp]\nwithout_key = true\nflatten = \"fixture\"\nservers.fixture = {{ url = \"http://{fixture}/\" }}\n"
    ))
    .await;
    up(&world, "fixture").await;
    let results = world.folder().join("results");
    let output = Command::new(tools.node())
        .arg(tools.script("@modelcontextprotocol/conformance/dist/index.js"))
        .args(["server", "--suite", "all", "--spec-version", revision])
        .args(["--url", &format!("http://{}/mcp", world.web())])
        .arg("-o")
        .arg(&results)
        .current_dir(world.folder())
        .kill_on_drop(true)
        .output()
        .await
        .expect("the judge runs");
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    let judgement: Judgement = words.lines().filter_map(verdict).collect();
    let failures = failures(&results);
    println!("{revision}: {failures:#?}");
    let wanted = |name: &str| !NOT_APPLICABLE.iter().any(|(of, scenario, _)| *of == revision && *scenario == name);
    let (mut passed, mut failed) = (0, Vec::new());
    for (name, (good, bad)) in judgement.iter().filter(|(name, _)| wanted(name)) {
        passed += good;
        if *bad > 0 {
            failed.push(name);
        }
    }
    println!("{revision}: {} scenarios, {passed} checks passed", judgement.len());
    assert!(judgement.len() >= 30, "the judge has judged too little: {words}");
    assert!(failed.is_empty(), "{revision}: {failed:?} failed: {failures:#?}");
    for (of, scenario, _) in NOT_APPLICABLE {
        assert!(of != revision || judgement.contains_key(scenario), "{scenario} is not in the suite any more");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn revision_2025_11_25_through_the_gateway() {
    judge("2025-11-25").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revision_2026_07_28_through_the_gateway() {
    judge("2026-07-28").await;
}

#[test]
fn verdicts_are_read() {
    assert_eq!(verdict("✓ ping: 2 passed, 0 failed"), Some(("ping".into(), (2, 0))));
    assert_eq!(verdict("✗ tools-list: 1 passed, 12 failed, 1 warnings"), Some(("tools-list".into(), (1, 12))));
    assert_eq!(verdict("Total: 29 passed, 34 failed"), None);
}
