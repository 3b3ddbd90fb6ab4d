//! The official conformance suite on the gateway's client: the suite is the server and starts this test as a process,
//! which uses the pool of downstream servers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::vocab::{
    ApprovalOutcome, Due, ErrorCode, OpenEntry, ScheduleEntry, ScheduleKind, Timestamp, ToolCall, ToolResult, Turn,
};
use serde_json::{Map, Value, json};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;
use tools::{
    caller::{Caller, Exact, NotAsked},
    mcp::{client::Pool, config},
    ports::{
        Clock, Consent, ConsentRequest, Decision, DeviceCall, DeviceStatus, NoApps, Note, Notes, PortError, Ports,
        Schedule, Style,
    },
    registry::{Registry, RunContext},
};

use crate::{programs::Programs, world::WAIT};

/// Set by the suite.
const SCENARIO: &str = "MCP_CONFORMANCE_SCENARIO";
const CONTEXT: &str = "MCP_CONFORMANCE_CONTEXT";

/// Scenarios that do not apply, by the beginning of their name, with the reason. Fixed before the code.
const NOT_APPLICABLE: [(&str, &str); 1] = [(
    "auth/",
    "2025-11-25 and 2026-07-28, basic/authorization: authorization is OPTIONAL. A box without a browser cannot follow an \
     OAuth redirect; its keys come from the configuration as headers",
)];

#[tokio::test(flavor = "multi_thread")]
async fn every_applicable_scenario() {
    if std::env::var_os(SCENARIO).is_some() {
        // Started by the suite; the server's address is the last argument.
        let url = std::env::args().next_back().expect("an address");
        return drive(&url).await;
    }
    let tools = Programs::mcp();
    let folder = tempfile::tempdir().unwrap();
    let judge = |arguments: &[&str]| {
        let mut command = Command::new(tools.node());
        command
            .arg(tools.script("@modelcontextprotocol/conformance/dist/index.js"))
            .args(arguments)
            .current_dir(folder.path());
        command.kill_on_drop(true);
        command
    };
    let listed = judge(&["list"]).output().await.expect("the judge runs");
    let listed = String::from_utf8(listed.stdout).expect("UTF-8");
    let (_, listed) = listed.split_once("Client scenarios").expect("a list");
    let (listed, _) = listed.split_once("Authorization server").expect("its end");
    let own = std::env::current_exe().expect("this test");
    let own = format!("{} --exact mcp::client_judge::every_applicable_scenario", own.display());
    let mut failed = Vec::new();
    let mut ran = BTreeSet::new();
    for line in listed.lines().filter_map(|line| line.trim().strip_prefix("- ")) {
        let (name, revisions) = line.split_once(" [").expect("a scenario");
        for revision in ["2025-11-25", "2026-07-28"] {
            if !revisions.contains(revision) || NOT_APPLICABLE.iter().any(|(start, _)| name.starts_with(start)) {
                continue;
            }
            ran.insert(format!("{name} {revision}"));
            let arguments = ["client", "--command", &own, "--scenario", name, "--spec-version", revision];
            let output = judge(&arguments).output().await.expect("the judge runs");
            if !output.status.success() {
                let words = [output.stdout, output.stderr].concat();
                failed.push(format!("{name} {revision}: {}", String::from_utf8_lossy(&words)));
            }
        }
    }
    println!("{} scenarios: {ran:?}", ran.len());
    assert!(ran.len() >= 12, "the judge has judged too little: {ran:?}");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Connects as the gateway does and calls all offered tools.
async fn drive(url: &str) {
    let registry = Arc::new(Registry::new());
    let file = json!({ "mcpServers": { "judge": { "url": url } } }).to_string();
    let mut changes = registry.changes();
    // The gateway installs it when it starts.
    drop(rustls::crypto::ring::default_provider().install_default());
    let pool = Pool::start(config::check_file(&file, &|_| None).expect("a server"), None, &registry);
    let up = tokio::time::timeout(Duration::from_secs(20), changes.wait_for(|revision| *revision > 0)).await;
    println!("up: {} {:?}", up.is_ok(), pool.states());
    // A held reference would keep the registry from announcing changes.
    drop(up);
    let snapshot = registry.snapshot("u", None);
    let context: Value =
        std::env::var(CONTEXT).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let wanted: Option<BTreeMap<String, Value>> = context.get("toolCalls").and_then(Value::as_array).map(|calls| {
        let of = |call: &Value| Some((call.get("name")?.as_str()?.to_owned(), call.get("arguments")?.clone()));
        calls.iter().filter_map(of).collect()
    });
    for tool in snapshot.tools() {
        let local = tool.spec.name.strip_prefix("judge.").expect("our prefix");
        let arguments = match &wanted {
            Some(wanted) => match wanted.get(local) {
                Some(arguments) => arguments.clone(),
                None => continue,
            },
            None => fill(&tool.spec.input_schema, &registry),
        };
        let call = ToolCall { id: "1".into(), name: tool.spec.name.clone(), arguments };
        let context = RunContext {
            user: "wearer".into(),
            device: None,
            session: None,
            called_wall_ms: 0,
            turn: None,
            deadline: Duration::from_secs(20),
            cancel: CancellationToken::new(),
            ports: ports(),
            offered: snapshot.clone(),
            local_name: tool.local_name.clone(),
            flags: tool.spec.flags,
            activated: false,
            conversation: Arc::default(),
            language: None,
            caller: Some(Arc::new(Willing)),
            program: None,
            calls: None,
        };
        let result = tool.runner.run(context, call).await;
        println!("{local}: {result:?}");
    }
    pool.stop().await;
}

/// Arguments that match the schema; a property `schema` gets another tool's schema, as received.
fn fill(schema: &Value, registry: &Registry) -> Value {
    let mut arguments = Map::new();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let value = match property.get("type").and_then(Value::as_str) {
            _ if name == "schema" => {
                let snapshot = registry.snapshot("u", None);
                let focal = snapshot.tools().iter().find(|tool| tool.spec.input_schema.get("$defs").is_some());
                focal.map(|tool| tool.spec.input_schema.clone()).unwrap_or_default()
            }
            Some("number" | "integer") => json!(5),
            Some("boolean") => json!(true),
            Some("string") => json!("word"),
            _ => continue,
        };
        arguments.insert(name.clone(), value);
    }
    Value::Object(arguments)
}

