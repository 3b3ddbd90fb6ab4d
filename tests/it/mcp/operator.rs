//! Operation of MCP servers: state, last lines of output and restart; and which tools a client is offered if some are
//! switched off.

use std::{fmt::Write as _, path::Path, sync::Arc};

use gateway::{
    control::{Answer, McpServer, Request, memory::MemoryRequest, socket_path},
    identity::operators::Role,
};
use gateway_core::vocab::{ClientClass, ErrorCode, ToolSpec};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{UnixStream, unix::OwnedWriteHalf},
};
use tools::{
    definition::{self, Naming},
    mcp::client::State,
};

use super::{call, client_judge::Willing, state, up};
use crate::{
    console::Visitor,
    process::{Process, configure, fails, lorgnette, succeeds},
    world::{USER, WAIT, World, ask},
};

const FAULTY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/mcp_faulty.py");
/// A secret that the server writes to its standard error.
const PLANTED: &str = "sk-planted-4711";

fn settings(more: &str) -> String {
    format!(
        "[mcp]\nservers.faulty = {{ command = \"python3\", args = [{FAULTY:?}], env = {{ FAULTY_KEY = {PLANTED:?} }}, \
         phrases = {{ complain = [\"make a complaint\"] }} }}\n\
         servers.absent = {{ command = \"/no/such/server\" }}\n{more}"
    )
}

async fn servers(world: &World) -> Vec<McpServer> {
    match world.ask(Request::McpServers).await {
        Ok(Answer::McpServers { servers }) => servers,
        other => panic!("{other:?}"),
    }
}

