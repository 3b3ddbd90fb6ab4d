//! "Translate what they say", with real speech of another language where there are weights that know it.

#[path = "../../benches/common/g722.rs"]
mod g722;

use std::path::{Path, PathBuf};

use audio::models;
use firmware_sim::Seen;

use crate::world::{World, answered, floor, pause, text, until};

/// A telephone prompt in Spanish. The English one of the same name: "You are currently the only person in this conference."
const PROMPT: &str = "asterisk-core-sounds-es-g722/usr/share/asterisk/sounds/es_MX_f_Allison/conf-onlyperson.g722";

/// The folder of recorded speech, as `cargo xtask fetch` makes it.
fn speech() -> PathBuf {
    let beside = || models::default_dir().with_file_name("speech");
    std::env::var_os("LORGNETTE_SPEECH").map_or_else(beside, PathBuf::from)
}

#[tokio::test(flavor = "multi_thread")]
async fn talk_in_spanish_is_shown_in_english_until_it_is_enough() {
    if !models::default_dir().join("whisper-base.bin").exists() {
        eprintln!("not tried: there is no whisper-base, which `lorgnette models fetch whisper-base` brings");
        return;
    }
    let _floor = floor().await;
    let pcm = g722::decode(&std::fs::read(speech().join(Path::new(PROMPT))).expect("the prompt"));
    let world = World::start().await;
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "translate what they say").await;
    assert!(answered(&mut glasses).await.contains("translating into english"));
    pause(&glasses).await;

    glasses.forget();
    glasses.say_pcm("Spanish", &pcm, None).await.expect("said");
    pause(&glasses).await;
    // Which language it is taken for is not judged: `whisper-base` takes this prompt for Catalan.
    let is_translation = |text: &str| text.starts_with("From ") && text.contains("the only person in");
    until(
        &mut glasses,
        "the prompt in English",
        |event| matches!(&event.seen, Seen::Display { text, .. } if is_translation(text)),
    )
    .await;

    text(&mut glasses, "stop translating").await;
    assert!(answered(&mut glasses).await.contains("no longer"));
}

#[tokio::test(flavor = "multi_thread")]
async fn english_weights_say_what_is_missing() {
    let _floor = floor().await;
    let world = World::with("[hearing]\nsecond_model = \"\"\n").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "translate what they say").await;
    let told = answered(&mut glasses).await;
    assert!(told.contains("cannot translate") && told.contains("whisper-base"), "{told}");
}
