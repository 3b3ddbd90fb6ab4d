//! What a mini-app may send, for `tests/fuzz` only.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gateway_core::vocab::{Bitmap, Content, DrawingDuration, View};
use serde_json::{Map, Value, json};
use tools::apps::manifest::App;

use super::{
    admission::{Claim, Headers},
    app_settings,
    bitmap::{self, PIXEL_BYTES_MAX},
    drawing::{self, Drawn, TEXT_CHARS_MAX},
    feed::Event,
    offer::Offer,
    photo::{self, PhotoRequest},
    refusals,
    relay::Relay,
    requests::sound::track,
    speech::{Wanted, words_of},
    storage,
    streams::{NAME_BYTES_MAX, SUBSCRIPTIONS_MAX, Subscriptions},
    wire::{self, FromApp, Subscription},
};
use crate::speech::language::Understood;
use crate::store::{Kind, Store, Write};

/// A text frame, also as the first one.
pub(crate) fn frame(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = Claim::read(text, &Headers::default());
    drop(refusals::kind(text));
    hidden(text);
    let Ok(message) = serde_json::from_str::<FromApp>(text) else { return };
    match message {
        FromApp::SubscriptionUpdate { subscriptions } => subscribe(subscriptions),
        FromApp::DisplayEvent { view, layout, duration_ms, .. } => {
            drawn(drawing::view(view.as_deref(), &layout), drawing::duration(duration_ms), &layout);
        }
        FromApp::AudioPlayRequest { audio_url, track_id, .. } => {
            let _ = (words_of(&audio_url), track_id.map(track), Relay::owns(&audio_url));
        }
        FromApp::PhotoRequest { request_id, custom_webhook_url, .. } => {
            let app = App { public_url: "https://app.example/base/".into(), ..App::default() };
            let asked = PhotoRequest { request: request_id, keep: false, url: custom_webhook_url, token: None };
            if let Ok(url) = photo::destination(&app, &asked) {
                assert_eq!(url.origin().ascii_serialization(), "https://app.example", "photos stay with their app");
            }
        }
        _ => {}
    }
}

/// The excerpt of a frame for the app's author has no secret in it.
fn hidden(text: &str) {
    let shown = refusals::shown(text);
    if let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(text) {
        let shown = serde_json::from_str::<Map<String, Value>>(&shown).expect("JSON stays JSON");
        assert_eq!(fields.len(), shown.len());
        for name in ["apiKey", "authToken", "API_KEY", "pass-word"] {
            assert!(shown.get(name).is_none_or(|value| *value == json!("***")), "{name}: {shown:?}");
        }
    }
}

fn subscribe(subscriptions: Vec<Subscription>) {
    let names: Vec<String> = subscriptions.into_iter().map(Subscription::into_name).collect();
    let mut kept = Subscriptions::default();
    for permissions in [vec![], vec!["MICROPHONE".to_owned()], vec!["ALL".to_owned()]] {
        let understood = Understood {
            own: None,
            configured: None,
            multilingual: permissions.is_empty(),
            translates: permissions.is_empty(),
        };
        let offer = Offer { understood, spoken: &[], located: permissions.is_empty() };
        let changed = kept.replace(names.clone(), &permissions, offer);
        assert!(changed.denied.len() + changed.unserved.len() <= SUBSCRIPTIONS_MAX);
        assert!(kept.told().len() <= SUBSCRIPTIONS_MAX * (2 * NAME_BYTES_MAX + 128), "{}", kept.told());
        let repeated = kept.replace(names.clone(), &permissions, offer);
        assert!(repeated.denied.is_empty() && repeated.unserved.is_empty(), "told twice");
        for event in [Event::Voice(true), Event::Button { id: "main", long: false }, Event::Head { up: true }] {
            assert!(kept.of(&event).len() <= SUBSCRIPTIONS_MAX);
        }
        drop(wire::permission_error(&changed.denied, 0).to_string());
    }
}

/// A layout as JSON.
pub(crate) fn layout(bytes: &[u8]) {
    let Ok(layout) = serde_json::from_slice::<Value>(bytes) else { return };
    drawn(drawing::view(None, &layout), DrawingDuration::Once, &layout);
}

fn drawn(view: View, duration: DrawingDuration, layout: &Value) {
    let told = drawing::told(view, duration, layout);
    assert!(!told.contains(char::is_control), "{told:?}");
    match drawing::read(layout) {
        Drawn::Refused(why) => assert!(!why.is_empty() && why.len() <= 512, "{why}"),
        Drawn::Clear => {}
        Drawn::Content(content) => fits(content),
        Drawn::Animation { frames, interval, .. } => {
            assert!((1..=64).contains(&frames.len()) && (100..=60_000).contains(&interval.as_millis()));
            frames.into_iter().for_each(fits);
        }
    }
}

