//! The gateway's web page, used in a real browser.
//!
//! With `LORGNETTE_SHOTS=FOLDER` the test in the browser leaves pictures of the page there.

pub mod browser;
mod endpoints;
mod evidence;
mod relay;
mod resume;
mod scripts;

use std::path::Path;

use audio::tts::Voice;
use browser::Browser;
use evidence::Folder;
use gateway::{
    config::Config,
    control::Request,
    serve::{self, Loaded, Running},
};
use serde_json::Value;

use crate::world::{ask, be_patient};

/// Sample rate that Chromium's fake microphone plays without resampling.
const MICROPHONE_HZ: u32 = 48_000;
/// Seconds until the page is ready; the microphone is silent meanwhile.
const BEFORE_S: usize = 6;
/// Seconds for the answer and its playback.
const AFTER_S: usize = 20;

struct Fixture {
    running: Running,
    port: u16,
    folder: Folder,
}

/// The gateway after the one that runs.
struct Next {
    config: Config,
    loaded: Loaded,
}

impl Fixture {
    /// The link that the operator gets.
    fn page(&self) -> String {
        self.link("")
    }

    fn link(&self, query: &str) -> String {
        format!("http://127.0.0.1:{}/try{query}#{}", self.port, self.token())
    }

    fn token(&self) -> &str {
        self.running.try_token.as_deref().unwrap()
    }

    /// What the gateway after this one needs, loaded while this one runs, as an upgrade does.
    async fn next(&self) -> Next {
        let config = config(self.folder.path(), "");
        let loaded = Loaded::load(&config, None).await.unwrap();
        Next { config, loaded }
    }

    /// The gateway stops, and the next one starts on its data, on another port.
    async fn again(self, next: Next) -> Self {
        self.running.stop().await;
        let running = next.loaded.start(next.config, None).await.unwrap();
        Self { port: running.web.port(), running, folder: self.folder }
    }

    /// The users with browsers.
    fn browsers(&self) -> Vec<String> {
        let devices = self.running.services().store.disk().devices().unwrap();
        devices.into_iter().map(|(_, device)| format!("{} of {}", device.name, device.user)).collect()
    }
}

async fn fixture(more: &str) -> Fixture {
    tuned(more, |_| ()).await
}

/// As [`fixture`], with values that no settings file has.
async fn tuned(more: &str, tune: impl FnOnce(&mut Config)) -> Fixture {
    start(Folder::new(), more, tune).await
}

fn config(data: &Path, more: &str) -> Config {
    let config = format!(
        "data_dir = {:?}\n[listen]\nweb = \"127.0.0.1:0\"\nquic = \"\"\n{more}\n[recordings]\nsessions = true\n",
        data.join("gateway")
    );
    let mut config = gateway::config::check(&config, "test").unwrap();
    be_patient(&mut config);
    config
}

async fn start(data: Folder, more: &str, tune: impl FnOnce(&mut Config)) -> Fixture {
    let mut config = config(data.path(), more);
    tune(&mut config);
    let running = serve::start(config).await.unwrap();
    Fixture { port: running.web.port(), running, folder: data }
}

/// `text` in the project's own voice, with silence around it, as a WAV for the fake microphone.
fn record(text: &str, path: &Path) {
    record_after(BEFORE_S, text, path);
}

/// As [`record`], with so many seconds of silence before it.
fn record_after(before_s: usize, text: &str, path: &Path) {
    let models = audio::models::default_dir();
    let voice = Voice::load(&models.join("hibari")).unwrap();
    let spoken = voice.synthesize(text, 1.0).unwrap();
    let spoken = audio::wav::convert(&spoken, Voice::RATE_HZ, MICROPHONE_HZ).unwrap();
    let silence = |seconds: usize| vec![0; seconds * MICROPHONE_HZ as usize];
    let pcm = [silence(before_s), spoken, silence(AFTER_S)].concat();
    audio::wav::write(path, &pcm, MICROPHONE_HZ).unwrap();
}

/// The text on the drawn display.
const LENS: &str = "[...document.querySelectorAll('#rows text')].map((row) => row.textContent).join(' ').trim()";
/// The last answer.
const ANSWER: &str = "([...document.querySelectorAll('#transcript .assistant .bubble')].at(-1)?.textContent ?? '')";

