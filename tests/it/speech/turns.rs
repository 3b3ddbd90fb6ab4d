//! Complete turns: a spoken sentence as input; the answer on the display and, transcribed, as speech.

use device_protocol::Codecs;
use firmware_sim::{Glasses, Seen};

use super::ear;
use crate::{
    process::Process,
    world::{self, World, answered, floor, pause, say, text, understood, until},
};

/// Says a sentence and records the answer: the transcript, its caption, and its transcribed audio.
async fn turn(glasses: &mut Glasses, sentence: &str) -> (String, String, String) {
    let before = glasses.heard().len();
    say(glasses, sentence).await;
    let transcript = understood(glasses).await;
    let caption = answered(glasses).await;
    let sound = ear::heard(&glasses.heard()[before..]);
    (transcript, caption, sound)
}

/// Whether one of the words is in the text.
fn has(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

/// Everything that the main view showed.
fn displayed(glasses: &Glasses) -> String {
    let texts = glasses.log().since(0).into_iter().filter_map(|event| match event.seen {
        Seen::Display { text, .. } => Some(text.to_lowercase()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spoken_timer_over_websocket() {
    let _floor = floor().await;
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let (transcript, caption, sound) = turn(&mut glasses, "Hey Mentra, set a timer for ten minutes.").await;
    assert!(has(&transcript, &["timer"]), "{transcript}");
    assert!(has(&caption, &["ten minutes"]), "{caption}");
    assert!(has(&sound, &["ten minutes", "10 minutes"]), "{sound}");
    assert!(has(&displayed(&glasses), &["10:00", "10 min"]), "{}", displayed(&glasses));
}

#[tokio::test(flavor = "multi_thread")]
async fn pauses_are_judged_by_sound_where_that_is_wanted() {
    let _floor = floor().await;
    for wanted in [true, false] {
        // A busy machine may compute a score late, and one that comes after the end is not awaited.
        let patient =
            "silence_ms = 1900\nsilence_command_ms = 1900\nsilence_complete_ms = 1900\nsilence_incomplete_ms = 1900\n";
        let world = World::with(&format!("[hearing]\nend_of_turn = {wanted}\n{patient}")).await;
        let mut glasses = world.glasses("wss", "glasses").await;
        say(&mut glasses, "Hey Mentra, set a timer for ten minutes.").await;
        answered(&mut glasses).await;
        pause(&glasses).await;
        let turns = world.gateway().services().telemetry.turns.last(8);
        let scores: Vec<_> = turns.iter().map(|turn| turn.end_score).collect();
        println!("end-of-turn scores: {scores:?}");
        assert!(!turns.is_empty());
        assert!(scores.iter().all(|score| score.is_some() == wanted), "{scores:?}");
        assert!(scores.iter().flatten().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_note_over_quic_outlives_the_gateway() {
    let _floor = floor().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let quic = |gateway: &Process| {
        let mut options = gateway.options();
        options.target = format!("quic://{}", gateway.quic).parse().expect("an address");
        options
    };
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, quic(&gateway)).await;
    let (_, _, sound) = turn(&mut glasses, "Hey Mentra, take a note: buy oat milk.").await;
    assert!(has(&sound, &["milk"]), "{sound}");
    glasses.goodbye().await;
    let (status, _) = gateway.terminate().await;
    assert!(status.success(), "{status}");

    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, quic(&gateway)).await;
    let (_, caption, sound) = turn(&mut glasses, "Hey Mentra, read my notes.").await;
    assert!(has(&caption, &["milk"]), "{caption}");
    assert!(has(&sound, &["milk"]), "{sound}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sound_without_a_coder_over_plain_websocket() {
    let _floor = floor().await;
    let world = World::start().await;
    let mut options = world.options("ws", "glasses");
    options.profile.codecs = Codecs::PCM16;
    let mut glasses = world.connect(options).await;
    let (transcript, _, sound) = turn(&mut glasses, "Hey Mentra, what is twelve times three?").await;
    assert!(has(&transcript, &["times", "x"]), "{transcript}");
    assert!(has(&sound, &["36", "thirty-six", "thirty six"]), "{sound}");
    let log = glasses.goodbye().await;
    let pcm = log.since(0).into_iter().any(
        |event| matches!(event.seen, Seen::Welcome { up, down, .. } if up.0.contains("pcm") && down.0.contains("pcm")),
    );
    assert!(pcm, "PCM was agreed");
}

#[tokio::test(flavor = "multi_thread")]
async fn lc3_of_either_length_both_ways() {
    let _floor = floor().await;
    let world = World::start().await;
    for (scheme, frame_us, frame_bytes) in [("wss", 10_000, 40), ("quic", 7_500, 30)] {
        let mut options = world.options(scheme, &format!("glasses-{frame_us}"));
        (options.profile.codecs, options.profile.lc3) = (Codecs::LC3, (frame_us, frame_bytes));
        let mut glasses = world.connect(options).await;
        let (transcript, _, sound) = turn(&mut glasses, "Hey Mentra, what is twelve times three?").await;
        assert!(has(&transcript, &["times", "x"]), "{transcript}");
        assert!(has(&sound, &["36", "thirty-six", "thirty six"]), "{sound}");
        let log = glasses.goodbye().await;
        let events = log.since(0);
        let is_agreed = events
            .iter()
            .any(|event| matches!(&event.seen, Seen::Welcome { up, down, .. } if up.0 == "lc3" && down.0 == "lc3"));
        assert!(is_agreed, "LC3 was agreed");
        assert!(events.iter().all(|event| !matches!(event.seen, Seen::Violation { .. })), "{frame_us} us");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_glasses_own_tool_is_called() {
    let _floor = floor().await;
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let (_, _, sound) = turn(&mut glasses, "Hey Mentra, set the brightness to forty percent.").await;
    assert!(has(&sound, &["40", "forty"]), "{sound}");
    let log = glasses.goodbye().await;
    let called = log.since(0).into_iter().find_map(|event| match event.seen {
        Seen::ToolCalled { name, arguments, ok, .. } => Some((name, arguments, ok)),
        _ => None,
    });
    assert_eq!(called.expect("a call"), ("display.brightness".to_owned(), "{\"level\":40}".to_owned(), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typed_timer_of_two_seconds_rings() {
    let _floor = floor().await;
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "set a timer for two seconds").await;
    let caption = answered(&mut glasses).await;
    assert!(has(&caption, &["two seconds"]), "{caption}");
    let before = glasses.heard().len();
    let announced = answered(&mut glasses).await;
    assert!(has(&announced, &["timer"]), "{announced}");
    let sound = ear::heard(&glasses.heard()[before..]);
    assert!(has(&sound, &["timer", "time"]), "{sound}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wearer_interrupts() {
    let _floor = floor().await;
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    say(&mut glasses, "Hey Mentra, what can I say?").await;
    let first = until(&mut glasses, "the answer begins", |event| matches!(event.seen, Seen::FirstSound { .. }));
    let Seen::FirstSound { speech, .. } = first.await else { unreachable!("it was picked") };
    glasses.say_text("Mentra, stop.").await.expect("said");
    until(&mut glasses, "a hush", |event| matches!(event.seen, Seen::Hush { .. })).await;
    let over = until(
        &mut glasses,
        "the speech is over",
        |event| matches!(event.seen, Seen::SpeechHeard { speech: number, .. } if number == speech),
    );
    assert!(matches!(over.await, Seen::SpeechHeard { complete: false, .. }), "it was not stopped");
    // The gateway serves the next request.
    pause(&glasses).await;
    let (_, _, sound) = turn(&mut glasses, "Hey Mentra, set a timer for five minutes.").await;
    assert!(has(&sound, &["five minutes", "5 minutes"]), "{sound}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wake_word_alone_and_then_the_request() {
    let _floor = floor().await;
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    say(&mut glasses, "Hey Mentra.").await;
    until(
        &mut glasses,
        "it listens",
        |event| matches!(&event.seen, Seen::Listening { state, .. } if state == "listening"),
    )
    .await;
    let (_, caption, sound) = turn(&mut glasses, "Set a timer for ten minutes.").await;
    assert!(has(&caption, &["ten minutes"]), "{caption}");
    assert!(has(&sound, &["ten minutes", "10 minutes"]), "{sound}");
}

#[tokio::test(flavor = "multi_thread")]
async fn talk_that_is_not_meant_for_it_leads_to_nothing() {
    let _floor = floor().await;
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    glasses.say_text("We should set a timer for the potatoes tomorrow.").await.expect("said");
    pause(&glasses).await;
    let (transcript, caption, _) = turn(&mut glasses, "Hey Mentra, take a note: call the dentist.").await;
    assert!(has(&transcript, &["dentist"]) && has(&caption, &["dentist"]), "{transcript} / {caption}");
    let spoken: Vec<_> = glasses
        .log()
        .since(0)
        .into_iter()
        .filter_map(|event| match event.seen {
            Seen::SpeechStart { speech, text, .. } => Some((speech, text)),
            _ => None,
        })
        .collect();
    assert!(spoken.iter().all(|(_, text)| !text.to_lowercase().contains("timer")), "{spoken:?}");
    assert!(!displayed(&glasses).contains("timer set"), "{}", displayed(&glasses));
    assert_eq!(world.notes().len(), 1);
}
