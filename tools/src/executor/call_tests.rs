//! Tests of a single call, from its name to its result, on tokio's paused clock.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::vocab::{ApprovalOutcome, Content, ToolFlags, ToolSpec};
use serde_json::json;

use super::*;
use crate::{
    limits::{CANCEL_MS_MAX, CONTENT_BYTES_MAX, SAY_BYTES_MAX},
    registry::{RunContext, Runner},
    source::{Scope, Source},
    test_support::{World, call, context},
};

/// The behaviour of the tool under test.
#[expect(clippy::large_enum_variant, reason = "there is one of them in a test")]
enum Act {
    Answer(ToolResult),
    Sleep(Duration),
    Panic,
    Hang,
}

struct Scripted {
    act: Act,
    started: AtomicU32,
    ended: AtomicU32,
    deadlines: Mutex<Vec<Duration>>,
}

#[async_trait]
impl Runner for Scripted {
    async fn run(&self, context: RunContext, _call: ToolCall) -> ToolResult {
        self.started.fetch_add(1, Ordering::SeqCst);
        self.deadlines.lock().unwrap().push(context.deadline);
        let result = match &self.act {
            Act::Answer(result) => result.clone(),
            Act::Sleep(time) => {
                tokio::time::sleep(*time).await;
                ToolResult::said("slept")
            }
            Act::Panic => panic!("as told"),
            Act::Hang => std::future::pending().await,
        };
        self.ended.fetch_add(1, Ordering::SeqCst);
        result
    }
}

fn spec(flags: ToolFlags) -> ToolSpec {
    ToolSpec {
        name: "test.tool".into(),
        description: "Does what the test says. Nothing else.".into(),
        input_schema: json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 5}}, "required": ["n"], "additionalProperties": false}),
        phrases: vec![],
        reply: Some("It is {n}.".into()),
        guidance: None,
        flags,
        timeout_ms: Some(1_000),
        ..ToolSpec::default()
    }
}

const CHANGING: ToolFlags = ToolFlags {
    idempotent: false,
    read_only: false,
    destructive: false,
    requires_approval: false,
    always: false,
    persistent: false,
    requires_display: false,
    slow: false,
};
const READING: ToolFlags = ToolFlags { read_only: true, ..CHANGING };
const ASKING: ToolFlags = ToolFlags { requires_approval: true, ..CHANGING };

fn fixture(flags: ToolFlags, act: Act) -> (Arc<World>, Arc<Scripted>, Executor) {
    let world = World::usual();
    let runner =
        Arc::new(Scripted { act, started: AtomicU32::new(0), ended: AtomicU32::new(0), deadlines: Mutex::default() });
    let registry = Registry::new();
    registry
        .register(Source::App("test".into()), Scope::Global, vec![spec(flags)], Arc::clone(&runner) as Arc<dyn Runner>)
        .unwrap();
    let executor = Executor::new(Arc::new(registry), world.ports());
    (world, runner, executor)
}

fn code(result: &ToolResult) -> Option<ErrorCode> {
    if result.is_error() {
        assert!(result.say.is_some(), "a failure without words: {result:?}");
    }
    result.error.as_ref().map(|error| error.code)
}

fn good() -> ToolCall {
    call("test.tool", json!({"n": 3}))
}

#[tokio::test]
async fn an_unknown_name_is_told() {
    let (_, _, executor) = fixture(READING, Act::Answer(ToolResult::said("x")));
    for name in ["test.too", "", "test", &"x".repeat(100_000)] {
        let result = executor.call(context(), call(name, json!({}))).await;
        assert_eq!(code(&result), Some(ErrorCode::ToolNotFound));
        assert!(result.content.len() < 300);
    }
}