async fn open(browser: &mut Browser, fixture: &Fixture) {
    browser.open(&fixture.link("?auto=1")).await;
    browser.until("document.querySelector('#status')?.dataset.state === 'open'").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_talks_to_the_page() {
    let sound = tempfile::tempdir().unwrap();
    let wav = sound.path().join("timer.wav");
    record("Hey Mentra, set a timer for ten minutes.", &wav);
    let fixture = fixture("").await;
    let mut browser = Browser::start(Some(&wav)).await;

    // First view: what the page is, what to say, that audio stays on this machine; and only buttons that work.
    browser.look(1100, 860, "light").await;
    browser.open(&fixture.page()).await;
    browser.until("document.querySelector('#wake').textContent === 'Hey Mentra, '").await;
    let first = browser.value("document.querySelector('#first').innerText").await;
    for words in ["smart glasses", "Hey Mentra, set a timer", "Sound stays on this machine"] {
        assert!(first.as_str().unwrap().contains(words), "{words} is not in {first}");
    }
    let greyed = browser.value("document.querySelectorAll('button:disabled:not([hidden])').length").await;
    assert_eq!(greyed, 0);
    let hint = browser.value("document.querySelector('#no-model').innerText").await;
    assert!(hint.as_str().unwrap().contains("[model]"), "{hint}");
    browser.shot("1-first-light").await;
    browser.look(1100, 860, "dark").await;
    browser.shot("1-first-dark").await;

    // Spoken: recognised, executed, shown, answered by voice, and written down on both sides.
    browser.click("#talk").await;
    browser.until("document.querySelector('#status').dataset.state === 'open'").await;
    browser.until("!document.querySelector('#caption').hidden || glasses.dataset.listening === 'listening'").await;
    browser.shot("2-listening").await;
    browser.until(&format!("/timer/i.test({LENS}) && /(10:00|9:5)/.test({LENS})")).await;
    browser.until("+glasses.dataset.playedMs > 0").await;
    browser.shot("3-answer").await;
    browser.until("glasses.dataset.playState === 'finished'").await;
    let played_ms = browser.value("+glasses.dataset.playedMs").await;
    assert!(played_ms.as_u64().unwrap() > 500, "{played_ms}");
    browser.until(&format!("/timer set for ten minutes/i.test({ANSWER})")).await;
    let asked = browser.value("document.querySelector('#transcript .wearer .bubble').textContent").await;
    assert!(asked.as_str().unwrap().to_lowercase().contains("timer"), "{asked}");

    // The countdown runs without further messages of the gateway, and continues when the answer is no longer shown.
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..3 {
        let lens = browser.value(LENS).await;
        seen.push(lens.as_str().unwrap().to_owned());
        browser.until(&format!("{LENS} !== {lens}")).await;
    }
    assert!(seen.windows(2).all(|two| two[1] < two[0]), "{seen:?}");

    // One number for users, the others on demand, in the order of the events.
    let waits = waits(&mut browser).await;
    assert!(waits.contains_key("understood") && waits.contains_key("first sound played"), "{waits:?}");
    let about = browser.value("document.querySelector('#transcript .assistant summary').textContent").await;
    assert!(about.as_str().unwrap().contains("answered in "), "{about}");

    // Typed: a device tool acts on the drawn display; the arrow key brings the typed text back.
    let before: f64 = opacity(&mut browser).await;
    browser.value("document.querySelector('#words').focus()").await;
    browser.value("delete glasses.dataset.playState").await;
    browser.type_keys("set the display brightness to thirty percent").await;
    browser.key("down", "Enter").await;
    browser.until("document.querySelector('#brightness').textContent === '30'").await;
    assert!(opacity(&mut browser).await < before);
    browser.until(&format!("/30/.test({LENS})")).await;
    browser.key("down", "ArrowUp").await;
    let again = browser.value("document.querySelector('#words').value").await;
    assert_eq!(again, "set the display brightness to thirty percent");
    for (width, scheme) in [(390, "light"), (390, "dark"), (1100, "light"), (1100, "dark")] {
        browser.look(width, 860, scheme).await;
        browser.shot(&format!("4-conversation-{width}-{scheme}")).await;
        let overflow = browser.value("document.documentElement.scrollWidth - innerWidth").await;
        assert!(overflow.as_i64().unwrap() <= 0, "the page is wider than {width} px: {overflow}");
    }
    browser.value("document.querySelector('#look').click()").await;
    browser.shot("5-dashboard").await;

    // After a reload the conversation is there, and the browser is known: the key was kept, and no pairing is opened
    // again.
    let devices = || fixture.running.services().store.disk().devices().unwrap().len();
    assert_eq!(devices(), 1);
    let texts = "[...document.querySelectorAll('#transcript .bubble')].map((bubble) => bubble.textContent).join('|')";
    browser.until(&format!("/30 percent/.test({ANSWER})")).await;
    // To its end: of an answer that is cut off the next session tells.
    browser.until("glasses.dataset.playState === 'finished'").await;
    let said = browser.value(texts).await;
    open(&mut browser, &fixture).await;
    assert_eq!((browser.value(texts).await, devices()), (said, 1));
    // Another tab does not have it.
    let kept = browser.value("Object.keys(localStorage).join()").await;
    assert!(!kept.as_str().unwrap().contains("conversation"), "{kept}");
    browser.click("#clear").await;
    browser.until("document.querySelectorAll('#transcript li').length === 0").await;
    assert_eq!(browser.console, Vec::<String>::new(), "the page is silent");
    browser.close().await;
    fixture.running.stop().await;
}

/// The delays of the first answer, in milliseconds, in their order.
async fn waits(browser: &mut Browser) -> std::collections::BTreeMap<String, u64> {
    let lines = "[...document.querySelector('#transcript .assistant').querySelectorAll('.meta li')].map((lap) => lap.textContent)";
    let lines = browser.value(lines).await;
    let laps: Vec<(String, u64)> = lines
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|line| {
            let (name, ms) = line.as_str()?.strip_suffix(" ms")?.rsplit_once(' ')?;
            Some((name.to_owned(), ms.parse().ok()?))
        })
        .collect();
    assert!(laps.len() > 2 && laps.is_sorted_by_key(|(_, ms)| *ms), "{laps:?}");
    laps.into_iter().collect()
}

