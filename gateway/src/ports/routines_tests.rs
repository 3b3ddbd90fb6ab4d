//! Routines in a store, without a sandbox: tests/it/routines.rs has one.

use gateway_core::vocab::{ErrorCode, ToolFlags};
use serde_json::json;
use tools::{
    code::{
        Sandbox,
        std::{StdHost, StdPolicy},
    },
    programs::{CallOutcome, RunCall, RunError},
    registry::{RunContext, Runner},
    secret::Secrets,
    workspace::NoWorkspace,
};

use super::*;
use crate::{
    ports::stores::SystemClock,
    store::damage_tests::{V2, copy_of},
};

/// A tool of a server.
struct Nothing;

#[async_trait]
impl Runner for Nothing {
    async fn run(&self, _: RunContext, _: gateway_core::vocab::ToolCall) -> gateway_core::vocab::ToolResult {
        gateway_core::vocab::ToolResult::said("done")
    }
}

struct Bench {
    store: Store,
    registry: Arc<Registry>,
    routines: StoredRoutines,
    _folder: tempfile::TempDir,
}

fn load(store: &Store, registry: &Arc<Registry>, with_engine: bool) -> StoredRoutines {
    let clock = || Arc::new(SystemClock);
    let library = StdHost::new(StdPolicy::default(), Arc::new(NoWorkspace), clock(), None, Secrets::default()).unwrap();
    let engine = with_engine.then(|| Engine::new(Sandbox::new("/nonexistent".as_ref()), library, Arc::default()));
    let runs = Arc::new(StoredRuns::load(store.clone(), clock()).unwrap());
    StoredRoutines::load((store.clone(), runs), clock(), (registry.clone(), engine), "en").unwrap()
}

fn bench() -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 64).unwrap();
    let registry = Arc::new(Registry::with_built_ins().unwrap());
    let routines = load(&store, &registry, true);
    Bench { store, registry, routines, _folder: folder }
}

impl Bench {
    /// A run that has called these tools as they are.
    fn record(&self, source: &str, tools: &[&str]) {
        let offered = self.registry.snapshot("ann", None);
        let calls = tools.iter().map(|tool| RunCall {
            tool: (*tool).to_owned(),
            arguments: "{}".into(),
            outcome: CallOutcome::Done,
            error: None,
            ms: 1,
            definition: Some(offered.find(tool).map_or(LIBRARY, |tool| tool.definition_id()).to_owned()),
            begun: true,
        });
        let wall_ms = crate::clock::wall_ms();
        self.routines.record("ann", Run { wall_ms, source: source.into(), calls: calls.collect(), ..Run::default() });
    }

    async fn keep(&self, run: u64, name: &str, phrases: &[&str]) -> Result<KeptRoutine, String> {
        let phrases = phrases.iter().map(|phrase| (*phrase).to_owned()).collect();
        let keep = Keep { run: WhichRun::Number(run), name: name.to_owned(), phrases };
        self.routines.keep("ann", None, keep).await.map_err(|error| match error {
            NotKept::Refused(why) => why,
            NotKept::Port(error) => panic!("{error}"),
        })
    }

    fn offered(&self, user: &str) -> Vec<String> {
        let snapshot = self.registry.snapshot(user, None);
        let of = snapshot.specs.iter().filter(|spec| spec.side == tools::code::routine::side());
        of.map(|spec| spec.name.clone()).collect()
    }

    fn server(&self, description: &str) {
        let spec = ToolSpec {
            name: "mail.send".into(),
            description: description.into(),
            input_schema: json!({"type": "object", "properties": {}}),
            flags: ToolFlags::default(),
            ..ToolSpec::default()
        };
        let source = Source::Mcp("mail".into());
        self.registry.register(source, Scope::Global, vec![spec], Arc::new(Nothing)).unwrap();
    }
}

