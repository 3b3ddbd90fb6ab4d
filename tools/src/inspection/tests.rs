//! Tests of the tools through the executor, over a log in memory.

use std::sync::Mutex;

use gateway_core::vocab::{ApprovalOutcome, ClientClass, ErrorCode, ToolResult};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    graph::{LISTED_CHARS_MAX, NodeType},
    logs::{LogCursor, LogEntry, LogLevel},
    models::{ModelFile, ModelUsage},
    system::SystemStatus,
    *,
};
use crate::{
    call::CallContext,
    executor::Executor,
    permissions::ConfiguredClients,
    registry::Registry,
    secret::Secrets,
    test_support::{World, call, context},
};

/// Records what is asked of it.
#[derive(Default)]
struct Witness {
    queries: Mutex<Vec<LogQuery>>,
    cleared: Mutex<Vec<(LogFilter, LogScope)>>,
}

#[async_trait]
impl Logs for Witness {
    async fn query(&self, query: LogQuery) -> Result<LogPage, PortError> {
        let entry = LogEntry {
            wall_ms: 1_700_000_000_000,
            level: LogLevel::Warn,
            context: "gateway::mcp".into(),
            source: "mcp:files".into(),
            message: "an MCP server is down server=files".into(),
        };
        let cursor = query.cursor.is_none().then_some(LogCursor(42));
        self.queries.lock().unwrap().push(query);
        Ok(LogPage { logs: vec![entry], cursor })
    }

    async fn stats(&self, _scope: LogScope) -> Result<LogStats, PortError> {
        let by_level = [("warn".to_owned(), 3)].into();
        Ok(LogStats { total_logs: 3, by_level, oldest_wall_ms: Some(0), ..LogStats::default() })
    }

    async fn clear(&self, filter: LogFilter, scope: LogScope) -> Result<u64, PortError> {
        self.cleared.lock().unwrap().push((filter, scope));
        Ok(7)
    }
}

#[async_trait]
impl System for Witness {
    async fn state(&self) -> Result<SystemState, PortError> {
        let status = SystemStatus { version: "1.2.3".into(), uptime_s: 60, ..SystemStatus::default() };
        let sessions = (0..150).map(|number| json!({"user": "ada", "number": number})).collect();
        let limits = json!({"sessions": {"used": 150, "max": 200}});
        Ok(SystemState { status, sessions, limits, ..SystemState::default() })
    }
}

#[async_trait]
impl Graph for Witness {
    async fn search(&self, user: &str, query: NodeQuery) -> Result<Vec<Node>, PortError> {
        assert_eq!((user, query.kind, query.limit), ("ada", Some(NodeType::Chat), 20));
        let text = Some("é".repeat(LISTED_CHARS_MAX + 1));
        Ok(vec![Node { id: NodeId::new(NodeType::Chat, 12), title: query.words, text, wall_ms: Some(0) }])
    }

    async fn node(&self, user: &str, id: NodeId) -> Result<Option<(Node, Vec<Edge>)>, PortError> {
        assert_eq!(user, "ada");
        let edges = vec![Edge { kind: "has_message", to: "message:7".to_owned() }];
        let text = Some("é".repeat(LISTED_CHARS_MAX + 1));
        let node = Node { id: id.clone(), title: None, text, wall_ms: None };
        Ok((id.number() == Some(12)).then_some((node, edges)))
    }

    async fn stats(&self, _user: &str) -> Result<GraphStats, PortError> {
        let by_type = [(NodeType::Chat, 2), (NodeType::Message, 5)].into();
        Ok(GraphStats { by_type, edges: 7, size_bytes: 4096, last_wall_ms: None })
    }
}

