//! Links that break: the session goes on over the next one, and nothing is lost or done twice.

use firmware_sim::{Event, Glasses, Seen};
use gateway::config::Config;

use crate::world::{World, answered, floor, text, understood, until};

/// Breaks the link.
async fn cut(glasses: &mut Glasses) {
    glasses.cut().await.expect("cut");
    until(glasses, "the cut", |event| matches!(event.seen, Seen::LinkLost { .. })).await;
}

/// Comes back over this transport; whether the session goes on.
async fn comes_back(world: &World, glasses: &mut Glasses, scheme: &str) -> bool {
    let target = world.address(scheme).parse().expect("an address");
    glasses.reconnect(Some(target)).await.expect("it tries");
    match until(glasses, "a welcome", |event| matches!(event.seen, Seen::Welcome { .. })).await {
        Seen::Welcome { resumed, .. } => resumed,
        _ => unreachable!("it was picked"),
    }
}

/// Final transcripts that were addressed to the assistant.
fn understood_so_far(glasses: &Glasses) -> Vec<String> {
    let texts = glasses.log().since(0).into_iter().filter_map(|event| match event.seen {
        Seen::Transcript { is_final: true, addressed: true, text, .. } => Some(text.to_lowercase()),
        _ => None,
    });
    texts.collect()
}

fn is_first_sound(event: &Event) -> bool {
    matches!(event.seen, Seen::FirstSound { .. })
}

/// What was said in full, speech by speech, and how much of each was played.
fn heard(glasses: &Glasses) -> Vec<(String, bool)> {
    let heard = glasses.log().since(0).into_iter().filter_map(|event| match event.seen {
        Seen::SpeechHeard { text, complete, .. } => Some((text, complete)),
        _ => None,
    });
    heard.collect()
}

/// A sentence is cut near its beginning, and its link comes back over the other transport when it has ended.
async fn a_sentence_over_a_cut(from: &str, to: &str) {
    let _floor = floor().await;
    let world = World::start().await;
    let mut glasses = world.glasses(from, "glasses").await;
    let pcm = firmware_sim::voice::speak("Hey Mentra, set a timer for twenty five minutes.").await.expect("a voice");
    let said = glasses.say_pcm("a timer", &pcm, None);
    let breaking = async {
        glasses
            .log()
            .find(0, |event| matches!(&event.seen, Seen::Listening { state, .. } if state == "listening"))
            .await;
        glasses.cut().await.expect("cut");
        glasses.log().find(0, |event| matches!(event.seen, Seen::LinkLost { .. })).await;
        // The rest of the sentence is only kept.
        glasses.log().find(0, |event| matches!(event.seen, Seen::Said { .. })).await;
        let target = world.address(to).parse().expect("an address");
        glasses.reconnect(Some(target)).await.expect("it tries");
    };
    let (said, ()) = tokio::join!(said, breaking);
    said.expect("said");
    let transcript = understood(&mut glasses).await;
    assert!(transcript.contains("timer") && transcript.contains("25") || transcript.contains("twenty"), "{transcript}");
    answered(&mut glasses).await;
    assert_eq!(understood_so_far(&glasses).len(), 1, "one sentence, and not two halves");
    let welcomes: Vec<_> = glasses
        .log()
        .since(0)
        .into_iter()
        .filter_map(|event| match event.seen {
            Seen::Welcome { session, resumed, transport, .. } => Some((session, resumed, transport)),
            _ => None,
        })
        .collect();
    assert_eq!(welcomes.len(), 2, "{welcomes:?}");
    assert_eq!(welcomes[0].0, welcomes[1].0, "the same session");
    assert!(!welcomes[0].1 && welcomes[1].1, "{welcomes:?}");
    assert_eq!((welcomes[0].2, welcomes[1].2), (name(from), name(to)));
    let violations =
        glasses.goodbye().await.since(0).into_iter().filter(|event| matches!(event.seen, Seen::Violation { .. }));
    assert_eq!(violations.count(), 0);
}

fn name(scheme: &str) -> &'static str {
    match scheme {
        "ws" => "ws",
        "wss" => "wss",
        _ => "quic",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentence_is_heard_over_a_cut() {
    a_sentence_over_a_cut("wss", "wss").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentence_is_heard_over_a_change_of_transport() {
    a_sentence_over_a_cut("quic", "ws").await;
    a_sentence_over_a_cut("ws", "quic").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_goes_on_where_it_was_cut() {
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    for place in ["Lisbon", "the blue box"] {
        text(&mut glasses, &format!("take a note: the keys are in {place} under the old newspaper")).await;
        answered(&mut glasses).await;
    }
    let before = heard(&glasses).len();
    text(&mut glasses, "read my notes").await;
    until(&mut glasses, "sound", is_first_sound).await;
    cut(&mut glasses).await;
    assert!(comes_back(&world, &mut glasses, "quic").await);
    answered(&mut glasses).await;
    let heard = heard(&glasses).split_off(before);
    assert_eq!(heard.len(), 1, "one speech: {heard:?}");
    assert!(heard[0].1, "complete: {heard:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mute_and_the_display_survive_a_cut() {
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "set a timer for ten minutes").await;
    answered(&mut glasses).await;
    glasses.mute(true).await.expect("muted");
    until(&mut glasses, "muted", |event| matches!(&event.seen, Seen::Listening { state, .. } if state == "muted"))
        .await;
    cut(&mut glasses).await;
    assert!(comes_back(&world, &mut glasses, "wss").await);
    let state = until(&mut glasses, "the state", |event| matches!(event.seen, Seen::Listening { .. })).await;
    assert!(matches!(&state, Seen::Listening { state, .. } if state == "muted"), "{state:?}");
    let status = world.gateway().services().roster.all();
    assert!(status.iter().all(|(_, present)| present.status.lock().unwrap().muted), "muted for tools too");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_while_the_link_is_lost_is_done_once() {
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    cut(&mut glasses).await;
    // Kept by the glasses, and replayed.
    glasses.text("take a note: water the plants").await.expect("typed");
    assert!(comes_back(&world, &mut glasses, "quic").await);
    answered(&mut glasses).await;
    // Once more, in the middle of the turn: neither the request nor the call is repeated.
    text(&mut glasses, "take a note: feed the cat").await;
    cut(&mut glasses).await;
    assert!(comes_back(&world, &mut glasses, "wss").await);
    answered(&mut glasses).await;
    assert_eq!(world.notes(), ["feed the cat", "water the plants"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_comes_back_too_late_gets_a_new_session() {
    let world = World::tuned("", |config: &mut Config| config.conversation.resume_ms_max = 300).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    assert_eq!(world.gateway().services().roster.all().len(), 1);
    cut(&mut glasses).await;
    while !world.gateway().services().roster.all().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(!comes_back(&world, &mut glasses, "wss").await);
    text(&mut glasses, "set a timer for ten minutes").await;
    assert!(answered(&mut glasses).await.contains("ten minutes"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_offers_no_resume_begins_anew() {
    let world = World::with("[limits]\nresume_s = 0\n").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    cut(&mut glasses).await;
    assert!(!comes_back(&world, &mut glasses, "wss").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_still_stands_is_replaced_and_its_session_goes_on() {
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    glasses.forget();
    // The glasses drop the old link and open the new one; the gateway may learn of both in any order.
    assert!(comes_back(&world, &mut glasses, "quic").await);
    assert_eq!(world.gateway().services().roster.all().len(), 1);
    text(&mut glasses, "set a timer for ten minutes").await;
    assert!(answered(&mut glasses).await.contains("ten minutes"));
}
