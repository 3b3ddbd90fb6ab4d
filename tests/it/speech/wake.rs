//! Wake phrases by their sound, with a real head (tests/data/wake): what is decoded, and what is not.

use std::path::Path;

use firmware_sim::{Glasses, Seen};

use crate::world::{World, answered, floor, pause, say, understood, until};

/// A gateway that hears its only wake phrase in the sound.
async fn world(phrases: &str) -> World {
    let head = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/wake/hey_mentra.onnx");
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
    let world = world("[\"hey mentra\"]").await;
    let wake = world.gateway().services().engines.wake.clone().expect("it listens by sound");
    let mut glasses = world.glasses("wss", "glasses").await;
    for sentence in ["We should set a timer for the potatoes tomorrow.", "Did you see the game last night?"] {
        assert_eq!(overheard(&mut glasses, sentence).await, "", "{sentence}");
        pause(&glasses).await;
    }
    let counts = wake.counts().get();
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
    let counts = wake.counts().get();
    assert_eq!((counts.heard, counts.verified, counts.vetoed, counts.unheard), (1, 1, 0, 2), "{counts:?}");

    // After an answer no phrase is needed.
    pause(&glasses).await;
    say(&mut glasses, "What is four times five?").await;
    let caption = answered(&mut glasses).await;
    assert!(caption.contains("20"), "{caption}");
    assert_eq!(wake.counts().get(), counts);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phrase_without_a_head_has_all_known_by_their_text() {
    let _floor = floor().await;
    let world = world("[\"hey mentra\", \"computer\"]").await;
    assert!(world.gateway().services().engines.wake.is_none());
    let mut glasses = world.glasses("wss", "glasses").await;
    assert!(overheard(&mut glasses, "Did you see the game last night?").await.contains("game"));
    pause(&glasses).await;
    say(&mut glasses, "Computer, what is twelve times three?").await;
    let caption = answered(&mut glasses).await;
    assert!(caption.contains("36"), "{caption}");
    world.stop().await;
}
