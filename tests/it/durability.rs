//! Confirmed data is durable: after `kill -9`, after a power loss, and when the disk is full.

mod power;

use std::path::Path;

use firmware_sim::{Glasses, Seen, identity::Identity};
use gateway::{
    control::Request,
    erasing::Erasure,
    store::{DeviceRecord, Error, NoteRecord, Store, Write},
};

use crate::{
    process::Process,
    world::{self, USER, WAIT, World, answered, pairing_code, text, until},
};

/// Asks by text and waits for the first part of the answer to reach the wearer: shown or spoken.
async fn told(glasses: &mut Glasses, request: &str, confirmed: &str) {
    text(glasses, request).await;
    until(glasses, request, |event| match &event.seen {
        Seen::Display { text, .. } | Seen::SpeechStart { text, .. } => text.to_lowercase().contains(confirmed),
        _ => false,
    })
    .await;
}

/// Notes and reminders in the store of a stopped gateway.
fn kept(data: &Path) -> (Vec<String>, Vec<String>) {
    let store = Store::open(&data.join("store"), 64).expect("the store opens");
    let notes = store.disk().notes(USER, 100, |_| true).expect("notes");
    let entries = store.disk().entries(USER).expect("reminders");
    let texts = notes.into_iter().map(|(_, note)| note.text.to_lowercase());
    (texts.collect(), entries.into_iter().map(|entry| entry.kind.text().to_lowercase()).collect())
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
    let library = power::compile(folder.path()).display().to_string();
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