#[tokio::test]
async fn versions_are_counted_bounded_and_restored_also_over_a_restart() {
    let bench = bench();
    for number in 1..=7 {
        bench.record(&format!("export default {number}"), &["note.list", "std.fs.writeFile"]);
        let phrases: &[&str] = if number == 1 { &["Run my morning summary.", "how is my morning"] } else { &[] };
        let kept = bench.keep(number, "morning", phrases).await.unwrap();
        assert_eq!((u64::from(kept.of.version), kept.phrases.len()), (number, 2));
        assert_eq!(kept.tools, ["note.list", "std.fs.writeFile"]);
    }
    assert_eq!((bench.offered("ann"), bench.offered("bob")), (vec!["routine.morning".to_owned()], vec![]));
    let kept = bench.routines.restore("ann", None, "morning", 4).await.unwrap();
    assert_eq!(kept.of.version, 8);
    assert!(bench.routines.restore("ann", None, "morning", 1).await.is_err(), "too old");
    let other = Arc::new(Registry::with_built_ins().unwrap());
    for routines in [&bench.routines, &load(&bench.store, &other, true)] {
        let all = routines.of("ann");
        let versions: Vec<_> = all["morning"].versions.iter().map(|one| (one.number, one.restores)).collect();
        assert_eq!(versions, [(4, None), (5, None), (6, None), (7, None), (8, Some(4))]);
        assert_eq!(all["morning"].versions[4].source, "export default 4");
    }
    assert!(other.snapshot("ann", None).find("routine.morning").is_some_and(|tool| tool.is_program()));
    assert_eq!(bench.routines.remove("ann", "morning").await, Ok(true));
    assert_eq!(bench.routines.remove("ann", "morning").await, Ok(false));
    assert!(bench.offered("ann").is_empty());
    assert!(bench.store.disk().rows(Kind::Routines, "ann", b"", 9).unwrap().is_empty());
}

#[tokio::test]
async fn what_is_taken_or_wrong_is_refused_with_words() {
    let bench = bench();
    bench.record("1", &["note.list"]);
    bench.keep(1, "morning", &["run my morning summary"]).await.unwrap();
    for (name, phrase, words) in [
        ("other", "Run my morning summary!", "routine.morning understands it"),
        ("other", "what time is it", "clock.time understands it"),
        ("other", "set a timer for ten minutes", "timer.set understands it"),
        ("other", "stop it", "the assistant itself"),
        ("other", "go ahead", "the assistant itself"),
        ("other", "hello", "2 to 12 words"),
        ("other", "run {x}", "only letters"),
        ("other", "i a", "would run nothing"),
        ("Other", "do all that", "morning-summary"),
    ] {
        let error = bench.keep(1, name, &[phrase]).await.unwrap_err();
        assert!(error.contains(words), "{phrase}: {error}");
    }
    let error = bench.keep(1, "other", &[]).await.unwrap_err();
    assert!(error.contains("needs a phrase"), "{error}");
    assert!(bench.keep(9, "other", &["do all that"]).await.unwrap_err().contains("no run 9"));
    // Its own phrases are no others'.
    assert_eq!(bench.keep(1, "morning", &["run my morning summary", "my morning please"]).await.unwrap().of.version, 2);
    assert_eq!(bench.offered("ann"), ["routine.morning"]);
    let error = RunError { code: ErrorCode::ExecutionError, message: "no".into(), line: Some(3), column: None };
    let wall_ms = crate::clock::wall_ms();
    bench.routines.record("ann", Run { wall_ms, source: "2".into(), error: Some(error), ..Run::default() });
    assert!(bench.keep(2, "other", &["do all that"]).await.unwrap_err().contains("failed in line 3"));
}

#[tokio::test]
async fn a_tool_that_has_changed_since_the_run_is_not_approved_with_it() {
    let bench = bench();
    bench.server("Sends a mail.");
    bench.record("1", &["mail.send"]);
    bench.keep(1, "mail", &["send my mail"]).await.unwrap();
    bench.server("Sends a mail to everybody.");
    assert!(bench.keep(1, "mail", &[]).await.unwrap_err().contains("mail.send is gone or has changed"));
    let stored = bench.routines.of("ann")["mail"].versions[0].tools["mail.send"].clone();
    let offered = bench.registry.snapshot("ann", None);
    assert_ne!(offered.find("mail.send").unwrap().definition_id(), stored);
    bench.server("Sends a mail.");
    let offered = bench.registry.snapshot("ann", None);
    assert_eq!(offered.find("mail.send").unwrap().definition_id(), stored);
}

