//! Rules of what surrounds a call: who may, how often, at most once, what is written down, what is
//! never told; and that a call has one result whatever the tool does.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::vocab::{
    ApprovalOutcome, Attachment, ClientClass, ErrorCode, RateLimit, ToolCall, ToolFlags, ToolResult, ToolSpec,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    catalogue::{CatalogueStore, StoredSet},
    executor::{Books, CallContext, Executor},
    fakes_tests::{World, call, context},
    intents::{Intent, Journal, Key, Past},
    ledger::{self, Ledger, Record},
    limits::{ATTACHMENTS_BYTES_MAX, ATTACHMENTS_MAX, CONTENT_BYTES_MAX, DATA_BYTES_MAX, SAY_BYTES_MAX},
    permissions::Switches,
    ports::{AppHost, PortError, Ports},
    rates::Limits,
    registry::{Registry, Scope, Source},
    runner::{RunContext, Runner},
    secret::Secret,
};

/// Intents in memory, which survive an executor as a store survives a process.
#[derive(Default)]
struct Memory {
    rows: Mutex<BTreeMap<(String, Key), Option<ToolResult>>>,
    failure: Mutex<Option<PortError>>,
    begun: AtomicU32,
    /// Outcomes are lost, as in a crash.
    forgetful: AtomicBool,
}

#[async_trait]
impl Journal for Memory {
    fn recall(&self, intent: &Intent) -> Result<Option<Past>, PortError> {
        let rows = self.rows.lock().unwrap();
        Ok(rows.get(&(intent.user.clone(), intent.key)).map(|outcome| match outcome {
            Some(result) => Past::Done(Box::new(result.clone())),
            None => Past::Unknown,
        }))
    }

    async fn begin(&self, intent: &Intent) -> Result<(), PortError> {
        // A commit takes a moment, in which others run.
        tokio::task::yield_now().await;
        if let Some(error) = &*self.failure.lock().unwrap() {
            return Err(error.clone());
        }
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.rows.lock().unwrap().insert((intent.user.clone(), intent.key), None);
        Ok(())
    }

    fn finish(&self, intent: &Intent, result: &ToolResult) {
        if !self.forgetful.load(Ordering::SeqCst) {
            self.rows.lock().unwrap().insert((intent.user.clone(), intent.key), Some(result.clone()));
        }
    }
}

#[derive(Default)]
struct Pages(Mutex<Vec<Record>>);

impl Ledger for Pages {
    fn record(&self, record: Record) {
        self.0.lock().unwrap().push(record);
    }
}

#[derive(Default)]
struct Panel(Mutex<Vec<String>>);

impl Switches for Panel {
    fn denied(&self, user: &str) -> Arc<[String]> {
        if user == "ada" { self.0.lock().unwrap().clone().into() } else { Arc::default() }
    }
}

/// What the tool under test does.
#[derive(Clone, Debug)]
enum Act {
    Answer(ToolResult),
    /// Answers after these milliseconds.
    Slow(u64, ToolResult),
    Panic,
    Hang,
    /// Answers `CANCELLED` when told, as a runner that stopped its server.
    Stops,
    /// Refused connections, then this.
    After(u32, ToolResult),
}

struct Scripted {
    act: Mutex<Act>,
    started: AtomicU32,
    cancelled: Arc<AtomicBool>,
    seen: Mutex<Vec<(String, bool)>>,
}

fn refused() -> ToolResult {
    ToolResult::failed(ErrorCode::AppNotAvailable, "connection refused", true)
}

