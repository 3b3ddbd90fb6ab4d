//! Links that break: the session goes on over the next one, and nothing is lost or done twice.

mod panics;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use firmware_sim::{Event, Glasses, Seen, transport::Target};
use gateway::{
    config::Config,
    control::{
        Request,
        apps::{AppsRequest, Given},
    },
};
use mini_app_kit::{App, Call, Layout, Session, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Notify;

use crate::peer::Peer;
use crate::relay::Relay;
use crate::world::{WAIT, World, answered, floor, text, understood, until};

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

/// The sounds by which the wearer notices that the link is lost, and back.
fn link_sounds(glasses: &Glasses) -> Vec<&'static str> {
    let sounds = glasses.log().since(0).into_iter().filter_map(|event| match event.seen {
        Seen::LinkSound { sound } => Some(sound),
        _ => None,
    });
    sounds.collect()
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
async fn a_sentence_over_a_cut(from: &'static str, to: &'static str) {
    let _floor = floor().await;
    let world = World::start().await;
    let mut glasses = world.glasses(from, "glasses").await;
    let back = world.address(to).parse::<Target>().expect("an address");
    let breaking = async |glasses: &Glasses| {
        glasses.cut().await.expect("cut");
        // The rest of the sentence is only kept.
        glasses.log().find(0, |event| matches!(event.seen, Seen::Said { .. })).await;
        glasses.log().find(0, |event| matches!(event.seen, Seen::LinkSound { sound: "lost" })).await;
        glasses.reconnect(Some(back.clone())).await.expect("it tries");
    };
    let transcript = a_sentence_while(&mut glasses, breaking).await;
    assert!(is_the_timer(&transcript), "{transcript}");
    let welcomes = welcomes(&glasses);
    let [(first, false, over), (second, true, over_then)] = welcomes.as_slice() else { panic!("{welcomes:?}") };
    assert_eq!((first, *over), (second, from), "the same session");
    assert_eq!(*over_then, to);
    assert_eq!(link_sounds(&glasses), ["lost", "back"], "the wearer notices");
    let log = glasses.goodbye().await.since(0);
    assert_eq!(log.iter().filter(|event| matches!(event.seen, Seen::Violation { .. })).count(), 0);
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

/// Says a sentence, and does something with the network as soon as the gateway listens; the transcript.
async fn a_sentence_while(glasses: &mut Glasses, disturb: impl AsyncFn(&Glasses)) -> String {
    let pcm = firmware_sim::voice::speak("Hey Mentra, set a timer for twenty five minutes.").await.expect("a voice");
    let disturbing = async {
        let is_listening = |event: &Event| matches!(&event.seen, Seen::Listening { state, .. } if state == "listening");
        glasses.log().find(0, is_listening).await;
        disturb(glasses).await;
    };
    let (said, ()) = tokio::join!(glasses.say_pcm("a timer", &pcm, None), disturbing);
    said.expect("said");
    let transcript = understood(glasses).await;
    answered(glasses).await;
    assert_eq!(understood_so_far(glasses).len(), 1, "one sentence, and not two halves");
    transcript
}

fn is_the_timer(transcript: &str) -> bool {
    transcript.contains("timer") && (transcript.contains("25") || transcript.contains("twenty"))
}

/// Sessions, whether they were resumed, and their transports.
fn welcomes(glasses: &Glasses) -> Vec<(u32, bool, &'static str)> {
    let welcomes = glasses.log().since(0).into_iter().filter_map(|event| match event.seen {
        Seen::Welcome { session, resumed, transport, .. } => Some((session, resumed, transport)),
        _ => None,
    });
    welcomes.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_address_does_not_interrupt_quic() {
    let _floor = floor().await;
    let world = World::start().await;
    let mut glasses = world.glasses("quic", "glasses").await;
    let transcript =
        a_sentence_while(&mut glasses, async |glasses| glasses.rebind().await.expect("another address")).await;
    assert!(is_the_timer(&transcript), "{transcript}");
    assert_eq!(welcomes(&glasses).len(), 1, "no new handshake");
    // All of 127.0.0.0/8 is this machine on Linux; elsewhere only the port is another one.
    let (moved, _) = glasses.log().find(0, |event| matches!(event.seen, Seen::Moved { .. })).await;
    let Seen::Moved { address } = moved.seen else { unreachable!("it was picked") };
    assert!(!cfg!(target_os = "linux") || address.starts_with("127.0.0.2:"), "{address}");
    // An operator sees it where it is.
    let seen = world.gateway().services().roster.get(glasses.fingerprint()).expect("a session").via.peer.to_string();
    let port = |address: &str| address.rsplit(':').next().map(str::to_owned);
    assert_eq!(port(&seen), port(&address));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_datagrams_vanish_the_session_goes_on_over_websocket() {
    let _floor = floor().await;
    let world = World::start().await;
    let relay = Relay::to(world.gateway().quic.expect("QUIC is on")).await.expect("two ports");
    let mut options = world.options("quic", "glasses");
    options.target = format!("quic://{}", relay.address).parse().expect("an address");
    options.other = Some(world.address("wss").parse().expect("an address"));
    let mut glasses = world.connect(options).await;
    let transcript = a_sentence_while(&mut glasses, async |_| relay.block(true)).await;
    assert!(is_the_timer(&transcript), "{transcript}");
    let welcomes = welcomes(&glasses);
    let [(first, false, "quic"), (second, true, "wss")] = welcomes.as_slice() else { panic!("{welcomes:?}") };
    assert_eq!(first, second);
}

fn is_welcome_over(wanted: &'static str) -> impl Fn(&Event) -> bool {
    move |event| matches!(event.seen, Seen::Welcome { transport, .. } if transport == wanted)
}

#[tokio::test(flavor = "multi_thread")]
async fn where_datagrams_pass_again_the_session_goes_back_to_quic_by_itself() {
    let world = World::start().await;
    let relay = Relay::to(world.gateway().quic.expect("QUIC is on")).await.expect("two ports");
    let mut options = world.options("quic", "glasses");
    options.target = format!("quic://{}", relay.address).parse().expect("an address");
    options.other = Some(world.address("wss").parse().expect("an address"));
    options.first_again_after = Duration::from_millis(200);
    let mut glasses = world.connect(options).await;
    until(&mut glasses, "the first session", is_welcome_over("quic")).await;
    relay.block(true);
    until(&mut glasses, "the session over WebSocket", is_welcome_over("wss")).await;
    relay.block(false);
    until(&mut glasses, "the session over QUIC", is_welcome_over("quic")).await;
    let welcomes = welcomes(&glasses);
    let [(first, false, "quic"), (second, true, "wss"), (third, true, "quic")] = welcomes.as_slice() else {
        panic!("{welcomes:?}")
    };
    assert!(first == second && second == third, "{welcomes:?}");
    text(&mut glasses, "set a timer for ten minutes").await;
    assert!(answered(&mut glasses).await.contains("ten minutes"));
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

/// Whether something else stands on the main view now, and begins with this.
fn shows(begin: &'static str) -> impl Fn(&Event) -> bool {
    move |event| matches!(&event.seen, Seen::Display { view, text, .. } if view == "main" && text.starts_with(begin))
}

#[tokio::test(flavor = "multi_thread")]
async fn mute_and_the_display_survive_a_cut() {
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    // Set on other glasses of the wearer: on these no answer covers it.
    let mut others = world.glasses("wss", "others").await;
    text(&mut others, "set a timer for ten minutes").await;
    until(&mut glasses, "the timer", shows("Timer\n")).await;
    answered(&mut others).await;
    glasses.mute(true).await.expect("muted");
    until(&mut glasses, "muted", |event| matches!(&event.seen, Seen::Listening { state, .. } if state == "muted"))
        .await;
    cut(&mut glasses).await;
    // What changes meanwhile is shown when the link is back.
    text(&mut others, "set a timer for five minutes").await;
    until(&mut others, "its answer", |event| matches!(event.seen, Seen::SpeechStart { .. })).await;
    let mark = glasses.log().mark();
    assert!(comes_back(&world, &mut glasses, "wss").await);
    let state = until(&mut glasses, "the state", |event| matches!(event.seen, Seen::Listening { .. })).await;
    assert!(matches!(&state, Seen::Listening { state, .. } if state == "muted"), "{state:?}");
    until(&mut glasses, "both timers", shows("Timer +1\n")).await;
    let since = glasses.log().since(mark);
    let mut drawn = since.iter().filter(|event| matches!(&event.seen, Seen::Display { view, .. } if view == "main"));
    assert!(drawn.all(shows("Timer")), "{since:#?}");
    let present = world.gateway().services().roster.get(glasses.fingerprint()).expect("a session");
    assert!(present.status.lock().unwrap().muted, "muted for tools too");
}

/// A tool of the app without arguments.
#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_is_at_work_during_a_cut_goes_on_in_its_session() {
    const PACKAGE: &str = "com.example.shelf";
    const KEY: &str = "0123456789abcdef";
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let (called, go_on, sessions) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (at_work, released, opened) = (called.clone(), go_on.clone(), sessions.clone());
    let shelve = move |call: Call, _: Nothing| {
        let (at_work, released) = (at_work.clone(), released.clone());
        async move {
            at_work.notify_one();
            released.notified().await;
            call.session()?.show(Layout::text("One parcel"))?;
            Ok::<_, ToolError>("It is on the shelf.")
        }
    };
    let shelve = Tool::new("shelve", "Puts the parcel on the shelf.", shelve).phrase("shelve the parcel").draws();
    let app = App::new(PACKAGE, "Shelf").key(KEY).tool(shelve).on_session(move |session: Session| {
        opened.fetch_add(1, Ordering::SeqCst);
        async move { session.ended().await }
    });
    let manifest = app.manifest("http://127.0.0.1:9").to_string();
    let bound = app.bind("127.0.0.1:0").await.expect("a port");
    let url = Some(format!("http://{}", bound.address()));
    let serving = tokio::spawn(bound.serve());
    let given = Given { manifest, url, api_key: Some(KEY.to_owned()), ..Given::default() };
    world.ask(Request::Apps { request: AppsRequest::Add(given) }).await.expect("the app is installed");

    text(&mut glasses, "shelve the parcel").await;
    tokio::time::timeout(WAIT, called.notified()).await.expect("the app is called");
    cut(&mut glasses).await;
    assert!(comes_back(&world, &mut glasses, "quic").await);
    let mark = glasses.mark();
    go_on.notify_one();
    until(
        &mut glasses,
        "the app's answer",
        |event| matches!(&event.seen, Seen::SpeechHeard { complete: true, text, .. } if text.contains("on the shelf")),
    )
    .await;
    // Drawn over the app's own socket, before or after the answer.
    let drawn = |event: &Event| matches!(&event.seen, Seen::Display { text, .. } if text.contains("One parcel"));
    tokio::time::timeout(WAIT, glasses.log().find(mark, drawn)).await.expect("the app draws");
    assert_eq!(sessions.load(Ordering::SeqCst), 1, "its session is the same");
    let called_again = tokio::time::timeout(Duration::ZERO, called.notified()).await;
    assert!(called_again.is_err(), "one call");
    serving.abort();
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
    until(&mut glasses, "the sound of a loss", |event| matches!(event.seen, Seen::LinkSound { sound: "error" })).await;
    text(&mut glasses, "set a timer for ten minutes").await;
    assert!(answered(&mut glasses).await.contains("ten minutes"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_offers_no_resume_begins_anew() {
    let world = World::with("[limits]\nresume_s = 0\n").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "what can you do").await;
    until(&mut glasses, "sound", is_first_sound).await;
    cut(&mut glasses).await;
    assert!(!comes_back(&world, &mut glasses, "wss").await);
    until(&mut glasses, "what was not heard", is_told_late).await;
}

/// Whether an answer is told that was not heard in the session before.
fn is_told_late(event: &Event) -> bool {
    matches!(&event.seen, Seen::SpeechStart { text, .. } if text.contains("did not reach you"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_a_goodbye_has_cut_off_is_told_in_the_next_session() {
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "what can you do").await;
    until(&mut glasses, "sound", is_first_sound).await;
    glasses.goodbye().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    until(&mut glasses, "what was not heard", is_told_late).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_a_stop_has_cut_off_is_told_to_glasses_that_begin_anew() {
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "what can you do").await;
    until(&mut glasses, "sound", is_first_sound).await;
    let world = world.again().await;
    // Without their token, as behind a crash of their own.
    let mut anew = world.glasses("wss", "glasses").await;
    until(&mut anew, "what was cut off", is_told_late).await;
    world.stop().await;
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

/// Waits until the link of the only session is lost, or stands; the number of the session.
async fn link_of_the_session(world: &World, is_lost: bool) -> u32 {
    loop {
        let all = world.gateway().services().roster.all();
        if let [(_, present)] = all.as_slice()
            && present.via.lost_us.is_some() == is_lost
        {
            return present.session;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_welcome_that_is_lost_on_its_way_costs_no_session() {
    for scheme in ["wss", "quic"] {
        let world = World::start().await;
        let first = Peer::welcomed(&world, scheme, "glasses").await;
        let token = first.token.clone();
        let session = link_of_the_session(&world, false).await;
        drop(first);
        for _ in 0..2 {
            link_of_the_session(&world, true).await;
            let mut unread = Peer::connect(&world, scheme, "glasses").await;
            unread.token.clone_from(&token);
            let handshake = unread.hello().await;
            unread.prove(&handshake).await;
            // The session has moved here, and its welcome with the new token is on its way.
            link_of_the_session(&world, false).await;
            drop(unread);
        }
        link_of_the_session(&world, true).await;
        let mut again = Peer::connect(&world, scheme, "glasses").await;
        again.token.clone_from(&token);
        again.shake().await;
        assert_ne!(again.token, token);
        assert_eq!(link_of_the_session(&world, false).await, session, "{scheme}: the same session");
        world.stop().await;
    }
}

/// Whether the session of this number waits for its device; `None`: it is over.
fn is_waiting(world: &World, session: u32) -> Option<bool> {
    let all = world.gateway().services().roster.all();
    all.iter().find(|(_, present)| present.session == session).map(|(_, present)| present.via.lost_us.is_some())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stolen_token_is_worth_nothing_without_the_key_of_its_device() {
    let world = World::start().await;
    let glasses = Peer::welcomed(&world, "wss", "glasses").await;
    let token = glasses.token.clone();
    let session = link_of_the_session(&world, false).await;
    world.glasses("wss", "thief").await.goodbye().await;
    let steal = async || {
        let mut thief = Peer::connect(&world, "wss", "thief").await;
        thief.token.clone_from(&token);
        assert!(!thief.shake().await, "it gets a session of its own");
        assert_ne!(thief.token, token);
    };
    steal().await;
    assert_eq!(is_waiting(&world, session), Some(false), "the link still stands");
    drop(glasses);
    while is_waiting(&world, session) == Some(false) {
        tokio::task::yield_now().await;
    }
    steal().await;
    assert_eq!(is_waiting(&world, session), Some(true), "it still waits for its own device");
    let mut again = Peer::connect(&world, "wss", "glasses").await;
    again.token.clone_from(&token);
    assert!(again.shake().await);
    assert_eq!(is_waiting(&world, session), Some(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_waits_for_its_link_locks_nobody_out() {
    let world = World::with("[limits]\nsessions = 1").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    cut(&mut glasses).await;
    while world.gateway().services().roster.all().iter().any(|(_, present)| present.via.lost_us.is_none()) {
        tokio::task::yield_now().await;
    }
    let mut others = world.glasses("wss", "others").await;
    text(&mut others, "what is two plus two?").await;
    assert!(answered(&mut others).await.contains('4'));
    assert!(comes_back(&world, &mut glasses, "wss").await, "it is not lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_gives_way_to_others_tells_what_was_not_heard() {
    let world = World::with("[limits]\nsessions = 1").await;
    let all_wait = async || {
        while world.gateway().services().roster.all().iter().any(|(_, present)| present.via.lost_us.is_none()) {
            tokio::task::yield_now().await;
        }
    };
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "what can you do").await;
    until(&mut glasses, "sound", is_first_sound).await;
    cut(&mut glasses).await;
    all_wait().await;
    let mut others = world.glasses("wss", "others").await;
    cut(&mut others).await;
    all_wait().await;
    let mut thirds = world.glasses("wss", "thirds").await;
    until(&mut thirds, "what was not heard", is_told_late).await;
}
