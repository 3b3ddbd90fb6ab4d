//! What an app has drawn stays, and its events can be followed.

use std::sync::mpsc;

use firmware_sim::Seen;
use gateway::{
    apps::feed::Event as Heard,
    control::{Answer, Request, client},
};
use gateway_core::vocab::AppStopReason;
use serde_json::json;
use tools::apps::log::Entry;

use super::fake::{PACKAGE, Stage};
use crate::world::{USER, WAIT, until};

/// Maximum entries that wait to be read.
const ENTRIES_KEPT_MAX: usize = 1_000;

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_is_there_again_on_glasses_that_come_back() {
    let mut stage = Stage::new().await;
    let mut socket = stage.run().await;
    let wall = |text: &str| json!({"layoutType": "text_wall", "text": text});
    socket.send(json!({"type": "display_event", "view": "main", "layout": wall("e4 e5"), "durationMs": 0})).await;
    let board =
        |event: &firmware_sim::Event| matches!(&event.seen, Seen::Display { text, .. } if text.contains("e4 e5"));
    until(&mut stage.glasses, "the board", board).await;
    let options = stage.world.options("ws", "glasses");
    stage.glasses.goodbye().await;
    let mut glasses = stage.world.connect(options).await;
    until(&mut glasses, "the board", board).await;
    // Content that was removed is not.
    socket.send(json!({"type": "display_event", "layout": {"layoutType": "clear_view"}})).await;
    until(&mut glasses, "nothing", |event| matches!(&event.seen, Seen::Display { text, .. } if text.is_empty())).await;
    glasses.goodbye().await;
    let mut glasses = stage.world.glasses("ws", "glasses").await;
    socket.send(json!({"type": "display_event", "view": "main", "layout": wall("d4 d5")})).await;
    let next =
        until(&mut glasses, "a drawing", |event| matches!(&event.seen, Seen::Display { text, .. } if !text.is_empty()));
    assert!(matches!(next.await, Seen::Display { text, .. } if text.contains("d4 d5")));
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_an_app_sees_what_happens_to_it() {
    const FINAL: &str = r#""rook to e five""#;
    let stage = Stage::new().await;
    let (data, (tell, told)) = (stage.world.data(), mpsc::sync_channel(ENTRIES_KEPT_MAX));
    let following = tokio::task::spawn_blocking(move || {
        client::follow(&data, &Request::FollowApp { package: PACKAGE.into() }, |answer| {
            let Answer::AppLog { entries } = answer else { panic!("{answer:?}") };
            entries.into_iter().all(|entry| {
                let stopped = matches!(&entry, Entry::Event(event) if event.message == "it has stopped");
                tell.send(entry).is_ok() && !stopped
            })
        })
    });
    let mut socket = stage.run().await;
    socket.subscribe(&["transcription:en-US"]).await;
    socket.subscribe(&["transcription:en-US", "button_press", "phone_notification", "nonsense"]).await;
    socket.settled().await;
    let layout = json!({"layoutType": "text_wall", "text": "Your move"});
    socket.send(json!({"type": "display_event", "view": "main", "layout": layout})).await;
    let said = |text: &str, last| Heard::Transcript {
        utterance: "u".into(),
        text: text.into(),
        language: "en",
        others: [].into(),
        last,
        start_ms: 0,
        end_ms: 1,
    };
    let feed = stage.world.gateway().services().apps.feeds.of(USER);
    feed.tell(|| said("rook", false));
    feed.tell(|| said("rook to e five", true));
    // Drawings and transcripts are many: only the latest ones are read from time to time, so that the first transcript may
    // come as well.
    let seen = tokio::task::spawn_blocking(move || {
        let mut seen = Vec::new();
        let is_last = |entry: &Entry| matches!(entry, Entry::Event(event) if event.message == FINAL);
        while !(seen.iter().any(is_last)
            && ["drawing", "subscriptions"].iter().all(|what| seen.iter().any(|entry| is(entry, what))))
        {
            seen.push(told.recv_timeout(WAIT).unwrap_or_else(|_| panic!("{seen:#?}")));
        }
        (seen, told)
    });
    let (seen, told) = seen.await.unwrap();
    let message = |what: &str| {
        let mut found = seen.iter().filter_map(|entry| match entry {
            Entry::Event(event) if event.what == what => Some(event.message.as_str()),
            _ => None,
        });
        found.next().unwrap_or_default()
    };
    assert_eq!(message("drawing"), r#"text_wall on main "Your move""#);
    assert_eq!(
        message("subscriptions"),
        "granted: transcription:en-US, button_press; refused: phone_notification (needs the permission \
         READ_NOTIFICATIONS), nonsense (no stream that is known here)"
    );
    assert!(seen.iter().any(|entry| is(entry, "start")), "{seen:#?}");
    let apps = stage.world.gateway().services().apps.clone();
    let stopping = tokio::spawn(async move { apps.stop(USER, PACKAGE, AppStopReason::User).await });
    stage.app.got("stop_request", 0).await;
    socket.close().await;
    assert!(stopping.await.unwrap());
    following.await.unwrap().unwrap();
    assert!(told.try_iter().any(|entry| is(&entry, "stop")));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_follows_sees_cause_before_effect() {
    let stage = Stage::new().await;
    let (data, (tell, told)) = (stage.world.data(), mpsc::sync_channel(ENTRIES_KEPT_MAX));
    let mut socket = stage.run().await;
    socket.subscribe(&["transcription:en-US"]).await;
    let following = tokio::task::spawn_blocking(move || {
        client::follow(&data, &Request::FollowApp { package: PACKAGE.into() }, |answer| {
            let Answer::AppLog { entries } = answer else { panic!("{answer:?}") };
            entries.into_iter().all(|entry| {
                let stopped = matches!(&entry, Entry::Event(event) if event.message == "it has stopped");
                tell.send(entry).is_ok() && !stopped
            })
        })
    });
    // The follower is connected, and has received the list of streams.
    let told = tokio::task::spawn_blocking(move || {
        while !is(&told.recv_timeout(WAIT).unwrap(), "subscriptions") {}
        told
    });
    let told = told.await.unwrap();
    // A transcript, a drawing, and a stop that follows from it: all before the last drawing is looked for.
    let feed = stage.world.gateway().services().apps.feeds.of(USER);
    let (text, others) = ("stop the app".into(), [].into());
    let (utterance, language) = ("u".into(), "en");
    feed.tell(|| Heard::Transcript { utterance, text, language, others, last: true, start_ms: 0, end_ms: 1 });
    socket.stream("transcription:en-US").await;
    let layout = json!({"layoutType": "text_wall", "text": "You said: stop the app"});
    socket.send(json!({"type": "display_event", "view": "main", "layout": layout})).await;
    socket.settled().await;
    let apps = stage.world.gateway().services().apps.clone();
    let stopping = tokio::spawn(async move { apps.stop(USER, PACKAGE, AppStopReason::User).await });
    stage.app.got("stop_request", 0).await;
    socket.close().await;
    assert!(stopping.await.unwrap());
    following.await.unwrap().unwrap();
    let seen: Vec<String> = told.try_iter().map(|entry| what(&entry)).collect();
    assert_eq!(seen, ["transcript", "drawing", "stop", "stop"]);
}

fn what(entry: &Entry) -> String {
    match entry {
        Entry::Event(event) => event.what.clone(),
        Entry::Fault(fault) => fault.what.clone(),
    }
}

fn is(entry: &Entry, what: &str) -> bool {
    matches!(entry, Entry::Event(event) if event.what == what)
}