#[async_trait]
impl Runner for Scripted {
    async fn run(&self, context: RunContext, _call: ToolCall) -> ToolResult {
        let before = self.started.fetch_add(1, Ordering::SeqCst);
        self.seen.lock().unwrap().push((context.local_name.clone(), context.activated));
        let act = self.act.lock().unwrap().clone();
        match act {
            Act::Answer(result) => result,
            Act::Slow(ms, result) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                result
            }
            Act::Panic => panic!("as told"),
            Act::Hang => std::future::pending().await,
            Act::Stops => {
                context.cancel.cancelled().await;
                self.cancelled.store(true, Ordering::SeqCst);
                ToolResult::failed(ErrorCode::Cancelled, "stopped", true)
            }
            Act::After(refusals, result) => {
                if before < refusals {
                    refused()
                } else {
                    result
                }
            }
        }
    }
}

struct House {
    world: Arc<World>,
    runner: Arc<Scripted>,
    registry: Arc<Registry>,
    journal: Arc<Memory>,
    pages: Arc<Pages>,
    panel: Arc<Panel>,
    executor: Executor,
}

const CHANGING: ToolFlags = ToolFlags {
    read_only: false,
    idempotent: false,
    destructive: false,
    requires_approval: false,
    always: false,
    persistent: true,
    requires_display: false,
};
const READING: ToolFlags = ToolFlags { read_only: true, ..CHANGING };

fn spec(flags: ToolFlags) -> ToolSpec {
    ToolSpec {
        name: "com.test.tool".into(),
        description: "Does what the test says.".into(),
        input_schema: json!({"type": "object"}),
        flags,
        timeout_ms: Some(1_000),
        ..ToolSpec::default()
    }
}

fn house_of(spec: ToolSpec, act: Act, limits: Limits, ports: impl FnOnce(Ports) -> Ports) -> House {
    let world = World::usual();
    let runner = Arc::new(Scripted {
        act: Mutex::new(act),
        started: AtomicU32::new(0),
        cancelled: Arc::default(),
        seen: Mutex::default(),
    });
    let registry = Arc::new(Registry::new());
    let run = Arc::clone(&runner) as Arc<dyn Runner>;
    registry.register_named(Source::App("com.test".into()), Scope::Global, vec![(spec, "tool".into())], run).unwrap();
    let (journal, pages, panel) = (Arc::<Memory>::default(), Arc::<Pages>::default(), Arc::<Panel>::default());
    let books =
        Books { journal: Some(journal.clone()), ledger: Some(pages.clone()), switches: Some(panel.clone()), limits };
    let executor = Executor::with_books(registry.clone(), ports(world.ports()), books);
    House { world, runner, registry, journal, pages, panel, executor }
}

fn house(flags: ToolFlags, act: Act) -> House {
    house_of(spec(flags), act, Limits::default(), |ports| ports)
}

fn good() -> ToolCall {
    call("com.test.tool", json!({"n": 3}))
}

fn code(result: &ToolResult) -> Option<ErrorCode> {
    if result.is_error() {
        assert!(result.say.is_some(), "a failure without words: {result:?}");
    }
    result.error.as_ref().map(|error| error.code)
}

fn done() -> Act {
    Act::Answer(ToolResult::said("done"))
}

impl House {
    fn started(&self) -> u32 {
        self.runner.started.load(Ordering::SeqCst)
    }

    /// The same house after a restart: only what was stored is left.
    fn restarted(&self) -> Executor {
        let books = Books { journal: Some(self.journal.clone()), ..Books::default() };
        Executor::with_books(self.registry.clone(), self.world.ports(), books)
    }
}

#[tokio::test]
async fn a_client_of_another_class_is_refused_and_does_not_see_it() {
    let only = ToolSpec { clients: Some(vec![ClientClass::Internal]), ..spec(READING) };
    let house = house_of(only, done(), Limits::default(), |ports| ports);
    for (client, seen) in [(ClientClass::Internal, 1), (ClientClass::Copilot, 0), (ClientClass::External, 0)] {
        assert_eq!(house.executor.offered("ada", "d", client).1.len(), seen);
        let result = house.executor.call(CallContext { client, ..context() }, good()).await;
        assert_eq!(code(&result), (seen == 0).then_some(ErrorCode::PermissionDenied));
    }
    assert_eq!(house.started(), 1);
}

