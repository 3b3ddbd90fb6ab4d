//! The page of the gateway: talked to in a real browser, and its doors.
//!
//! With `LORGNETTE_SHOTS=FOLDER` the test in the browser leaves pictures of the page there.

mod browser;

use std::path::Path;

use audio::tts::Voice;
use browser::Browser;
use gateway::serve::{self, Running};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// What Chromium's fake microphone takes without resampling.
const MICROPHONE_HZ: u32 = 48_000;
/// The page needs that long to be ready; it says nothing while it is not.
const BEFORE_S: usize = 6;
/// Room for the answer, and for its playing.
const AFTER_S: usize = 20;
const KEY_DIGITS: &str = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

struct House {
    running: Running,
    port: u16,
    _data: TempDir,
}

async fn house(more: &str) -> House {
    let data = tempfile::tempdir().unwrap();
    let config =
        format!("data_dir = {:?}\n[listen]\nweb = \"127.0.0.1:0\"\nquic = \"\"\n{more}\n", data.path().join("gateway"));
    let config = gateway::config::check(&config, "test").unwrap();
    let running = serve::start(config).await.unwrap();
    House { port: running.web.port(), running, _data: data }
}

/// Sends one request as it is; answers status line, headers and body.
async fn exchange(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

async fn get(port: u16, path: &str, host: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    exchange(port, &request).await
}

async fn pair(port: u16, host: &str, headers: &str, body: &str) -> String {
    let request = format!(
        "POST /try/pair HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    exchange(port, &request).await
}

/// `text` in our own voice, with silence around it, as a WAV for the fake microphone.
fn record(text: &str, path: &Path) {
    let models = audio::models::default_dir();
    let voice = Voice::load(&models.join("hibari")).unwrap();
    let spoken = voice.synthesize(text, 1.0).unwrap();
    let spoken = audio::wav::convert(&spoken, Voice::RATE_HZ, MICROPHONE_HZ).unwrap();
    let silence = |seconds: usize| vec![0; seconds * MICROPHONE_HZ as usize];
    let pcm = [silence(BEFORE_S), spoken, silence(AFTER_S)].concat();
    audio::wav::write(path, &pcm, MICROPHONE_HZ).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_talks_to_the_page() {
    let sound = tempfile::tempdir().unwrap();
    let wav = sound.path().join("timer.wav");
    record("Hey Mentra, set a timer for ten minutes.", &wav);
    let house = house("").await;
    let mut browser = Browser::start(&wav).await;
    let page = format!("http://127.0.0.1:{}/try", house.port);

    browser.look(1000, 900, "light").await;
    browser.open(&page).await;
    browser.until("document.querySelectorAll('#rows text').length === 5").await;
    browser.shot("1-idle-light").await;
    browser.look(1000, 900, "dark").await;
    browser.shot("1-idle-dark").await;

    // Spoken: heard, understood, done, shown, said.
    browser.open(&format!("{page}?auto=1")).await;
    browser.until("document.querySelector('#status')?.dataset.state === 'open'").await;
    browser
        .until(
            "document.querySelector('#caption').dataset.final === 'false' || glasses.dataset.listening === 'listening'",
        )
        .await;
    browser.shot("2-listening").await;
    let confirmed = "document.querySelector('#display-text').textContent";
    browser.until(&format!("/timer/i.test({confirmed}) && /10|ten/.test({confirmed})")).await;
    browser.until("+glasses.dataset.playedMs > 0").await;
    browser.shot("3-answer").await;
    browser.until("glasses.dataset.playState === 'finished'").await;
    let played_ms = browser.value("+glasses.dataset.playedMs").await;
    assert!(played_ms.as_u64().unwrap() > 500, "{played_ms}");
    let drawn =
        browser.value("[...document.querySelectorAll('#rows text')].map((row) => row.textContent).join(' ')").await;
    assert!(drawn.as_str().unwrap().contains("imer"), "{drawn}");
    let heard = browser.value("document.querySelector('#caption').textContent").await;
    assert!(heard.as_str().unwrap().to_lowercase().contains("timer"), "{heard}");
    let waits = browser.value("document.querySelector('#latency').textContent").await;
    for stage in ["understood", "display", "first sound played"] {
        assert!(waits.as_str().unwrap().contains(stage), "{waits}");
    }

    // Typed: a device tool acts on the drawn display.
    let before: f64 = opacity(&mut browser).await;
    type_in(&mut browser, "set the display brightness to thirty percent").await;
    browser.until("document.querySelector('#brightness').textContent === '30'").await;
    assert!(opacity(&mut browser).await < before);
    browser.until("/30/.test(document.querySelector('#display-text').textContent)").await;
    browser.look(360, 800, "light").await;
    browser.shot("4-small").await;
    let overflow = browser.value("document.documentElement.scrollWidth - innerWidth").await;
    assert!(overflow.as_i64().unwrap() <= 0, "the page is wider than a small screen: {overflow}");
    browser.value("document.querySelector('#look').click()").await;
    browser.look(1000, 900, "dark").await;
    browser.shot("5-dashboard").await;

    // Loaded anew, the browser is known: the key stayed, and no window is opened again.
    let devices = house.running.gate().store.disk().devices().unwrap().len();
    assert_eq!(devices, 1);
    browser.open(&format!("{page}?auto=1")).await;
    browser.until("document.querySelector('#status')?.dataset.state === 'open'").await;
    assert_eq!(house.running.gate().store.disk().devices().unwrap().len(), 1);
    assert_eq!(browser.console, Vec::<String>::new(), "the page is silent");
    browser.close().await;
    house.running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_says_the_words_that_wake_this_gateway() {
    let sound = tempfile::tempdir().unwrap();
    let wav = sound.path().join("silence.wav");
    audio::wav::write(&wav, &vec![0; MICROPHONE_HZ as usize], MICROPHONE_HZ).unwrap();
    let mut browser = Browser::start(&wav).await;
    browser.look(1000, 900, "light").await;
    for (settings, caption, sign) in [
        ("", "Hey Mentra, set a timer", "say “Hey Mentra”"),
        ("wake_phrases = [\"okay lantern\", \"lantern\"]", "Okay Lantern, set a timer", "say “Okay Lantern”"),
        // Nothing of a phrase is taken for markup, and a long one does not run into the rest of the display.
        (
            "wake_phrases = [\"<b>listen</b> my most esteemed glasses\"]",
            "<b>listen</b> My Most Esteemed Glasses, set a timer",
            "say “<b>listen</b> My Most E…”",
        ),
        // The quotation marks are the style's.
        ("always_listening = true", "say set a timer", "just talk"),
    ] {
        let house = house(&format!("[hearing]\n{settings}")).await;
        browser.open(&format!("http://127.0.0.1:{}/try?auto=1", house.port)).await;
        let text = Value::from(caption);
        browser.until(&format!("document.querySelector('#caption').innerText.includes({text})")).await;
        let text = Value::from(sign);
        browser.until(&format!("document.querySelector('#sign-text').textContent === {text}")).await;
        browser
            .shot(&format!("6-{}", sign.chars().filter(|letter| letter.is_alphanumeric()).collect::<String>()))
            .await;
        house.running.stop().await;
    }
    browser.close().await;
}

async fn opacity(browser: &mut Browser) -> f64 {
    let style = browser.value("+getComputedStyle(document.querySelector('#lens')).opacity").await;
    style.as_f64().unwrap()
}

async fn type_in(browser: &mut Browser, text: &str) {
    let text = Value::from(text);
    browser
        .value(&format!(
            "document.querySelector('#words').value = {text}; document.querySelector('#typed').requestSubmit()"
        ))
        .await;
}

#[tokio::test]
async fn the_doors_of_the_page() {
    let house = house("").await;
    let port = house.port;
    let host = format!("127.0.0.1:{port}");
    let answer = get(port, "/try", &host).await;
    assert_eq!(status(&answer), 200);
    let head = answer.split("\r\n\r\n").next().unwrap().to_lowercase();
    for header in [
        "content-security-policy: default-src 'self'",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
        "content-type: text/html",
    ] {
        assert!(head.contains(header), "{header} is not in {head}");
    }
    for (path, host, expected) in [
        ("/try", "localhost", 200),
        ("/try/app.js", &host, 200),
        ("/try/wake.json", &host, 200),
        ("/try/nothing.js", &host, 404),
        ("/try/../try/pair", &host, 404),
        ("/try", "evil.example", 403),
        ("/try/app.js", "127.0.0.1.evil.example", 403),
        ("/try/wake.json", "evil.example", 403),
        ("/try/pair", &host, 405),
    ] {
        let answer = get(port, path, host).await;
        assert_eq!(status(&answer), expected, "{path} of {host}");
    }

    let own = format!("Origin: http://{host}\r\n");
    let script = "X-Lorgnette-Try: 1\r\n";
    let elsewhere = format!("Origin: http://evil.example\r\n{script}");
    let other_port = format!("Origin: http://127.0.0.1:1\r\n{script}");
    let sealed = format!("Origin: null\r\n{script}");
    let good = format!("{own}{script}");
    let proxied = format!("{good}X-Forwarded-For: 203.0.113.9\r\n");
    for (why, host, headers, body, expected) in [
        ("foreign origin", host.as_str(), elsewhere.as_str(), KEY_DIGITS, 403),
        ("another port", &host, &other_port, KEY_DIGITS, 403),
        ("sealed frame", &host, &sealed, KEY_DIGITS, 403),
        ("no origin", &host, script, KEY_DIGITS, 403),
        ("no header of the script", &host, &own, KEY_DIGITS, 403),
        ("through a proxy", &host, &proxied, KEY_DIGITS, 403),
        ("foreign host", "evil.example", &good, KEY_DIGITS, 403),
        ("no key", &host, &good, "", 400),
        ("no hexadecimal", &host, &good, &"zz".repeat(32), 400),
        ("too long", &host, &good, &"00".repeat(4096), 400),
        ("our page", &host, &good, KEY_DIGITS, 200),
    ] {
        let answer = pair(port, host, headers, body).await;
        assert_eq!(status(&answer), expected, "{why}: {answer}");
    }
    house.running.stop().await;
}

#[tokio::test]
async fn switched_off_it_does_not_exist() {
    let house = house("try_page = false").await;
    let host = format!("127.0.0.1:{}", house.port);
    for path in ["/try", "/try/", "/try/app.js", "/try/wake.json"] {
        assert_eq!(status(&get(house.port, path, &host).await), 404, "{path}");
    }
    let headers = format!("Origin: http://{host}\r\nX-Lorgnette-Try: 1\r\n");
    let answer = pair(house.port, &host, &headers, KEY_DIGITS).await;
    assert_eq!(status(&answer), 404);
    house.running.stop().await;
}
