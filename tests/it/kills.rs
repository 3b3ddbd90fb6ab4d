//! kill -9 under glasses that write, over both transports: a small run of `cargo xtask bench kills`.

use std::path::Path;

use firmware_sim::{
    Event, Glasses, Seen,
    transport::{self, Inbound},
};
use gateway::store::Store;

use crate::{
    process::Process,
    world::{self, USER, WAIT, text, until},
};

const KILLS: usize = 2;

/// Types a request and waits until the wearer is told this.
async fn told(glasses: &mut Glasses, request: &str, confirmed: &str) {
    text(glasses, request).await;
    until(glasses, confirmed, |event| match &event.seen {
        Seen::Display { text, .. } | Seen::SpeechStart { text, .. } => text.to_lowercase().contains(confirmed),
        _ => false,
    })
    .await;
}

fn is_welcome(event: &Event) -> bool {
    matches!(event.seen, Seen::Welcome { .. })
}

/// The wearer's notes and the number of photos, read from the data of a gateway that has been killed.
async fn kept(data: &Path) -> (Vec<String>, usize) {
    let photos = std::fs::read_dir(data.join("photos").join(USER)).expect("photos").count();
    let folder = data.join("store");
    let read = move || {
        let store = Store::open(&folder, 1_024).expect("the store");
        store.disk().notes(USER, 100, |_| true).expect("the notes")
    };
    let notes = tokio::task::spawn_blocking(read).await.expect("read");
    let mut notes: Vec<String> = notes.into_iter().map(|(_, note)| note.text).collect();
    notes.sort();
    (notes, photos)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_confirmed_is_there_once_after_each_kill_9_and_all_glasses_come_back_by_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut gateway = Process::start(&data, "", &[]).await;
    let mut all = Vec::new();
    for (name, target) in
        [("wss", format!("wss://{}/glasses", gateway.web)), ("quic", format!("quic://{}", gateway.quic))]
    {
        let mut options = gateway.options();
        options.state = folder.path().join(name);
        options.target = target.parse().expect("an address");
        options.reconnect = true;
        all.push((name, world::connect(&data, options).await));
    }
    let mut wanted = Vec::new();
    for kill in 0..KILLS {
        for (name, glasses) in &mut all {
            let note = format!("parcel {kill} by {name} is late");
            told(glasses, &format!("take a note: {note}"), &format!("noted: {note}")).await;
            told(glasses, "take a photo", "photo taken").await;
            wanted.push(note);
            glasses.forget();
        }
        gateway = gateway.killed_and_started_again().await;
        for (name, glasses) in &mut all {
            let lost = until(glasses, "a lost link", |event| matches!(event.seen, Seen::LinkLost { .. })).await;
            let Seen::LinkLost { reason } = lost else { unreachable!("it was picked") };
            // The next process says that it does not know the connection; otherwise only silence would tell.
            assert!(*name != "quic" || reason.contains("reset"), "{name}: {reason}");
            until(glasses, "a welcome", is_welcome).await;
        }
    }
    for (_, glasses) in &mut all {
        told(glasses, "what is twelve times three?", "36").await;
    }
    gateway.kill().await;
    wanted.sort();
    assert_eq!(kept(&data).await, (wanted, all.len() * KILLS));
}

/// A connection over which nothing was sent yet, as that of glasses whose packets were acknowledged by a gateway that died then:
/// only a PING brings them the answer of the next one.
#[tokio::test(flavor = "multi_thread")]
async fn glasses_that_only_wait_learn_of_a_kill_9_over_quic() {
    let folder = tempfile::tempdir().unwrap();
    let gateway = Process::start(&folder.path().join("data"), "", &[]).await;
    let target = format!("quic://{}", gateway.quic).parse().expect("an address");
    let mut link = transport::open(&target).await.expect("a connection");
    let gateway = gateway.killed_and_started_again().await;
    let told = tokio::time::timeout(WAIT, link.down.recv()).await.expect("they are told");
    let Some(Inbound::Closed { reason, .. }) = told else { panic!("{told:?}") };
    assert!(reason.contains("reset"), "{reason}");
    gateway.kill().await;
}