#[tokio::test]
async fn what_a_user_switched_off_is_off_for_that_user() {
    let house = house(READING, done());
    for (switch, off) in
        [("com.test.tool", true), ("com.test.*", true), ("*", true), ("com.test", false), ("com.test.tools*", false)]
    {
        *house.panel.0.lock().unwrap() = vec![switch.to_owned()];
        assert_eq!(house.executor.offered("ada", "d", ClientClass::Internal).1.is_empty(), off, "{switch}");
        let result = house.executor.call(context(), good()).await;
        assert_eq!(code(&result), off.then_some(ErrorCode::PermissionDenied), "{switch}");
        let bob = CallContext { user: "bob".into(), ..context() };
        assert_eq!(code(&house.executor.call(bob, good()).await), None);
        assert_eq!(house.executor.offered("bob", "d", ClientClass::Internal).1.len(), 1);
    }
}

#[tokio::test]
async fn help_does_not_tell_of_what_is_switched_off() {
    let panel = Arc::<Panel>::default();
    let registry = Arc::new(Registry::with_built_ins().unwrap());
    let books = Books { switches: Some(panel.clone()), ..Books::default() };
    let executor = Executor::with_books(registry, World::usual().ports(), books);
    let mut told = Vec::new();
    for switch in ["nothing", "timer.*"] {
        *panel.0.lock().unwrap() = vec![switch.to_owned()];
        told.push(executor.call(context(), call("help.show", json!({}))).await.content.contains("set a timer"));
    }
    assert_eq!(told, [true, false]);
}

#[tokio::test]
async fn limits_hold_per_user_per_source_and_per_tool() {
    let two = Some(RateLimit { calls: 2, per_ms: 60_000 });
    for (tool, limits) in [
        (two, Limits::default()),
        (None, Limits { per_user: two, ..Limits::default() }),
        (None, Limits { per_source: two, ..Limits::default() }),
    ] {
        let house = house_of(ToolSpec { rate_limit: tool, ..spec(READING) }, done(), limits, |ports| ports);
        let bob = || CallContext { user: "bob".into(), ..context() };
        for (context, wanted) in
            [(context(), None), (context(), None), (context(), Some(ErrorCode::RateLimited)), (bob(), None)]
        {
            let result = house.executor.call(context, good()).await;
            assert_eq!(code(&result), wanted);
            if let Some(error) = result.error {
                assert!(error.retryable && error.message.contains("30 s"), "{error:?}");
            }
        }
        house.world.pass(30);
        assert_eq!(code(&house.executor.call(context(), good()).await), None);
        assert_eq!(code(&house.executor.call(context(), good()).await), Some(ErrorCode::RateLimited));
        // A source that registers anew does not get a fresh count.
        assert_eq!(house.started(), 4);
    }
}

#[tokio::test]
async fn the_same_call_is_run_once_and_answered_twice() {
    let house = house(CHANGING, done());
    let first = house.executor.call(context(), good()).await;
    for executor in [house.executor.clone(), house.restarted()] {
        assert_eq!(executor.call(context(), good()).await, first);
    }
    assert_eq!(house.started(), 1);
    // Each of these is another call.
    for (context, call) in [
        (CallContext { session: "t".into(), ..context() }, good()),
        (CallContext { user: "bob".into(), ..context() }, good()),
        (CallContext { turn: gateway_core::vocab::Turn { id: 8, revision: 0 }, ..context() }, good()),
        (context(), ToolCall { id: "call-2".into(), ..good() }),
        (context(), call("com.test.tool", json!({"n": 4}))),
    ] {
        let before = house.started();
        assert_eq!(code(&house.executor.call(context, call).await), None);
        assert_eq!(house.started(), before + 1);
    }
    // Nobody vouches for these.
    for _ in 0..3 {
        let before = house.started();
        house.executor.call(CallContext { session: String::new(), ..context() }, good()).await;
        assert_eq!(house.started(), before + 1);
    }
}

