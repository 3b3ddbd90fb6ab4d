//! `lorgnette replay`: sessions are recorded where that is wanted, and do the same again.

use crate::{
    process::{Process, fails, succeeds},
    world::{self, text, until},
};
use firmware_sim::Seen;

const RECORDED: &str = "[recordings]\nsessions = true\n";
const NOTHING: &str = "nothing is recorded; `sessions = true` in [recordings] has new sessions recorded\n";

/// A session with two turns, the second one in the middle of which the gateway is killed if `killed`.
async fn session(data: &std::path::Path, settings: &str, killed: bool) {
    let gateway = Process::start(data, settings, &[]).await;
    let mut glasses = world::connect(data, gateway.options()).await;
    for request in ["take a note walruses like umbrellas", "what time is it"] {
        text(&mut glasses, request).await;
        until(&mut glasses, "an answer", |event| matches!(event.seen, Seen::SpeechHeard { complete: true, .. })).await;
    }
    if killed {
        gateway.kill().await;
    } else {
        glasses.goodbye().await;
        assert!(gateway.terminate().await.0.success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recorded_session_is_played_again_and_words_are_shown_to_whoever_asks() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let config = crate::process::configure(&data, RECORDED);
    let config = config.to_str().unwrap();
    assert_eq!(succeeds(&["replay", "--config", config]).await, NOTHING);
    session(&data, RECORDED, false).await;
    let list = succeeds(&["replay", "--config", config]).await;
    let row = list.lines().nth(1).expect("a recording");
    assert!(row.contains(" 1-2 ") && row.contains(" wearer ") && row.ends_with(".jsonl"), "{list}");
    let file = row.split_whitespace().last().unwrap().to_owned();

    let turn = succeeds(&["replay", "1", "--config", config]).await;
    assert!(turn.contains("> Text(\u{2039}") && turn.contains("< RunTool") && turn.contains("\"note.add\""), "{turn}");
    assert!(!turn.contains("walrus") && !turn.contains("what time"), "{turn}");
    assert!(turn.trim_end().ends_with("all the same"), "{turn}");
    let words = succeeds(&["replay", "1", "--words", "--config", config]).await;
    assert!(words.contains("walruses like umbrellas") && !words.contains("what time is it"), "{words}");
    let whole = succeeds(&["replay", &file, "--words", "--config", config]).await;
    assert!(whole.contains("what time is it"), "{whole}");
    assert!(fails(&["replay", "9", "--config", config]).await.contains("no recording has a turn 9"));
    assert!(fails(&["replay", "1", "--device", "zz", "--config", config]).await.contains("no recording"));
    assert!(fails(&["replay", config, "--config", config]).await.contains("is no recording"));

    // With another text in it, the conversation does something else.
    let recorded = std::fs::read_to_string(&file).unwrap();
    let other = folder.path().join("other.jsonl");
    std::fs::write(&other, recorded.replacen("walruses", "otters", 1)).unwrap();
    let error = fails(&["replay", other.to_str().unwrap(), "--config", config]).await;
    assert!(error.contains("it differs before line") && !error.contains("otters"), "{error}");

    // What a killed gateway has written is a recording too.
    session(&data, RECORDED, true).await;
    let list = succeeds(&["replay", "--config", config]).await;
    assert_eq!(list.lines().count(), 3, "{list}");
    let file = list.lines().nth(1).unwrap().split_whitespace().last().unwrap();
    assert!(succeeds(&["replay", file, "--config", config]).await.contains("all the same"));

    let gateway = Process::start(&data, RECORDED, &[]).await;
    succeeds(&["users", "erase", "wearer", "--yes", "--config", config]).await;
    assert_eq!(succeeds(&["replay", "--config", config]).await, NOTHING);
    gateway.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_recorded_unless_it_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    session(&data, "", false).await;
    assert!(!data.join("recordings").exists());
}