/// Waits for a line among the last output of a server.
async fn said(data: &Path, name: &str, wanted: &str) -> Vec<String> {
    let heard = async {
        loop {
            let logs = ask(data, Request::McpServerLogs { name: name.to_owned() }).await.expect("its lines");
            let Answer::Lines { lines } = logs else { panic!("no lines") };
            let lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
            if lines.iter().any(|line| line.contains(wanted)) {
                return lines;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, heard).await.expect("it says so")
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_listed_with_their_last_words_and_started_anew() {
    let world = World::with(&settings("")).await;
    up(&world, "faulty").await;
    state(&world, "absent", |state| matches!(state, State::Down(_))).await;
    let listed = servers(&world).await;
    let [absent, faulty] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!((absent.name.as_str(), absent.state.as_str(), absent.tools), ("absent", "down", 0));
    assert!(absent.detail.contains("/no/such/server"), "{absent:?}");
    assert_eq!((faulty.name.as_str(), faulty.state.as_str()), ("faulty", "up"));
    assert!(faulty.tools > 5 && faulty.last_failure.is_none() && faulty.last_words.is_empty(), "{faulty:?}");

    let failed = call(&world, "faulty.complain", None).await;
    assert!(failed.is_error(), "{failed:?}");
    let lines = said(&world.data(), "faulty", "ValueError").await;
    assert!(lines.iter().any(|line| line.contains("[secret]")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains(PLANTED)), "{lines:?}");
    let listed = servers(&world).await;
    let (why, _) = listed[1].last_failure.as_ref().expect("a failure");
    assert!(why.contains("faulty.complain") && why.contains("no pantry"), "{why}");
    assert!(listed[1].last_words.iter().any(|line| line.contains("ValueError")), "{listed:?}");

    // It is a new process afterwards, and its tools are available at once.
    let file = configure(&world.data(), "").display().to_string();
    let process = || async { call(&world, "faulty.process", None).await.content };
    let before = process().await;
    let told = succeeds(&["mcp", "restart", "faulty", "--config", &file]).await;
    assert!(told.contains("faulty is up: "), "{told}");
    assert_ne!(process().await, before);
    let told = fails(&["mcp", "restart", "absent", "--config", &file]).await;
    assert!(told.contains("absent is down: ") && told.contains("lorgnette mcp logs absent"), "{told}");
    let told = fails(&["mcp", "restart", "pantry", "--config", &file]).await;
    assert!(told.contains("no MCP server is called `pantry`"), "{told}");

    let list = succeeds(&["mcp", "list", "--config", &file]).await;
    assert!(list.contains("faulty  up for ") && list.contains("absent  down for "), "{list}");
    assert!(list.contains("last failure") && list.contains("    | "), "{list}");
    let logs = succeeds(&["mcp", "logs", "faulty", "--config", &file]).await;
    assert!(logs.contains(" ago  ") && logs.contains("ValueError: no pantry"), "{logs}");
    // The command for standard input and output still works.
    let carried = lorgnette(&["mcp", "--config", &file]).await;
    assert!(carried.status.success() && carried.stdout.is_empty(), "{carried:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_says_of_a_failure_is_the_operators() {
    let world = World::with(&settings("")).await;
    up(&world, "faulty").await;
    assert!(call(&world, "faulty.complain", None).await.is_error());
    said(&world.data(), "faulty", "ValueError").await;
    let viewer = Visitor::signed_in(&world, Role::Viewer).await.text("/console/mcp").await;
    assert!(viewer.contains("faulty.complain: EXECUTION_ERROR") && !viewer.contains("no pantry"), "{viewer}");
    let operator = Visitor::signed_in(&world, Role::Operator).await.text("/console/mcp").await;
    assert!(operator.contains("faulty.complain: it failed: no pantry"), "{operator}");
    // As the client of a user, and as the operator's own.
    let of_user = call(&world, "system.servers", Some(Arc::new(Willing))).await.data.expect("data");
    assert_eq!(of_user["servers"][1]["last_failed"], json!(["faulty.complain", "EXECUTION_ERROR"]), "{of_user}");
    assert!(!of_user.to_string().contains("pantry"), "{of_user}");
    let own = call(&world, "system.servers", None).await.data.expect("data");
    let told = |field: &str| own["servers"][1][field].to_string();
    assert!(told("last_failure").contains("no pantry") && told("last_words").contains("no pantry"), "{own}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_drops_what_servers_have_said_of_calls() {
    let world = World::with(&settings("")).await;
    up(&world, "faulty").await;
    assert!(call(&world, "faulty.complain", None).await.is_error());
    said(&world.data(), "faulty", "ValueError: no pantry").await;
    // Nobody knows that these are not the words of another user.
    let request = MemoryRequest::EraseUser { user: "somebody".into(), devices: false };
    world.ask(Request::Memory { request }).await.expect("erased");
    let listed = servers(&world).await;
    assert!(listed[1].last_failure.is_none() && listed[1].last_words.is_empty(), "{listed:?}");
    let logs = world.ask(Request::McpServerLogs { name: "faulty".into() }).await.expect("its lines");
    let Answer::Lines { lines } = logs else { panic!("no lines") };
    assert!(!lines.iter().any(|(_, line)| line.contains("pantry")), "{lines:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_says_why_with_its_time_and_its_size() {
    let hurried = format!("servers.hurried = {{ command = \"python3\", args = [{FAULTY:?}], timeout_ms = 1500 }}\n");
    let world = World::with(&settings(&hurried)).await;
    up(&world, "faulty").await;
    up(&world, "hurried").await;
    let late = call(&world, "hurried.stall", None).await;
    let error = late.error.expect("an error");
    assert_eq!(error.code, ErrorCode::Timeout);
    assert!(error.message.contains("did not answer within 1.5 s"), "{error:?}");
    for (tool, done) in [("faulty.oversized", true), ("faulty.oversized_read", false)] {
        let large = call(&world, tool, None).await;
        let error = large.error.expect("an error");
        assert_eq!((error.code, error.retryable), (ErrorCode::HttpError, false), "{error:?}");
        assert!(error.message.contains("answered with more than 16 MiB"), "{error:?}");
        assert_eq!(error.message.contains("Do not repeat it"), done, "{error:?}");
        assert_eq!(large.say.as_deref(), Some("faulty answered with more than I can take."));
    }
    // The connection is not affected.
    assert_eq!(call(&world, "faulty.before", None).await.content, "did before");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_has_what_a_server_said_of_its_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let gateway = Process::start(&data, &settings(""), &[]).await;
    let offered = async {
        loop {
            let call = Request::CallTool { user: USER.into(), name: "faulty.complain".into(), arguments: json!({}) };
            let Ok(Answer::ToolResult { result, .. }) = ask(&data, call).await else { panic!("no result") };
            if result.error.is_some_and(|error| error.message.contains("no pantry")) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, offered).await.expect("the server answers");
    said(&data, "faulty", "ValueError").await;
    // Its last output before the end is recorded as well.
    let die = Request::CallTool { user: USER.into(), name: "faulty.die".into(), arguments: json!({}) };
    ask(&data, die).await.expect("a result");
    said(&data, "faulty", "dying").await;
    let told = async {
        loop {
            let restart = Request::RestartMcpServer { name: "faulty".into() };
            if ask(&data, restart).await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(WAIT, told).await.expect("it is up again");
    let (_, log) = gateway.terminate().await;
    let mut warned = String::new();
    for line in log.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if line["level"] == "WARN" && line["fields"]["server"] == "faulty" {
            let _ = writeln!(warned, "{}", line["fields"]["message"].as_str().unwrap_or_default());
        }
    }
    assert!(warned.contains("ValueError: no pantry") && warned.contains("Traceback"), "{warned}");
    assert!(warned.contains("dying") && !warned.contains(PLANTED), "{warned}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_stay_leave_room_for_commands() {
    let world = World::start().await;
    let mut staying = Vec::new();
    for _ in 0..32 {
        staying.push(Client::open(&world).await);
    }
    let refused = Client::connect(&world).await.line().await;
    assert!(refused.to_string().contains("stay already"), "{refused}");
    // Nor do clients that say nothing keep an operator out.
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(UnixStream::connect(socket_path(&world.data())).await.expect("the socket"));
    }
    world.ask(Request::Devices).await.expect("an answer");
    drop(staying);
    let again = async { while !Client::connect(&world).await.line().await.to_string().contains("carries MCP") {} };
    tokio::time::timeout(WAIT, again).await.expect("their places are free again");
    world.stop().await;
}

/// A client of the control socket that sends raw MCP messages.
struct Client {
    read: tokio::io::Lines<BufReader<tokio::net::unix::OwnedReadHalf>>,
    write: OwnedWriteHalf,
    next: u64,
    /// Methods of received notifications.
    news: Vec<String>,
}

impl Client {
    /// It has asked to speak MCP.
    async fn connect(world: &World) -> Self {
        let stream = UnixStream::connect(socket_path(&world.data())).await.expect("the socket");
        let (read, write) = stream.into_split();
        let mut client = Self { read: BufReader::new(read).lines(), write, next: 1, news: Vec::new() };
        let request = Request::Mcp { user: USER.to_owned(), class: ClientClass::Internal };
        client.send(&serde_json::to_value(request).expect("JSON")).await;
        client
    }

    async fn open(world: &World) -> Self {
        let mut client = Self::connect(world).await;
        client.line().await;
        let hello =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        client.ask("initialize", hello).await;
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.expect("sent");
    }

    async fn line(&mut self) -> Value {
        let line = tokio::time::timeout(WAIT, self.read.next_line()).await.expect("in time");
        serde_json::from_str(&line.expect("a line").expect("more")).expect("JSON")
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        loop {
            let mut message = self.line().await;
            if message["id"] == id {
                return message["result"].take();
            }
            self.news.extend(message["method"].as_str().map(str::to_owned));
        }
    }

    async fn tools(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", json!({})).await;
        let names = listed["tools"].as_array().expect("tools").iter().map(|tool| tool["name"].as_str().unwrap_or("?"));
        names.map(str::to_owned).collect()
    }

    async fn news(&mut self, wanted: &str) {
        while !self.news.iter().any(|news| news == wanted) {
            let message = self.line().await;
            self.news.extend(message["method"].as_str().map(str::to_owned));
        }
        self.news.clear();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_switched_off_is_not_offered_and_a_switch_is_told() {
    let world = World::start().await;
    let mut client = Client::open(&world).await;
    let callable = || -> Vec<String> {
        let (_, specs) = world.gateway().services().executor.offered(USER, None, ClientClass::Internal);
        specs.iter().map(|spec| spec.name.clone()).collect()
    };
    assert!(client.tools().await.contains(&"note.delete".to_owned()));
    for (on, name) in [(false, "note.delete"), (true, "note.delete"), (false, "note.*")] {
        world.ask(Request::SwitchTool { user: USER.into(), name: name.into(), on }).await.expect("switched");
        client.news("notifications/tools/list_changed").await;
        let listed = client.tools().await;
        assert_eq!(listed.contains(&"note.delete".to_owned()), on, "{name}");
        assert_eq!(listed, callable(), "{name}");
    }
    // A call of it is refused with the reason.
    let refused = client.ask("tools/call", json!({"name": "note.delete", "arguments": {}})).await;
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused.to_string().contains("switched this tool off"), "{refused}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_mcp_has_no_fields_for_reaches_its_clients() {
    let configured = "[tools]\nclients.\"faulty.touch\" = [\"internal\"]\nclients.\"faulty.stall\" = [\"external\"]\n";
    let world = World::with(&settings(configured)).await;
    up(&world, "faulty").await;
    let mut client = Client::open(&world).await;
    let mut listed = client.ask("tools/list", json!({})).await;
    let listed = listed["tools"].as_array_mut().map(std::mem::take).expect("tools");
    let (_, specs) = world.gateway().services().executor.offered(USER, None, ClientClass::Internal);
    assert_eq!(listed.len(), specs.len());
    let (mut own, mut faulty) = (0, Vec::new());
    for (definition, spec) in listed.iter().zip(specs.iter()) {
        assert_eq!(definition["name"], spec.name);
        let extensions = &definition["_meta"]["mentraExtensions"];
        if let Some(name) = spec.name.strip_prefix("faulty.") {
            // The server's own definition, with what the operator has added.
            assert_eq!(definition["description"].as_str(), Some(spec.description.as_str()));
            faulty.push((name, extensions.clone()));
            continue;
        }
        let (read, _, report) = definition::read(definition, Naming::AsIs).expect("a definition");
        assert!(report.is_empty(), "{}: {report}", spec.name);
        let mut wanted = ToolSpec { side: read.side.clone(), ..ToolSpec::clone(spec) };
        // What changes nothing may be repeated, which built-in tools do not say.
        wanted.flags.idempotent |= wanted.flags.read_only;
        // The definition has them by language.
        wanted.phrases.sort_by(|a, b| a.language.cmp(&b.language));
        assert_eq!(read, wanted, "{extensions}");
        own += usize::from(extensions["sentenceTemplates"]["en"][0].is_string());
    }
    assert!(own > 20, "{own} built-in tools with sentences");
    let of = |wanted: &str| faulty.iter().find(|(name, _)| *name == wanted).map(|(_, extensions)| extensions);
    assert_eq!(of("complain").expect("it")["sentenceTemplates"]["en"], json!(["make a complaint"]));
    assert_eq!(of("touch").expect("it")["clients"], json!(["internal"]));
    assert_eq!(of("stall"), None, "it is for others");
    world.stop().await;
}
