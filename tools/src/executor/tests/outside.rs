//! Tests of external calls: an app that has to be started, secrets, attachments, a server that has not answered yet;
//! and that a call has exactly one result, whatever the tool does.

use proptest::prelude::*;

use super::*;

/// An app host that reports what it was asked.
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
        let fixture = fixture_of(with_app, done(), Limits::default(), |ports| Ports { apps, ..ports });
        let result = fixture.executor.call(context(), good()).await;
        assert_eq!(code(&result), wanted);
        let runs = fixture.runner.seen.lock().unwrap().clone();
        assert_eq!(runs.first().cloned(), seen.map(|activated| ("tool".to_owned(), activated)));
        // A call that never began leaves no intent: it may be made again.
        assert_eq!(fixture.journal.begun.load(Ordering::SeqCst), u32::from(seen.is_some()));
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
    // The result violates its schema, so that an error is reported about it.
    let picky = ToolSpec { output_schema: Some(json!({"maxProperties": 0})), ..spec(CHANGING) };
    let fixture = fixture_of(picky, Act::Answer(leak), Limits::default(), |ports| ports);
    fixture.executor.secrets().keep(&secret);
    let result = fixture.executor.call(context(), good()).await;
    let journal = fixture.journal.rows.lock().unwrap().values().cloned().collect::<Vec<_>>();
    let records = fixture.pages.0.lock().unwrap().clone();
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
    // Ordinary words are not redacted, even if one was chosen as a password.
    fixture.executor.secrets().keep(&Secret::new("key"));
    assert!(
        fixture
            .executor
            .call(CallContext { session: Some("t".into()), ..context() }, good())
            .await
            .content
            .contains("key")
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
    let fixture = fixture(READING, Act::Answer(answer));
    let result = fixture.executor.call(context(), good()).await;
    assert_eq!(result.attachments.len(), 2);
    let wanted = format!("Look: data:image/png;base64,[binary data left out] and {} stays.", "-".repeat(300));
    assert_eq!(result.content, wanted);
    assert!(result.notes.iter().any(|note| note.contains("too large")), "{:?}", result.notes);
}

/// An in-memory catalogue store: sets, and the last reserved revision.
#[derive(Default)]
struct Shelf(Mutex<Vec<StoredSet>>, AtomicU64);

impl CatalogueStore for Shelf {
    fn load(&self) -> Result<Vec<StoredSet>, PortError> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn save(&self, set: StoredSet) {
        self.forget(&set.source, &set.scope);
        self.0.lock().unwrap().push(set);
    }

    fn last_revision(&self) -> Result<u64, PortError> {
        Ok(self.1.load(Ordering::SeqCst))
    }

    fn reserve_revisions(&self, last: u64) {
        self.1.store(last, Ordering::SeqCst);
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
    assert_eq!(before.keep_in(shelf.clone(), |_, _| true), Ok(0));
    offer(&before, runner());
    let with_device = before.register(Source::Device("d".into()), Scope::Global, vec![], runner());
    assert!(with_device.is_ok());
    assert_eq!(shelf.0.lock().unwrap().len(), 1, "what a device offers is not kept");

    let registry = Arc::new(Registry::new());
    assert_eq!(registry.keep_in(shelf.clone(), |_, _| true), Ok(1));
    let executor = Executor::new(registry.clone(), World::usual().ports());
    assert_eq!(executor.offered("ada", Some("d"), ClientClass::Internal).1.len(), 1);
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
    assert_eq!(other.keep_in(shelf.clone(), |_, _| false), Ok(0));
    assert!(shelf.0.lock().unwrap().is_empty(), "a server that is not configured any more is forgotten");
}

#[test]
fn what_the_operator_has_set_is_not_kept_as_what_the_server_declared() {
    let shelf = Arc::<Shelf>::default();
    let runner = || {
        Arc::new(Scripted {
            act: Mutex::new(done()),
            started: AtomicU32::new(0),
            cancelled: Arc::default(),
            seen: Mutex::default(),
        })
    };
    let all = [ClientClass::Internal, ClientClass::Copilot, ClientClass::External];
    let seen_by = |registry: &Arc<Registry>| {
        let executor = Executor::new(registry.clone(), World::usual().ports());
        all.into_iter().filter(|client| !executor.offered("ada", None, *client).1.is_empty()).collect::<Vec<_>>()
    };
    let declared = || ToolSpec { clients: Some(vec![ClientClass::Copilot]), ..spec(READING) };
    let configured = [("com.test.tool".to_owned(), vec![ClientClass::Internal]), ("com.test.tol".to_owned(), vec![])];
    let before = Arc::new(Registry::with_clients(configured.into()));
    assert_eq!(before.keep_in(shelf.clone(), |_, _| true), Ok(0));
    assert_eq!(before.configured_but_absent(), ["com.test.tol", "com.test.tool"]);
    let named = vec![(declared(), "tool".to_owned())];
    before.register_named(Source::Mcp("m".into()), Scope::Global, named, runner()).unwrap();
    assert_eq!(before.configured_but_absent(), ["com.test.tol"]);
    assert_eq!(seen_by(&before), [ClientClass::Internal]);
    assert_eq!(shelf.0.lock().unwrap()[0].tools[0].0.clients, declared().clients);

    // After a restart, as it is configured then; the server has not answered yet.
    for (configured, seen) in
        [(None, vec![ClientClass::Copilot]), (Some(vec![]), vec![]), (Some(all.to_vec()), all.to_vec())]
    {
        let clients = configured.map(|classes| ("com.test.tool".to_owned(), classes)).into_iter().collect();
        let registry = Arc::new(Registry::with_clients(clients));
        assert_eq!(registry.keep_in(shelf.clone(), |_, _| true), Ok(1));
        assert_eq!(seen_by(&registry), seen);
    }
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
            let fixture = fixture(flags, act);
            *fixture.world.consent.lock().unwrap() = outcome;
            if store_full {
                *fixture.journal.failure.lock().unwrap() = Some(PortError::Full("no room".into()));
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
                result = tokio::time::timeout(Duration::from_secs(10), fixture.executor.call(context, good())) => {
                    result.expect("a call ends")
                }
                () = &mut interrupt => unreachable!(),
            };
            assert!(!result.content.is_empty() && result.content.len() <= CONTENT_BYTES_MAX);
            assert!(result.say.as_ref().is_none_or(|say| say.len() <= SAY_BYTES_MAX));
            assert!(result.data.as_ref().is_none_or(|data| data.to_string().len() <= DATA_BYTES_MAX));
            assert!(result.attachments.len() <= ATTACHMENTS_MAX);
            code(&result);
            let pages = fixture.pages.0.lock().unwrap().len();
            assert!(if persistent { pages == 1 } else { pages <= usize::from(requires_approval) }, "{pages}");
            let asked = requires_approval && outcome != ApprovalOutcome::Approved;
            if asked || (store_full && !read_only) {
                assert_eq!(fixture.started(), 0);
            }
            // A call that may have taken effect is not repeated.
            let before = fixture.started();
            if !read_only && fixture.journal.begun.load(Ordering::SeqCst) > 0 {
                *fixture.journal.failure.lock().unwrap() = None;
                fixture.restarted().call(crate::test_support::context(), good()).await;
                assert_eq!(fixture.started(), before);
            }
        });
    }
}
