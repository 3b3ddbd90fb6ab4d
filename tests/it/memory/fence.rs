//! Order of an erasure: nothing that began before it writes anything after it, and nothing that came after it is
//! erased.

use std::{fs, sync::Arc};

use async_trait::async_trait;
use firmware_sim::{Glasses, Seen};
use gateway::{
    control::{Request, memory::MemoryRequest},
    store::{self, NoteRecord, Write},
};
use gateway_core::vocab::{ErrorCode, ToolCall, ToolFlags, ToolResult, ToolSpec, Turn};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tools::{
    call::CallContext,
    registry::{RunContext, Runner},
    source::{Scope, Source},
};

use super::counts;
use crate::world::{USER, WAIT, World, answered, text, until};

/// A tool that reports its start and continues when told to.
struct Gated {
    begun: Semaphore,
    go_on: Semaphore,
}

#[async_trait]
impl Runner for Gated {
    async fn run(&self, context: RunContext, _: ToolCall) -> ToolResult {
        self.begun.add_permits(1);
        self.go_on.acquire().await.expect("open").forget();
        // A write at the end of a tool.
        drop(context.ports.notes.add(&context.user, "the quagga came late").await);
        ToolResult::said("the quagga is here")
    }
}

fn context(session: &str) -> CallContext {
    CallContext {
        user: USER.into(),
        device: None,
        session: Some(session.into()),
        turn: Some(Turn { id: 1, revision: 0 }),
        cancel: CancellationToken::new(),
        default_timeout: WAIT,
        conversation: Arc::default(),
        language: None,
        client: Default::default(),
        caller: None,
        session_lease: None,
        watcher: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_runs_while_its_user_is_erased_leaves_nothing_behind() {
    let world = World::start().await;
    let services = world.gateway().services();
    let tool = Arc::new(Gated { begun: Semaphore::new(0), go_on: Semaphore::new(0) });
    let spec = ToolSpec {
        name: "quagga.fetch".into(),
        description: "Fetches a quagga.".into(),
        input_schema: json!({"type": "object", "properties": {}}),
        flags: ToolFlags { persistent: true, ..ToolFlags::default() },
        ..ToolSpec::default()
    };
    // Registered for a device: tools of apps are kept in the store.
    let source = Source::Device("zoo".into());
    let registered = services.registry.register(source, Scope::Global, vec![spec], tool.clone());
    registered.expect("the tool");
    let call = |session: &'static str| {
        let executor = services.executor.clone();
        let call = ToolCall { id: "c1".into(), name: "quagga.fetch".into(), arguments: json!({}) };
        tokio::spawn(async move { executor.call(context(session), call).await })
    };
    let begun = || async { tool.begun.acquire().await.expect("open").forget() };

    // Control: an undisturbed call writes its name and its result.
    let undisturbed = call("one");
    begun().await;
    tool.go_on.add_permits(1);
    assert!(!undisturbed.await.expect("a result").is_error());
    services.store.settled().await.expect("written");
    assert!(counts(&world.data(), ["quagga"])[0] >= 3, "ledger, intent, note");

    let disturbed = call("two");
    begun().await;
    let request = || MemoryRequest::EraseUser { user: USER.into(), devices: false };
    world.ask(Request::Memory { request: request() }).await.expect("it does not wait for the tool");
    assert_eq!(counts(&world.data(), ["quagga"]), [0]);
    // Now it may continue, if it still exists.
    tool.go_on.add_permits(9);
    let result = disturbed.await.expect("exactly one result");
    assert_eq!(result.error.map(|error| error.code), Some(ErrorCode::Cancelled));
    services.store.settled().await.expect("written");
    assert_eq!(counts(&world.data(), ["quagga"]), [0], "nothing was written afterwards");
    assert!(world.notes().is_empty());

    // The user starts again.
    assert!(!call("three").await.expect("a result").is_error());
    assert_eq!(world.notes(), ["the quagga came late"]);
    world.stop().await;
}

/// Requests an erasure as an operator does.
async fn erase(world: &World) -> Result<(), String> {
    let request = MemoryRequest::EraseUser { user: USER.into(), devices: false };
    world.ask(Request::Memory { request }).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_that_fails_takes_nothing_in_until_it_is_finished() {
    let world = World::start().await;
    let mut glasses = world.glasses("ws", "glasses").await;
    text(&mut glasses, "take a note the okapi is here").await;
    answered(&mut glasses).await;
    assert_eq!(world.notes(), ["the okapi is here"]);
    // An obstacle to the removal: a file instead of the user's folder of photos.
    let obstacle = world.data().join("photos").join(USER);
    fs::create_dir_all(world.data().join("photos")).unwrap();
    fs::write(&obstacle, "").unwrap();
    let refused = erase(&world).await.unwrap_err();
    assert!(refused.contains("not everything was erased; it is tried again"), "{refused}");
    until(&mut glasses, "a goodbye", |event| matches!(event.seen, Seen::Goodbye { .. })).await;

    // Nothing may be written now, since it would be erased as well.
    let late =
        || Write::AddNote { user: USER.into(), note: NoteRecord { text: "the late okapi".into(), created_wall_ms: 0 } };
    let store = world.gateway().services().store.clone();
    assert!(matches!(store.write(late()).await, Err(store::Error::Erasing)));
    let mut turned_away = Glasses::start(world.options("ws", "glasses")).unwrap();
    let why = turned_away.welcomed().await.unwrap_err().to_string();
    assert!(why.contains("being erased"), "{why}");
    world.gateway().admin().eraser.carry_on().await;
    assert!(matches!(store.write(late()).await, Err(store::Error::Erasing)), "the obstacle is still there");

    fs::remove_file(&obstacle).unwrap();
    world.gateway().admin().eraser.carry_on().await;
    assert_eq!(counts(&world.data(), ["okapi"]), [0]);
    // From now on the user is accepted again, and neither a retry nor a restart erases that.
    let mut glasses = world.glasses("ws", "glasses").await;
    text(&mut glasses, "take a note the okapi is back").await;
    answered(&mut glasses).await;
    world.gateway().admin().eraser.carry_on().await;
    drop(store);
    let world = world.again().await;
    assert_eq!(world.notes(), ["the okapi is back"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn glasses_that_missed_the_goodbye_begin_nothing_after_it() {
    let world = World::start().await;
    let mut glasses = world.glasses("ws", "glasses").await;
    // Everything that such glasses notice of an erasure, without the goodbye.
    let services = world.gateway().services();
    services.executor.in_flight().end(USER).await;
    services.executor.in_flight().admit(USER);
    glasses.forget();
    drop(glasses.text("take a note the bongo came late").await);
    let goodbye = until(&mut glasses, "a goodbye", |event| matches!(event.seen, Seen::Goodbye { .. })).await;
    assert!(format!("{goodbye:?}").contains("being erased"), "{goodbye:?}");
    services.store.settled().await.unwrap();
    assert!(world.notes().is_empty());
    let mut glasses = world.glasses("ws", "glasses").await;
    text(&mut glasses, "take a note the bongo is new").await;
    answered(&mut glasses).await;
    assert_eq!(world.notes(), ["the bongo is new"]);
    world.stop().await;
}
