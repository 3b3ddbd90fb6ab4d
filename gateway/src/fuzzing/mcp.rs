//! MCP clients, over the control socket and over HTTP, in front of the built-in tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, Due, OpenEntry, ScheduleEntry, ScheduleKind};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
    time::timeout,
};
use tools::{
    executor::Executor,
    mcp::server::{Approver, Who},
    memory::Memory,
    ports::{NoApps, PortError, Ports, Schedule, Style},
    registry::Registry,
};

use super::{run, store};
use crate::{
    approvals::ApprovalBroker,
    http::fuzzing::to_mcp,
    mcp::{Mcp, Prepared, settings::McpSettings},
    ports::stores::{ConnectedDevices, StoredNotes, SystemClock},
    roster::Roster,
};

/// Bytes of an input that are sent.
const SENT_BYTES_MAX: usize = 256 * 1024;
/// How long a client that has hung up is served: the library gives answers that are under way five seconds.
const ENDED_MAX: Duration = Duration::from_secs(10);
/// Host header of the fuzzer's requests.
const HOST: &str = "localhost";

struct Fixture {
    mcp: Arc<Mcp>,
    executor: Executor,
}

/// No glasses, no apps, no user's machine: tools of these are not available, all others run.
static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let (store, _) = store("mcp");
    let registry = Arc::new(Registry::with_built_ins().expect("the built-in tools can be registered"));
    let roster = Arc::new(Roster::default());
    let ports = Ports {
        schedule: Arc::new(NoUsers),
        notes: Arc::new(StoredNotes(store)),
        device: Arc::new(ConnectedDevices(roster.clone())),
        consent: Arc::new(ApprovalBroker::new(roster.clone(), registry.clone())),
        apps: Arc::new(NoApps),
        memory: Memory::default(),
        clock: Arc::new(SystemClock),
        style: Style::default(),
    };
    let executor = Executor::new(registry, ports);
    let settings = McpSettings { without_key: true, ..McpSettings::default() };
    let prepared = Prepared::load(&settings, None).expect("no servers, no keys");
    Fixture { mcp: Arc::new(run(async { Mcp::start(prepared, &executor, roster, 80) })), executor }
});

/// Lines of a client of the control socket, behind the answer to its request; the first byte: its class.
pub fn line(bytes: &[u8]) {
    let Some((class, bytes)) = bytes.split_first() else { return };
    let class = [ClientClass::Internal, ClientClass::Copilot, ClientClass::External][usize::from(*class) % 3];
    let bytes = &bytes[..bytes.len().min(SENT_BYTES_MAX)];
    let fixture = &*FIXTURE;
    let told = run(async {
        let (client, server) = duplex(SENT_BYTES_MAX);
        let (mut read, mut write) = tokio::io::split(client);
        let who = Who { user: "ann".to_owned(), class, approves: Approver::of(class), is_operator: false };
        let mut told = Vec::new();
        let talk = async {
            drop(write.write_all(bytes).await);
            drop(write.shutdown().await);
        };
        let (served, (), all) =
            tokio::join!(timeout(ENDED_MAX, fixture.mcp.serve_stream(who, server)), talk, read.read_to_end(&mut told));
        drop(served.expect("a client that has hung up is served no more"));
        all.expect("a pipe can be read");
        told
    });
    let asked = ids(bytes.split(|byte| *byte == b'\n'));
    let mut is_open = false;
    for line in told.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message = message(line);
        // Nothing is asked and told by itself before the client has begun.
        assert!(is_open || message.get("method").is_none(), "{message}");
        is_open |= message.get("result").is_some();
        answered(&message, &asked, class);
    }
}

/// Requests over HTTP. The first byte: from here or elsewhere, the path, whether the client has a session, the revision,
/// the method; the rest: the body.
pub fn http(bytes: &[u8]) {
    let Some((kind, body)) = bytes.split_first() else { return };
    let body = &body[..body.len().min(SENT_BYTES_MAX / 2)];
    let bit = |number: u32| kind >> number & 1 == 1;
    let (is_here, path) = (!bit(0), if bit(1) { "/mcp/external" } else { "/mcp" });
    let fixture = &*FIXTURE;
    let mut headers = format!("mcp-protocol-version: {}\r\n", if bit(3) { "2026-07-28" } else { "2025-11-25" });
    if bit(3) {
        headers += &named_in(body);
    }
    let session = bit(2).then(|| run(session(&fixture.mcp)));
    if let Some(session) = &session {
        headers += &format!("mcp-session-id: {session}\r\n");
    }
    let method = if bit(4) { "DELETE" } else { "POST" };
    let (status, told) = run(send(&fixture.mcp, is_here, method, path, &headers, body));
    if !is_here || bit(1) {
        assert_eq!(status, 401, "a stranger without a key");
        assert!(!told.contains('{'), "{told}");
    }
    let asked = ids([body].into_iter());
    let mut answers = 0;
    // A body of JSON, or events with such bodies.
    for line in told.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim()) {
        if line.starts_with('{') {
            let message = message(line.as_bytes());
            answered(&message, &asked, ClientClass::Internal);
            answers += usize::from(message.get("result").is_some());
        }
    }
    assert!(answers <= asked.len(), "{answers} results of {} requests", asked.len());
    if let Some(session) = session {
        // It is gone, or can be ended.
        let headers = format!("mcp-session-id: {session}\r\n");
        let (status, told) = run(send(&fixture.mcp, true, "DELETE", "/mcp", &headers, b""));
        assert!(matches!(status, 204 | 404), "{status} {told}");
    }
}

