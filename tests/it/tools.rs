//! Tools of a running gateway from its operator's view: listed, called, switched off, recorded.

use std::sync::Arc;

use async_trait::async_trait;
use chat_models::{
    chat_completions::{ChatCompletions, Options},
    provider::Provider as _,
};
use gateway::{
    clock,
    control::{Answer, Request},
};
use gateway_core::vocab::{ClientClass, ErrorCode, Message, Part, Role, ToolCall, ToolFlags, ToolResult, ToolSpec};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tools::{
    registry::{RunContext, Runner},
    secret::Secret,
    source::{Scope, Source},
};

use crate::{
    process::{Process, fails, succeeds},
    world::{USER, WAIT, World},
};

fn call(name: &str, arguments: Value) -> Request {
    Request::CallTool { user: USER.to_owned(), name: name.to_owned(), arguments }
}

async fn outcome(world: &World, request: Request) -> (String, Option<ErrorCode>) {
    match world.ask(request).await.expect("an answer") {
        Answer::ToolResult { result, .. } => (result.content, result.error.map(|error| error.code)),
        answer => panic!("{answer:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_calls_tools_and_the_books_are_kept() {
    let world = World::with("[limits]\ntool_calls_per_min = 8\n").await;
    let (said, error) = outcome(&world, call("note.add", json!({"text": "buy milk"}))).await;
    assert!(error.is_none() && said.contains("buy milk"), "{said}");
    assert_eq!(world.notes(), ["buy milk"]);
    let (_, error) = outcome(&world, call("note.add", json!({"text": 5}))).await;
    assert_eq!(error, Some(ErrorCode::InvalidArguments));
    let (_, error) = outcome(&world, call("note.fly", json!({}))).await;
    assert_eq!(error, Some(ErrorCode::ToolNotFound));

    // Switched off, it is neither offered nor called; for others it is on.
    let switch = |name: &str, on| Request::SwitchTool { user: USER.to_owned(), name: name.to_owned(), on };
    world.ask(switch("note.*", false)).await.expect("switched off");
    let (_, error) = outcome(&world, call("note.add", json!({"text": "more"}))).await;
    assert_eq!(error, Some(ErrorCode::PermissionDenied));
    let client = ClientClass::Internal;
    let offered = |user: &str| {
        let (_, specs) = world.gateway().services().executor.offered(user, None, client);
        specs.iter().any(|spec| spec.name == "note.add")
    };
    assert!(!offered(USER) && offered("somebody"));
    let Answer::Tools { tools } = world.ask(Request::Tools { user: USER.to_owned() }).await.expect("a list") else {
        panic!("no list");
    };
    let off: Vec<&str> = tools.iter().filter(|tool| tool.off).map(|tool| tool.spec.name.as_str()).collect();
    assert_eq!(off, ["note.add", "note.clear", "note.delete", "note.list", "note.search"]);
    let error = world.ask(switch("note.add", true)).await.expect_err("all of them are off");
    assert!(error.contains("`lorgnette tools allow 'note.*' --user "), "{error}");
    world.ask(switch("note.*", true)).await.expect("switched on");

    // The limit is reached however slow the machine is.
    let mut added = 1;
    let held = loop {
        match outcome(&world, call("note.add", json!({"text": "again"}))).await {
            (_, None) => added += 1,
            (_, Some(code)) => break code,
        }
        assert!(added < 1_000, "no limit holds");
    };
    assert_eq!(held, ErrorCode::RateLimited);
    assert_eq!(world.notes().len().min(100), added.min(100));

    let usage = Request::Usage { user: None, since_wall_ms: i64::MIN };
    let Answer::Usage { users } = world.ask(usage).await.expect("usage") else { panic!("no usage") };
    let [usage] = users[USER].as_slice() else { panic!("{users:?}") };
    // In addition to the notes: a wrong argument, a tool that is switched off, and one call too many.
    assert_eq!((usage.tool.as_str(), usage.calls, usage.failed), ("note.add", added as u64 + 3, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_lists_calls_switches_and_sums_up() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let config = data.with_extension("toml").display().to_string();
    let with = |words: &[&str]| -> Vec<String> {
        words.iter().map(ToString::to_string).chain(["--config".to_owned(), config.clone()]).collect()
    };
    let said =
        |words: Vec<String>| async move { succeeds(&words.iter().map(String::as_str).collect::<Vec<_>>()).await };
    let list = said(with(&["tools", "list"])).await;
    assert!(list.contains("timer.set") && list.contains("built-in"), "{list}");
    let lines = said(with(&["tools", "list", "--json"])).await;
    let first: Value = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
    assert_eq!(first["spec"]["input_schema"]["type"], "object");
    let answer = said(with(&["tools", "call", "calculator.evaluate", "{\"expression\": \"6*7\"}"])).await;
    assert!(answer.contains("42"), "{answer}");
    said(with(&["tools", "call", "note.add", "{\"text\": \"buy milk\"}", "--json"])).await;
    let usage = said(with(&["usage"])).await;
    assert!(usage.contains("wearer") && usage.contains("note.add"), "{usage}");

    let words = said(with(&["tools", "deny", "calculator.evaluate"])).await;
    assert!(words.contains("now off"), "{words}");
    let denied = with(&["tools", "call", "calculator.evaluate", "{\"expression\": \"6*7\"}"]);
    let denied: Vec<&str> = denied.iter().map(String::as_str).collect();
    let error = fails(&denied).await;
    assert!(error.contains("PERMISSION_DENIED"), "{error}");
    let wrong = with(&["tools", "call", "note.add", "text"]);
    let error = fails(&wrong.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert!(error.contains("JSON object"), "{error}");

    // Switches and records survive the process.
    assert!(gateway.terminate().await.0.success());
    let gateway = Process::start(&data, "", &[]).await;
    assert!(fails(&denied).await.contains("PERMISSION_DENIED"));
    said(with(&["tools", "allow", "calculator.evaluate"])).await;
    said(denied.iter().map(ToString::to_string).collect()).await;
    let usage = said(with(&["usage", "--user", "wearer", "--since", "1h", "--json"])).await;
    let line: Value = serde_json::from_str(usage.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&line["usage"]["tool"], &line["usage"]["calls"]), (&json!("note.add"), &json!(1)));
    assert!(gateway.terminate().await.0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_use_a_tool_is_configured_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let settings = "[tools]\nclients.\"note.clear\" = [\"internal\"]\nclients.\"note.cleer\" = []\n";
    let gateway = Process::start(&data, settings, &[]).await;
    let config = data.with_extension("toml").display().to_string();
    let list = succeeds(&["tools", "list", "--config", &config]).await;
    let line = |name: &str| list.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
    assert!(line(" note.clear ").ends_with("(for internal, by the configuration)"), "{list}");
    // Others may be declared for some classes only.
    assert!(line(" conversation.new ").ends_with("(for internal)"), "{list}");
    assert!(!line(" note.add ").contains("(for "), "{list}");
    let reports = succeeds(&["tools", "list", "--reports", "--config", &config]).await;
    assert!(reports.contains("`tools.clients` names note.cleer, which nobody is offered"), "{reports}");
    assert!(!reports.contains("note.clear"), "{reports}");
    let checked = succeeds(&["check", "--config", &config]).await;
    assert!(checked.contains("note.clear is for internal\n"), "{checked}");
    assert!(checked.contains("note.cleer is for nobody (neither built in"), "{checked}");
    let (_, log) = gateway.terminate().await;
    let lines = log.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let warned: Vec<Value> =
        lines.filter(|line| line["level"] == "WARN" && !line["fields"]["tool"].is_null()).collect();
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert_eq!(warned[0]["fields"]["tool"], "note.cleer");
}

/// A server that returns the headers that it received.
struct Indiscreet(Secret);

#[async_trait]
impl Runner for Indiscreet {
    async fn run(&self, _context: RunContext, call: ToolCall) -> ToolResult {
        let words = format!("You sent me Authorization: Bearer {}", self.0.expose());
        match call.arguments["fail"].as_bool() {
            Some(true) => ToolResult::failed(ErrorCode::HttpError, words, false),
            _ => ToolResult { data: Some(json!({"headers": words})), ..ToolResult::said(words) },
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_secret_is_in_no_answer_no_store_and_no_prompt() {
    const KEY: &str = "sk-planted-0815";
    let world = World::start().await;
    let services = world.gateway().services();
    let secret = Secret::new(KEY);
    services.executor.secrets().keep(&secret);
    let spec = ToolSpec {
        name: "indiscreet.tool".into(),
        description: "Tells what it should not.".into(),
        input_schema: json!({"type": "object"}),
        flags: ToolFlags { persistent: true, ..ToolFlags::default() },
        ..ToolSpec::default()
    };
    let source = Source::Mcp("indiscreet".into());
    services.registry.register(source, Scope::Global, vec![spec], Arc::new(Indiscreet(secret))).expect("a tool");
    for fail in [true, false] {
        let asked = call("indiscreet.tool", json!({"fail": fail}));
        let Answer::ToolResult { result, .. } = world.ask(asked).await.expect("an answer") else {
            panic!("no result");
        };
        assert!(result.content.contains("[secret]"), "{result:?}");
        let call = ToolCall { id: "c".into(), name: "indiscreet.tool".into(), arguments: json!({}) };
        let messages = vec![
            Message { role: Role::Assistant, parts: vec![Part::ToolCall { call }] },
            Message {
                role: Role::Tool,
                parts: vec![Part::ToolResult { call_id: "c".into(), result: (*result).clone() }],
            },
        ];
        let request = chat_models::Request {
            messages,
            tools: services.executor.offered(USER, None, ClientClass::Internal).1,
            now: clock::now(),
            ..chat_models::Request::default()
        };
        let body = ChatCompletions::new(Options::new("m")).render(&request).body;
        let prompt = String::from_utf8(body.bytes().to_vec()).expect("UTF-8");
        assert!(prompt.contains("[secret]"));
        for text in [prompt, serde_json::to_string(&result).unwrap()] {
            assert!(!text.contains("planted"), "{text}");
        }
    }
    // All files on disk, as bytes.
    let mut looked_at = 0;
    for entry in std::fs::read_dir(world.data().join("store")).expect("the store") {
        let bytes = std::fs::read(entry.expect("a file").path()).expect("its bytes");
        looked_at += bytes.len();
        assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()));
    }
    assert!(looked_at > 4096, "the store was not looked at");
}

/// A tool that ends only when its call is interrupted.
struct Endless {
    begun: Semaphore,
    ended: Semaphore,
}

impl Endless {
    /// Waits until so many calls have begun, or ended.
    async fn wait(of: &Semaphore, calls: u32) {
        tokio::time::timeout(WAIT, of.acquire_many(calls)).await.expect("in time").expect("it is open").forget();
    }
}

#[async_trait]
impl Runner for Endless {
    async fn run(&self, context: RunContext, _call: ToolCall) -> ToolResult {
        self.begun.add_permits(1);
        context.cancel.cancelled().await;
        self.ended.add_permits(1);
        ToolResult::said("It was interrupted.")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_leave_room_for_commands_and_end_with_their_clients() {
    /// As many as there are places for commands.
    const CALLS: u32 = 16;
    let world = World::start().await;
    let glasses = world.glasses("wss", "glasses").await;
    let endless = Arc::new(Endless { begun: Semaphore::new(0), ended: Semaphore::new(0) });
    let spec = ToolSpec {
        name: "endless.tool".into(),
        description: "Waits.".into(),
        input_schema: json!({"type": "object"}),
        flags: ToolFlags { read_only: true, ..ToolFlags::default() },
        ..ToolSpec::default()
    };
    let registry = &world.gateway().services().registry;
    registry.register(Source::Mcp("endless".into()), Scope::Global, vec![spec], endless.clone()).expect("a tool");
    let mut callers = Vec::new();
    for _ in 0..CALLS {
        callers.push(world.send(&call("endless.tool", json!({}))).await);
    }
    Endless::wait(&endless.begun, CALLS).await;
    let revoked = world.ask(Request::Revoke { device: glasses.fingerprint().to_owned() }).await;
    assert!(matches!(revoked, Ok(Answer::Done { .. })), "{revoked:?}");
    drop(callers);
    Endless::wait(&endless.ended, CALLS).await;
    world.stop().await;
}