#[tokio::test]
async fn the_same_call_at_the_same_time_is_run_once() {
    let house = house(CHANGING, Act::Slow(50, ToolResult::said("once")));
    let calls = (0..20).map(|_| house.executor.call(context(), good()));
    for result in futures_util::future::join_all(calls).await {
        assert_eq!(result.content, "once");
    }
    assert_eq!(house.started(), 1);
}

#[tokio::test]
async fn an_intent_without_outcome_is_unknown_and_never_repeated() {
    let house = house(CHANGING, done());
    house.journal.forgetful.store(true, Ordering::SeqCst);
    house.executor.call(context(), good()).await;
    let again = house.restarted();
    for _ in 0..3 {
        let result = again.call(context(), good()).await;
        assert_eq!(code(&result), Some(ErrorCode::ExecutionError));
        assert!(!result.error.unwrap().retryable);
        assert!(result.say.unwrap().contains("don't know"));
    }
    assert_eq!(house.started(), 1);
}

#[tokio::test]
async fn what_only_reads_is_not_written_down() {
    let house = house(READING, done());
    for _ in 0..2 {
        house.executor.call(context(), good()).await;
    }
    assert_eq!((house.started(), house.journal.begun.load(Ordering::SeqCst)), (2, 0));
}

#[tokio::test]
async fn nothing_is_done_that_cannot_be_written_down() {
    for (failure, wanted, words) in [
        (PortError::Full("no room".into()), ErrorCode::ExecutionError, "full"),
        (PortError::Unavailable("busy".into()), ErrorCode::AppNotAvailable, "right now"),
        (PortError::Failed("damaged".into()), ErrorCode::ExecutionError, "right now"),
    ] {
        let house = house(CHANGING, done());
        *house.journal.failure.lock().unwrap() = Some(failure);
        let result = house.executor.call(context(), good()).await;
        assert_eq!(code(&result), Some(wanted));
        assert!(result.say.unwrap().contains(words));
        assert_eq!(house.started(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_did_nothing_is_tried_again() {
    let failed = |code, retryable| ToolResult::failed(code, "as told", retryable);
    for (flags, act, started, wanted) in [
        (CHANGING, Act::After(2, ToolResult::said("x")), 3, None),
        (CHANGING, Act::After(9, ToolResult::said("x")), 3, Some(ErrorCode::AppNotAvailable)),
        (CHANGING, Act::Answer(failed(ErrorCode::HttpError, true)), 1, Some(ErrorCode::HttpError)),
        (CHANGING, Act::Answer(failed(ErrorCode::ExecutionError, true)), 1, Some(ErrorCode::ExecutionError)),
        (CHANGING, Act::Answer(failed(ErrorCode::AppNotAvailable, false)), 1, Some(ErrorCode::AppNotAvailable)),
        (READING, Act::Answer(failed(ErrorCode::HttpError, true)), 3, Some(ErrorCode::HttpError)),
        (READING, Act::Answer(failed(ErrorCode::Timeout, true)), 1, Some(ErrorCode::Timeout)),
    ] {
        let house = house(flags, act.clone());
        let result = house.executor.call(context(), good()).await;
        assert_eq!((code(&result), house.started()), (wanted, started), "{act:?}");
        if flags == CHANGING && wanted == Some(ErrorCode::HttpError) {
            assert!(!result.error.unwrap().retryable, "a 500 leaves open what was done");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_interruption_reaches_the_runner_and_the_result_is_truthful() {
    for (flags, words) in [(READING, "nothing was done"), (CHANGING, "unknown")] {
        let house = house(flags, Act::Stops);
        let context = context();
        let cancel = context.cancel.clone();
        let interrupt = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(house.executor.call(context, good()), interrupt);
        assert_eq!(code(&result), Some(ErrorCode::Cancelled));
        let error = result.error.unwrap();
        assert!(error.message.contains(words) || flags.read_only, "{error:?}");
        assert!(house.runner.cancelled.load(Ordering::SeqCst));
        if !flags.read_only {
            assert!(!error.retryable && result.say.unwrap().contains("don't know"));
        }
    }
    // And so does a deadline.
    let house = house(CHANGING, Act::Stops);
    let result = house.executor.call(context(), good()).await;
    assert_eq!(code(&result), Some(ErrorCode::Timeout));
    assert!(house.runner.cancelled.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn what_reads_runs_together_and_changes_of_one_turn_one_after_another() {
    for (flags, same_turn, elapsed_ms) in [(READING, true, 300), (CHANGING, false, 300), (CHANGING, true, 3_000)] {
        let house = house(flags, Act::Slow(300, ToolResult::said("x")));
        let before = tokio::time::Instant::now();
        let calls = (1..=10).map(|number| {
            let id = if same_turn { 7 } else { number };
            let context = CallContext { turn: gateway_core::vocab::Turn { id, revision: 0 }, ..context() };
            house.executor.call(context, ToolCall { id: number.to_string(), ..good() })
        });
        for result in futures_util::future::join_all(calls).await {
            assert_eq!(code(&result), None, "waiting for others is not the tool's own time");
        }
        assert_eq!(before.elapsed(), Duration::from_millis(elapsed_ms));
    }
}

#[tokio::test(start_paused = true)]
async fn every_persistent_call_is_recorded_and_no_other() {
    let cut = |flags, act: Act| async move {
        let house = house(flags, act);
        house.executor.call(context(), good()).await;
        house.pages.0.lock().unwrap().clone()
    };
    assert_eq!(cut(ToolFlags { persistent: false, ..READING }, done()).await, []);
    let records = cut(CHANGING, done()).await;
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((record.user.as_str(), record.device.as_str(), record.turn), ("ada", "glasses", 7));
    assert_eq!((record.tool.as_str(), record.source.as_str()), ("com.test.tool", "app:com.test"));
    assert_eq!((record.error, record.asked, record.bytes_in, record.bytes_out), (None, false, 7, 4));
    let failed = cut(ToolFlags { requires_approval: true, ..CHANGING }, Act::Panic).await;
    assert_eq!(failed[0].error, Some(ErrorCode::ExecutionError));
    assert!(failed[0].asked);

    let usage = ledger::usage(records.iter().cloned().chain(failed.iter().cloned()));
    let [usage] = usage.as_slice() else { panic!("{usage:?}") };
    assert_eq!((usage.calls, usage.failed), (2, 1));
}

#[tokio::test]
async fn the_question_is_the_definitions_own_with_the_values_in_quotes() {
    let asking = ToolSpec {
        input_schema: json!({"type": "object", "properties": {"path": {}, "count": {}, "all": {}}}),
        approval: Some("Delete {path}, {count} times? All: {all}.".into()),
        ..spec(ToolFlags { requires_approval: true, ..CHANGING })
    };
    let house = house_of(asking, done(), Limits::default(), |ports| ports);
    let long = "x".repeat(500);
    for (arguments, question) in [
        (json!({"path": "a.txt", "count": 2, "all": true}), "Delete \"a.txt\", 2 times? All: yes.".to_owned()),
        (
            json!({"path": "a\"\n. The wearer says yes"}),
            "Delete \"a' . The wearer says yes\", nothing times? All: nothing.".to_owned(),
        ),
        (json!({"path": long}), format!("Delete \"{}…\", nothing times? All: nothing.", "x".repeat(117))),
    ] {
        house.executor.call(context(), call("com.test.tool", arguments)).await;
        assert_eq!(house.world.asked.lock().unwrap().last().unwrap().question, question);
    }
}

/// An app host that says what it was asked.
struct Host(Result<bool, PortError>);

#[async_trait]
impl AppHost for Host {
    async fn activate(&self, user: &str, package: &str, deadline: Duration) -> Result<bool, PortError> {
        assert_eq!((user, package), ("ada", "com.test"));
        if self.0 == Err(PortError::Failed("hang".into())) {
            tokio::time::sleep(deadline * 2).await;
        }
        self.0.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn the_app_runs_before_its_tool_does() {
    for (host, wanted, seen) in [
        (Ok(true), None, Some(true)),
        (Ok(false), None, Some(false)),
        (Err(PortError::Unavailable("gone".into())), Some(ErrorCode::AppNotAvailable), None),
        (Err(PortError::Failed("hang".into())), Some(ErrorCode::AppNotAvailable), None),
    ] {
        let with_app = ToolSpec { app: Some("com.test".into()), ..spec(CHANGING) };
        let apps = Arc::new(Host(host));
        let house = house_of(with_app, done(), Limits::default(), |ports| Ports { apps, ..ports });
        let result = house.executor.call(context(), good()).await;
        assert_eq!(code(&result), wanted);
        let runs = house.runner.seen.lock().unwrap().clone();
        assert_eq!(runs.first().cloned(), seen.map(|activated| ("tool".to_owned(), activated)));
        // What never began leaves no intent: the same call may be made again.
        assert_eq!(house.journal.begun.load(Ordering::SeqCst), u32::from(seen.is_some()));
    }
}

/// Every field of every event, as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl tracing::field::Visit for Log {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.lock().unwrap().push_str(&format!("{field}={value:?} "));
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        span.record(&mut self.clone());
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn secrets_are_in_no_result_and_print_as_nothing() {
    const KEY: &str = "sk-hidden-4711-éà";
    let log = Log::default();
    let _logged = tracing::subscriber::set_default(log.clone());
    let secret = Secret::new(KEY);
    tracing::error!(%secret, ?secret, "a planted one");
    assert_eq!((format!("{secret}"), format!("{secret:?}")), ("[secret]".to_owned(), "[secret]".to_owned()));
    let quoted = format!("401: bad key {KEY}{KEY}");
    let leak = ToolResult {
        content: quoted.clone(),
        data: Some(json!({"headers": [{"authorization": quoted}], KEY: 1})),
        say: Some(quoted.clone()),
        show: Some(gateway_core::vocab::Content::Card { title: quoted.clone(), text: quoted.clone() }),
        follow_ups: vec![quoted.clone()],
        attachments: vec![Attachment::Resource { block: json!({"text": quoted}) }],
        ..ToolResult::failed(ErrorCode::HttpError, quoted.clone(), false)
    };
    // The result fits its schema as little as possible, so that somebody complains of it.
    let picky = ToolSpec { output_schema: Some(json!({"maxProperties": 0})), ..spec(CHANGING) };
    let house = house_of(picky, Act::Answer(leak), Limits::default(), |ports| ports);
    house.executor.secrets().keep(&secret);
    let result = house.executor.call(context(), good()).await;
    let journal = house.journal.rows.lock().unwrap().values().cloned().collect::<Vec<_>>();
    let records = house.pages.0.lock().unwrap().clone();
    for text in [
        serde_json::to_string(&result).unwrap(),
        format!("{result:?}"),
        serde_json::to_string(&journal).unwrap(),
        serde_json::to_string(&records).unwrap(),
        log.0.lock().unwrap().clone(),
    ] {
        assert!(!text.contains("hidden") && !text.contains("4711"), "{text}");
    }
    let logged = log.0.lock().unwrap().clone();
    assert!(logged.contains("a planted one") && logged.contains("output schema"), "{logged}");
    assert_eq!(result.content, "401: bad key [secret][secret]");
    // Ordinary words stay, even where somebody chose one for a password.
    house.executor.secrets().keep(&Secret::new("key"));
    assert!(
        house.executor.call(CallContext { session: "t".into(), ..context() }, good()).await.content.contains("key")
    );
}

#[tokio::test]
async fn what_is_not_text_stays_out_of_the_content() {
    let blob = "iVBORw0KGgoAAAANSUhEUgAA".repeat(100);
    let image = |bytes: usize| Attachment::Image { mime: "image/png".into(), data: "A".repeat(bytes) };
    let answer = ToolResult {
        content: format!("Look: data:image/png;base64,{blob} and {} stays.", "-".repeat(300)),
        attachments: vec![image(1_000), image(ATTACHMENTS_BYTES_MAX), image(1_000)],
        ..ToolResult::default()
    };
    let house = house(READING, Act::Answer(answer));
    let result = house.executor.call(context(), good()).await;
    assert_eq!(result.attachments.len(), 2);
    let wanted = format!(
        "Look: data:image/png;base64,[binary data left out] and {} stays.\n[1 attachments were too large and left out]",
        "-".repeat(300)
    );
    assert_eq!(result.content, wanted);
}

/// A catalogue in memory.
#[derive(Default)]
struct Shelf(Mutex<Vec<StoredSet>>);

impl CatalogueStore for Shelf {
    fn load(&self) -> Result<Vec<StoredSet>, PortError> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn save(&self, set: StoredSet) {
        self.forget(&set.source, &set.scope);
        self.0.lock().unwrap().push(set);
    }

    fn forget(&self, source: &Source, scope: &Scope) {
        self.0.lock().unwrap().retain(|set| set.source != *source || set.scope != *scope);
    }
}

#[tokio::test(start_paused = true)]
async fn tools_are_there_before_their_server_has_answered() {
    let shelf = Arc::<Shelf>::default();
    let runner = || {
        Arc::new(Scripted {
            act: Mutex::new(done()),
            started: AtomicU32::new(0),
            cancelled: Arc::default(),
            seen: Mutex::default(),
        })
    };
    let offer = |registry: &Registry, runner: Arc<Scripted>| {
        let named = vec![(spec(READING), "tool".to_owned())];
        registry.register_named(Source::Mcp("m".into()), Scope::Global, named, runner).unwrap()
    };
    let before = Arc::new(Registry::new());
    assert_eq!(before.keep_in(shelf.clone(), |_| true), Ok(0));
    offer(&before, runner());
    let with_device = before.register(Source::Device("d".into()), Scope::Global, vec![], runner());
    assert!(with_device.is_ok());
    assert_eq!(shelf.0.lock().unwrap().len(), 1, "what a device offers is not kept");

    let registry = Arc::new(Registry::new());
    assert_eq!(registry.keep_in(shelf.clone(), |_| true), Ok(1));
    let executor = Executor::new(registry.clone(), World::usual().ports());
    assert_eq!(executor.offered("ada", "d", ClientClass::Internal).1.len(), 1);
    assert_eq!(code(&executor.call(context(), good()).await), Some(ErrorCode::AppNotAvailable));

    let real = runner();
    let late = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        offer(&registry, real.clone());
    };
    let (result, ()) = tokio::join!(executor.call(context(), good()), late);
    assert_eq!(code(&result), None);
    assert_eq!(*real.seen.lock().unwrap(), [("tool".to_owned(), false)]);

    registry.unregister(&Source::Mcp("m".into()), &Scope::Global).unwrap();
    assert!(shelf.0.lock().unwrap().is_empty());
    offer(&registry, runner());
    let other = Arc::new(Registry::new());
    assert_eq!(other.keep_in(shelf.clone(), |_| false), Ok(0));
    assert!(shelf.0.lock().unwrap().is_empty(), "a server that is not configured any more is forgotten");
}

fn any_code() -> impl Strategy<Value = ErrorCode> {
    prop_oneof![
        Just(ErrorCode::ToolNotFound),
        Just(ErrorCode::RateLimited),
        Just(ErrorCode::AppNotAvailable),
        Just(ErrorCode::HttpError),
        Just(ErrorCode::Timeout),
        Just(ErrorCode::Cancelled),
        Just(ErrorCode::ExecutionError),
    ]
}

fn any_result() -> impl Strategy<Value = ToolResult> {
    let flood = || (0_usize..200_000).prop_map(|length| "xY3€".chars().cycle().take(length).collect::<String>());
    let text = || prop_oneof![Just(String::new()), "\\PC{0,20}", flood()];
    let error = proptest::option::of((any_code(), text(), any::<bool>()));
    let many = proptest::collection::vec(text(), 0..8);
    (text(), proptest::option::of(text()), text(), many, 0_usize..40, error).prop_map(
        |(content, say, data, follow_ups, images, error)| {
            let mut result = match error {
                Some((code, message, retryable)) => ToolResult::failed(code, message, retryable),
                None => ToolResult { content, ..ToolResult::default() },
            };
            result.data = Some(Value::from(data));
            result.say = say;
            result.follow_ups = follow_ups;
            result.attachments =
                vec![Attachment::Audio { mime: "audio/wav".into(), data: "A".repeat(400_000) }; images];
            result
        },
    )
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        any_result().prop_map(Act::Answer),
        (0_u64..3_000, any_result()).prop_map(|(ms, result)| Act::Slow(ms, result)),
        Just(Act::Panic),
        Just(Act::Hang),
        Just(Act::Stops),
        (0_u32..4, any_result()).prop_map(|(refusals, result)| Act::After(refusals, result)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_call_has_exactly_one_result_whatever_the_tool_does(
        act in any_act(),
        flags in (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
        outcome in prop_oneof![
            4 => Just(ApprovalOutcome::Approved), 1 => Just(ApprovalOutcome::Denied),
            1 => Just(ApprovalOutcome::Expired), 1 => Just(ApprovalOutcome::Cancelled)],
        cancel_ms in proptest::option::of(0_u64..2_500),
        store_full in proptest::bool::weighted(0.1),
    ) {
        let (read_only, idempotent, requires_approval, persistent) = flags;
        let flags = ToolFlags { read_only, idempotent, requires_approval, persistent, ..ToolFlags::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let house = house(flags, act);
            *house.world.consent.lock().unwrap() = outcome;
            if store_full {
                *house.journal.failure.lock().unwrap() = Some(PortError::Full("no room".into()));
            }
            let context = context();
            let cancel = context.cancel.clone();
            let mut interrupt = std::pin::pin!(async {
                if let Some(ms) = cancel_ms {
                    tokio::time::sleep(Duration::from_millis(ms)).await;
                    cancel.cancel();
                }
                std::future::pending::<()>().await
            });
            let result = tokio::select! {
                result = tokio::time::timeout(Duration::from_secs(10), house.executor.call(context, good())) => {
                    result.expect("a call ends")
                }
                () = &mut interrupt => unreachable!(),
            };
            assert!(!result.content.is_empty() && result.content.len() <= CONTENT_BYTES_MAX);
            assert!(result.say.as_ref().is_none_or(|say| say.len() <= SAY_BYTES_MAX));
            assert!(result.data.as_ref().is_none_or(|data| data.to_string().len() <= DATA_BYTES_MAX));
            assert!(result.attachments.len() <= ATTACHMENTS_MAX);
            code(&result);
            assert_eq!(house.pages.0.lock().unwrap().len(), usize::from(persistent));
            let asked = requires_approval && outcome != ApprovalOutcome::Approved;
            if asked || (store_full && !read_only) {
                assert_eq!(house.started(), 0);
            }
            // What may have been done is not done again.
            let before = house.started();
            if !read_only && house.journal.begun.load(Ordering::SeqCst) > 0 {
                *house.journal.failure.lock().unwrap() = None;
                house.restarted().call(crate::fakes_tests::context(), good()).await;
                assert_eq!(house.started(), before);
            }
        });
    }
}
