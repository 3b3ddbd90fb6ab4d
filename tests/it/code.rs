//! Programs of models in the sandbox of the real executable.

use std::{
    os::unix::fs::PermissionsExt as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};
use tokio_util::sync::CancellationToken;
use tools::code::{CALLS_AT_ONCE_MAX, CALLS_MAX, Ended, Host, HostError, Limits, Outcome, Program, Sandbox};

use crate::process::binary;

const TRAINS: &str = "import { call } from '@lorgnette/bridge';
export const trains = Object.freeze({
  get: (params = {}) => call('@capabilities/trains', 'get', params),
  wait: (params = {}) => call('@capabilities/trains', 'wait', params),
  fail: (params = {}) => call('@capabilities/trains', 'fail', params),
});";
const IMPORT: &str = "import { trains } from '@capabilities/trains';";

/// A host whose functions the tests control.
struct Trains {
    calls: Mutex<Vec<(String, String, Value)>>,
    lines: Mutex<Vec<String>>,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    /// A call of `wait` has begun.
    begun: Notify,
    /// Calls of `wait` return when so many of them have begun.
    together: Barrier,
}

impl Trains {
    fn new(together: usize) -> Self {
        Self {
            calls: Mutex::default(),
            lines: Mutex::default(),
            at_once: AtomicUsize::default(),
            most_at_once: AtomicUsize::default(),
            begun: Notify::new(),
            together: Barrier::new(together),
        }
    }

    fn count(&self) -> usize {
        self.calls.lock().unwrap().len()
    }
}

#[async_trait]
impl Host for Trains {
    async fn call(&self, module: &str, function: &str, arguments: Value) -> Result<Value, HostError> {
        self.calls.lock().unwrap().push((module.to_owned(), function.to_owned(), arguments.clone()));
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        if function == "wait" {
            self.begun.notify_one();
            self.together.wait().await;
        }
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        match function {
            "fail" => Err(HostError { code: "denied".into(), message: "the wearer said no".into(), retryable: false }),
            _ if arguments["huge"] == true => Ok(Value::from("x".repeat(2_000_000))),
            _ => Ok(arguments),
        }
    }

    fn log(&self, line: &str) {
        self.lines.lock().unwrap().push(line.to_owned());
    }
}

fn program(source: impl Into<String>) -> Program {
    Program { source: source.into(), modules: vec![("@capabilities/trains".into(), TRAINS.into())], task: None }
}

fn limits() -> Limits {
    Limits { compute: Duration::from_secs(20), wall: Duration::from_secs(60) }
}

async fn run_with(sandbox: &Sandbox, source: &str) -> Outcome {
    sandbox.run(program(source), &Trains::new(1), limits(), &CancellationToken::new()).await
}

async fn run(source: &str) -> Outcome {
    run_with(&Sandbox::new(&binary()), source).await
}

fn message(outcome: &Outcome) -> &str {
    outcome.error.as_ref().map_or("", |error| error.message.as_str())
}

#[tokio::test]
async fn a_program_prints_calls_and_returns() {
    let sandbox = Sandbox::new(&binary());
    sandbox.warm_up().unwrap();
    let host = Trains::new(1);
    let source = format!(
        "{IMPORT}
        interface Train {{ to: string; at?: number }}
        const all: Train[] = await Promise.all(['a', 'b'].map((to) => trains.get({{ to }}) as Promise<Train>));
        console.log('found', all.length);
        try {{ await trains.fail(); }} catch (e) {{ print((e as ToolError).code, e.message); }}
        export default all.map((train) => train.to);"
    );
    for _ in 0..3 {
        let outcome = sandbox.run(program(&source), &host, limits(), &CancellationToken::new()).await;
        assert_eq!(outcome.error, None);
        assert_eq!((outcome.ended, outcome.result.clone()), (Ended::Finished, Some(json!(["a", "b"]))));
        assert_eq!(outcome.logs, ["found 2", "denied the wearer said no"]);
        assert_eq!(outcome.content(), "found 2\ndenied the wearer said no\n[\"a\",\"b\"]");
    }
    assert_eq!(host.count(), 9);
    assert_eq!(*host.lines.lock().unwrap(), ["found 2", "denied the wearer said no"].repeat(3));
    let first = host.calls.lock().unwrap()[0].clone();
    assert_eq!(first, ("@capabilities/trains".to_owned(), "get".to_owned(), json!({"to": "a"})));
}

#[tokio::test]
async fn errors_have_their_place_in_typescript() {
    let outcome = run("type A = { b: string };\n\nconst a = undefined as unknown as A;\nprint(a.b);\n").await;
    assert_eq!(outcome.ended, Ended::Failed);
    let error = outcome.error.clone().unwrap();
    assert!(error.message.starts_with("TypeError: "), "{error:?}");
    assert_eq!(error.line, Some(4));
    assert!(outcome.content().starts_with("Error in line 4, column "), "{}", outcome.content());
    let outcome = run(&format!("{IMPORT}\n\nconst t = trains.get();\nprint(t.name);")).await;
    assert!(message(&outcome).contains("write \"await get(...)\""), "{outcome:?}");
}