#[tokio::test]
async fn erasing_and_switching_off() {
    let bench = bench();
    bench.record("1", &[]);
    bench.keep(1, "one", &["do all that"]).await.unwrap();
    let other = Arc::new(Registry::with_built_ins().unwrap());
    let off = load(&bench.store, &other, false);
    assert!(other.snapshot("ann", None).find("routine.one").is_none());
    assert_eq!(off.of("ann").len(), 1, "it is kept");
    let keep = Keep { run: WhichRun::Number(1), name: "one".into(), phrases: Vec::new() };
    let refused = off.keep("ann", None, keep).await;
    assert!(matches!(refused, Err(NotKept::Refused(why)) if why.contains("[code]")));
    bench.store.erase(store::Scope::User { user: "ann".into(), devices: false }).await.unwrap();
    bench.routines.erase("ann");
    assert!(bench.offered("ann").is_empty() && bench.routines.of("ann").is_empty());
    assert!(bench.routines.runs.list("ann").unwrap().is_empty());
    assert!(load(&bench.store, &other, true).of("ann").is_empty());
}

/// What is stored stays readable.
#[test]
fn a_routine_has_the_stored_form_that_it_always_had() {
    let stored = r#"{"name":"n","versions":[{"number":2,"kept_wall_ms":5,"source":"1","phrases":["a b"],"tools":{"t":"d"},"run":7,"restores":1}]}"#;
    let routine: Stored = serde_json::from_str(stored).unwrap();
    assert_eq!(serde_json::to_string(&routine).unwrap(), stored);
}

/// Rows of the golden store of version 2. They are of a later year than this test, so that they are not too old.
const GOLDEN_RUNS: [&str; 2] = [
    r#"{"wall_ms":4000000000000,"call":"c1","device":"g","session":"s","turn":7,"source":"const a = 1;\nexport default a;","calls":[{"tool":"note.list","arguments":"{}","outcome":"done","ms":3,"definition":"d1","begun":true},{"tool":"std.fs.writeFile","arguments":"{\"path\":\"a\"}","outcome":"failed","error":"full","ms":1,"definition":"library","begun":true}],"output":["x","y"],"result":{"a":1},"took_ms":9,"again_of":4,"routine":{"name":"morning","version":2}}"#,
    r#"{"wall_ms":4000000000001,"call":"c2","source":"throw 1;","calls":[{"tool":"note.add","arguments":"{}","outcome":"unknown","ms":0,"begun":true}],"output":[],"left_out":"z","error":{"code":"EXECUTION_ERROR","message":"m","line":2,"column":3},"took_ms":0,"cut_off":true}"#,
];
const GOLDEN_ROUTINE: &str = r#"{"name":"morning","versions":[{"number":2,"kept_wall_ms":4000000000000,"source":"export default 1;","phrases":["run my morning summary"],"tools":{"note.list":"d1"},"run":1},{"number":3,"kept_wall_ms":4000000000002,"source":"export default 2;","phrases":["run my morning summary","how is my morning"],"tools":{"note.list":"d1","std.fs.writeFile":"library"},"run":1,"restores":1}]}"#;

/// What a gateway of version 2 has written is read by this one, and would be written so again.
#[tokio::test]
async fn runs_and_routines_have_the_stored_form_that_they_always_had() {
    let folder = copy_of(V2);
    let store = Store::open(folder.path(), 16).unwrap();
    let registry = Arc::new(Registry::with_built_ins().unwrap());
    let routines = load(&store, &registry, true);
    let runs = routines.runs.list("ann").unwrap();
    let written: Vec<String> = runs.iter().rev().map(|run| serde_json::to_string(run).unwrap()).collect();
    assert_eq!(written, GOLDEN_RUNS);
    assert_eq!(runs.iter().map(|run| run.id).collect::<Vec<_>>(), [2, 1]);
    let kept = routines.of("ann");
    assert_eq!(serde_json::to_string(&kept["morning"]).unwrap(), GOLDEN_ROUTINE);
    let spec = registry.snapshot("ann", None).find("routine.morning").expect("it is offered").spec.clone();
    assert_eq!(spec.phrases[0].templates, ["run my morning summary", "how is my morning"]);
    store.settled().await.unwrap();
    assert_eq!(store.disk().damaged(), 0);
}
