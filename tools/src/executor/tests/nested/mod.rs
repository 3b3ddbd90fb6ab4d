//! Calls that programs make, driven by a program in Rust.

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};

use super::*;
use crate::{
    caller::Watcher,
    limits::{CANCEL_MS_MAX, NESTED_AT_ONCE_MAX, NESTED_CALLS_MAX, NESTED_SETTLE_MS_MAX},
    nested::NestedCalls,
    programs::CallOutcome,
};

mod account;

type Script = dyn Fn(RunContext) -> BoxFuture<'static, ToolResult> + Send + Sync;

/// A tool that runs a program: this script.
struct Programs(Box<Script>);

#[async_trait]
impl Runner for Programs {
    async fn run(&self, context: RunContext, _call: ToolCall) -> ToolResult {
        (self.0)(context).await
    }

    fn runs_programs(&self, _local_name: &str) -> bool {
        true
    }
}

/// The tools that programs call. A call takes the milliseconds of its argument `ms`, and fails if `fails` is set.
#[derive(Default)]
struct Called {
    log: Mutex<Vec<String>>,
    running: AtomicU32,
    running_max: AtomicU32,
    seen: Mutex<Vec<(Option<String>, bool)>>,
}

#[async_trait]
impl Runner for Called {
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult {
        self.seen.lock().unwrap().push((context.program.clone(), context.calls.is_some()));
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.running_max.fetch_max(running, Ordering::SeqCst);
        self.log.lock().unwrap().push(format!("begin {}", call.id));
        sleep(Duration::from_millis(call.arguments["ms"].as_u64().unwrap_or_default())).await;
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.log.lock().unwrap().push(format!("end {}", call.id));
        match call.arguments["fails"].as_str() {
            Some(message) => ToolResult::failed(ErrorCode::ExecutionError, message, false),
            None => {
                let claims = call.arguments["claims"] == true;
                let data = claims.then(|| json!({"partlyDone": true, "a": 1}));
                ToolResult { data, ..ToolResult::said("done") }
            }
        }
    }

    fn runs_programs(&self, _local_name: &str) -> bool {
        // It is no built-in tool: that does not count.
        true
    }
}

struct Bench {
    world: Arc<World>,
    called: Arc<Called>,
    journal: Arc<Memory>,
    pages: Arc<Pages>,
    panel: Arc<Panel>,
    registry: Arc<Registry>,
    executor: Executor,
}

fn bench<F: Future<Output = ToolResult> + Send + 'static>(
    script: impl Fn(RunContext, NestedCalls) -> F + Send + Sync + 'static,
) -> Bench {
    bench_with(Limits::default(), script)
}

fn bench_with<F: Future<Output = ToolResult> + Send + 'static>(
    limits: Limits,
    script: impl Fn(RunContext, NestedCalls) -> F + Send + Sync + 'static,
) -> Bench {
    let world = World::usual();
    let (journal, pages, panel) = (Arc::<Memory>::default(), Arc::<Pages>::default(), Arc::<Panel>::default());
    let registry = Arc::new(Registry::new());
    let program = Programs(Box::new(move |context| {
        let calls = context.calls.clone().expect("a handle");
        Box::pin(script(context, calls))
    }));
    let named = |name: &str, flags| ToolSpec { name: name.into(), timeout_ms: Some(60_000), ..spec(flags) };
    let run = ToolSpec { timeout_ms: Some(1_000), ..named("test.run", CHANGING) };
    registry.register(Source::BuiltIn, Scope::Global, vec![run], Arc::new(program)).unwrap();
    let called = Arc::<Called>::default();
    let asking = ToolFlags { requires_approval: true, ..CHANGING };
    let strict = json!({"type": "object", "properties": {"ms": {"type": "integer"}}});
    let mut specs: Vec<_> = [("add", CHANGING), ("delete", asking), ("read", READING)]
        .map(|(name, flags)| ToolSpec { input_schema: strict.clone(), ..named(&format!("com.test.{name}"), flags) })
        .into();
    // It has less time than the program.
    specs.push(ToolSpec { timeout_ms: Some(300), ..named("com.test.brief", CHANGING) });
    let tools: Vec<_> = specs.into_iter().map(|spec| (spec.clone(), spec.name.replace("com.test.", ""))).collect();
    registry.register_named(Source::App("com.test".into()), Scope::Global, tools, called.clone()).unwrap();
    let records = CallRecords {
        journal: Some(journal.clone()),
        ledger: Some(pages.clone()),
        switches: Some(panel.clone()),
        limits,
        ..CallRecords::default()
    };
    let executor = Executor::with_records(registry.clone(), world.ports(), records);
    Bench { world, called, journal, pages, panel, registry, executor }
}

