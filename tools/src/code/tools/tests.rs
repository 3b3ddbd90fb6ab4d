//! The tools for programs, without a sandbox: tests/it/assistant/programs.rs has one.

use gateway_core::vocab::{ErrorCode, ToolSpec};

use super::*;
use crate::{
    call::CallContext,
    capabilities::Bundle,
    code::{
        Sandbox,
        engine::{modules, value},
        std::{StdHost, StdPolicy},
    },
    executor::Executor,
    permissions::ConfiguredClients,
    registry::Registry,
    secret::Secrets,
    test_support::{World, context},
    workspace::NoWorkspace,
};

fn executor(world: &Arc<World>) -> Executor {
    // No program runs here: tests/it/code has the sandbox.
    let (workspace, secrets) = (Arc::new(NoWorkspace), Secrets::default());
    let library = StdHost::new(StdPolicy::default(), workspace, world.ports().clock, None, secrets.clone()).unwrap();
    let given = tools(&Engine::new(Sandbox::new("/nonexistent".as_ref()), library, Arc::default()));
    let registry = Registry::with_built_ins_and(given.into(), ConfiguredClients::new(), secrets).unwrap();
    Executor::new(Arc::new(registry), world.ports())
}

async fn api(arguments: Value) -> ToolResult {
    let call = gateway_core::vocab::ToolCall { id: "a1".into(), name: API.into(), arguments };
    executor(&World::usual()).call(context(), call).await
}

#[tokio::test]
async fn the_index_and_declarations_are_told() {
    let all = api(json!({})).await;
    assert!(all.error.is_none(), "{all:?}");
    assert!(all.content.contains("\n@capabilities/timer-set: timerSet"), "{}", all.content);
    let one = api(json!({"module": "@capabilities/timer-set"})).await;
    assert!(one.content.contains("export function timerSet(params"), "{}", one.content);
    let library = api(json!({"module": "@lorgnette/std"})).await;
    assert!(library.content.contains("readFile") && all.content.starts_with("@lorgnette/std: fs"), "{library:?}");
    let none = api(json!({"module": "@capabilities/nothing"})).await;
    assert!(none.error.unwrap().message.contains("code.api without arguments lists"));
}

#[tokio::test]
async fn where_no_process_starts_the_model_is_told() {
    let call = |arguments| gateway_core::vocab::ToolCall { id: "r1".into(), name: RUN.into(), arguments };
    let world = World::usual();
    let result = executor(&world).call(context(), call(json!({"code": "export default 1"}))).await;
    assert_eq!(result.error.unwrap().code, ErrorCode::AppNotAvailable);
    for wrong in [json!({}), json!({"code": 1}), json!({"code": "", "timeout_ms": 0})] {
        let result = executor(&world).call(context(), call(wrong)).await;
        assert_eq!(result.error.unwrap().code, ErrorCode::InvalidArguments);
    }
    let copilot = CallContext { client: ClientClass::Copilot, ..context() };
    let result = executor(&world).call(copilot, call(json!({"code": ""}))).await;
    assert_eq!(result.error.unwrap().code, ErrorCode::PermissionDenied);
}

#[test]
fn a_program_cannot_import_what_runs_programs_and_of_much_gets_what_it_names() {
    let world = World::usual();
    let executor = executor(&world);
    let snapshot = executor.callable("user", None, ClientClass::Internal);
    let bundle = crate::capabilities::Cache::default().bundle(&snapshot, &snapshot.specs);
    let names = |source: &str, bundle: &Bundle| -> Vec<String> {
        modules(bundle, source).into_iter().map(|(specifier, _)| specifier).collect()
    };
    let few = names("", &bundle);
    assert!(few.contains(&"@capabilities/note-list".to_owned()));
    assert!(few.iter().all(|name| !name.contains("code-run")), "{few:?}");

    let many: Vec<_> = (0..2_000)
        .map(|at| {
            let spec = ToolSpec { name: format!("tool.number{at}"), input_schema: json!({}), ..ToolSpec::default() };
            let origin = crate::capabilities::Origin::Tool;
            crate::capabilities::Function { local_name: spec.name.clone(), spec: Arc::new(spec), origin }
        })
        .collect();
    let bundle = crate::capabilities::compile(&many);
    let named = names("import '@capabilities/tool-number17';", &bundle);
    assert_eq!(named[..2], ["@capabilities/tool-number1", "@capabilities/tool-number17"]);
    assert_eq!(named[2..], ["@lorgnette/std", "@agent-spaces/std"]);
}

#[test]
fn what_a_function_returns_is_data_where_there_is_any() {
    let of = |content: &str, data| value(ToolResult { content: content.into(), data, ..ToolResult::default() });
    assert_eq!(of("two notes", Some(json!([1, 2]))), json!([1, 2]));
    assert_eq!(of("two notes", None), json!("two notes"));
    assert_eq!(of(" {\"a\": 1}", None), json!({"a": 1}));
    assert_eq!(of("12", None), json!("12"));
    assert_eq!(of("[12", None), json!("[12"));
}

#[test]
fn models_are_offered_what_they_may_use() {
    let world = World::usual();
    let specs = executor(&world).offered("user", None, ClientClass::Internal).1;
    let count = |model| offered_to(model, &specs).len();
    assert_eq!(count(Programs::Beside), specs.len());
    assert_eq!(count(Programs::None), specs.len() - 3);
    assert_eq!(count(Programs::Instead), 2);
    // Without these tools nothing changes.
    let plain = world.executor().offered("user", None, ClientClass::Internal).1;
    assert!(Arc::ptr_eq(&offered_to(Programs::Instead, &plain), &plain));
}