/// What may reach a display.
fn fits(content: Content) {
    if let Content::Bitmap { bitmap, .. } = &content {
        assert!(bitmap.pixels().len() <= PIXEL_BYTES_MAX);
    }
    let _ = content.map_texts(|text| {
        assert!(text.chars().count() <= TEXT_CHARS_MAX);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
        text
    });
}

/// A picture as a file, as its base64, and as base64 that an app wrote.
pub(crate) fn picture(bytes: &[u8]) {
    let from_file = bitmap::read(&STANDARD.encode(bytes));
    let from_text = std::str::from_utf8(bytes).map(bitmap::read);
    for picture in [Some(from_file), from_text.ok()].into_iter().flatten().flatten() {
        let row_bytes = usize::from(picture.width_px).div_ceil(8);
        assert_eq!(picture.pixels.len(), row_bytes * usize::from(picture.height_px));
        assert!(picture.width_px > 0 && picture.pixels.len() <= PIXEL_BYTES_MAX);
        let spare = (row_bytes * 8 - usize::from(picture.width_px)) as u32;
        let clean = |row: &[u8]| row.last().is_some_and(|last| last.trailing_zeros() >= spare);
        assert!(picture.pixels.chunks(row_bytes).all(clean), "pixels beyond the edge");
        assert!(Bitmap::new(picture.width_px, picture.height_px, picture.pixels).is_some(), "the core takes it");
    }
}

/// Streams of sound over the socket: steps with a number of a stream.
pub(crate) fn relay(bytes: &[u8]) {
    let numbers = [0, 1, 2].map(|digit: u8| format!("{digit}").repeat(36));
    let mut relay = Relay::default();
    let mut open = 0_usize;
    for step in bytes.chunks(8) {
        let [kind, rest @ ..] = step else { continue };
        let number = &numbers[usize::from(kind >> 4) % 3];
        match kind & 7 {
            0 => open += usize::from(relay.start(number).is_ok()),
            1 => drop(relay.start(&String::from_utf8_lossy(rest))),
            2 => {
                let url = format!("https://gateway/api/audio/stream/{number}");
                let wanted = Wanted { url, volume: 1.0, alone: false, track: rest.first().copied() };
                if let Some(whole) = relay.play("r".into(), wanted).1 {
                    assert!(whole.file.as_ref().map_or(0, Vec::len) <= bytes.len() * 300_000);
                }
            }
            3 => {
                let mut frame = number.clone().into_bytes();
                frame.extend_from_slice(rest);
                // A large piece, so that the limit of a stream is within reach.
                if kind & 8 != 0 {
                    frame.resize(300_000, 7);
                }
                relay.push(&frame);
            }
            4 => relay.push(rest),
            5 => {
                if let Some(whole) = relay.end(number) {
                    assert!(whole.file.as_ref().map_or(0, Vec::len) <= 2_000_000);
                    open = open.saturating_sub(1);
                }
            }
            6 => assert!(relay.stop(rest.first().copied()).len() <= 2),
            _ => assert!(relay.stop(None).len() <= 2),
        }
    }
}

/// Values to store as an app sends them; the first byte: whether all that is stored is removed before.
pub(crate) async fn storage(bytes: &[u8], store: &Store) {
    let Some((clear, bytes)) = bytes.split_first() else { return };
    let Ok(values) = serde_json::from_slice::<Map<String, Value>>(bytes) else { return };
    settings(&values);
    let (user, package) = ("ann", "com.example");
    if clear & 1 == 1 {
        let write = Write::ClearRows { kind: Kind::AppStorage, owner: user.into(), prefix: storage::prefix(package) };
        store.write(write).await.expect("the store can be cleared");
    }
    let Ok(rows) = storage::rows(user, package, values.clone()) else { return };
    if store.write(Write::PutRows(rows)).await.is_ok() {
        let stored = storage::stored(store, user, &storage::prefix(package)).expect("the store can be read");
        for (key, value) in values {
            assert_eq!(stored.get(&key), Some(&value), "{key}");
        }
    }
}

/// The same values as the declarations of an app's settings, and as values for them.
fn settings(values: &Map<String, Value>) {
    let declared: Vec<Value> = values.values().cloned().collect();
    let mut set = Map::new();
    for (key, value) in values {
        if app_settings::set(&declared, &mut set, key, value.clone()).is_ok() {
            assert_eq!(set.get(key), Some(value));
        }
    }
    for setting in app_settings::filled(&declared, &set) {
        assert!(setting.get("key").is_some_and(Value::is_string) && setting.get("value").is_some());
    }
}
