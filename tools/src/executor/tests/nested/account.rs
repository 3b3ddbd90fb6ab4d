//! The account of a program: effects of the standard library, arguments after a restart, and what a routine may call.

use std::collections::BTreeMap;

use super::*;
use crate::{
    programs::{CallOutcome, Frozen, LIBRARY},
    secret::REDACTED,
};

const WRITE: &str = "std.fs.writeFile";

fn failed(code: ErrorCode) -> Option<gateway_core::vocab::ToolError> {
    Some(gateway_core::vocab::ToolError { code, message: "no".into(), retryable: false })
}

#[tokio::test(start_paused = true)]
async fn effects_of_the_library_are_in_the_account() {
    let bench = bench(|_, calls| async move {
        calls.effect(WRITE, &json!({"path": "a"}), true).await.unwrap().end(None);
        calls.effect("std.http.request", &json!({"url": "u"}), false).await.unwrap().end(None);
        calls
            .effect("std.fs.remove", &json!({"path": "b"}), true)
            .await
            .unwrap()
            .end(failed(ErrorCode::ExecutionError));
        calls
            .effect("std.http.request", &json!({"method": "POST"}), true)
            .await
            .unwrap()
            .end(failed(ErrorCode::Timeout));
        // It is given up in the middle.
        drop(calls.effect("std.fs.mkdir", &json!({"path": "c"}), true).await.unwrap());
        calls.call("com.test.add", json!({})).await;
        let kept: Vec<_> = calls.kept().into_iter().map(|call| (call.tool, call.outcome, call.begun)).collect();
        let of = |tool: &str, outcome| (tool.to_owned(), outcome, true);
        let expected = [
            of(WRITE, CallOutcome::Done),
            of("std.http.request", CallOutcome::Done),
            of("std.fs.remove", CallOutcome::Failed),
            of("std.http.request", CallOutcome::Unknown),
            of("std.fs.mkdir", CallOutcome::Unknown),
            of("com.test.add", CallOutcome::Done),
        ];
        assert_eq!(kept, expected);
        failure()
    });
    let result = bench.run().await;
    let account = "Done:\n- std.fs.writeFile {\"path\":\"a\"}\n- com.test.add {}\nUnknown:\n- std.http.request \
                   {\"method\":\"POST\"}\n- std.fs.mkdir {\"path\":\"c\"}\nFailed:\n- std.fs.remove {\"path\":\"b\"}: no";
    assert!(result.content.ends_with(account), "{}", result.content);
    let said = result.say.unwrap();
    assert!(
        said.contains("Already done: Write a file; Add.") && said.contains("Send a request; Make a folder"),
        "{said}"
    );
    // The program, its call, and what changes something.
    assert_eq!(bench.journal.begun.load(Ordering::SeqCst), 6);
    assert_eq!(bench.log(), ["begin p1/6", "end p1/6"]);
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_effects_and_arguments_are_known_without_secrets() {
    const PLANTED: &str = "sk-planted-4711";
    let bench = bench(|_, calls| async move {
        calls
            .effect(WRITE, &json!({"path": "a", "text": format!("{}{PLANTED}", "x".repeat(150))}), true)
            .await
            .unwrap()
            .end(None);
        let open = calls.effect("std.fs.remove", &json!({"path": "b"}), true).await.unwrap();
        calls.call("com.test.add", json!({"key": PLANTED, "ms": 500})).await;
        open.end(None);
        ToolResult::said("ran")
    });
    bench.executor.secrets().keep(&Secret::new(PLANTED));
    let mut running = Box::pin(bench.run());
    tokio::select! {
        biased;
        _ = &mut running => unreachable!("it takes longer"),
        () = sleep(ms(100)) => {}
    }
    drop(running);
    assert!(bench.journal.made.lock().unwrap().iter().all(|intent| !intent.arguments.contains("planted")));
    let records = CallRecords { journal: Some(bench.journal.clone()), boot: [1; 16], ..CallRecords::default() };
    let again = Executor::with_records(bench.registry.clone(), bench.world.ports(), records);
    let result = again.call(context(), program()).await;
    let content = &result.content;
    assert!(content.contains("Done:\n- std.fs.writeFile {\"path\":\"a\",\"text\":\"xxx"), "{content}");
    assert!(content.contains("Unknown:\n- std.fs.remove {\"path\":\"b\"}\n- com.test.add"), "{content}");
    assert!(content.contains(REDACTED) && !content.contains("sk-planted") && !content.contains("4711"), "{content}");
    assert!(result.say.unwrap().contains("Already done: Write a file."));
}

#[tokio::test(start_paused = true)]
async fn no_effect_begins_once_the_program_is_being_stopped_or_cannot_be_recorded() {
    let seen = Arc::<Mutex<Option<ErrorCode>>>::default();
    let late = seen.clone();
    let stopped = bench(move |context, calls| {
        let late = late.clone();
        async move {
            calls.effect(WRITE, &json!({}), true).await.unwrap().end(None);
            context.cancel.cancelled().await;
            sleep(ms(50)).await;
            *late.lock().unwrap() = calls.effect(WRITE, &json!({}), true).await.err().map(|error| error.code);
            failure()
        }
    });
    let context = context();
    let cancel = context.cancel.clone();
    let stopping = async {
        sleep(ms(100)).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(stopped.executor.call(context, program()), stopping);
    assert!(result.content.ends_with("Done:\n- std.fs.writeFile {}"), "{}", result.content);
    assert_eq!(*seen.lock().unwrap(), Some(ErrorCode::Cancelled));
    struct Fill(Arc<Memory>);
    #[async_trait]
    impl Runner for Fill {
        async fn run(&self, _: RunContext, _: ToolCall) -> ToolResult {
            *self.0.failure.lock().unwrap() = Some(PortError::Full("disk".into()));
            ToolResult::said("full")
        }
    }
    let full = bench(|_, calls| async move {
        calls.call("com.fill.disk", json!({})).await;
        let error = calls.effect(WRITE, &json!({}), true).await.unwrap_err();
        assert!(error.message.starts_with("Nothing was changed"), "{error:?}");
        // What changes nothing needs no record.
        calls.effect("std.http.request", &json!({}), false).await.unwrap().end(None);
        let kept = calls.kept();
        assert_eq!((kept[1].outcome, kept[1].begun), (CallOutcome::Failed, false));
        ToolResult::said("ran")
    });
    let fill = ToolSpec { name: "com.fill.disk".into(), ..spec(READING) };
    let (source, runner) = (Source::App("com.fill".into()), Arc::new(Fill(full.journal.clone())));
    full.registry.register(source, Scope::Global, vec![fill], runner).unwrap();
    assert_eq!(code(&full.run().await), None);
}

#[tokio::test(start_paused = true)]
async fn a_frozen_program_calls_what_it_may_as_it_was() {
    let bench = bench(|context, calls| async move {
        let definition = |tool: &str| context.offered.find(tool).unwrap().definition_id().to_owned();
        let tools = BTreeMap::from([
            ("com.test.add".to_owned(), definition("com.test.add")),
            ("com.test.read".to_owned(), "another one".to_owned()),
            (WRITE.to_owned(), LIBRARY.to_owned()),
        ]);
        calls.freeze(Frozen { routine: "morning".into(), tools });
        // The first one counts.
        calls.freeze(Frozen::default());
        assert_eq!(code(&calls.call("com.test.add", json!({})).await), None);
        for (tool, words) in
            [("com.test.read", "com.test.read has changed"), ("com.test.brief", "may not call com.test.brief")]
        {
            let result = calls.call(tool, json!({})).await;
            assert_eq!(code(&result), Some(ErrorCode::PermissionDenied));
            assert!(
                result.content.contains(words) && result.content.contains("keep that run as morning"),
                "{result:?}"
            );
        }
        calls.effect(WRITE, &json!({}), true).await.unwrap().end(None);
        let refused = calls.effect("std.fs.remove", &json!({}), true).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::PermissionDenied);
        let kept = calls.kept();
        assert_eq!(kept.iter().filter(|call| call.begun).count(), 2);
        assert_eq!(kept[0].definition.as_deref(), Some(definition("com.test.add").as_str()));
        ToolResult::said("ran")
    });
    assert_eq!(code(&bench.run().await), None);
    assert_eq!(bench.log(), ["begin p1/1", "end p1/1"]);
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_changes_while_the_program_runs_is_noticed() {
    let bench = Arc::new(bench(|context, calls| async move {
        let definition = context.offered.find("com.test.add").unwrap().definition_id().to_owned();
        calls.freeze(Frozen {
            routine: "morning".into(),
            tools: BTreeMap::from([("com.test.add".to_owned(), definition)]),
        });
        calls.call("com.test.add", json!({"ms": 200})).await;
        let result = calls.call("com.test.add", json!({})).await;
        assert_eq!(code(&result), Some(ErrorCode::PermissionDenied));
        ToolResult::said("ran")
    }));
    let changing = async {
        sleep(ms(100)).await;
        let changed = ToolSpec { name: "com.test.add".into(), description: "Sends all away.".into(), ..spec(CHANGING) };
        let source = Source::App("com.test".into());
        bench
            .registry
            .register_named(source, Scope::Global, vec![(changed, "add".into())], bench.called.clone())
            .unwrap();
    };
    let (result, ()) = tokio::join!(bench.run(), changing);
    assert_eq!(code(&result), None);
    assert_eq!(bench.log(), ["begin p1/1", "end p1/1"]);
}