/// The space bar, while held, is the talk button: no wake word, and its release ends the request. In the text field it
/// is a space.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_space_bar_talks_mute_mutes_and_escape_stops() {
    let sound = tempfile::tempdir().unwrap();
    let wav = sound.path().join("held.wav");
    // The key has to be down before it.
    record_after(3 * BEFORE_S, "What is seventeen times twenty three?", &wav);
    let fixture = fixture("").await;
    let mut browser = Browser::start(Some(&wav)).await;
    browser.look(1100, 860, "light").await;
    open(&mut browser, &fixture).await;
    browser.value("document.querySelector('#words').focus()").await;
    browser.type_keys("a b").await;
    assert_eq!(browser.value("document.querySelector('#words').value").await, "a b");
    assert_eq!(browser.value("document.querySelector('#talk').dataset.state").await, "idle");
    browser.value("document.querySelector('#words').blur()").await;
    browser.key("down", " ").await;
    browser.until("document.querySelector('#talk').dataset.state === 'held'").await;
    browser.shot("8-held").await;
    browser.until("/twenty|23/i.test(document.querySelector('#caption').textContent)").await;
    browser.key("up", " ").await;
    browser.until(&format!("/391/.test({ANSWER})")).await;
    browser.until("glasses.dataset.playState === 'finished'").await;

    // Muted: the button shows its new action, and the level meter stops.
    browser.click("#mute").await;
    let mute = browser.value("[mute.textContent, mute.getAttribute('aria-pressed')].join()").await;
    assert_eq!(mute, "Unmute,true");
    browser.until("glasses.dataset.listening === 'muted' && talk.disabled").await;
    assert_eq!(browser.value("talk.style.getPropertyValue('--level')").await, "0.000");
    assert!(browser.value("document.querySelector('#talk-label').textContent").await == "Microphone off");
    browser.shot("9-muted").await;
    browser.click("#mute").await;
    browser.until("glasses.dataset.listening !== 'muted' && !talk.disabled && mute.textContent === 'Mute'").await;

    // Muted by words, the same button switches the microphone on.
    type_in(&mut browser, "stop listening").await;
    browser.until("glasses.dataset.listening === 'muted' && mute.textContent === 'Unmute'").await;
    assert_eq!(browser.value("mute.getAttribute('aria-pressed')").await, "true");
    assert!(browser.value("hint.textContent").await.as_str().unwrap().starts_with("Unmute to talk."));
    browser.click("#mute").await;
    browser.until("glasses.dataset.listening !== 'muted' && !talk.disabled && mute.textContent === 'Mute'").await;

    // A long answer, stopped in its middle: the part that was not played is marked.
    type_in(&mut browser, "what can I say").await;
    browser.until("glasses.dataset.playState === 'playing'").await;
    browser.key("down", "Escape").await;
    browser.until("glasses.dataset.playState === 'stopped'").await;
    assert_eq!(browser.console, Vec::<String>::new(), "the page is silent");
    browser.close().await;
    fixture.running.stop().await;
}