/// A client whose user accepts every form with its defaults.
#[derive(Debug)]
pub struct Willing;

#[async_trait]
impl Caller for Willing {
    async fn consent(&self, _request: &ConsentRequest, _cancel: &CancellationToken) -> Option<ApprovalOutcome> {
        None
    }

    fn capabilities(&self) -> Value {
        json!({ "elicitation": { "form": {} } })
    }

    async fn ask(&self, requests: BTreeMap<String, Value>) -> Result<BTreeMap<String, Value>, NotAsked> {
        let answer = |request: &Value| {
            let mut content = Map::new();
            let properties = request.pointer("/params/requestedSchema/properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                let value = property.get("default").cloned().or_else(|| {
                    match property.get("type").and_then(Value::as_str)? {
                        "boolean" => Some(json!(true)),
                        "string" => Some(json!("word")),
                        _ => None,
                    }
                });
                content.extend(value.map(|value| (name.clone(), value)));
            }
            json!({ "action": "accept", "content": content })
        };
        Ok(requests.iter().map(|(key, request)| (key.clone(), answer(request))).collect())
    }

    fn progress(&self, _done: f64, _total: Option<f64>, _message: Option<String>) {}

    fn log_level(&self) -> Option<String> {
        None
    }

    fn log(&self, _message: Value) {}

    fn keep(&self, _exact: Exact) {}

    fn is_operator(&self) -> bool {
        false
    }
}

/// Ports without any service: the tools of a server use none.
struct Nothing;

fn ports() -> Ports {
    let nothing = Arc::new(Nothing);
    Ports {
        schedule: nothing.clone(),
        notes: nothing.clone(),
        device: nothing.clone(),
        consent: nothing.clone(),
        apps: Arc::new(NoApps),
        memory: tools::memory::Memory::default(),
        clock: nothing,
        style: Style::default(),
    }
}

fn none<T>() -> Result<T, PortError> {
    Err(PortError::Unavailable("nothing is here".into()))
}

#[async_trait]
impl Schedule for Nothing {
    async fn add(&self, _: &str, _: Due, _: ScheduleKind) -> Result<ScheduleEntry, PortError> {
        none()
    }

    async fn list(&self, _: &str) -> Result<Vec<OpenEntry>, PortError> {
        none()
    }

    async fn remove(&self, _: &str, _: u64) -> Result<Option<ScheduleEntry>, PortError> {
        none()
    }

    async fn extend(&self, _: &str, _: u64, _: u64) -> Result<Option<ScheduleEntry>, PortError> {
        none()
    }
}

#[async_trait]
impl Notes for Nothing {
    async fn add(&self, _: &str, _: &str) -> Result<Note, PortError> {
        none()
    }

    async fn list(&self, _: &str, _: usize) -> Result<Vec<Note>, PortError> {
        none()
    }

    async fn search(&self, _: &str, _: &str, _: usize) -> Result<Vec<Note>, PortError> {
        none()
    }

    async fn delete(&self, _: &str, _: u64) -> Result<Option<Note>, PortError> {
        none()
    }

    async fn clear(&self, _: &str) -> Result<usize, PortError> {
        none()
    }
}

#[async_trait]
impl DeviceCall for Nothing {
    async fn call(&self, _: &str, _: Option<Turn>, _: ToolCall, _: Duration, _: CancellationToken) -> ToolResult {
        ToolResult::failed(ErrorCode::AppNotAvailable, "nothing is here", false)
    }

    fn status(&self, _: &str) -> Option<DeviceStatus> {
        None
    }
}

#[async_trait]
impl Consent for Nothing {
    async fn ask(&self, _: ConsentRequest, _: CancellationToken) -> Decision {
        ApprovalOutcome::Denied.into()
    }
}

impl Clock for Nothing {
    fn now(&self) -> Timestamp {
        Timestamp::default()
    }

    fn zone(&self) -> jiff::tz::TimeZone {
        jiff::tz::TimeZone::UTC
    }
}

/// Checks the constant: the tests wait longer than the driver.
const _: () = assert!(WAIT.as_secs() > 20);
