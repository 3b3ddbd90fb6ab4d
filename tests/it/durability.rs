//! Confirmed data is durable: after `kill -9`, after a power loss, and when the disk is full.

mod descriptors;
pub mod disk;
pub mod power;

use std::path::Path;

use firmware_sim::{Glasses, Seen, identity::Identity};
use gateway::{
    control::{Answer, Request},
    erasing::Erasure,
    store::{DeviceRecord, Error, KINDS, Kind, MessageRecord, NoteRecord, Store, Write},
};
use gateway_core::vocab::{ScheduleEntry, ScheduleKind};

use crate::{
    process::{Process, configure, fails, succeeds},
    world::{self, USER, WAIT, World, answered, pairing_code, text, until},
};

/// Asks by text and waits for the first part of the answer to reach the wearer: shown or spoken.
pub async fn told(glasses: &mut Glasses, request: &str, confirmed: &str) {
    text(glasses, request).await;
    until(glasses, request, |event| match &event.seen {
        Seen::Display { text, .. } | Seen::SpeechStart { text, .. } => text.to_lowercase().contains(confirmed),
        _ => false,
    })
    .await;
}

/// Notes and reminders in the store of a stopped gateway.
pub fn kept(data: &Path) -> (Vec<String>, Vec<String>) {
    let store = Store::open(&data.join("store"), 64).expect("the store opens");
    let notes = store.disk().notes(USER, 100, |_| true).expect("notes");
    let entries = store.disk().entries(USER).expect("reminders");
    let texts = notes.into_iter().map(|(_, note)| note.text.to_lowercase());
    // What a kill has cut off is an entry as well.
    let reminders = entries.into_iter().filter(|entry| matches!(entry.kind, ScheduleKind::Reminder { .. }));
    (texts.collect(), reminders.map(|entry| entry.kind.text().to_lowercase()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_confirmed_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for (request, confirmed) in
        [("take a note buy oat milk", "milk"), ("remind me in two hours to check the oven", "oven")]
    {
        let gateway = Process::start(&data, "", &[]).await;
        let mut glasses = world::connect(&data, gateway.options()).await;
        told(&mut glasses, request, confirmed).await;
        gateway.kill().await;
    }
    // The next gateway has both, and the pairing of the glasses.
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    text(&mut glasses, "read my notes").await;
    let notes = answered(&mut glasses).await;
    assert!(notes.contains("milk"), "{notes}");
    text(&mut glasses, "what are my reminders").await;
    let reminders = answered(&mut glasses).await;
    assert!(reminders.contains("oven"), "{reminders}");
    gateway.kill().await;
    let (notes, reminders) = kept(&data);
    assert_eq!((notes.len(), reminders.len()), (1, 1), "once each: {notes:?} {reminders:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_confirmed_survives_a_power_loss() {
    let folder = tempfile::tempdir().unwrap();
    let library = power::compile(folder.path(), power::FORGETFUL).display().to_string();
    for never_synced in [false, true] {
        let data = folder.path().join(format!("data-{never_synced}"));
        let journal = data.with_extension("journal");
        let never = if never_synced { "1" } else { "0" };
        let environment =
            [("LD_PRELOAD", &*library), ("JOURNAL", &*journal.display().to_string()), ("NEVER_SYNCED", never)]
                .map(|(name, value)| (name, value.to_owned()));
        let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let gateway = Process::start(&data, "", &environment).await;
        let mut glasses = world::connect(&data, gateway.options()).await;
        told(&mut glasses, "take a note buy oat milk", "milk").await;
        told(&mut glasses, "remind me in two hours to check the oven", "oven").await;
        gateway.kill().await;
        let (writes, syncs) = power::counts(&journal);
        assert!(writes > 0 && syncs > 0, "the store was not seen: {writes} writes, {syncs} syncs");
        let undone = power::lose_power(&journal, &data.join("store"));
        if never_synced {
            // Control: without syncs the data would be lost, and this test would notice.
            assert!(undone > 0);
            assert_eq!(kept(&data), (Vec::new(), Vec::new()));
        } else {
            let (notes, reminders) = kept(&data);
            assert!(notes.iter().any(|note| note.contains("milk")), "{notes:?}");
            assert!(reminders.iter().any(|reminder| reminder.contains("oven")), "{reminders:?}");
        }
    }
}

/// Size of a note that fills the disk.
const FILLER_BYTES: usize = 64 * 1024;

/// Adds ever smaller notes, so that not even a short one fits at the end.
async fn fill(world: &World) {
    let filler = |bytes: usize| Write::AddNote {
        user: "filler".to_owned(),
        note: NoteRecord { text: "x".repeat(bytes), created_wall_ms: 0 },
    };
    let mut bytes = FILLER_BYTES;
    while bytes > 0 {
        if let Err(error) = world.gateway().services().store.write(filler(bytes)).await {
            assert!(error.to_string().contains("store.size_max_mib"), "{error}");
            bytes /= 4;
        }
    }
}

/// A pairing that cannot be stored is reported to the operator, and the device is rejected.
#[tokio::test(flavor = "multi_thread")]
async fn a_pairing_on_a_full_store_says_so() {
    let world = World::with("[store]\nsize_max_mib = 4\n").await;
    fill(&world).await;
    let options = world.options("wss", "newcomer");
    let id = Identity::load_or_make(&options.state).unwrap().fingerprint();
    // The record's own page must be full as well: these keys precede it directly.
    let (before, _) = id.split_at(id.len() - 1);
    let mut model = "x".repeat(1_024);
    let mut number = 0;
    while !model.is_empty() {
        number += 1;
        let key = [0; 32];
        let (user, name) = ("filler".to_owned(), format!("filler {number}"));
        let device = DeviceRecord { key, name, user, model: model.clone(), paired_wall_ms: 0, revoked: false };
        let write = Write::PutDevice { id: format!("{before} {number:06}"), device };
        if let Err(error) = world.gateway().services().store.write(write).await {
            assert!(error.to_string().contains("store.size_max_mib"), "{error}");
            model.truncate(model.len() / 4);
        }
    }
    let glasses = Glasses::start(options).unwrap();
    let (code, _) = glasses.log().find(0, |event| pairing_code(event).is_some()).await;
    let (code, user) = (pairing_code(&code).unwrap(), USER.to_owned());
    let paired = world.ask(Request::PairCode { code, user, name: "late".to_owned() }).await;
    let error = paired.expect_err("there is no room");
    assert!(error.contains("store.size_max_mib"), "{error}");
    let devices = world.gateway().services().store.disk().devices().unwrap();
    assert!(devices.iter().all(|(_, device)| device.user == "filler"), "{devices:?}");
}

/// Lost glasses are kept out at once, and after a restart, also where the store takes nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn glasses_are_revoked_on_a_full_store() {
    let world = World::with("[store]\nsize_max_mib = 4\n").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    fill(&world).await;
    let device = glasses.fingerprint().to_owned();
    let Ok(Answer::Done { message }) = world.ask(Request::Revoke { device: device.clone() }).await else {
        panic!("it is revoked");
    };
    assert!(message.contains("its session was ended"), "{message}");
    until(
        &mut glasses,
        "the goodbye",
        |event| matches!(&event.seen, Seen::Goodbye { reason, .. } if reason == "revoked"),
    )
    .await;
    let (folder, _) = world.halted().await;
    let world = World::on(folder).await;
    let mut back = Glasses::start(world.options("wss", "glasses")).unwrap();
    let error = back.welcomed().await.expect_err("it is kept out").to_string();
    assert!(error.contains("revoked"), "{error}");
    world.stop().await;
}

/// A store that takes and gives nothing keeps no lost glasses in.
#[tokio::test(flavor = "multi_thread")]
async fn glasses_are_cut_off_also_where_that_cannot_be_stored() {
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let device = glasses.fingerprint().to_owned();
    let services = world.gateway().services();
    services.store.close().await.unwrap();
    let error = world.ask(Request::Revoke { device: device.clone() }).await.unwrap_err();
    for words in ["its session was ended", "until the next start", "could not be stored", "the store is closed"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    until(
        &mut glasses,
        "the goodbye",
        |event| matches!(&event.seen, Seen::Goodbye { reason, .. } if reason == "revoked"),
    )
    .await;
    assert!(services.admission.pairings.is_revoked(&device));
    assert!(Glasses::start(world.options("wss", "glasses")).unwrap().welcomed().await.is_err());
    world.stop().await;
}

/// Changes one byte of each place where a word stands in a file; how many there were.
fn flip(file: &Path, word: &str) -> usize {
    let mut bytes = std::fs::read(file).unwrap();
    let places: Vec<usize> =
        (0..bytes.len().saturating_sub(word.len())).filter(|at| bytes[*at..].starts_with(word.as_bytes())).collect();
    for at in &places {
        bytes[*at] ^= 1;
    }
    std::fs::write(file, bytes).unwrap();
    places.len()
}

/// A byte of a record of each table changes on the disk: the gateway starts, and everything else is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_with_a_damaged_record_in_each_table_starts_and_serves() {
    const WORD: &str = "zq-rotten-qz";
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "take a note buy oat milk").await;
    answered(&mut glasses).await;
    glasses.goodbye().await;
    let (user, word) = (|| USER.to_owned(), || WORD.to_owned());
    let device = |name: &str| DeviceRecord {
        key: [7; 32],
        name: name.to_owned(),
        user: user(),
        model: "G1".to_owned(),
        paired_wall_ms: 0,
        revoked: false,
    };
    let due_wall_ms = i64::MAX;
    let mut writes = vec![
        Write::PutDevice { id: "aa".repeat(16), device: device(WORD) },
        Write::PutDevice { id: "bb".repeat(16), device: device("whole") },
        Write::AddNote { user: user(), note: NoteRecord { text: word(), created_wall_ms: 0 } },
        Write::PutEntry {
            user: user(),
            entry: ScheduleEntry {
                id: 99,
                kind: ScheduleKind::Reminder { text: word() },
                due_wall_ms,
                duration_ms: None,
            },
        },
        Write::BeginConversation { user: user(), wall_ms: 0 },
        Write::AppendMessages {
            user: user(),
            messages: vec![MessageRecord { wall_ms: 0, json: word() }],
            title: word(),
        },
    ];
    for (kind, _) in KINDS.into_iter().filter(|(kind, _)| *kind != Kind::Conversations) {
        let owner = if kind.is_of_user() { user() } else { "box".to_owned() };
        writes.push(Write::PutRow { kind, owner, key: b"key".to_vec(), value: word().into_bytes() });
    }
    for write in writes {
        world.gateway().services().store.write(write).await.unwrap();
    }
    let file = world.data().join("store/data.mdb");
    let (folder, data) = world.halted().await;
    assert!(flip(&file, WORD) >= 4 + KINDS.len(), "each table has one");
    let config = configure(&data, "").display().to_string();
    let error = fails(&["check", "--store", "--config", &config]).await;
    assert!(error.contains(&format!("{} damaged", 4 + KINDS.len())), "{error}");

    let world = World::on(folder).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "read my notes").await;
    assert!(answered(&mut glasses).await.contains("milk"));
    told(&mut glasses, "take a note buy bread", "bread").await;
    let Ok(Answer::Devices { paired, .. }) = world.ask(Request::Devices).await else { panic!("devices are listed") };
    assert!(paired.len() == 2 && paired.iter().any(|device| device.name == "whole"), "{paired:?}");
    world.ask(Request::Revoke { device: "whole".to_owned() }).await.expect("it is revoked");
    let Ok(Answer::Status { status }) = world.ask(Request::Status).await else { panic!("a status") };
    assert!(status.damaged > 0);
    glasses.goodbye().await;
    let everything = Erasure { user: user(), devices: true };
    world.gateway().admin().eraser.everything(&everything).await.expect("it is erased");
    let (folder, data) = world.halted().await;
    // What is left can be set aside.
    let aside = folder.path().join("aside.jsonl");
    let shown = aside.display().to_string();
    succeeds(&["check", "--store", "--set-aside", &shown, "--config", &config]).await;
    assert!(std::fs::read_to_string(&aside).unwrap().lines().count() >= 1);
    assert!(succeeds(&["check", "--store", "--config", &config]).await.contains("no record of the store is damaged"));
    drop(data);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_that_cannot_be_finished_keeps_out_its_user_and_nobody_else() {
    let ann = || "ann".to_owned();
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "take a note buy oat milk").await;
    // To its end: nothing waits to be told to this user.
    answered(&mut glasses).await;
    glasses.goodbye().await;
    let device = DeviceRecord {
        key: [7; 32],
        name: "hers".to_owned(),
        user: ann(),
        model: "G1".to_owned(),
        paired_wall_ms: 0,
        revoked: false,
    };
    let kind = ScheduleKind::Reminder { text: "oven".to_owned() };
    let entry = ScheduleEntry { id: 1, kind, due_wall_ms: i64::MAX, duration_ms: None };
    let note = NoteRecord { text: "hers".to_owned(), created_wall_ms: 0 };
    for write in [
        Write::PutDevice { id: "aa".repeat(16), device },
        Write::PutEntry { user: ann(), entry },
        Write::AddNote { user: ann(), note: note.clone() },
    ] {
        world.gateway().services().store.write(write).await.unwrap();
    }
    // It was begun, and something of hers cannot be removed.
    let (folder, data) = world.halted().await;
    std::fs::write(data.join("erasing.json"), "{\"user\":\"ann\",\"devices\":false}\n").unwrap();
    std::fs::create_dir_all(data.join("photos")).unwrap();
    let blocked = data.join("photos/ann");
    std::fs::write(&blocked, "no folder").unwrap();

    let world = World::on(folder).await;
    let services = world.gateway().services();
    assert_eq!(services.users.count(), 0, "she has a reminder, and is not told of it");
    assert!(matches!(services.users.mailbox("ann"), Err(Error::Erasing)));
    assert!(services.executor.in_flight().session("ann").is_none());
    let refused = services.store.write(Write::AddNote { user: ann(), note }).await;
    assert!(matches!(refused, Err(Error::Erasing)), "{refused:?}");
    // Others do not notice.
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "read my notes").await;
    assert!(answered(&mut glasses).await.contains("milk"));
    // It is finished as soon as it can be.
    world.gateway().admin().eraser.carry_on().await;
    assert!(services.users.mailbox("ann").is_err() && data.join("erasing.json").exists());
    std::fs::remove_file(blocked).unwrap();
    world.gateway().admin().eraser.carry_on().await;
    assert!(!data.join("erasing.json").exists());
    assert!(services.store.disk().notes("ann", 9, |_| true).unwrap().is_empty());
    assert!(services.users.mailbox("ann").is_ok() && services.executor.in_flight().session("ann").is_some());
    glasses.goodbye().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_is_told_and_loses_nothing() {
    let world = World::with("[store]\nsize_max_mib = 4\n").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    told(&mut glasses, "take a note buy oat milk", "milk").await;
    fill(&world).await;
    text(&mut glasses, "take a note call the dentist").await;
    let answer = answered(&mut glasses).await;
    println!("full: {answer}");
    let acknowledged = answer.contains("noted");
    let notes = world.notes();
    assert!(!acknowledged, "it said {answer:?}");
    assert!(notes.len() == 1 && notes[0].contains("milk"), "{notes:?}");
    assert!(
        ["full", "could not", "couldn't", "cannot", "can't", "not keep"].iter().any(|word| answer.contains(word)),
        "{answer}"
    );
    // It continues to serve.
    text(&mut glasses, "read my notes").await;
    assert!(answered(&mut glasses).await.contains("milk"));
    glasses.goodbye().await;
    // Health checks report it.
    let health = reqwest::get(format!("http://{}/healthz", world.web())).await.unwrap();
    assert_eq!(health.status(), 503);
    let told: serde_json::Value = health.json().await.unwrap();
    assert_eq!((&told["status"], &told["problems"][0]["part"]), (&"failing".into(), &"store".into()), "{told}");
    let filler = Erasure { user: "filler".into(), devices: false };
    world.gateway().admin().eraser.everything(&filler).await.unwrap();
    let healthy = async {
        while reqwest::get(format!("http://{}/healthz", world.web())).await.unwrap().status() != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, healthy).await.expect("it is healthy again");
    // The content of the disk: LMDB opens a store once per process, so that a copy is read.
    let copy = world.folder().join("copy/store");
    std::fs::create_dir_all(&copy).unwrap();
    std::fs::copy(world.data().join("store/data.mdb"), copy.join("data.mdb")).unwrap();
    assert_eq!(kept(&world.folder().join("copy")).0.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_was_stopped_starts_again_in_the_same_process() {
    let mut world = World::start().await;
    for text in ["buy milk", "call mom"] {
        let note = NoteRecord { text: text.to_owned(), created_wall_ms: 0 };
        let store = world.gateway().services().store.clone();
        store.write(Write::AddNote { user: USER.to_owned(), note }).await.expect("written");
        world = world.again().await;
        assert!(matches!(store.settled().await, Err(Error::Closed)), "the old one is closed");
        assert!(matches!(store.disk().notes(USER, 1, |_| true), Err(Error::Closed)), "for reads too");
    }
    assert_eq!(world.notes(), ["call mom", "buy milk"]);
    world.stop().await;
}
