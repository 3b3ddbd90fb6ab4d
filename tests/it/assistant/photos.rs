//! "What am I looking at?": an image from the glasses reaches the model that asked for it, and is stored nowhere.

use std::{fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use firmware_sim::Glasses;
use gateway::control::{Request, memory::MemoryRequest};
use serde_json::json;

use super::{
    ask, in_order, model,
    provider::{Answer, Asked, Provider},
};
use crate::world::{World, text};

/// Begins as JFIF files do (ITU-T T.871) and ends as JPEG files do, with unique pseudo-random bytes between.
fn jpeg() -> Vec<u8> {
    let mut file = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00".to_vec();
    // Three chunks on the wire.
    let mut state = 7_u32;
    file.extend(
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(40_000),
    );
    file.extend(b"\xff\xd9");
    file
}

/// Glasses whose camera returns this file.
async fn seeing(world: &World, mime: &str, file: &[u8]) -> Glasses {
    let mut options = world.options("wss", "glasses");
    options.profile.sight = Some((mime.to_owned(), file.to_vec()));
    world.connect(options).await
}

/// The model takes a photo and answers; returns its second request.
async fn look(provider: &Provider, branch: &str, glasses: &mut Glasses, keep: bool) -> Asked {
    let before = provider.asked().len();
    provider.then(branch, Answer::Calls("camera.photo", json!({"keep": keep})));
    provider.then(branch, Answer::Says("It is a heron.", 10, 5));
    let told = ask(glasses, "what am I looking at").await;
    assert!(told.contains("heron"), "{told}");
    provider.until(before + 2).await
}

/// Whether a file below a folder contains these bytes.
pub(super) fn stands(folder: &Path, wanted: &[u8]) -> bool {
    fs::read_dir(folder).expect("a folder").any(|entry| {
        let path = entry.expect("an entry").path();
        let meta = path.symlink_metadata().expect("what it is");
        match meta.is_dir() {
            true => stands(&path, wanted),
            false => meta.is_file() && memchr(&fs::read(&path).expect("its bytes"), wanted),
        }
    })
}

fn memchr(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_glasses_see_reaches_every_provider_and_stays_nowhere() {
    let file = jpeg();
    let base64 = STANDARD.encode(&file);
    for (kind, shape) in [
        (
            "chat_completions",
            json!({"type": "image_url", "image_url": {"url": format!("data:image/jpeg;base64,{base64}")}}),
        ),
        (
            "anthropic",
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": base64}}),
        ),
        ("gemini", json!({"inlineData": {"mimeType": "image/jpeg", "data": base64}})),
        ("responses", json!({"type": "input_image", "image_url": format!("data:image/jpeg;base64,{base64}")})),
    ] {
        let provider = Provider::start().await;
        let world = World::with(&format!("[model]\n{}images = true\n", model(&provider, kind, "one"))).await;
        // The declared type is wrong: the file's first bytes count.
        let mut glasses = seeing(&world, "image/png", &file).await;
        let asked = look(&provider, "one", &mut glasses, false).await;
        let body = &asked.body;
        let wanted = shape.as_object().expect("an object");
        assert!(has_object(body, wanted), "{kind}: {}", cut(body));
        in_order(&asked, &["what am I looking at", "what the tool has seen"]);

        // The next turn has a note that there was an image.
        provider.then("one", Answer::Says("Grey, I think.", 10, 5));
        ask(&mut glasses, "and what colour is it").await;
        let next = provider.until(3).await;
        in_order(&next, &["what am I looking at", "A picture was here. It was not kept.", "what colour"]);
        assert!(!next.body.to_string().contains(&base64[..400]), "{kind}");

        // The image was not kept: it is in no file, neither raw nor in base64.
        world.gateway().services().store.settled().await.expect("written");
        for part in [&file[1_000..1_200], &base64.as_bytes()[1_200..1_400]] {
            assert!(!stands(&world.data(), part), "{kind}");
        }
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_photo_taken_by_a_command_is_not_sent_to_the_model() {
    let provider = Provider::start().await;
    let model = model(&provider, "chat_completions", "one");
    let world = World::with(&format!("[model]\n{model}images = true\ncommands_offline = true\n")).await;
    let mut glasses = seeing(&world, "image/jpeg", &jpeg()).await;
    let told = ask(&mut glasses, "take a photo").await;
    assert!(told.contains("photo taken"), "{told}");
    assert_eq!(provider.asked().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_photo_that_is_deleted_is_no_longer_sent_to_the_model() {
    let file = jpeg();
    let base64 = STANDARD.encode(&file);
    let provider = Provider::start().await;
    let model = model(&provider, "chat_completions", "one");
    let world = World::with(&format!("[model]\n{model}images = true\n[router]\ntools = 1000\n")).await;
    let mut glasses = seeing(&world, "image/jpeg", &file).await;
    provider.then("one", Answer::Calls("camera.photo", json!({})));
    provider.then("one", Answer::Calls("photo.delete", json!({})));
    provider.then("one", Answer::Says("It was a heron, and it is gone.", 10, 5));
    text(&mut glasses, "look at this and delete it again").await;
    let shown = provider.until(2).await.body.to_string();
    assert!(shown.contains(&base64[..400]), "the model has seen it");
    let last = provider.until(3).await;
    in_order(&last, &["look at this", "A photo was taken.", "I deleted the last photo."]);
    assert!(!last.body.to_string().contains(&base64[..400]), "{}", cut(&last.body));
    assert!(!stands(&world.data(), &file[1_000..1_200]), "the file is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_takes_no_pictures_is_told_so_and_what_is_kept_is_erased() {
    let file = jpeg();
    let provider = Provider::start().await;
    let world = World::with(&format!("[model]\n{}", model(&provider, "chat_completions", "one"))).await;
    let mut glasses = seeing(&world, "image/jpeg", &file).await;
    let asked = look(&provider, "one", &mut glasses, true).await;
    in_order(&asked, &["A photo was taken.", "You cannot see pictures"]);
    assert!(!asked.body.to_string().contains(&STANDARD.encode(&file)[..400]));
    let part = &file[1_000..1_200];
    let kept = async {
        while !stands(&world.data(), part) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(crate::world::WAIT, kept).await.expect("the wearer has the photo");
    let request = MemoryRequest::EraseUser { user: crate::world::USER.into(), devices: false };
    world.ask(Request::Memory { request }).await.expect("erased");
    assert!(!stands(&world.data(), part));
}

/// Whether a value contains an object with these fields.
fn has_object(value: &serde_json::Value, wanted: &serde_json::Map<String, serde_json::Value>) -> bool {
    match value {
        serde_json::Value::Object(fields) => {
            wanted.iter().all(|(name, field)| fields.get(name) == Some(field))
                || fields.values().any(|field| has_object(field, wanted))
        }
        serde_json::Value::Array(items) => items.iter().any(|item| has_object(item, wanted)),
        _ => false,
    }
}

/// The beginning of a request, for messages.
fn cut(body: &serde_json::Value) -> String {
    body.to_string().chars().take(3_000).collect()
}