/// A question must not be answered by a key or a click that was meant for something else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_takes_no_focus_and_nothing_of_its_first_half_second_answers_it() {
    let fixture = fixture("").await;
    let mut browser = Browser::start(None).await;
    browser.look(1100, 860, "light").await;
    browser.open(&fixture.page()).await;
    browser.until("document.querySelector('#wake').textContent !== ''").await;
    type_in(&mut browser, "take a note buy milk").await;
    browser.until(&format!("/milk|note/i.test({ANSWER})")).await;
    browser.until("glasses.dataset.playState === 'finished'").await;

    // A click on Yes that began before the question appeared; then typing continues.
    browser.value("document.querySelector('#words').focus()").await;
    browser
        .value(
            "new MutationObserver(() => {
                if (approval.hidden || window.hasty) { return; }
                window.hasty = true;
                yes.dispatchEvent(new PointerEvent('pointerdown', { bubbles: true }));
                yes.click();
            }).observe(approval, { attributes: true, attributeFilter: ['hidden'] })",
        )
        .await;
    type_in(&mut browser, "delete all my notes").await;
    browser.until("window.hasty === true").await;
    assert_eq!(browser.value("document.activeElement.id").await, "words");
    browser.type_keys("buy eggs").await;
    assert_eq!(browser.value("document.querySelector('#words').value").await, "buy eggs");
    browser.until("approval.dataset.ready === 'true'").await;
    browser.shot("11-question").await;
    assert_eq!(browser.value("approval.hidden").await, false);
    assert_eq!(browser.value("getComputedStyle(activity).display").await, "none");
    assert_eq!(notes(&fixture), 1);

    browser.click("#yes").await;
    browser.until(&format!("/deleted/i.test({ANSWER})")).await;
    assert_eq!(notes(&fixture), 0);
    assert_eq!(browser.value("[approval.hidden, document.activeElement.id].join()").await, "true,words");
    assert_eq!(browser.console, Vec::<String>::new(), "the page is silent");
    browser.close().await;
    fixture.running.stop().await;
}