impl Bench {
    async fn run(&self) -> ToolResult {
        self.executor.call(context(), program()).await
    }

    fn log(&self) -> Vec<String> {
        self.called.log.lock().unwrap().clone()
    }
}

fn program() -> ToolCall {
    ToolCall { id: "p1".into(), ..call("test.run", json!({})) }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn failure() -> ToolResult {
    ToolResult::failed(ErrorCode::ExecutionError, "undefined is not a function", true)
}

#[tokio::test]
async fn a_call_of_a_program_passes_all_steps() {
    let limits = Limits { per_source: Some(RateLimit { calls: 3, per_ms: 60_000 }), ..Limits::default() };
    let bench = bench_with(limits, |context, calls| async move {
        assert_eq!((context.program.as_deref(), calls.parent()), (None, "p1"));
        let mut codes = Vec::new();
        for (name, arguments) in [
            ("com.test.none", json!({})),
            ("com.test.add", json!({"ms": "soon"})),
            ("com.test.read", json!({})),
            ("com.test.add", json!({})),
            ("com.test.delete", json!({})),
            ("com.test.brief", json!({})),
            ("test.run", json!({})),
        ] {
            codes.push(code(&calls.call(name, arguments).await));
        }
        let expected = [
            Some(ErrorCode::ToolNotFound),
            Some(ErrorCode::InvalidArguments),
            None,
            None,
            None,
            Some(ErrorCode::RateLimited),
            Some(ErrorCode::PermissionDenied),
        ];
        assert_eq!(codes, expected);
        let done = calls.done();
        assert_eq!((done.len(), done[3].id.as_str(), done[3].tool.as_str()), (7, "p1/4", "com.test.add"));
        assert_eq!((done[3].ok, done[1].ok, done[1].error), (true, false, Some(ErrorCode::InvalidArguments)));
        ToolResult::said("ran")
    });
    *bench.panel.0.lock().unwrap() = vec!["com.other.*".into()];
    let result = bench.run().await;
    assert_eq!((code(&result), result.content.as_str()), (None, "ran"));
    assert_eq!(bench.log(), ["begin p1/3", "end p1/3", "begin p1/4", "end p1/4", "begin p1/5", "end p1/5"]);
    // They know who makes them, and make none themselves.
    assert_eq!(*bench.called.seen.lock().unwrap(), vec![(Some("p1".to_owned()), false); 3]);
    // The program, and the two changes, are intents.
    assert_eq!(bench.journal.begun.load(Ordering::SeqCst), 3);
    let pages = bench.pages.0.lock().unwrap();
    let of = |record: &Record| record.program.as_ref().map(|of| (of.id.clone(), of.call));
    let own = pages.iter().map(|record| (record.tool.as_str(), of(record))).collect::<Vec<_>>();
    assert_eq!(own.last(), Some(&("test.run", Some(("p1".to_owned(), None)))));
    assert!(own.contains(&("com.test.delete", Some(("p1".to_owned(), Some(5))))), "{own:?}");
    drop(pages);
    let asked = bench.world.asked.lock().unwrap();
    let [request] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!((request.call_id.as_str(), request.program.as_deref()), ("p1/5", Some("p1")));
    assert_eq!((request.turn, request.device.as_deref()), (context().turn, Some("glasses")));
}

#[tokio::test]
async fn what_is_switched_off_or_not_for_this_client_is_not_for_its_programs() {
    let bench = bench(|_, calls| async move {
        let result = calls.call("com.test.add", json!({})).await;
        assert_eq!(code(&result), Some(ErrorCode::PermissionDenied));
        ToolResult::said("ran")
    });
    *bench.panel.0.lock().unwrap() = vec!["com.test.*".into()];
    assert_eq!(code(&bench.run().await), None);
    assert!(bench.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn changes_of_a_program_do_not_wait_for_the_program_but_for_each_other() {
    let bench = bench(|_, calls| async move {
        let change = || calls.call("com.test.add", json!({"ms": 100}));
        let read = calls.call("com.test.read", json!({"ms": 50}));
        tokio::join!(change(), change(), read);
        ToolResult::said("ran")
    });
    let other = ToolCall { id: "c2".into(), ..call("com.test.add", json!({})) };
    let began = Instant::now();
    let (result, other) = tokio::join!(bench.run(), bench.executor.call(context(), other));
    assert_eq!((code(&result), code(&other)), (None, None));
    assert_eq!(began.elapsed(), ms(200));
    let changes: Vec<_> = bench.log().into_iter().filter(|line| !line.contains("p1/3")).collect();
    assert_eq!(changes, ["begin p1/1", "end p1/1", "begin p1/2", "end p1/2", "begin c2", "end c2"]);
    // Without a turn as well.
    let outside = CallContext { turn: None, session: None, ..context() };
    bench.called.log.lock().unwrap().clear();
    assert_eq!(code(&bench.executor.call(outside, program()).await), None);
    let changes: Vec<_> = bench.log().into_iter().filter(|line| !line.contains("p1/3")).collect();
    assert_eq!(changes, ["begin p1/1", "end p1/1", "begin p1/2", "end p1/2"]);
}

#[tokio::test(start_paused = true)]
async fn while_the_wearer_is_asked_the_time_of_the_program_stands_still() {
    // It has one second. Two questions, which overlap, take 30 s each.
    let bench = bench(|_, calls| async move {
        sleep(ms(400)).await;
        let delete = || calls.call("com.test.delete", json!({}));
        let later = async {
            sleep(ms(5_000)).await;
            delete().await
        };
        let (one, other) = tokio::join!(delete(), later);
        assert_eq!((code(&one), code(&other)), (None, None));
        assert_eq!(calls.deadline().left(), ms(600));
        sleep(ms(599)).await;
        ToolResult::said("ran")
    });
    *bench.world.consent_after.lock().unwrap() = Duration::from_secs(30);
    let began = Instant::now();
    assert_eq!(code(&bench.run().await), None);
    assert_eq!(began.elapsed(), ms(400 + 35_000 + 599));
}

#[tokio::test(start_paused = true)]
async fn after_a_question_the_rest_of_the_time_counts() {
    let bench = bench(|_, calls| async move {
        sleep(ms(400)).await;
        calls.call("com.test.delete", json!({})).await;
        std::future::pending().await
    });
    *bench.world.consent_after.lock().unwrap() = Duration::from_secs(30);
    let began = Instant::now();
    let result = bench.run().await;
    assert_eq!(code(&result), Some(ErrorCode::Timeout));
    assert_eq!(began.elapsed(), ms(1_000 + 30_000 + CANCEL_MS_MAX));
    assert!(result.content.contains("Done:\n- com.test.delete {}"), "{}", result.content);
}

#[tokio::test(start_paused = true)]
async fn a_program_makes_at_most_so_many_calls_and_so_many_at_once() {
    let bench = bench(|_, calls| async move {
        let all = (0..=NESTED_CALLS_MAX).map(|_| calls.call("com.test.read", json!({"ms": 100})));
        let results = futures_util::future::join_all(all).await;
        let failed: Vec<_> = results.iter().filter(|result| result.is_error()).collect();
        assert_eq!((failed.len(), code_of(failed[0])), (1, ErrorCode::RateLimited));
        assert!(failed[0].content.contains("64 calls"), "{}", failed[0].content);
        ToolResult::said("ran")
    });
    let began = Instant::now();
    assert_eq!(code(&bench.run().await), None);
    assert_eq!(bench.called.running_max.load(Ordering::SeqCst) as usize, NESTED_AT_ONCE_MAX);
    assert_eq!(began.elapsed(), ms(800));
    assert_eq!(bench.log().len(), 2 * NESTED_CALLS_MAX);
}

fn code_of(result: &ToolResult) -> ErrorCode {
    result.error.as_ref().unwrap().code
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_late_tells_what_it_has_done() {
    let bench = bench(|_, calls| async move {
        calls.call("com.test.add", json!({"text": "milk"})).await;
        calls.call("com.test.add", json!({"text": "tea"})).await;
        calls.call("com.test.add", json!({"fails": "the list is full"})).await;
        calls.call("com.test.read", json!({})).await;
        calls.call("com.test.brief", json!({"ms": 900})).await;
        tokio::join!(calls.call("com.test.add", json!({"ms": 9_000})), calls.call("com.test.add", json!({})));
        ToolResult::said("ran")
    });
    let result = bench.run().await;
    assert_eq!(code(&result), Some(ErrorCode::Timeout));
    assert!(!result.error.as_ref().unwrap().retryable);
    assert_eq!(
        result.content,
        "The program did not end within 1 s and was stopped.\n\
         It has made 2 changes: do not repeat them. Whether it has made 2 changes more is unknown: do not repeat them \
         either.\nDone:\n- com.test.add {\"text\":\"milk\"}\n- com.test.add {\"text\":\"tea\"}\nUnknown:\n\
         - com.test.brief {\"ms\":900}\n- com.test.add {\"ms\":9000}\nFailed:\n\
         - com.test.add {\"fails\":\"the list is full\"}: the list is full\n\
         Not begun: 1"
    );
    assert_eq!(
        result.say.as_deref(),
        Some(
            "That took too long, so I stopped it. Already done: Add, twice. I don't know whether this was done: Brief; \
             Add."
        )
    );
    assert_eq!(result.data, Some(json!({"partlyDone": true})));
}

#[tokio::test]
async fn only_of_programs_it_is_told_that_they_are_partly_done() {
    let bench = bench(|_, _| async { ToolResult::said("") });
    let result = bench.executor.call(context(), call("com.test.read", json!({"claims": true}))).await;
    assert_eq!(result.data, Some(json!({"a": 1})));
}

#[tokio::test(start_paused = true)]
async fn however_a_program_fails_its_result_tells_what_is_done() {
    for (kind, first) in [("panic", "The program crashed."), ("error", "undefined is not a function")] {
        let bench = bench(move |_, calls| async move {
            calls.call("com.test.add", json!({})).await;
            assert!(kind != "panic", "as told");
            failure()
        });
        let result = bench.run().await;
        assert_eq!(code(&result), Some(ErrorCode::ExecutionError));
        assert!(result.content.starts_with(first), "{}", result.content);
        assert!(result.content.ends_with("Done:\n- com.test.add {}"), "{}", result.content);
        assert!(!result.error.unwrap().retryable);
    }
    // One that has changed nothing may be tried again.
    let bench = bench(|_, calls| async move {
        calls.call("com.test.read", json!({})).await;
        failure()
    });
    let result = bench.run().await;
    assert!(result.error.unwrap().retryable && result.data.is_none());
    assert_eq!(result.say.as_deref(), Some("Sorry, that didn't work. Nothing was changed."));
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_a_program_is_not_run_again_and_what_it_did_is_known() {
    let bench = bench(|_, calls| async move {
        calls.call("com.test.add", json!({})).await;
        calls.call("com.test.add", json!({"ms": 500})).await;
        ToolResult::said("ran")
    });
    let mut running = Box::pin(bench.run());
    tokio::select! {
        biased;
        _ = &mut running => unreachable!("it takes longer"),
        () = sleep(ms(100)) => {}
    }
    // The process dies in the second call.
    drop(running);
    let begun = bench.log();
    assert_eq!(begun, ["begin p1/1", "end p1/1", "begin p1/2"]);
    let records = CallRecords { journal: Some(bench.journal.clone()), boot: [1; 16], ..CallRecords::default() };
    let again = Executor::with_records(bench.registry.clone(), bench.world.ports(), records);
    let result = again.call(context(), program()).await;
    assert_eq!(code(&result), Some(ErrorCode::ExecutionError));
    let account = "Done:\n- com.test.add {}\nUnknown:\n- com.test.add {\"ms\":500}";
    assert!(result.content.contains(account), "{}", result.content);
    assert!(result.say.unwrap().contains("Already done: Com test add."));
    assert_eq!(bench.log(), begun, "nothing is run again");
}

#[tokio::test(start_paused = true)]
async fn an_interruption_stops_a_program_between_its_calls() {
    let bench = bench(|context, calls| async move {
        calls.call("com.test.add", json!({"n": 1})).await;
        let read = calls.call("com.test.read", json!({"ms": 50_000}));
        let (read, change) = tokio::join!(read, calls.call("com.test.add", json!({"ms": 600, "n": 2})));
        assert!(context.cancel.is_cancelled() && read.is_error());
        drop(change);
        let next = calls.call("com.test.add", json!({"n": 3})).await;
        assert_eq!(code_of(&next), ErrorCode::Cancelled);
        std::future::pending().await
    });
    let context = context();
    let cancel = context.cancel.clone();
    let began = Instant::now();
    let interrupt = async {
        sleep(ms(500)).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(bench.executor.call(context, program()), interrupt);
    assert_eq!(code(&result), Some(ErrorCode::Cancelled));
    // The reading call was stopped, the change has come to its end, and none was begun.
    assert_eq!(began.elapsed(), ms(500 + CANCEL_MS_MAX));
    assert_eq!(bench.log(), ["begin p1/1", "end p1/1", "begin p1/2", "begin p1/3", "end p1/3"]);
    assert!(result.content.contains("Done:\n- com.test.add {\"n\":1}\n- com.test.add {\"ms\":600,\"n\":2}"));
    assert_eq!(result.say.as_deref(), Some("I stopped that. Already done: Add, twice."));
    assert_eq!(result.data, Some(json!({"partlyDone": true})));
}

#[tokio::test(start_paused = true)]
async fn a_change_that_outlasts_its_program_is_unknown_for_the_moment_and_comes_to_its_end() {
    let bench = bench(|_, calls| async move {
        calls.call("com.test.add", json!({"ms": 5_000})).await;
        ToolResult::said("ran")
    });
    let context = context();
    let cancel = context.cancel.clone();
    let began = Instant::now();
    let interrupt = async {
        sleep(ms(100)).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(bench.executor.call(context, program()), interrupt);
    assert_eq!(began.elapsed(), ms(100 + NESTED_SETTLE_MS_MAX));
    assert!(result.content.contains("Unknown:\n- com.test.add"), "{}", result.content);
    assert_eq!(bench.log(), ["begin p1/1"]);
    sleep(ms(5_000)).await;
    assert_eq!(bench.log(), ["begin p1/1", "end p1/1"]);
    let pages = bench.pages.0.lock().unwrap();
    assert!(pages.iter().any(|record| record.tool == "com.test.add" && record.error.is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_program_ends_with_the_program() {
    let bench = bench(|_, calls| async move {
        calls.call("com.test.delete", json!({})).await;
        std::future::pending().await
    });
    *bench.world.consent_after.lock().unwrap() = Duration::from_secs(20);
    let context = context();
    let cancel = context.cancel.clone();
    let interrupt = async {
        sleep(ms(500)).await;
        // Nobody asks again on behalf of a program that is gone.
        assert!(bench.journal.asked.lock().unwrap().is_empty());
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(bench.executor.call(context, program()), interrupt);
    assert_eq!(result.say.as_deref(), Some("I stopped that. Nothing was changed."));
    assert!(bench.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_program_that_ends_before_its_calls_is_kept_once_they_have_settled() {
    let kept = Arc::<Mutex<Vec<(CallOutcome, bool)>>>::default();
    let takes = kept.clone();
    let bench = bench(move |context, calls| {
        let takes = takes.clone();
        async move {
            calls.when_settled(move |kept| {
                takes.lock().unwrap().extend(kept.into_iter().map(|call| (call.outcome, call.begun)));
            });
            let asked = calls.call("com.test.delete", json!({}));
            // It is gone before anybody has looked at its call.
            context.cancel.run_until_cancelled(asked).await.map_or_else(failure, |_| unreachable!("nobody answers"))
        }
    });
    *bench.world.consent_after.lock().unwrap() = Duration::from_secs(20);
    let context = context();
    let cancel = context.cancel.clone();
    let interrupt = async {
        sleep(ms(500)).await;
        assert!(kept.lock().unwrap().is_empty());
        cancel.cancel();
    };
    let (_, ()) = tokio::join!(bench.executor.call(context, program()), interrupt);
    assert_eq!(*kept.lock().unwrap(), [(CallOutcome::NotBegun, false)]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_its_program_does_not_wait_for_comes_to_its_end_first() {
    let bench = bench(|_, calls| async move {
        let mut call = Box::pin(calls.call("com.test.add", json!({"ms": 300})));
        tokio::select! {
            biased;
            _ = &mut call => unreachable!("it takes longer"),
            () = sleep(ms(10)) => {}
        }
        ToolResult::said("ran")
    });
    let result = bench.run().await;
    assert_eq!((code(&result), bench.log().len()), (None, 2));
    assert!(result.notes.is_empty(), "{:?}", result.notes);
}

#[tokio::test]
async fn only_built_in_tools_that_are_not_read_only_run_programs() {
    for (source, flags, name) in [
        (Source::BuiltIn, READING, "test.reads"),
        (Source::Mcp("m".into()), CHANGING, "m.run"),
        (Source::App("com.a".into()), CHANGING, "com.a.run"),
    ] {
        let registry = Registry::new();
        let runner = Programs(Box::new(|context| {
            assert!(context.calls.is_none());
            Box::pin(async { ToolResult::said("ran") })
        }));
        registry
            .register(source, Scope::Global, vec![ToolSpec { name: name.into(), ..spec(flags) }], Arc::new(runner))
            .unwrap();
        let executor = Executor::new(Arc::new(registry), World::usual().ports());
        assert_eq!(code(&executor.call(context(), call(name, json!({}))).await), None);
    }
}

/// What is told of programs, and of which one.
#[derive(Debug, Default)]
struct Display(Mutex<Vec<(String, String)>>);

impl Watcher for Display {
    fn doing(&self, program: &str, line: String) {
        self.0.lock().unwrap().push((program.to_owned(), line));
    }
}

#[tokio::test]
async fn who_watches_a_program_is_told_each_call_of_a_tool_as_it_begins() {
    let bench = bench(|_, calls| async move {
        for name in ["com.test.read", "com.test.none", "com.test.add"] {
            calls.call(name, json!({})).await;
        }
        ToolResult::said("ran")
    });
    let display = Arc::new(Display::default());
    let context = CallContext { watcher: Some(display.clone()), ..context() };
    bench.executor.call(context.clone(), program()).await;
    let lines = ["Test: reading ...", "Test: adding ..."].map(|line| ("p1".to_owned(), line.to_owned()));
    assert_eq!(*display.0.lock().unwrap(), lines);
    // A call that is not of a program is no news: its title is shown.
    bench.executor.call(context, call("com.test.read", json!({}))).await;
    assert_eq!(display.0.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_tools_own_words_are_told_of_calls_of_programs_and_of_others() {
    let bench = bench(|_, calls| async move {
        calls.call("com.own.look", json!({"where": "your calendar"})).await;
        ToolResult::said("ran")
    });
    let schema = json!({"type": "object", "properties": {"where": {"type": "string"}}});
    let progress = Some("Looking into {where}".to_owned());
    let flags = ToolFlags { requires_approval: true, ..READING };
    let look = ToolSpec { name: "com.own.look".into(), input_schema: schema, progress, ..spec(flags) };
    let runner = Arc::<Called>::default();
    bench.registry.register(Source::App("com.own".into()), Scope::Global, vec![look], runner.clone()).unwrap();
    bench.executor.secrets().keep(&crate::secret::Secret::new("sk-planted"));
    let display = Arc::new(Display::default());
    let context = CallContext { watcher: Some(display.clone()), ..context() };
    let mut call = call("com.own.look", json!({"where": "sk-planted"}));
    call.id = "c1".into();
    bench.executor.call(context.clone(), program()).await;
    bench.executor.call(context.clone(), call.clone()).await;
    let lines = [("p1", "Own: looking into \"your calendar\" ..."), ("c1", "Own: looking into \"[secret]\" ...")];
    let lines = lines.map(|(call, line)| (call.to_owned(), line.to_owned()));
    assert_eq!(*display.0.lock().unwrap(), lines);
    // What the wearer has refused is not told as being done.
    *bench.world.consent.lock().unwrap() = ApprovalOutcome::Denied;
    bench.executor.call(context, call).await;
    assert_eq!((display.0.lock().unwrap().len(), runner.log.lock().unwrap().len()), (2, 4));
}

#[tokio::test]
async fn a_program_gets_more_of_a_result_than_a_model() {
    let bench = bench(|_, calls| async move {
        let result = calls.call("com.test.long", json!({})).await;
        assert_eq!(result.content.len(), 200_000);
        ToolResult { content: result.content, ..ToolResult::said("ran") }
    });
    let long = ToolSpec { name: "com.test.long".into(), ..spec(READING) };
    bench.registry.register(Source::App("com.long".into()), Scope::Global, vec![long], Arc::new(Long)).unwrap();
    // What it hands on is cut, and so is a call of the model's own.
    assert!(bench.run().await.content.len() <= crate::limits::CONTENT_BYTES_MAX);
    let direct = bench.executor.call(context(), call("com.test.long", json!({}))).await;
    assert!(direct.content.len() <= crate::limits::CONTENT_BYTES_MAX);
}

struct Long;

#[async_trait]
impl Runner for Long {
    async fn run(&self, _context: RunContext, _call: ToolCall) -> ToolResult {
        ToolResult { content: "long ".repeat(40_000), ..ToolResult::default() }
    }
}