#[tokio::test]
async fn calls_run_eight_at_a_time() {
    let host = Trains::new(CALLS_AT_ONCE_MAX);
    let source = format!(
        "{IMPORT}
        const all = await Promise.all(Array.from({{ length: 64 }}, (_, n) => trains.wait({{ n }})));
        export default all.map((one) => one.n);"
    );
    let outcome = Sandbox::new(&binary()).run(program(source), &host, limits(), &CancellationToken::new()).await;
    assert_eq!(outcome.result, Some(json!((0..64).collect::<Vec<_>>())), "{outcome:?}");
    assert_eq!(host.most_at_once.load(Ordering::SeqCst), CALLS_AT_ONCE_MAX);
}

#[tokio::test]
async fn what_is_contained() {
    let sandbox = Sandbox::new(&binary());
    let table: &[(&str, Ended, &str)] = &[
        ("for (;;) {}", Ended::TimedOut, "computed for too long"),
        ("/^(a+)+$/.test('a'.repeat(50) + '!');", Ended::TimedOut, "computed for too long"),
        ("new Uint8Array(16 * 1024 * 1024);", Ended::OutOfMemory, "16 MiB"),
        ("const all = []; for (;;) all.push('x'.repeat(1e6) + all.length);", Ended::OutOfMemory, "16 MiB"),
        ("new Uint8Array(4 * 1024 ** 3);", Ended::Failed, "RangeError"),
        ("const f = (n) => f(n + 1) + 1; f(0);", Ended::Failed, "call stack"),
        ("await new Promise(() => {});", Ended::Failed, "nothing settles"),
        ("import fs from 'node:fs';", Ended::Failed, "node:fs"),
        ("await import('https://example.com/a.js');", Ended::Failed, "https://example.com/a.js"),
        ("(void 0).constructor;", Ended::Failed, "TypeError"),
        ("enum A { B }", Ended::Failed, "enum"),
        ("Function('return import(\"node:os\")')().then(print);", Ended::Failed, "node:os"),
    ];
    for (source, ended, words) in table {
        let compute = if *ended == Ended::TimedOut { Duration::from_millis(300) } else { limits().compute };
        let limits = Limits { compute, ..limits() };
        let host = Trains::new(1);
        let outcome = sandbox.run(program(*source), &host, limits, &CancellationToken::new()).await;
        assert_eq!(outcome.ended, *ended, "{source}: {outcome:?}");
        assert!(message(&outcome).contains(words), "{source}: {outcome:?}");
    }
    let deep = run_with(&sandbox, &"(".repeat(60_000)).await;
    assert!(matches!(deep.ended, Ended::Failed | Ended::Crashed), "{deep:?}");
    // The next one is as well as the first.
    assert_eq!(run_with(&sandbox, "export default 1;").await.result, Some(json!(1)));
}

#[tokio::test]
async fn floods_are_cut() {
    let sandbox = Sandbox::new(&binary());
    let outcome = run_with(&sandbox, "for (let n = 0; n < 100; n += 1) print('x'.repeat(1024 * 1024));").await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert!(outcome.logs.iter().map(String::len).sum::<usize>() < 70_000);
    assert!(outcome.content().len() <= 8 * 1024 && outcome.content().contains("bytes are cut"));
    let outcome = run_with(&sandbox, "export default 'x'.repeat(5000000);").await;
    assert_eq!(outcome.cut.as_ref().map(|(_, bytes)| *bytes), Some(5_000_002));
    assert!(outcome.content().contains("bytes are cut"));

    let host = Trains::new(1);
    let source = format!(
        "{IMPORT}
        const all = await Promise.allSettled(Array.from({{ length: 10000 }}, () => trains.get()));
        export default [all.filter((one) => one.status === 'fulfilled').length, all[9999].reason.message];"
    );
    let outcome = sandbox.run(program(source), &host, limits(), &CancellationToken::new()).await;
    assert_eq!(outcome.result.unwrap()[0], CALLS_MAX);
    assert_eq!(host.count(), CALLS_MAX as usize);
    let huge = run_with(&sandbox, &format!("{IMPORT}\nawait trains.get({{ huge: true }});")).await;
    assert!(message(&huge).contains("result_too_large"), "{huge:?}");
}