/// The number of notes of the page's user.
fn notes(fixture: &Fixture) -> usize {
    let disk = fixture.running.services().store.disk();
    let users = disk.devices().unwrap().into_iter().map(|(_, device)| device.user);
    users.map(|user| disk.notes(&user, 100, |_| true).unwrap().len()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_microphone_it_is_for_typing_and_says_so() {
    let fixture = fixture("").await;
    let mut browser = Browser::start(None).await;
    browser.look(1100, 860, "light").await;
    browser.open(&fixture.page()).await;
    browser.until("document.querySelector('#wake').textContent !== ''").await;
    // A user who types is not asked for a microphone, nor told that there is none.
    type_in(&mut browser, "what is two plus two").await;
    browser.until(&format!("/4|four/.test({ANSWER})")).await;
    browser.until("glasses.dataset.playState === 'finished'").await;
    assert_eq!(browser.value("document.querySelector('#problem').hidden").await, true);
    browser.until("document.querySelector('#sign-text').textContent === 'type below'").await;
    // On request the user is told, and typing continues.
    browser.click("#talk").await;
    browser.until("/No microphone/.test(document.querySelector('#problem-text').textContent)").await;
    browser.until("document.querySelector('#status').dataset.state === 'open'").await;
    type_in(&mut browser, "what is two plus three").await;
    browser.until(&format!("/5|five/.test({ANSWER})")).await;
    // Not the state of the sound: until this answer is spoken, it is that of the answer before.
    browser.until("document.querySelector('#sign-text').textContent === 'type below'").await;
    browser.shot("10-typing").await;
    assert_eq!(browser.console, Vec::<String>::new(), "the page is silent");
    browser.close().await;
    fixture.running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_says_the_words_that_wake_this_gateway_and_where_sound_and_text_go() {
    let sound = tempfile::tempdir().unwrap();
    let wav = sound.path().join("silence.wav");
    audio::wav::write(&wav, &vec![0; MICROPHONE_HZ as usize], MICROPHONE_HZ).unwrap();
    let mut browser = Browser::start(Some(&wav)).await;
    browser.look(1100, 860, "light").await;
    let remote =
        |order: &str| format!("remote = {{ base_url = \"http://192.0.2.1:9/v1\", model = \"m\", use = \"{order}\" }}");
    let (instead, fallback) = (remote("instead"), remote("fallback"));
    let fallback = fallback + "\n[voice]\nother = { base_url = \"http://192.0.2.2:9/v1\", model = \"m\" }";
    let (wake_phrases, here) =
        ("wake_phrases = [\"okay lantern\", \"lantern\"]", "The answers are made on this machine.");
    for (settings, hears, caption, sign, sound) in [
        ("", "", "Hey Mentra, set a timer", "say “Hey Mentra”", here),
        (
            wake_phrases,
            instead.as_str(),
            "Okay Lantern, set a timer",
            "say “Okay Lantern”",
            "Sound is sent to 192.0.2.1, where speech is recognised. No sound is recorded here.",
        ),
        // Of a phrase the words count, and a long one does not overlap the rest of the display.
        (
            "wake_phrases = [\"<b>listen</b> my most esteemed glasses\"]",
            "",
            "B Listen B My Most Esteemed Glasses, set a timer",
            "say “B Listen B My Most Este…”",
            here,
        ),
        (
            "always_listening = true",
            fallback.as_str(),
            "set a timer",
            "just talk",
            "Sound is sent to 192.0.2.1 when recognition here fails, or does not know the language. No sound is recorded here. Text may be sent to 192.0.2.2.",
        ),
    ] {
        let fixture = fixture(&format!("[hearing]\n{settings}\n{hears}")).await;
        open(&mut browser, &fixture).await;
        for text in [caption, sound] {
            let text = Value::from(text);
            browser.until(&format!("document.querySelector('#first').innerText.includes({text})")).await;
        }
        let text = Value::from(sign);
        browser.until(&format!("document.querySelector('#sign-text').textContent === {text}")).await;
        browser
            .shot(&format!("6-{}", sign.chars().filter(|letter| letter.is_alphanumeric()).collect::<String>()))
            .await;
        fixture.running.stop().await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_link_the_page_shows_its_code() {
    let fixture = fixture("").await;
    let mut browser = Browser::start(None).await;
    browser.look(1100, 860, "light").await;
    browser.open(&format!("http://127.0.0.1:{}/try?auto=1", fixture.port)).await;
    let text = "document.querySelector('#problem-text').textContent";
    browser.until(&format!("/devices pair [0-9]{{6}}/.test({text})")).await;
    browser.shot("12-code").await;
    assert_eq!(fixture.browsers(), Vec::<String>::new());
    let told = browser.value(text).await;
    let code = told.as_str().unwrap().rsplit(' ').next().unwrap().to_owned();
    let request = Request::PairCode { code, user: "wearer".to_owned(), name: String::new() };
    ask(&fixture.folder.path().join("gateway"), request).await.unwrap();
    browser.until("document.querySelector('#status').dataset.state === 'open'").await;
    assert_eq!(browser.value("document.querySelector('#problem').hidden").await, true);
    assert_eq!(fixture.browsers(), ["Lorgnette page of wearer"]);
    assert_eq!(browser.console, Vec::<String>::new(), "the page is silent");

    // With the link, another browser is paired by itself, and the address keeps nothing of it.
    let mut other = Browser::start(None).await;
    open(&mut other, &fixture).await;
    assert_eq!(fixture.browsers().len(), 2);
    assert_eq!(other.value("location.hash").await, "");
    other.close().await;
    browser.close().await;
    fixture.running.stop().await;
}
