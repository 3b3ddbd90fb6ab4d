//! A gateway that is killed or upgraded under its glasses: they go on with the next one.

use std::path::Path;

use firmware_sim::{Event, Glasses, Seen, transport::Target};

use crate::{
    process::Process,
    world::{self, answered, floor, text, understood, until},
};

fn target(gateway: &Process) -> Option<Target> {
    Some(format!("wss://{}/glasses", gateway.web).parse().expect("an address"))
}

/// Goes on with the gateway that runs now.
async fn comes_back(glasses: &mut Glasses, gateway: &Process) {
    glasses.forget();
    glasses.reconnect(target(gateway)).await.expect("it tries");
    let welcome = until(glasses, "a welcome", |event| matches!(event.seen, Seen::Welcome { .. })).await;
    assert!(matches!(welcome, Seen::Welcome { resumed: false, .. }), "what was in memory is gone");
}

async fn loses_its_link(glasses: &mut Glasses) {
    until(glasses, "a lost link", |event| matches!(event.seen, Seen::LinkLost { .. })).await;
}

/// Texts of speeches and of the display since the reader's position.
fn said(glasses: &Glasses) -> String {
    let texts = glasses.log().since(glasses.mark()).into_iter().filter_map(|event| match event.seen {
        Seen::Display { text, .. } | Seen::SpeechStart { text, .. } => Some(text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn is_listening(event: &Event) -> bool {
    matches!(&event.seen, Seen::Listening { state, .. } if state == "listening")
}

/// The wearer's notes, read from the data of a gateway that has stopped.
async fn notes(data: &Path) -> Vec<String> {
    let folder = data.to_path_buf();
    let read = move || {
        let store = gateway::store::Store::open(&folder.join("store"), 1_024).expect("the store");
        store.disk().notes(world::USER, 100, |_| true).expect("the notes")
    };
    let notes = tokio::task::spawn_blocking(read).await.expect("read");
    notes.into_iter().map(|(_, note)| note.text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentence_is_heard_over_a_kill_9() {
    let _floor = floor().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    let pcm = firmware_sim::voice::speak("Hey Mentra, take a note: buy oat milk.").await.expect("a voice");
    let killing = async {
        glasses.log().find(0, is_listening).await;
        gateway.kill().await;
        Process::start(&data, "", &[]).await
    };
    let (said, gateway) = tokio::join!(glasses.say_pcm("a note", &pcm, None), killing);
    said.expect("said");
    comes_back(&mut glasses, &gateway).await;
    let transcript = understood(&mut glasses).await;
    assert!(transcript.contains("note") && transcript.contains("milk"), "{transcript}");
    answered(&mut glasses).await;
    glasses.goodbye().await;
    gateway.kill().await;
    assert_eq!(notes(&data).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_before_a_kill_9_is_done_once_or_said_not_to_be_known() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    // Its session is on disk by then.
    text(&mut glasses, "what is two plus two?").await;
    answered(&mut glasses).await;
    for (number, moment) in ["typed", "thinking", "speaking"].into_iter().enumerate() {
        text(&mut glasses, &format!("take a note: number {number}")).await;
        if moment != "typed" {
            let reached = |event: &Event| matches!(&event.seen, Seen::Listening { state, .. } if state == moment);
            until(&mut glasses, moment, reached).await;
        }
        gateway.kill().await;
        loses_its_link(&mut glasses).await;
        gateway = Process::start(&data, "", &[]).await;
        comes_back(&mut glasses, &gateway).await;
        let mark = glasses.mark();
        let seen = answered(&mut glasses).await;
        let told = seen.contains("i was restarted");
        assert!(told || moment != "speaking", "{moment}: {seen}; {:?}", glasses.log().since(mark));
        // What has been dealt with is over: the next request stands alone.
        text(&mut glasses, "what is twelve times three?").await;
        assert!(answered(&mut glasses).await.contains("36"));
    }
    glasses.goodbye().await;
    gateway.kill().await;
    let notes = notes(&data).await;
    for number in 0..3 {
        assert!(notes.iter().filter(|note| note.contains(&number.to_string())).count() <= 1, "{notes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn glasses_are_still_muted_after_an_upgrade() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut options = gateway.options();
    options.reconnect = true;
    let mut glasses = world::connect(&data, options).await;
    glasses.mute(true).await.expect("muted");
    until(&mut glasses, "muted", |event| matches!(&event.seen, Seen::Listening { state, .. } if state == "muted"))
        .await;
    gateway.terminate().await;
    loses_its_link(&mut glasses).await;
    let gateway = Process::start(&data, "", &[]).await;
    comes_back(&mut glasses, &gateway).await;
    until(&mut glasses, "muted", |event| matches!(&event.seen, Seen::Listening { state, .. } if state == "muted"))
        .await;
    assert!(!said(&glasses).contains("I was restarted"), "nothing was under way");
}
