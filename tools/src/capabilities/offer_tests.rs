//! Definitions as tools: what is refused, whose limits count, and calls through an MCP server.

use std::sync::Mutex;

use gateway_core::vocab::ToolFlags;
use serde_json::json;

use super::*;
use crate::{
    capabilities::{
        Function, compile,
        definition::{read, read_text, tests::train_schedule},
        offered,
    },
    executor::Executor,
    test_support::{World, call, context},
};

fn variable(name: &str) -> Option<String> {
    (name == "TRAINS_KEY").then(|| "planted-4711".to_owned())
}

fn offer(value: &Value) -> Result<Offer, CapabilityError> {
    Offer::new(read(value).expect("a definition"), &variable)
}

fn register(registry: &Registry, offer: &Offer, scope: Scope) {
    let runner = offer.runner(&client()).expect("no handlers");
    offer.register(registry, runner, scope).unwrap();
}

fn client() -> Arc<Client> {
    drop(rustls::crypto::ring::default_provider().install_default());
    Arc::new(Client::new().unwrap())
}

fn at_endpoint(headers: Value) -> Value {
    let mut value = train_schedule();
    value["endpoint"] = json!({"url": "https://trains.example/api", "headers": headers});
    value
}

#[test]
fn who_carries_out_calls_has_to_be_said() {
    let single = json!({"type": "function", "function": {"name": "get_weather", "parameters": {}}});
    for (value, name) in [(train_schedule(), "trainSchedule"), (single.clone(), "get_weather")] {
        let error = offer(&value).err().expect("nobody carries it out").to_string();
        assert!(
            error.contains(name) && error.contains("\"endpoint\": {\"url\"") && error.contains("\"mcp\""),
            "{error}"
        );
    }
    let mut at_server = single;
    at_server["mcp"] = "weather".into();
    let ready = offer(&at_server).unwrap();
    assert_eq!((ready.name(), ready.server()), ("get_weather", Some("weather")));
    assert!(ready.notes.is_empty(), "{:?}", ready.notes);
}

#[test]
fn variables_are_filled_in_and_kept_out_of_results() {
    let value = at_endpoint(json!({"Authorization": "Bearer ${TRAINS_KEY}", "X-Lang": "${LANGUAGE:-english}"}));
    let ready = offer(&value).unwrap();
    let Reach::Endpoint { headers, .. } = &ready.reach else { panic!("no endpoint") };
    assert_eq!(
        (headers["authorization"].to_str().unwrap(), headers["x-lang"].to_str().unwrap()),
        ("Bearer planted-4711", "english")
    );
    assert!(headers["authorization"].is_sensitive());
    let secrets: Vec<_> = ready.secrets().iter().map(Secret::expose).collect();
    assert_eq!(secrets, ["planted-4711"]);
    let registry = Registry::new();
    register(&registry, &ready, Scope::Global);
    let mut told = "It is planted-4711.".to_owned();
    registry.secrets().redact(&mut told);
    assert_eq!(told, "It is [secret].");
}

#[test]
fn headers_that_cannot_be_sent_are_refused_with_their_place() {
    for (headers, pointer, words) in [
        (json!({"Authorization": "${ABSENT}"}), "/endpoint/headers/Authorization", "ABSENT is not set"),
        (json!({"Authorization": "${TRAINS_KEY"}), "/endpoint/headers/Authorization", "without `}`"),
        (json!({"Host": "elsewhere"}), "/endpoint/headers/Host", "leave it out"),
        (json!({"Content-Length": "5"}), "/endpoint/headers/Content-Length", "leave it out"),
        (json!({"X-Name": "\u{e4}"}), "", ""),
    ] {
        match offer(&at_endpoint(headers.clone())) {
            Ok(_) => assert_eq!(pointer, "", "{headers}"),
            Err(error) => assert!(error.pointer == pointer && error.reason.contains(words), "{error}"),
        }
    }
    let mut value = train_schedule();
    value["endpoint"] = json!({"url": "https://"});
    assert_eq!(offer(&value).err().unwrap().pointer, "/endpoint/url");
}

