//! Wake phrases by their sound, with a real head (tests/data/wake): what is decoded, and what is not.

use std::path::{Path, PathBuf};

use firmware_sim::{Event, Glasses, Seen, wake::Chip};

use crate::restart::is_understood_over_a_kill_9;
use crate::world::{World, answered, floor, pause, say, understood, until};

/// A head of "hey mentra".
fn head() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/wake/hey_mentra.onnx")
}

/// A gateway that hears its only wake phrase in the sound.
async fn acoustic_world(phrases: &str) -> World {
    let head = head();
    let settings = format!("[hearing]\nwake = \"acoustic\"\nwake_phrases = {phrases}\nwake_heads = [{head:?}]\n");
    World::with(&settings).await
}

/// Says a sentence; the words of its last transcript.
async fn overheard(glasses: &mut Glasses, sentence: &str) -> String {
    say(glasses, sentence).await;
    let last = until(glasses, "a last transcript", |event| {
        matches!(event.seen, Seen::Transcript { is_final: true, addressed: false, .. })
    });
    match last.await {
        Seen::Transcript { text, .. } => text.to_lowercase(),
        _ => unreachable!("it was picked"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_follows_a_wake_phrase_is_decoded() {
    let _floor = floor().await;
    let world = acoustic_world("[\"hey mentra\"]").await;
    let wake = world.gateway().services().engines.wake_counts.clone();
    assert!(world.gateway().services().engines.wake.is_some(), "it listens by sound");
    let mut glasses = world.glasses("wss", "glasses").await;
    for sentence in ["We should set a timer for the potatoes tomorrow.", "Did you see the game last night?"] {
        assert_eq!(overheard(&mut glasses, sentence).await, "", "{sentence}");
        pause(&glasses).await;
    }
    let counts = wake.get();
    assert_eq!((counts.unheard, counts.heard, counts.skipped), (2, 0, 0), "{counts:?}");

    // In one breath: no word is lost, neither before the detection nor after it.
    say(&mut glasses, "Hey Mentra, what is twelve times three?").await;
    let transcript = understood(&mut glasses).await;
    assert!(
        transcript.contains("what is") && (transcript.contains("three") || transcript.contains('3')),
        "{transcript}"
    );
    let caption = answered(&mut glasses).await;
    assert!(caption.contains("36"), "{caption}");
    let counts = wake.get();
    assert_eq!((counts.heard, counts.verified, counts.vetoed, counts.unheard), (1, 1, 0, 2), "{counts:?}");

    // After an answer no phrase is needed.
    pause(&glasses).await;
    say(&mut glasses, "What is four times five?").await;
    let caption = answered(&mut glasses).await;
    assert!(caption.contains("20"), "{caption}");
    assert_eq!(wake.get(), counts);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phrase_without_a_head_has_all_known_by_their_text() {
    let _floor = floor().await;
    let world = acoustic_world("[\"hey mentra\", \"computer\"]").await;
    assert!(world.gateway().services().engines.wake.is_none());
    let mut glasses = world.glasses("wss", "glasses").await;
    assert!(overheard(&mut glasses, "Did you see the game last night?").await.contains("game"));
    pause(&glasses).await;
    say(&mut glasses, "Computer, what is twelve times three?").await;
    let caption = answered(&mut glasses).await;
    assert!(caption.contains("36"), "{caption}");
    world.stop().await;
}

/// Glasses that hear "hey mentra" by themselves.
async fn listening_glasses(world: &World, scheme: &str, sleeps: bool) -> Glasses {
    let mut options = world.options(scheme, "glasses");
    options.wake = Some(Chip::load(&head(), &audio::models::default_dir(), sleeps).expect("a chip"));
    world.connect(options).await
}

fn warnings(glasses: &Glasses) -> Vec<String> {
    let warning = |event: Event| match event.seen {
        Seen::Warning { code, name, .. } => Some(format!("{code} {name}")),
        _ => None,
    };
    glasses.log().since(0).into_iter().filter_map(warning).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn glasses_that_hear_the_phrase_by_themselves_decide_what_is_decoded() {
    let _floor = floor().await;
    let world = World::start().await;
    let counts = world.gateway().services().engines.wake_counts.clone();
    let mut glasses = listening_glasses(&world, "wss", false).await;
    assert_eq!(overheard(&mut glasses, "Did you see the game last night?").await, "", "nobody needs it");
    pause(&glasses).await;
    say(&mut glasses, "Hey Mentra, what is twelve times three?").await;
    let transcript = understood(&mut glasses).await;
    assert!(transcript.contains("what is"), "{transcript}");
    let caption = answered(&mut glasses).await;
    assert!(caption.contains("36"), "{caption}");
    let tally = counts.get();
    assert_eq!((tally.heard, tally.verified, tally.vetoed, tally.unheard), (1, 1, 0, 1), "{tally:?}");
    assert_eq!(warnings(&glasses), Vec::<String>::new());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn glasses_that_sleep_send_the_phrase_and_what_follows() {
    for scheme in ["quic", "wss"] {
        let _floor = floor().await;
        let world = World::start().await;
        let mut glasses = listening_glasses(&world, scheme, true).await;
        let before = glasses.mark();
        say(&mut glasses, "Did you see the game last night?").await;
        pause(&glasses).await;
        let heard = glasses.log().since(before);
        let listening = |event: &&Event| match &event.seen {
            Seen::Listening { state, .. } => state != "idle",
            seen => matches!(seen, Seen::Transcript { .. }),
        };
        assert_eq!(heard.iter().filter(listening).count(), 0, "{scheme}: nothing was sent: {heard:#?}");
        say(&mut glasses, "Hey Mentra, what is twelve times three?").await;
        let transcript = understood(&mut glasses).await;
        assert!(transcript.contains("what is"), "{scheme}: {transcript}");
        let caption = answered(&mut glasses).await;
        assert!(caption.contains("36"), "{scheme}: {caption}");
        // After an answer the gateway takes what is said for meant for it, so they are awake.
        pause(&glasses).await;
        say(&mut glasses, "What is four times five?").await;
        let caption = answered(&mut glasses).await;
        assert!(caption.contains("20"), "{scheme}: {caption}");
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phrase_that_the_gateway_does_not_know_is_told_to_the_glasses() {
    let _floor = floor().await;
    let world = World::with("[hearing]\nwake_phrases = [\"computer\"]\n").await;
    let mut glasses = listening_glasses(&world, "wss", false).await;
    say(&mut glasses, "Hey Mentra, what is twelve times three?").await;
    let told = until(&mut glasses, "a warning", |event| matches!(event.seen, Seen::Warning { .. }));
    told.await;
    assert_eq!(warnings(&glasses), ["wake_phrase_unknown hey mentra"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_may_have_all_decoded_in_spite_of_the_glasses() {
    let _floor = floor().await;
    let world = World::with("[hearing]\ndevice_wake = false\n").await;
    let mut glasses = listening_glasses(&world, "wss", false).await;
    assert!(overheard(&mut glasses, "Did you see the game last night?").await.contains("game"));
    assert_eq!(world.gateway().services().engines.wake_counts.get().heard, 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_a_phrase_that_the_glasses_have_heard_is_decoded_over_a_kill_9() {
    let _floor = floor().await;
    // The phrase is known by its text when the gateway is killed: by then it is acknowledged, as a rule.
    let chip = Chip::load(&head(), &audio::models::default_dir(), false).expect("a chip");
    is_understood_over_a_kill_9(|options| options.wake = Some(chip)).await;
}