impl Models for Witness {
    fn models(&self) -> Vec<ModelInfo> {
        let usage =
            ModelUsage { count: 4, failed: 1, mean_us: Some(1_500), p50_us: Some(900), ..ModelUsage::default() };
        let id = "whisper-tiny.en".to_owned();
        let files = vec![ModelFile { path: "whisper.bin".to_owned(), sha256: Some("ab12".to_owned()) }];
        let one =
            ModelInfo { id, memory_usage_bytes: Some(70), files, usage, loaded_wall_ms: 5, ..ModelInfo::default() };
        vec![one, ModelInfo { id: "model".to_owned(), loaded_wall_ms: 7, ..ModelInfo::default() }]
    }
}

struct Fixture {
    world: Arc<World>,
    logs: Arc<Witness>,
    executor: Executor,
}

impl Fixture {
    fn new() -> Self {
        let (world, logs) = (World::usual(), Arc::<Witness>::default());
        let given =
            tools(&Inspection { logs: logs.clone(), system: logs.clone(), models: logs.clone(), graph: logs.clone() });
        let registry = Registry::with_built_ins_and(given, ConfiguredClients::new(), Secrets::default()).unwrap();
        let executor = Executor::new(Arc::new(registry), world.ports());
        Self { world, logs, executor }
    }

    /// A call of an operator's program, which belongs to no turn.
    async fn run(&self, name: &str, arguments: Value) -> ToolResult {
        let operator = CallContext { turn: None, session: None, ..context() };
        self.executor.call(operator, call(name, arguments)).await
    }
}

#[tokio::test]
async fn lines_are_asked_for_and_told() {
    let fixture = Fixture::new();
    let arguments = json!({"level": "warn", "context": "gateway::", "source": "mcp:files", "since": "90m", "limit": 5.0,
        "text": "is down"});
    let result = fixture.run("query_logs", arguments).await;
    let row = json!({"timestamp": "2023-11-14T22:13:20.000Z", "level": "warn", "context": "gateway::mcp",
        "message": "an MCP server is down server=files", "source": "mcp:files"});
    let cursor = LogCursor(42).to_string();
    let data = json!({"count": 1, "logs": [row], "more": true, "cursor": cursor});
    assert_eq!(result.data.as_ref(), Some(&data), "{result:?}");
    assert_eq!(serde_json::from_str::<Value>(&result.content).unwrap(), data, "a client that reads text gets the same");
    let last = fixture.run("query_logs", json!({"cursor": cursor})).await;
    assert_eq!(last.data.unwrap().get("more"), None);
    let queries = fixture.logs.queries.lock().unwrap().clone();
    let now = fixture.world.ports().clock.now().wall_ms;
    let filter = LogFilter {
        level: Some(LogLevel::Warn),
        context: Some("gateway::".into()),
        source: Some("mcp:files".into()),
        since_wall_ms: Some(now - 90 * 60_000),
        before_wall_ms: None,
        text: Some("is down".into()),
    };
    assert_eq!(queries[0], LogQuery { filter, limit: 5, ..LogQuery::default() });
    assert_eq!(queries[1], LogQuery { limit: 100, cursor: Some(LogCursor(42)), ..LogQuery::default() });
}