/// A tool of an MCP server: records what it is called.
#[derive(Default)]
struct Told(Mutex<Vec<(String, String, Value)>>);

#[async_trait]
impl Runner for Told {
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult {
        self.0.lock().unwrap().push((call.name, context.local_name, call.arguments));
        ToolResult::said("done")
    }
}

fn tool(name: &str, requires_approval: bool) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "Posts.".to_owned(),
        input_schema: json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
        flags: ToolFlags { requires_approval, ..ToolFlags::default() },
        ..ToolSpec::default()
    }
}

async fn called(executor: &Executor, user: &str, name: &str, arguments: Value) -> (String, Option<ErrorCode>) {
    let mut context = context();
    context.user = user.to_owned();
    // Each call is a new one.
    context.session = None;
    let result = executor.call(context, call(name, arguments)).await;
    (result.content, result.error.map(|error| error.code))
}

#[tokio::test(start_paused = true)]
async fn functions_are_called_as_tools_of_an_mcp_server_that_is_for_the_user() {
    let value = json!({"name": "chat", "mcp": "slack", "functions": [
        {"name": "post", "parameters": {"type": "object", "properties": {"text": {}}}},
        {"name": "wipe"},
        {"name": "ask", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
            "requiresApproval": true, "approvalMessage": "Delete file: {path}?"},
        {"name": "inner"},
        {"name": "fly"},
    ]});
    let registry = Arc::new(Registry::new());
    let world = World::usual();
    let executor = Executor::new(registry.clone(), world.ports());
    register(&registry, &offer(&value).unwrap(), Scope::Global);
    let (words, code) = called(&executor, "ada", "chat.post", json!({"text": "hi"})).await;
    assert!(words.contains("'slack' is not connected") && code == Some(ErrorCode::AppNotAvailable), "{words}");

    let told = Arc::new(Told::default());
    let named = [("post", false), ("wipe", true), ("ask", true), ("inner", false)].map(|(local, asks)| {
        (
            ToolSpec { input_schema: json!({"type": "object"}), ..tool(&format!("slack.{local}"), asks) },
            local.to_owned(),
        )
    });
    let mut named: Vec<_> = named.into_iter().collect();
    named[0].0 = tool("slack.post", false);
    named[3].0.clients = Some(vec![ClientClass::Internal]);
    let scope = Scope::User("ada".to_owned());
    registry.register_named(Source::Mcp("slack".to_owned()), scope, named, told.clone()).unwrap();
    assert_eq!(called(&executor, "ada", "chat.post", json!({"text": "hi"})).await, ("done".to_owned(), None));
    assert_eq!(
        *told.0.lock().unwrap(),
        [("slack.post".to_owned(), "post".to_owned(), json!({"text": "hi"}))],
        "under its own name"
    );
    let table = [
        ("ada", "chat.post", json!({"text": 5}), ErrorCode::InvalidArguments, "do not fit"),
        ("ada", "chat.wipe", json!({}), ErrorCode::PermissionDenied, "\"requiresApproval\": true"),
        ("ada", "chat.inner", json!({}), ErrorCode::PermissionDenied, "\"clients\": [\"internal\"]"),
        ("ada", "chat.fly", json!({}), ErrorCode::ToolNotFound, "has no tool 'fly'"),
        // The server is not for him.
        ("bob", "chat.post", json!({"text": "hi"}), ErrorCode::AppNotAvailable, "none of its tools are known"),
    ];
    for (user, name, arguments, wanted, words) in table {
        let (said, code) = called(&executor, user, name, arguments).await;
        assert!(code == Some(wanted) && said.contains(words), "{user} {name}: {said}");
    }
    assert_eq!(called(&executor, "ada", "chat.ask", json!({"path": "important.txt"})).await.1, None);
    assert_eq!(world.asked.lock().unwrap()[0].question.said, "Delete file: \"important.txt\"?");
    assert_eq!((told.0.lock().unwrap().len(), world.asked.lock().unwrap().len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn one_limit_counts_the_calls_of_all_functions_without_one_of_their_own() {
    let function = |name: &str| json!({"name": name});
    let own = json!({"name": "c", "rateLimit": {"requests": 1, "period": "minute"}});
    let value = json!({"name": "x", "mcp": "s", "functions": [function("a"), function("b"), own],
        "config": {"rateLimit": {"requests": 2, "period": "minute"}}});
    let registry = Arc::new(Registry::new());
    let executor = Executor::new(registry.clone(), World::usual().ports());
    let ready = offer(&value).unwrap();
    register(&registry, &ready, Scope::Global);
    let named = ["a", "b", "c"].map(|local| {
        (ToolSpec { input_schema: json!({"type": "object"}), ..tool(&format!("s.{local}"), false) }, local.to_owned())
    });
    let server = Source::Mcp("s".to_owned());
    registry.register_named(server, Scope::Global, named.to_vec(), Arc::new(Told::default())).unwrap();
    let is_limited =
        async |user: &str, name: &str| called(&executor, user, name, json!({})).await.1 == Some(ErrorCode::RateLimited);
    for (user, name, limited) in [
        ("ada", "x.a", false),
        ("ada", "x.b", false),
        ("ada", "x.a", true),
        ("ada", "x.b", true),
        // It has a limit of its own.
        ("ada", "x.c", false),
        ("ada", "x.c", true),
        ("bob", "x.b", false),
    ] {
        assert_eq!(is_limited(user, name).await, limited, "{user} {name}");
    }
    // Another user's definition of the same name with another limit has a count of its own, and resets no other.
    let mut other = value;
    other["config"]["rateLimit"]["requests"] = 5.into();
    registry.unregister(&Source::Capability("x".to_owned()), &Scope::Global).unwrap();
    register(&registry, &ready, Scope::User("ada".to_owned()));
    register(&registry, &offer(&other).unwrap(), Scope::User("bob".to_owned()));
    assert!(!is_limited("bob", "x.a").await && is_limited("ada", "x.a").await);
}

#[test]
fn the_compiler_shows_a_capability_with_its_version_and_a_tool_alone() {
    let registry = Registry::new();
    register(&registry, &offer(&at_endpoint(json!({}))).unwrap(), Scope::Global);
    let text = r#"{"type": "function", "function": {"name": "get_weather"}, "endpoint": {"url": "https://w.example"}}"#;
    for definition in read_text(text).unwrap() {
        register(&registry, &Offer::new(definition, &variable).unwrap(), Scope::Global);
    }
    let snapshot = registry.snapshot("ada", None);
    let bundle = compile(&offered(&snapshot, &snapshot.specs));
    let trains = bundle.module("@capabilities/train-schedule").unwrap();
    assert_eq!(trains.meta.version, "1.0.0");
    assert!(trains.meta.policy.rate_limit.is_some() && trains.d_ts.contains("export const trainSchedule"));
    assert_eq!(bundle.tool("@capabilities/train-schedule", "getSchedule"), Some("trainSchedule.getSchedule"));
    assert_eq!(bundle.tool("@capabilities/get-weather", "getWeather"), Some("get_weather"));
    // What is registered compiles as the definition itself does.
    let direct: Vec<Function> = read(&train_schedule()).unwrap().functions();
    assert_eq!(compile(&direct).modules()[0].js, trains.js);
    // The wearer hears whose tool it is.
    let found = snapshot.find("trainSchedule.getSchedule").unwrap();
    assert_eq!(
        (found.owner().as_deref(), found.source.to_string().as_str()),
        (Some("Train schedule"), "capability:trainSchedule")
    );
    assert_eq!(snapshot.find("get_weather").unwrap().owner(), None);
}

#[test]
fn a_function_is_for_no_more_clients_than_its_server() {
    let value = json!({"name": "chat", "mcp": "slack", "functions": [
        {"name": "a"}, {"name": "b", "clients": ["internal", "external"]},
    ]});
    let mut ready = offer(&value).unwrap();
    ready.restrict(&[ClientClass::Internal, ClientClass::Copilot]);
    let clients: Vec<_> = ready.tools.iter().map(|(spec, _)| spec.clients.clone().unwrap()).collect();
    assert_eq!(clients, [vec![ClientClass::Internal, ClientClass::Copilot], vec![ClientClass::Internal]]);
}
