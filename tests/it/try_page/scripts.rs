//! The page with a gateway that a script plays: it refuses, is late and is gone as a test wishes.
//!
//! The scripts run in the page. Each answers what it has seen.

use serde_json::{Value, json};

use super::{Fixture, MICROPHONE_HZ, browser::Browser, fixture};

/// Opens the page; its connections lead to the script.
async fn open(fixture: &Fixture, browser: &mut Browser) {
    browser.before_pages(include_str!("scripts/gateway.js")).await;
    browser.look(1100, 860, "light").await;
    browser.open(&format!("http://127.0.0.1:{}/try", fixture.port)).await;
    browser.until("document.querySelector('#wake').textContent !== ''").await;
}

async fn finish(fixture: Fixture, browser: Browser) {
    assert_eq!(browser.console, Vec::<String>::new(), "the page is silent");
    browser.close().await;
    fixture.running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_microphone_is_open_and_it_is_the_chosen_one() {
    let sound = tempfile::tempdir().unwrap();
    let wav = sound.path().join("silence.wav");
    audio::wav::write(&wav, &vec![0; MICROPHONE_HZ as usize], MICROPHONE_HZ).unwrap();
    let fixture = fixture("").await;
    let mut browser = Browser::start(Some(&wav)).await;
    open(&fixture, &mut browser).await;
    assert_eq!(
        browser.value(include_str!("scripts/microphone.js")).await,
        json!({
            "sources": ["", "other", "other"],
            "before": {"tracks": ["ended", "live"], "open": 1},
            "problem": "The microphone is gone. Typed requests still work.",
            "again": 1,
            "after": ["ended", "ended", "ended"],
        })
    );
    // The clock of sound stands still for 3 s: half a second later the capture times are right again.
    let clock = browser.value(include_str!("scripts/clock.js")).await;
    assert_eq!(clock, json!({"even": 0, "heldUp": 1, "afterwards": 0, "wrong": 25, "last": 0}));
    finish(fixture, browser).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_gateway_refuses_or_is_not_sent_is_told() {
    let fixture = fixture("").await;
    let mut browser = Browser::start(None).await;
    open(&fixture, &mut browser).await;
    // Refused for a while, the session goes on, no sooner than the gateway wishes; refused as unknown, it is over.
    let refused = browser.value(include_str!("scripts/refused.js")).await;
    let [later, over] = [&refused["later"], &refused["over"]];
    assert!(later["waitedMs"].as_f64().unwrap() >= 1_490.0, "{refused}");
    assert_eq!((&later["token"], &later["goesOn"]), (&json!("dG9rZW4="), &json!(true)));
    assert_eq!((&over["token"], &over["goesOn"]), (&Value::Null, &json!(false)));
    assert_eq!(refused["typed"], json!(["set a timer"]));
    // What is typed before there is a session waits for it, up to four requests, and not for a later one.
    assert_eq!(
        browser.value(include_str!("scripts/waiting.js")).await,
        json!({
            "refused": ["Not sent, since 4 requests wait already: five"],
            "dropped": ["Not sent: one", "Not sent: two", "Not sent: three", "Not sent: four"],
            "sent": 0,
        })
    );
    // A yes that comes too late allows nothing.
    assert_eq!(
        browser.value(include_str!("scripts/question.js")).await,
        json!(["Not answered in time: Question 1?", "Allowed: Question 2?"])
    );
    // In a hidden page the browser's timers run once a minute.
    assert_eq!(browser.value(include_str!("scripts/ticker.js")).await, true);
    // Only what is new changes: for screen readers, the focus, and whoever reads further up.
    assert_eq!(
        browser.value(include_str!("scripts/conversation.js")).await,
        json!({
            "followed": true,
            "added": [" Second."],
            "removed": [],
            "hasFocus": true,
            "unheard": [" Second."],
            "follows": true,
            "stays": true,
            "text": "Glasses: First. Second. Third. Fourth.",
        })
    );
    finish(fixture, browser).await;
}