#[tokio::test]
async fn wrong_arguments_are_told_where_they_are_wrong() {
    let fixture = Fixture::new();
    for (arguments, told) in [
        (json!({"level": "debug"}), "level"),
        (json!({"since": "yesterday"}), "90m, 12h, 30d"),
        (json!({"cursor": "x"}), "cursor"),
        (json!({"limit": 0}), "limit"),
        (json!({"limit": 1_001}), "limit"),
        (json!({"text": "x".repeat(201)}), "'text' has 201 characters"),
    ] {
        let result = fixture.run("query_logs", arguments.clone()).await;
        let error = result.error.unwrap_or_else(|| panic!("{arguments} went well"));
        assert_eq!(error.code, ErrorCode::InvalidArguments);
        assert!(error.message.contains(told), "{arguments}: {}", error.message);
    }
    assert!(fixture.logs.queries.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_log_is_told_in_numbers() {
    let data = Fixture::new().run("get_log_stats", json!({})).await.data.unwrap();
    assert_eq!(
        data,
        json!({"total_logs": 3, "by_level": {"warn": 3}, "by_source": {}, "by_context": {}, "dropped": 0,
            "oldest_log": "1970-01-01T00:00:00.000Z"})
    );
}

#[tokio::test]
async fn lines_are_deleted_after_a_yes_only() {
    let fixture = Fixture::new();
    *fixture.world.consent.lock().unwrap() = ApprovalOutcome::Denied;
    let denied = fixture.run("clear_logs", json!({})).await.error.unwrap();
    assert_eq!((denied.code, fixture.logs.cleared.lock().unwrap().len()), (ErrorCode::ApprovalDenied, 0));
    assert!(fixture.world.asked.lock().unwrap()[0].question.said.contains("the gateway's log for good?"));
    *fixture.world.consent.lock().unwrap() = ApprovalOutcome::Approved;
    let result = fixture.run("clear_logs", json!({"before": "1d", "level": "error"})).await;
    assert_eq!(result.data, Some(json!({"cleared": 7})));
    let before = fixture.world.ports().clock.now().wall_ms - 86_400_000;
    let filter = LogFilter { level: Some(LogLevel::Error), before_wall_ms: Some(before), ..LogFilter::default() };
    assert_eq!(*fixture.logs.cleared.lock().unwrap(), [(filter, LogScope::Everybody)]);
}

#[tokio::test]
async fn models_are_told_with_what_they_have_done() {
    let fixture = Fixture::new();
    let data = async |name: &str, arguments| fixture.run(name, arguments).await.data.unwrap();
    let all = data("list_models", json!({})).await;
    assert_eq!((&all["count"], &all["models"][0]["inference_count"]), (&json!(2), &json!(4)));
    assert_eq!(
        (&all["models"][0]["average_latency_ms"], &all["models"][1]["average_latency_ms"]),
        (&json!(1.5), &Value::Null)
    );
    let one = data("get_model_info", json!({"model_id": "whisper-tiny.en"})).await;
    assert_eq!((&one["files"][0]["sha256"], &one["memory_source"]), (&json!("ab12"), &json!("size of its files")));
    assert_eq!(one["inference"]["failed"], 1);
    let stats = data("get_inference_stats", json!({})).await;
    assert_eq!((stats["models"].as_array().unwrap().len(), &stats["since"]), (2, &json!("1970-01-01T00:00:00.005Z")));
    let stats = data("get_inference_stats", json!({"model_id": "model"})).await;
    assert_eq!((&stats["models"][0]["count"], &stats["models"][0]["last_at"]), (&json!(0), &Value::Null));
    for name in ["get_model_info", "get_inference_stats"] {
        let error = fixture.run(name, json!({"model_id": "gpt"})).await.error.unwrap();
        assert_eq!(error.code, ErrorCode::InvalidArguments);
        assert!(error.message.contains("there are whisper-tiny.en, model"), "{}", error.message);
    }
}

#[tokio::test]
async fn what_is_stored_of_the_caller_is_told() {
    let fixture = Fixture::new();
    let found = fixture.run("search_nodes", json!({"node_type": "chat", "query": "boat"})).await.data.unwrap();
    assert_eq!(found["count"], 1);
    let node = &found["nodes"][0];
    assert_eq!((&node["id"], &node["type"], &node["title"]), (&json!("chat:12"), &json!("chat"), &json!("boat")));
    assert_eq!(node["text"], format!("{}...", "é".repeat(LISTED_CHARS_MAX)));
    let whole = fixture.run("get_node_details", json!({"node_id": "chat:12"})).await.data.unwrap();
    assert_eq!(whole["text"], "é".repeat(LISTED_CHARS_MAX + 1));
    assert_eq!(whole["edges"], json!([{"kind": "has_message", "to": "message:7"}]));
    for (id, told) in [("chat:13", "no `chat:13`"), ("boat:1", "no type of nodes"), ("chat", "such as chat:12")] {
        let error = fixture.run("get_node_details", json!({"node_id": id})).await.error.unwrap();
        assert_eq!(error.code, ErrorCode::InvalidArguments);
        assert!(error.message.contains(told), "{}", error.message);
    }
    let stats = fixture.run("get_database_stats", json!({})).await.data.unwrap();
    assert_eq!((&stats["total_nodes"], &stats["by_type"]["message"]), (&json!(7), &json!(5)));
    assert_eq!((&stats["total_edges"], &stats["last_updated"]), (&json!(7), &Value::Null));
}

#[tokio::test]
async fn the_state_is_told_in_parts() {
    let fixture = Fixture::new();
    let sessions = fixture.run("system.sessions", json!({})).await.data.unwrap();
    assert_eq!((&sessions["count"], sessions["sessions"].as_array().unwrap().len()), (&json!(150), 100));
    let data = async |name: &str| fixture.run(name, json!({})).await.data.unwrap();
    assert_eq!(data("system.transports").await, json!({"count": 0, "transports": []}));
    assert_eq!(data("system.servers").await, json!({"count": 0, "servers": []}));
    assert_eq!(data("system.limits").await["sessions"]["max"], 200);
    // The wearer asks within a turn.
    let told = fixture.executor.call(context(), call("system.status", json!({}))).await;
    assert_eq!(told.say.as_deref(), Some("The gateway is all right. It has been running for one minute."));
    assert_eq!(told.data.unwrap()["version"], "1.2.3");
}

/// The tools that are for an operator's programs only.
fn of_operators() -> Vec<String> {
    let all = tools(&Inspection::default());
    let of_operators = all.iter().filter(|tool| tool.is_for_operators());
    of_operators.map(|tool| tool.definition().name.to_owned()).collect()
}

#[tokio::test]
async fn they_are_for_an_operators_programs_only() {
    let fixture = Fixture::new();
    let names = of_operators();
    assert_eq!(names.len() + 1, tools(&Inspection::default()).len(), "a wearer has one question");
    for client in [ClientClass::Copilot, ClientClass::External] {
        let (_, offered) = fixture.executor.offered("ada", None, client);
        assert!(!offered.iter().any(|spec| names.contains(&spec.name)), "{client:?}");
        let asks = offered.iter().any(|spec| spec.name == "system.status");
        assert_eq!(asks, client == ClientClass::Copilot);
    }
    // A model of a wearer neither sees nor reaches them.
    let (_, offered) = fixture.executor.offered("ada", Some("glasses"), ClientClass::Internal);
    let of_model = crate::code::tools::offered_to(crate::code::tools::Programs::None, &offered);
    assert_eq!(of_model.len() + names.len(), offered.len());
    let snapshot = fixture.executor.registry().snapshot("ada", Some("glasses"));
    let of_programs = crate::capabilities::offered(&snapshot, &offered);
    for name in names {
        let spec = offered.iter().find(|spec| spec.name == name).unwrap();
        assert!(spec.category.is_some() && !spec.flags.always && spec.phrases.is_empty(), "{name}");
        assert!(!of_model.iter().any(|spec| spec.name == name), "{name}");
        assert!(!of_programs.iter().any(|function| function.spec.name == name), "{name}");
        let in_a_turn = fixture.executor.call(context(), call(&name, json!({}))).await;
        assert_eq!(in_a_turn.error.map(|error| error.code), Some(ErrorCode::PermissionDenied), "{name}");
    }
}

proptest! {
    #[test]
    fn any_moment_and_cursor_are_answered(text in any::<String>(), now in any::<i64>()) {
        drop(moment::parse(&text, now));
        drop(text.parse::<LogCursor>());
        drop(text.parse::<NodeId>());
        let cursor = LogCursor(u128::from_be_bytes([now as u8; 16]));
        prop_assert_eq!(cursor.to_string().parse::<LogCursor>(), Ok(cursor));
        drop(moment::written(now));
    }
}
