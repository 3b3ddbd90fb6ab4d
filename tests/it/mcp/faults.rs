//! Faulty servers: each fault has an error code and a sentence for the wearer, and affects nothing else.

use std::{path::Path, sync::Arc};

use gateway::{
    control::{Answer, Request},
    store::{Kind, NoteRecord, Write},
};
use gateway_core::vocab::ErrorCode;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tools::mcp::client::State;

use super::{call, cancellable, client_judge::Willing, state, up};
use crate::{
    process::Process,
    world::{USER, WAIT, World, answered, ask, text},
};

const FAULTY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/mcp_faulty.py");

/// A gateway with the faulty server as `faulty`, and one that never answers as `deaf`.
async fn world(notes: &Path) -> World {
    let notes = notes.display().to_string();
    let world = World::with(&format!(
        "[mcp]\nservers.faulty = {{ command = \"python3\", args = [{FAULTY:?}, \"\", {notes:?}] }}\n\
         servers.deaf = {{ command = \"python3\", args = [{FAULTY:?}, \"hang\"] }}\n"
    ))
    .await;
    up(&world, "faulty").await;
    world
}

fn noted(notes: &Path, word: &str) -> usize {
    std::fs::read_to_string(notes).unwrap_or_default().lines().filter(|line| line.starts_with(word)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_never_answers_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(&folder.path().join("notes")).await;
    let states = world.gateway().admin().mcp.servers();
    assert_eq!(states.iter().find(|(name, _)| name == "deaf").map(|(_, state)| state), Some(&State::Starting));
    let result = call(&world, "faulty.before", None).await;
    assert_eq!((result.content.as_str(), result.error), ("did before", None));
    let result = call(&world, "clock.time", None).await;
    assert!(!result.is_error(), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_dies_in_a_call_is_told_and_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let world = world(&notes).await;
    let result = call(&world, "faulty.die", None).await;
    let error = result.error.clone().expect("an error");
    assert_eq!((error.code, error.retryable), (ErrorCode::AppNotAvailable, false), "{error:?}");
    assert!(result.say.as_deref().is_some_and(|say| say.contains("I don't know whether it was done")), "{result:?}");
    let again = async {
        while noted(&notes, "started") < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT, again).await.expect("it is started again");
    state(&world, "faulty", |state| matches!(state, State::Up(_))).await;
    assert_eq!(call(&world, "faulty.before", None).await.content, "did before");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_and_a_huge_answer_are_borne() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(&folder.path().join("notes")).await;
    let before = world.gateway().services().registry.revision();
    let flooded = call(&world, "faulty.flood", None).await;
    assert_eq!(flooded.content, "flooded", "{flooded:?}");
    let huge = call(&world, "faulty.huge", None).await;
    assert!(!huge.is_error() && huge.content.len() <= tools::limits::CONTENT_BYTES_MAX, "{}", huge.content.len());
    assert_eq!(call(&world, "faulty.before", None).await.content, "did before");
    // Two hundred change notifications without any change.
    assert_eq!(world.gateway().services().registry.revision(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn renamed_tools_are_offered_under_their_new_names() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(&folder.path().join("notes")).await;
    let registry = &world.gateway().services().registry;
    let mut changes = registry.changes();
    let before = registry.revision();
    assert_eq!(call(&world, "faulty.rename", None).await.content, "renamed");
    let changed = tokio::time::timeout(WAIT, changes.wait_for(|revision| *revision > before)).await;
    changed.expect("in time").expect("the registry");
    assert_eq!(call(&world, "faulty.after", None).await.content, "did after");
    let gone = call(&world, "faulty.before", None).await;
    assert_eq!(gone.error.map(|error| error.code), Some(ErrorCode::ToolNotFound));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_waits_for_is_cancelled_at_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let world = world(&notes).await;
    let cancel = CancellationToken::new();
    let running = cancellable(&world, "faulty.slow", json!({}), None, cancel.clone());
    let stopping = async {
        while noted(&notes, "slow") == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(running, stopping);
    assert_eq!(result.error.map(|error| error.code), Some(ErrorCode::Cancelled));
    let told = async {
        while noted(&notes, "cancelled True") == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT, told).await.expect("the server is told");
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_reach_whoever_called_and_nothing_destructive_runs_without_a_yes() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let world = world(&notes).await;
    let asked = call(&world, "faulty.confirm", Some(Arc::new(Willing))).await;
    assert_eq!(asked.content, "{\"action\": \"accept\", \"content\": {\"ok\": true}}");
    // No glasses are connected, so that consent cannot be given.
    let unasked = call(&world, "faulty.confirm", None).await;
    assert!(!unasked.content.contains("accept"), "{unasked:?}");
    let erased = call(&world, "faulty.erase", None).await;
    assert!(erased.is_error(), "{erased:?}");
    assert_eq!(noted(&notes, "erased"), 0);
}

/// Size of a note that fills the disk.
const FILLER_BYTES: usize = 64 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn with_a_full_store_nothing_is_changed_and_the_wearer_is_told_why() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let faulty = notes.display().to_string();
    let world = World::with(&format!(
        "[store]\nsize_max_mib = 4\n[mcp]\nservers.faulty = {{ command = \"python3\", \
         args = [{FAULTY:?}, \"\", {faulty:?}], phrases = {{ before = [\"do the usual\"] }} }}\n"
    ))
    .await;
    up(&world, "faulty").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let filler = |bytes: usize| Write::AddNote {
        user: "filler".to_owned(),
        note: NoteRecord { text: "x".repeat(bytes), created_wall_ms: 0 },
    };
    let intent = |number: u32| Write::PutRow {
        kind: Kind::Intents,
        owner: "filler".to_owned(),
        key: number.to_be_bytes().to_vec(),
        value: vec![b'x'; 64],
    };
    // Ever smaller pieces, and then intents, so that not even one more fits at the end.
    let store = &world.gateway().services().store;
    let mut bytes = FILLER_BYTES;
    while bytes > 0 {
        if store.write(filler(bytes)).await.is_err() {
            bytes /= 4;
        }
    }
    let mut number = 0;
    while store.write(intent(number)).await.is_ok() {
        number += 1;
    }
    let result = call(&world, "faulty.before", None).await;
    assert_eq!(result.error.as_ref().map(|error| error.code), Some(ErrorCode::ExecutionError), "{result:?}");
    assert_eq!(result.say.as_deref(), Some("I can't do that: the storage is full."));
    text(&mut glasses, "do the usual").await;
    let answer = answered(&mut glasses).await;
    assert!(answer.contains("the storage is full"), "{answer}");
    // Read-only tools still work.
    assert!(!call(&world, "clock.time", None).await.is_error());
    assert_eq!(noted(&notes, "did before"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_cut_off_by_kill_9_is_told_as_unknown_and_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let (data, notes) = (folder.path().join("data"), folder.path().join("notes"));
    let settings = format!(
        "[mcp]\nservers.faulty = {{ command = \"python3\", args = [{FAULTY:?}, \"\", {:?}] }}\n",
        notes.display().to_string()
    );
    let gateway = Process::start(&data, &settings, &[]).await;
    let offered = async {
        loop {
            let listed = ask(&data, Request::Tools { user: USER.to_owned() }).await.expect("a list");
            let Answer::Tools { tools } = listed else { panic!("no list") };
            if tools.iter().any(|tool| tool.spec.name == "faulty.stall") {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT, offered).await.expect("the server answers");
    let asking = tokio::spawn({
        let data = data.clone();
        async move {
            let name = "faulty.stall".to_owned();
            ask(&data, Request::CallTool { user: USER.to_owned(), name, arguments: json!({}) }).await
        }
    });
    let begun = async {
        while noted(&notes, "stalled") == 0 {
            assert!(!asking.is_finished(), "{asking:?}");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT, begun).await.expect("the call begins");
    gateway.kill().await;
    assert!(asking.await.expect("the client").is_err(), "nobody can know what came of it");

    let gateway = Process::start(&data, &settings, &[]).await;
    let usage = Request::Usage { user: Some(USER.to_owned()), since_wall_ms: i64::MIN };
    let Answer::Usage { users } = ask(&data, usage).await.expect("usage") else { panic!("no usage") };
    let [usage] = users[USER].as_slice() else { panic!("{users:?}") };
    assert_eq!((usage.tool.as_str(), usage.calls, usage.failed), ("faulty.stall", 1, 1));
    // The server has reconnected, and received no call.
    let again = async {
        while noted(&notes, "started") < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        loop {
            let name = "faulty.before".to_owned();
            let call = Request::CallTool { user: USER.to_owned(), name, arguments: json!({}) };
            let Answer::ToolResult { result, .. } = ask(&data, call).await.expect("an answer") else { panic!() };
            // On a busy machine its start may take long.
            match result.error.map(|error| error.code) {
                None => return,
                Some(code) => assert_eq!(code, ErrorCode::AppNotAvailable),
            }
        }
    };
    tokio::time::timeout(WAIT, again).await.expect("it is started again");
    assert_eq!(noted(&notes, "stalled"), 1, "it was repeated");
    let (_, log) = gateway.terminate().await;
    let told = log.iter().filter(|line| line.contains("outcome is unknown") && line.contains("faulty.stall"));
    assert_eq!(told.count(), 1, "{log:#?}");
    // It is reported once, not at every start.
    let (_, log) = Process::start(&data, &settings, &[]).await.terminate().await;
    assert!(!log.iter().any(|line| line.contains("outcome is unknown")), "{log:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_sees_no_variable_that_it_was_not_given() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(&folder.path().join("notes")).await;
    let seen = call(&world, "faulty.environment", None).await.content;
    assert!(seen.contains("\"PATH\"") && std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "{seen}");
    assert!(!seen.contains("CARGO"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn children_end_with_the_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    let world = world(&notes).await;
    let notes = std::fs::read_to_string(&notes).unwrap();
    let child = notes.lines().find_map(|line| line.strip_prefix("started ")).expect("a process").to_owned();
    assert!(Path::new("/proc").join(&child).exists());
    world.stop().await;
    let state = std::fs::read_to_string(Path::new("/proc").join(&child).join("stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
}