#[tokio::test]
async fn arguments_are_checked_before_the_tool_runs() {
    let (_, runner, executor) = fixture(READING, Act::Answer(ToolResult::said("x")));
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({"n": deep});
    }
    for (arguments, pointer) in [
        (json!(null), "''"),
        (json!([1]), "''"),
        (json!("n"), "''"),
        (json!({}), "''"),
        (json!({"n": "secret"}), "'/n'"),
        (json!({"n": 6}), "'/n'"),
        (json!({"n": 1.5}), "'/n'"),
        (json!({"n": 1, "m": 2}), "''"),
        (deep, "''"),
    ] {
        let result = executor.call(context(), call("test.tool", arguments)).await;
        assert_eq!(code(&result), Some(ErrorCode::InvalidArguments));
        assert!(result.content.contains(pointer), "{}", result.content);
        assert!(!result.content.contains("secret"), "{}", result.content);
    }
    assert_eq!(runner.started.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_result_without_words_is_said_by_the_reply_template() {
    let answer = |data| ToolResult { data, ..ToolResult::default() };
    for (data, say) in [
        (Some(json!({"n": 3})), Some("It is 3.")),
        (Some(json!({"n": "three"})), Some("It is three.")),
        (Some(json!({"n": ["a", "b", "c"]})), Some("It is a, b and c.")),
        (Some(json!({"n": {"m": 1}})), Some("n m 1")),
        (Some(json!({"rice": 2, "olive oil": 1})), Some("olive oil 1, rice 2")),
        (Some(json!({})), Some("Done.")),
        (None, Some("Done.")),
    ] {
        let (_, _, executor) = fixture(READING, Act::Answer(answer(data)));
        let result = executor.call(context(), good()).await;
        assert_eq!(result.say.as_deref(), say);
        assert!(!result.content.is_empty());
    }
}

#[tokio::test]
async fn results_are_capped() {
    let long = "ä".repeat(200_000);
    let result = ToolResult {
        content: long.clone(),
        data: Some(json!({"long": long})),
        say: Some(long.clone()),
        show: Some(Content::Text { text: long.clone() }),
        follow_ups: vec![long.clone(); 50],
        ..ToolResult::default()
    };
    let (_, _, executor) = fixture(READING, Act::Answer(result));
    let result = executor.call(context(), good()).await;
    assert!(result.content.len() <= CONTENT_BYTES_MAX && result.content.ends_with('…'));
    assert!(result.say.unwrap().len() <= SAY_BYTES_MAX);
    assert_eq!(result.data, None);
    assert_eq!(result.follow_ups.len(), 5);
    let Some(Content::Text { text }) = result.show else {
        panic!("{:?}", result.show);
    };
    assert!(text.len() <= crate::limits::SHOW_BYTES_MAX);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_a_call() {
    for (flags, retryable) in [(READING, true), (CHANGING, false)] {
        let (_, runner, executor) = fixture(flags, Act::Hang);
        let before = tokio::time::Instant::now();
        let result = executor.call(context(), good()).await;
        assert_eq!(code(&result), Some(ErrorCode::Timeout));
        assert_eq!(result.error.unwrap().retryable, retryable);
        // The runner has time to cancel at its server.
        assert_eq!(before.elapsed(), Duration::from_millis(1_000 + CANCEL_MS_MAX));
        assert_eq!(*runner.deadlines.lock().unwrap(), [Duration::from_millis(1_000)]);
    }
    let (_, _, executor) = fixture(READING, Act::Sleep(Duration::from_millis(999)));
    assert_eq!(code(&executor.call(context(), good()).await), None);
}

#[tokio::test]
async fn a_panic_is_a_result() {
    let (_, _, executor) = fixture(READING, Act::Panic);
    for _ in 0..3 {
        let result = executor.call(context(), good()).await;
        assert_eq!(code(&result), Some(ErrorCode::ExecutionError));
    }
}

#[tokio::test(start_paused = true)]
async fn an_interruption_stops_only_what_changes_nothing() {
    for (flags, wanted, ended, elapsed_ms) in
        [(READING, Some(ErrorCode::Cancelled), 0, 100 + CANCEL_MS_MAX), (CHANGING, None, 1, 800)]
    {
        let (_, runner, executor) = fixture(flags, Act::Sleep(Duration::from_millis(800)));
        let context = context();
        let cancel = context.cancel.clone();
        let before = tokio::time::Instant::now();
        let interrupt = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(executor.call(context, good()), interrupt);
        assert_eq!(code(&result), wanted);
        assert_eq!(runner.ended.load(Ordering::SeqCst), ended);
        assert_eq!(before.elapsed(), Duration::from_millis(elapsed_ms));
    }
}

#[tokio::test]
async fn nothing_starts_in_a_turn_that_is_over() {
    for flags in [READING, CHANGING, ASKING] {
        let (_, runner, executor) = fixture(flags, Act::Answer(ToolResult::said("x")));
        let context = context();
        context.cancel.cancel();
        let result = executor.call(context, good()).await;
        assert_eq!(code(&result), Some(ErrorCode::Cancelled));
        assert_eq!(runner.started.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn consent_comes_first_and_the_deadline_stands_still() {
    for (outcome, wanted, started) in [
        (ApprovalOutcome::Approved, None, 1),
        (ApprovalOutcome::Denied, Some(ErrorCode::ApprovalDenied), 0),
        (ApprovalOutcome::Expired, Some(ErrorCode::ApprovalExpired), 0),
        (ApprovalOutcome::Cancelled, Some(ErrorCode::Cancelled), 0),
    ] {
        let (world, runner, executor) = fixture(ASKING, Act::Sleep(Duration::from_millis(900)));
        *world.consent.lock().unwrap() = outcome;
        // Twenty times the call's own deadline.
        *world.consent_after.lock().unwrap() = Duration::from_secs(20);
        let result = executor.call(context(), good()).await;
        assert_eq!(code(&result), wanted, "{outcome:?}");
        assert_eq!(runner.started.load(Ordering::SeqCst), started);
        let asked = world.asked.lock().unwrap();
        let [request] = asked.as_slice() else {
            panic!("{asked:?}");
        };
        assert_eq!(request.arguments, json!({"n": 3}));
        assert_eq!(request.arguments_hash, arguments_hash("test.tool", &json!({"n": 3})));
        assert_eq!(request.turn, context().turn);
        assert_eq!(request.question.title, "Test tool with Test?");
        assert_eq!(request.question.shown, "Does what the test says.\nn: 3");
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_settles_expires() {
    let (world, runner, executor) = fixture(ASKING, Act::Answer(ToolResult::said("x")));
    *world.consent_after.lock().unwrap() = Duration::from_secs(1_000_000);
    let result = executor.call(context(), good()).await;
    assert_eq!(code(&result), Some(ErrorCode::ApprovalExpired));
    assert_eq!(runner.started.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn bad_arguments_are_not_asked_about() {
    let (world, _, executor) = fixture(ASKING, Act::Answer(ToolResult::said("x")));
    let result = executor.call(context(), call("test.tool", json!({"n": 9}))).await;
    assert_eq!(code(&result), Some(ErrorCode::InvalidArguments));
    assert!(world.asked.lock().unwrap().is_empty());
}

#[test]
fn the_hash_binds_tool_and_arguments() {
    let hash = |tool: &str, arguments| arguments_hash(tool, &arguments);
    let one = hash("a", json!({"x": 1, "y": {"b": 1, "a": [2, "3"]}}));
    assert_eq!(one, hash("a", json!({"y": {"a": [2, "3"], "b": 1}, "x": 1})));
    for other in [
        hash("b", json!({"x": 1, "y": {"b": 1, "a": [2, "3"]}})),
        hash("a", json!({"x": 1, "y": {"b": 1, "a": ["3", 2]}})),
        hash("a", json!({"x": 1, "y": {"b": 1, "a": [2, 3]}})),
        hash("a", json!({"x": 1})),
    ] {
        assert_ne!(one, other);
    }
}