#[tokio::test]
async fn time_in_calls_is_no_computing_time() {
    let host = Arc::new(Trains::new(2));
    let compute = Duration::from_millis(500);
    let running = {
        let (host, cancel) = (Arc::clone(&host), CancellationToken::new());
        let source = format!("{IMPORT}\nexport default await trains.wait({{ asked: true }});");
        async move {
            let limits = Limits { compute, wall: Duration::from_secs(60) };
            Sandbox::new(&binary()).run(program(source), &*host, limits, &cancel).await
        }
    };
    let later = async {
        host.begun.notified().await;
        // Longer than the program may compute: the wearer thinks about it.
        tokio::time::timeout(3 * compute, std::future::pending::<()>()).await.unwrap_err();
        host.together.wait().await;
    };
    let (outcome, ()) = tokio::join!(running, later);
    assert_eq!(outcome.result, Some(json!({"asked": true})), "{outcome:?}");
    // The whole run has its limit all the same.
    let limits = Limits { compute, wall: Duration::from_secs(2) };
    let never = Trains::new(2);
    let source = format!("{IMPORT}\nawait trains.wait();");
    let outcome = Sandbox::new(&binary()).run(program(source), &never, limits, &CancellationToken::new()).await;
    assert_eq!(outcome.ended, Ended::TimedOut, "{outcome:?}");
}

#[tokio::test]
async fn a_cancelled_program_is_killed() {
    let sandbox = Sandbox::new(&binary());
    let (host, cancel) = (Trains::new(2), CancellationToken::new());
    let source = format!("{IMPORT}\nprint('before');\nawait trains.wait();");
    let run = sandbox.run(program(source), &host, limits(), &cancel);
    let (outcome, ()) = tokio::join!(run, async {
        host.begun.notified().await;
        cancel.cancel();
    });
    assert_eq!((outcome.ended, outcome.logs), (Ended::Cancelled, vec!["before".to_owned()]));
    let outcome = sandbox.run(program("export default 1;"), &host, limits(), &cancel).await;
    assert_eq!(outcome.ended, Ended::Cancelled);
}

#[tokio::test]
async fn calls_that_have_begun_are_finished_when_their_program_fails() {
    let host = Trains::new(2);
    let source = format!("{IMPORT}\ntrains.wait();\nawait trains.get();\nthrow new Error('late');");
    let sandbox = Sandbox::new(&binary());
    let cancel = CancellationToken::new();
    let run = sandbox.run(program(source), &host, limits(), &cancel);
    let (outcome, _) = tokio::join!(run, host.together.wait());
    assert_eq!((outcome.ended, message(&outcome)), (Ended::Failed, "Error: late"));
    assert_eq!(host.at_once.load(Ordering::SeqCst), 0);
}

/// An executable that greets, and then does what a program might that has taken over its process.
async fn taken_over(script: &str) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("child");
    let greeting = r#"printf '%s\n' '{"hello":{"version":1,"landlock":"full","seccomp":"full"}}' >&0; read -r line"#;
    let mut words = String::from("#!/bin/sh\n");
    if !script.starts_with("# no greeting") {
        words.push_str(greeting);
    }
    std::fs::write(&path, format!("{words}\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    // The whole run's limit is beyond that of the test: what computes too long has to end for that.
    let limits = Limits { compute: Duration::from_millis(500), wall: Duration::from_secs(600) };
    Sandbox::new(&path).run(program("1"), &Trains::new(1), limits, &CancellationToken::new()).await
}

#[tokio::test]
async fn forged_lines_end_the_run() {
    let table = [
        (r#"echo 'nonsense' >&0"#, "a line is no message"),
        (r#"echo '{"id":7,"call":{"module":"m","function":"f","arguments":{}}}' >&0"#, "call 7 came as number 1"),
        (r#"echo '{"log":"x","done":{}}' >&0"#, "neither one message"),
        (r#"echo '{"log":"x","user":"root"}' >&0"#, "unknown field"),
        (
            r#"while :; do printf 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' >&0; done"#,
            "a line has more",
        ),
        (r#"while :; do echo '{"log":""}' >&0; done"#, "can print"),
    ];
    for (script, words) in table {
        let outcome = taken_over(script).await;
        assert_eq!(outcome.ended, Ended::Crashed, "{script}: {outcome:?}");
        assert!(message(&outcome).contains(words), "{script}: {outcome:?}");
    }
}

#[tokio::test]
async fn children_that_hang_or_break_off() {
    let outcome = taken_over("while :; do :; done").await;
    assert_eq!(outcome.ended, Ended::TimedOut, "{outcome:?}");
    let outcome = taken_over("exit 3").await;
    assert_eq!(outcome.ended, Ended::Crashed, "{outcome:?}");
    assert!(message(&outcome).contains("exit status: 3"), "{outcome:?}");
    let outcome = taken_over("kill -SYS $$").await;
    assert!(message(&outcome).contains("what no program may do"), "{outcome:?}");
    let outcome = taken_over("# no greeting\nexit 1").await;
    assert_eq!(outcome.ended, Ended::Unavailable, "{outcome:?}");
    let missing = Sandbox::new(std::path::Path::new("/nonexistent/lorgnette"));
    assert_eq!(run_with(&missing, "1").await.ended, Ended::Unavailable);
}

#[tokio::test]
async fn by_hand_it_says_what_it_is_for() {
    let words = crate::process::fails(&["code-sandbox"]).await;
    assert!(words.contains("no use by hand"), "{words}");
}