/// The headers in which later revisions repeat what the body asks for.
fn named_in(body: &[u8]) -> String {
    let value = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let mut headers = String::new();
    for (header, path) in [("mcp-method", "/method"), ("mcp-name", "/params/name")] {
        if let Some(text) = value.pointer(path).and_then(Value::as_str)
            && text.bytes().all(|byte| byte.is_ascii_graphic())
        {
            headers += &format!("{header}: {text}\r\n");
        }
    }
    headers
}

/// A session of a program on this machine.
async fn session(mcp: &Arc<Mcp>) -> String {
    const HELLO: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
    const READY: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let bytes = request("POST", "/mcp", "", HELLO);
    let reply = to_mcp(true, &bytes, mcp).await;
    let head = String::from_utf8_lossy(&reply);
    let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    let session = session.unwrap_or_else(|| panic!("no session: {head}")).to_owned();
    let (status, told) = send(mcp, true, "POST", "/mcp", &format!("mcp-session-id: {session}\r\n"), READY).await;
    assert_eq!(status, 202, "{told}");
    session
}

/// The status of the answer to a request, and the rest of the answer.
async fn send(mcp: &Arc<Mcp>, is_here: bool, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, String) {
    let bytes = request(method, path, headers, body);
    let answer = timeout(ENDED_MAX, to_mcp(is_here, &bytes, mcp)).await.expect("the connection ends");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, rest) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, rest.to_owned())
}

fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {HOST}\r\nconnection: close\r\ncontent-type: application/json\r\naccept: \
         application/json, text/event-stream\r\ncontent-length: {}\r\n{headers}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The numbers and names of all requests, as JSON. A byte order mark before a line is passed over.
fn ids<'a>(lines: impl Iterator<Item = &'a [u8]>) -> BTreeMap<String, usize> {
    let mut ids = BTreeMap::new();
    for line in lines {
        let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        let value = serde_json::from_slice::<Value>(line).unwrap_or_default();
        if let Some(id) = value.get("id") {
            *ids.entry(id.to_string()).or_default() += 1;
        }
    }
    ids
}

fn message(line: &[u8]) -> Value {
    let message = serde_json::from_slice::<Value>(line).expect("a line is JSON");
    assert_eq!(message.get("jsonrpc").and_then(Value::as_str), Some("2.0"), "{message}");
    message
}

/// An answer is one to a request of this client, and names only what clients of its class are offered.
fn answered(message: &Value, asked: &BTreeMap<String, usize>, class: ClientClass) {
    if let Some(result) = message.get("result") {
        assert!(message.get("error").is_none(), "{message}");
        let id = message.get("id").expect("a result has the number of its request");
        assert!(asked.contains_key(&id.to_string()), "nobody has asked {id}");
        if let Some(tools) = result.get("tools").and_then(Value::as_array) {
            let (_, offered) = FIXTURE.executor.offered("ann", None, class);
            let offered: BTreeSet<&str> = offered.iter().map(|tool| tool.name.as_str()).collect();
            for name in tools.iter().filter_map(|tool| tool.get("name").and_then(Value::as_str)) {
                assert!(offered.contains(name), "{name} is not for {class:?}");
            }
        }
    }
    if let Some(error) = message.get("error") {
        assert!(error.get("code").is_some_and(Value::is_i64), "{message}");
        assert!(error.get("message").is_some_and(Value::is_string), "{message}");
    }
}

/// No user has a machine here.
struct NoUsers;

fn none<T>() -> Result<T, PortError> {
    Err(PortError::Unavailable("no user is here".to_owned()))
}

#[async_trait]
impl Schedule for NoUsers {
    async fn add(&self, _user: &str, _due: Due, _kind: ScheduleKind) -> Result<ScheduleEntry, PortError> {
        none()
    }

    async fn list(&self, _user: &str) -> Result<Vec<OpenEntry>, PortError> {
        none()
    }

    async fn remove(&self, _user: &str, _id: u64) -> Result<Option<ScheduleEntry>, PortError> {
        none()
    }

    async fn extend(&self, _user: &str, _id: u64, _more_ms: u64) -> Result<Option<ScheduleEntry>, PortError> {
        none()
    }
}
