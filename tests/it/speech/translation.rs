//! Real speech of another language: "translate what they say", and what apps get of it.

#[path = "../../benches/common/g722.rs"]
mod g722;

use std::path::PathBuf;

use audio::models;
use firmware_sim::Seen;
use serde_json::{Value, json};

use crate::{
    apps::fake::Stage,
    world::{World, answered, floor, pause, text, until},
};

/// A telephone prompt in Spanish. The English one of the same name: "You are currently the only person in this conference."
const PROMPT: &str = "asterisk-core-sounds-es-g722/usr/share/asterisk/sounds/es_MX_f_Allison/conf-onlyperson.g722";

/// Recorded speech, as `cargo xtask fetch` brings it.
fn spanish() -> Vec<i16> {
    let beside = || models::default_dir().with_file_name("speech");
    let file = std::env::var_os("LORGNETTE_SPEECH").map_or_else(beside, PathBuf::from).join(PROMPT);
    let coded = std::fs::read(&file);
    g722::decode(&coded.unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask fetch`", file.display())))
}

/// The section of the settings with weights of many languages beside the English ones. They stand where only those find them who
/// name them.
fn hearing() -> String {
    let weights = models::default_dir().join("tests/whisper-base.bin");
    assert!(weights.exists(), "{} is missing: run `cargo xtask fetch`", weights.display());
    format!("[hearing]\nsecond_model = {:?}\n", weights.display().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn talk_in_spanish_is_shown_in_english_until_it_is_enough() {
    let _floor = floor().await;
    let pcm = spanish();
    let world = World::with(&hearing()).await;
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
async fn an_app_gets_in_english_what_is_said_in_spanish() {
    let _floor = floor().await;
    let pcm = spanish();
    let stage = Stage::on(World::with(&hearing()).await, |app| app).await;
    let mut socket = stage.run().await;
    let name = "translation:es-ES-to-en-US";
    socket.subscribe(&[name]).await;
    socket.settled_without("tpa_connection_error").await;
    stage.glasses.say_pcm("Spanish", &pcm, None).await.expect("said");
    pause(&stage.glasses).await;
    // Of all languages it may be taken for Catalan.
    let translated = socket.stream(name).await;
    let data = &translated["data"];
    assert!(data["text"].as_str().is_some_and(|text| text.contains("the only person in")), "{translated}");
    assert_eq!((&data["transcribeLanguage"], &data["didTranslate"]), (&json!("es-ES"), &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_gets_the_words_of_a_wearer_who_speaks_spanish() {
    let _floor = floor().await;
    let pcm = spanish();
    let stage = Stage::on(World::with(&hearing()).await, |app| app).await;
    let mut socket = stage.run().await;
    let (named, default) = ("transcription:es-ES", "transcription:en-US");
    socket.subscribe(&[named]).await;
    let refused = socket.of_type("tpa_connection_error").await;
    assert_eq!(refused["code"], "STREAM_NOT_AVAILABLE");
    assert!(refused["message"].as_str().is_some_and(|why| why.starts_with(named)), "{refused}");
    let mut options = stage.world.options("ws", "spanish");
    options.profile.language = "es-MX".to_owned();
    let glasses = stage.world.connect(options).await;
    for (name, language) in [(named, "es-ES"), (default, "en-US")] {
        // The first one is granted since these glasses have come.
        if name == default {
            socket.subscribe(&[default]).await;
            socket.settled_without("tpa_connection_error").await;
        }
        glasses.say_pcm("Spanish", &pcm, None).await.expect("said");
        pause(&glasses).await;
        let is_it = |message: &Value| {
            let data = &message["data"];
            let text = data["text"].as_str().unwrap_or_default();
            message["streamType"] == name && data["isFinal"] == true && text.contains("conferencia")
        };
        let told = socket.find("the prompt in Spanish", is_it).await;
        let data = &told["data"];
        assert_eq!((&data["transcribeLanguage"], &data["detectedLanguage"]), (&json!(language), &json!("es")));
    }
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
