//! The page's session outlives a lost link.

use serde_json::{Value, json};

use super::{ANSWER, Fixture, browser::Browser, fixture, notes, record, relay::Relay, tuned, type_in};

/// Words of the line that says how the connection is.
const STATUS: &str = "document.querySelector('#status').textContent";
/// The lines of one kind in the list of events, the newest first.
fn journal(kind: &str) -> String {
    format!("[...document.querySelectorAll('#journal li[data-kind={kind}] span')].map((line) => line.textContent)")
}

/// A page in a session over a relay.
async fn page(fixture: &Fixture, browser: &mut Browser) -> Relay {
    let relay = Relay::start(fixture.port).await;
    browser.look(1100, 860, "light").await;
    browser.open(&fixture.link("?auto=1").replace(&format!(":{}/", fixture.port), &format!(":{}/", relay.port))).await;
    browser.until("document.querySelector('#status')?.dataset.state === 'open'").await;
    relay
}

/// Breaks the link, and waits until the wearer is told.
async fn lose(relay: &Relay, browser: &mut Browser, words: &str) {
    relay.cut();
    browser.until("document.querySelector('#status').dataset.state === 'lost'").await;
    let status = browser.value(STATUS).await;
    assert!(status.as_str().unwrap().starts_with(&format!("The connection is lost. {words}")), "{status}");
    browser.until("glasses.dataset.chime === 'lost'").await;
    assert_eq!(browser.value("document.querySelector('#sign-text').textContent").await, "connection lost");
}

/// Mends the link, and waits until the wearer is told that the session goes on.
async fn come_back(relay: &Relay, browser: &mut Browser) {
    relay.mend();
    browser.until("document.querySelector('#status').dataset.state === 'open'").await;
    assert_eq!(browser.value(STATUS).await, "Back.");
    assert_eq!(browser.value("glasses.dataset.chime").await, "back");
}

/// Ends both. The browser itself reports connections that fail; the page reports nothing.
async fn finish(fixture: Fixture, browser: Browser) {
    let own: Vec<_> = browser
        .console
        .iter()
        .filter(|line| !line.contains("WebSocket connection to") && !line.contains("net::ERR_"))
        .collect();
    assert_eq!(own, Vec::<&String>::new(), "the page is silent");
    browser.close().await;
    fixture.running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentence_over_a_cut_is_one_sentence() {
    let sound = tempfile::tempdir().unwrap();
    let wav = sound.path().join("timer.wav");
    record("Hey Mentra, set a timer for twenty five minutes.", &wav);
    let fixture = fixture("").await;
    let mut browser = Browser::start(Some(&wav)).await;
    let relay = page(&fixture, &mut browser).await;
    browser.until("glasses.dataset.listening === 'listening'").await;
    lose(&relay, &mut browser, "What you say is kept.").await;
    browser.shot("12-lost").await;
    come_back(&relay, &mut browser).await;
    browser.shot("13-back").await;
    browser.until(&format!("/timer set for (25|twenty[- ]five) minutes/i.test({ANSWER})")).await;
    let heard = browser.value(&journal("heard")).await;
    assert_eq!(heard.as_array().unwrap().len(), 1, "one sentence, and not two halves: {heard}");
    let sessions = browser.value(&journal("session")).await;
    let sessions: Vec<_> = sessions.as_array().unwrap().iter().filter_map(|line| line.as_str()).collect();
    assert!(
        matches!(sessions[..], [back, lost, _] if back.ends_with("goes on") && lost.starts_with("link lost")),
        "{sessions:?}"
    );
    finish(fixture, browser).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_plays_goes_on_over_a_cut() {
    let fixture = fixture("").await;
    let mut browser = Browser::start(None).await;
    let relay = page(&fixture, &mut browser).await;
    type_in(&mut browser, "what can I say").await;
    browser.until("glasses.dataset.playState === 'playing' && +glasses.dataset.playedMs > 300").await;
    lose(&relay, &mut browser, "What you type is kept.").await;
    // What had come is played to its end.
    browser.until("glasses.dataset.playState === 'starved'").await;
    // Typed meanwhile: done once, after the answer.
    type_in(&mut browser, "take a note: water the plants").await;
    come_back(&relay, &mut browser).await;
    browser.until(&format!("/water the plants/i.test({ANSWER}) && glasses.dataset.playState === 'finished'")).await;
    assert_eq!(notes(&fixture), 1);
    // In the middle of an answer that nothing interrupts.
    type_in(&mut browser, "what can I say").await;
    browser.until("glasses.dataset.playState === 'playing' && +glasses.dataset.playedMs > 300").await;
    let before = browser.value(&format!("{}.length", journal("played"))).await;
    lose(&relay, &mut browser, "What you type is kept.").await;
    browser.until("glasses.dataset.playState === 'starved'").await;
    come_back(&relay, &mut browser).await;
    browser.until(&format!("{}.length > {before}", journal("played"))).await;
    let played = browser.value(&format!("{}[0]", journal("played"))).await;
    assert!(played.as_str().unwrap().ends_with("s, finished"), "one speech, to its end: {played}");
    assert_eq!(
        browser.value("document.querySelectorAll('#transcript .assistant:last-child .unheard').length").await,
        0
    );
    finish(fixture, browser).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mute_survives_a_cut_and_may_be_changed_meanwhile() {
    let sound = tempfile::tempdir().unwrap();
    let wav = sound.path().join("timer.wav");
    record("Hey Mentra, set a timer for ten minutes.", &wav);
    let fixture = fixture("").await;
    let mut browser = Browser::start(Some(&wav)).await;
    let relay = page(&fixture, &mut browser).await;
    let muted = || {
        let all = fixture.running.services().roster.all();
        all.iter().map(|(_, present)| present.status.lock().unwrap().muted).collect::<Vec<_>>()
    };
    browser.click("#mute").await;
    browser.until("glasses.dataset.listening === 'muted'").await;
    lose(&relay, &mut browser, "What you type is kept.").await;
    come_back(&relay, &mut browser).await;
    assert_eq!(browser.value("glasses.dataset.listening").await, "muted");
    assert_eq!(muted(), [true]);
    // Unmuted without a link: the gateway learns of it with the replay.
    lose(&relay, &mut browser, "What you type is kept.").await;
    browser.click("#mute").await;
    assert!(browser.value(STATUS).await.as_str().unwrap().contains("What you say is kept."));
    come_back(&relay, &mut browser).await;
    browser.until("glasses.dataset.listening !== 'muted'").await;
    assert_eq!(muted(), [false]);
    finish(fixture, browser).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_too_long_another_session_begins_and_the_page_says_so() {
    let fixture = tuned("", |config| config.conversation.resume_ms_max = 300).await;
    let mut browser = Browser::start(None).await;
    let relay = page(&fixture, &mut browser).await;
    type_in(&mut browser, "what can I say").await;
    browser.until("glasses.dataset.playState === 'playing'").await;
    lose(&relay, &mut browser, "What you type is kept.").await;
    while !fixture.running.services().roster.all().is_empty() {
        tokio::task::yield_now().await;
    }
    relay.mend();
    browser.until("document.querySelector('#status').dataset.state === 'open'").await;
    let status = browser.value(STATUS).await;
    assert!(status.as_str().unwrap().contains("could not go on"), "{status}");
    // That of the answer which did not reach the wearer, and is told now, may have followed.
    let chime = browser.value("glasses.dataset.chime").await;
    assert!(["error", "alarm"].contains(&chime.as_str().unwrap()), "{chime}");
    browser.shot("14-anew").await;
    // What was not heard of the answer is pale; nothing of the old session disturbs the new one.
    assert!(browser.value("document.querySelectorAll('#transcript .unheard').length").await.as_u64().unwrap() > 0);
    type_in(&mut browser, "set a timer for ten minutes").await;
    browser.until(&format!("/timer set for ten minutes/i.test({ANSWER})")).await;
    browser.until("glasses.dataset.playState === 'finished'").await;
    finish(fixture, browser).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentence_over_a_restart_is_one_sentence() {
    let sound = tempfile::tempdir().unwrap();
    let wav = sound.path().join("timer.wav");
    record("Hey Mentra, set a timer for twenty five minutes.", &wav);
    let fixture = fixture("").await;
    // The page keeps so much sound only: models may not be loaded meanwhile.
    let next = fixture.next().await;
    let mut browser = Browser::start(Some(&wav)).await;
    let relay = page(&fixture, &mut browser).await;
    browser.until("glasses.dataset.listening === 'listening'").await;
    relay.cut();
    let fixture = fixture.again(next).await;
    relay.lead_to(fixture.port);
    relay.mend();
    browser.until(&format!("{}[0].endsWith('goes on after a restart')", journal("session"))).await;
    browser.until(&format!("/timer set for (25|twenty[- ]five) minutes/i.test({ANSWER})")).await;
    let heard = browser.value(&journal("heard")).await;
    assert_eq!(heard.as_array().unwrap().len(), 1, "one sentence, and not two halves: {heard}");
    finish(fixture, browser).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_typed_while_the_gateway_is_upgraded_is_done_once() {
    let fixture = fixture("").await;
    let mut browser = Browser::start(None).await;
    let relay = page(&fixture, &mut browser).await;
    type_in(&mut browser, "take a note: feed the cat").await;
    browser.until(&format!("/feed the cat/i.test({ANSWER}) && glasses.dataset.playState === 'finished'")).await;
    // A goodbye, after which the session is kept.
    let next = fixture.next().await;
    let fixture = fixture.again(next).await;
    browser.until("document.querySelector('#status').dataset.state === 'lost'").await;
    type_in(&mut browser, "take a note: water the plants").await;
    relay.lead_to(fixture.port);
    browser.until("document.querySelector('#status').dataset.state === 'open'").await;
    assert_eq!(browser.value(STATUS).await, "Back.");
    browser.until(&format!("/water the plants/i.test({ANSWER}) && glasses.dataset.playState === 'finished'")).await;
    assert_eq!(notes(&fixture), 2);
    finish(fixture, browser).await;
}

/// Nothing says that the link is lost: the heartbeats that do not come do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_without_a_sign_of_life_is_lost() {
    let fixture = fixture("").await;
    let mut browser = Browser::start(None).await;
    let relay = page(&fixture, &mut browser).await;
    relay.freeze();
    browser.until("document.querySelector('#status').dataset.state === 'lost'").await;
    let sessions = browser.value(&journal("session")).await;
    assert!(sessions[0].as_str().unwrap().contains("nothing was heard of the gateway"), "{sessions}");
    come_back(&relay, &mut browser).await;
    finish(fixture, browser).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_page_holds_no_session() {
    // Without a goodbye the session would be held for longer than any test may run.
    let fixture = tuned("", |config| config.conversation.resume_ms_max = 3_600_000).await;
    let mut browser = Browser::start(None).await;
    let _relay = page(&fixture, &mut browser).await;
    assert_eq!(fixture.running.services().roster.all().len(), 1);
    browser.open("about:blank").await;
    while !fixture.running.services().roster.all().is_empty() {
        tokio::task::yield_now().await;
    }
    finish(fixture, browser).await;
}

/// What is kept and acknowledged, by the page's own modules.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_are_kept_until_they_are_acknowledged() {
    let fixture = fixture("").await;
    let mut browser = Browser::start(None).await;
    browser.open(&fixture.page()).await;
    // Acknowledgements: after 16 control frames, 50 packets, or a second.
    let acks = "(async () => {
        const { Sequences } = await import('/try/sequences.js');
        const own = new Sequences(true);
        const acks = [];
        const take = (nowMs) => acks.push(own.takeAck(nowMs));
        own.receive('control', 1, 0), take(999), take(1000), take(9000);
        for (let at = 2; at < 17; at += 1) own.receive('control', at, 9000);
        take(9000), own.receive('control', 17, 9000), take(9000);
        for (let at = 1; at < 51; at += 1) own.receive('audio', at, 9000);
        take(9000);
        return { acks, verdicts: [own.receive('control', 17, 0), own.receive('audio', 50, 0), own.receive('control', 19, 0)] };
    })()";
    let ack = |control: u32, audio: u32| json!({"control": control, "audio": audio});
    assert_eq!(
        browser.value(acks).await,
        json!({
            "acks": [null, ack(1, 0), null, null, ack(17, 0), ack(17, 50)],
            "verdicts": ["again", "again", "gap"],
        })
    );
    // Of 12 s of sound 10 s are kept; a control frame too many ends the hope of a resume.
    let kept = "(async () => {
        const { Sequences } = await import('/try/sequences.js');
        const own = new Sequences(true);
        for (let at = 1; at < 601; at += 1) own.keep('audio', { sequence: at, timeUs: at * 20000, soundUs: 20000, text: 'sound' });
        const first = own.replay(0, 0)[0].sequence;
        const frame = (sequence) => own.keep('control', { sequence, timeUs: 0, soundUs: 0, text: 'x' });
        for (let at = 1; at < 257; at += 1) frame(at);
        const before = own.canResume;
        frame(257);
        return [first, before, own.canResume, new Sequences(false).canResume];
    })()";
    assert_eq!(browser.value(kept).await, json!([100, true, false, false]));
    // Of a gateway that says that it has dealt with the first second, the rest is kept for 30 s, also over a restart.
    let open = "(async () => {
        const { Sequences } = await import('/try/sequences.js');
        const own = new Sequences(true);
        const add = (from, to) => {
            for (let at = from; at < to; at += 1) own.keep('audio', { sequence: at, timeUs: at * 20000, soundUs: 20000, text: 'sound' });
        };
        const first = () => own.replay(0, 0)[0].sequence;
        add(1, 101), own.acknowledged(0, 1_000_000), own.acknowledged(0);
        const firsts = [first()];
        add(101, 1551), firsts.push(first());
        const lost = [own.hasLostBehind(0), own.hasLostSince(0)];
        add(1551, 1552), firsts.push(first());
        lost.push(own.hasLostBehind(49), own.hasLostBehind(50), own.hasLostSince(0), own.hasLostSince(1_020_000));
        const next = new Sequences(true, own.dealtWithUs);
        for (const timeUs of [2e6, 32e6]) next.keep('audio', { sequence: 1, timeUs, soundUs: 20000, text: 'sound' });
        return { firsts, lost, next: next.notDealtWith({ control_received: 0, sound_until_us: 0 }).length };
    })()";
    assert_eq!(
        browser.value(open).await,
        json!({"firsts": [50, 50, 51], "lost": [false, false, true, false, true, false], "next": 2})
    );
    finish(fixture, browser).await;
}

/// A session over two links, and over a restart: what the second and the third one are sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kept_frames_are_sent_again_in_the_order_of_times_and_not_all_at_once() {
    let fixture = fixture("").await;
    let mut browser = Browser::start(None).await;
    browser.open(&fixture.page()).await;
    let replay = "(async () => {
        const { Session } = await import('/try/resume.js');
        const own = new Session();
        const link = () => ({ sent: [], put(text) { this.sent.push(JSON.parse(text)); }, send() {}, close() {}, tick() {} });
        const audio = (atMs) => own.send('audio', { duration_us: 20000 }, { timeUs: atMs * 1000 });
        own.attach(link(), { resume_token: 'dG9rZW4=', resumed: null });
        for (let at = 0; at < 10; at += 1) audio(at * 20);
        own.handle({ kind: 'ack', kind_number: 0x8006, control: 0, audio: 5 });
        own.detach();
        for (let at = 10; at < 60; at += 1) audio(at * 20);
        own.send('mute', { muted: true }, { timeUs: 1_190_000 });
        audio(1200);
        const second = link();
        const goesOn = own.attach(second, { resume_token: 'bmV3', resumed: { control_received: 0, audio_received: 7 } });
        const atOnce = second.sent.length;
        const beganMs = performance.now();
        own.send('text_input', { text: 'newer' }, { timeUs: 1_300_000 });
        await new Promise((done) => {
            const put = second.put;
            second.put = function (text) { put.call(this, text); if (/newer/.test(text)) done(); };
        });
        const tookMs = performance.now() - beganMs;
        const order = second.sent.map(({ kind, sequence }) => kind === 'audio' ? sequence : kind);
        const { resume } = own.ask(true);
        own.detach();
        // A gateway that was restarted has dealt with the control frames up to 1, and with the sound before 1.18 s.
        const third = link();
        const continued = own.attach(third, {
            resume_token: 'bmV4dA==', resumed: null, continued: { control_received: 1, sound_until_us: 1_180_000 },
        });
        own.send('tool_list', {});
        await new Promise((done) => setTimeout(done, 100));
        const afterRestart = third.sent.map(({ kind, sequence, turn, time_us }) => [kind, sequence, turn, kind === 'tool_list' || time_us]);
        own.detach();
        const anew = own.attach(link(), { resume_token: 'bmV3', resumed: null });
        return { continued, afterRestart, goesOn, atOnce, tookMs, order, resume, anew, after: own.ask(false).resume.control_received };
    })()";
    let replay = browser.value(replay).await;
    let order: Vec<_> = (8..=60).map(Value::from).chain([json!("mute"), json!(61), json!("text_input")]).collect();
    assert_eq!(replay["order"], Value::from(order));
    assert_eq!((&replay["goesOn"], &replay["anew"]), (&json!("resumed"), &json!("new")));
    assert_eq!(replay["continued"], "continued");
    assert_eq!(replay["afterRestart"][0], json!(["audio", 1, 0, 1_180_000]));
    let [rest @ .., text, tools] = &replay["afterRestart"].as_array().unwrap()[1..] else { panic!("{replay}") };
    assert_eq!(rest, [json!(["audio", 2, 0, 1_200_000])]);
    assert_eq!(
        (&text[0], &text[1], &tools[0], &tools[1]),
        (&json!("text_input"), &json!(1), &json!("tool_list"), &json!(2))
    );
    assert_eq!(replay["resume"], json!({"token": "bmV3", "control_received": 0, "audio_received": 0}));
    // 54 packets of 20 ms take at least a fourth of their time, but for the first few.
    assert!(replay["atOnce"].as_u64().unwrap() <= 10, "{replay}");
    assert!(replay["tookMs"].as_f64().unwrap() > 200.0, "{replay}");
    finish(fixture, browser).await;
}

/// Over a resume the end of a speech comes before its last chunks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_speech_waits_for_chunks_that_come_after_its_end() {
    let fixture = fixture("").await;
    let mut browser = Browser::start(None).await;
    browser.open(&fixture.page()).await;
    let reports = "(async () => {
        const port = { reports: [], postMessage({ state, playedUs }) { this.reports.push([state, playedUs]); } };
        globalThis.AudioWorkletProcessor = class { port = port };
        globalThis.sampleRate = 24000;
        globalThis.currentFrame = 0;
        let Playout;
        globalThis.registerProcessor = (_, made) => (Playout = made);
        await import('/try/playout.js');
        const playout = new Playout();
        const run = (blocks) => {
            for (let block = 0; block < blocks; block += 1) {
                playout.process([], [[new Float32Array(120)]]);
                globalThis.currentFrame += 120;
            }
        };
        const chunk = (speech, sequence, positionUs) =>
            playout.handle({ kind: 'chunk', speech, sequence, clause: 0, positionUs, samples: new Float32Array(480) });
        playout.handle({ kind: 'start', speech: 1 });
        playout.handle({ kind: 'end', speech: 1, sequence: 2, durationUs: 60000 });
        run(2);
        // The second of three packets is lost: it counts as played, and nothing is reported twice.
        chunk(1, 1, 0), chunk(1, 2, 40000);
        run(13);
        // One whose last chunk never comes is over all the same.
        playout.handle({ kind: 'start', speech: 2 });
        chunk(2, 3, 0);
        playout.handle({ kind: 'end', speech: 2, sequence: 9, durationUs: 20000 });
        run(45);
        return port.reports;
    })()";
    let reports = browser.value(reports).await;
    let states: Vec<_> = reports.as_array().unwrap().iter().map(|report| report[0].as_str().unwrap()).collect();
    assert_eq!(states, ["playing", "finished", "playing", "finished"], "{reports}");
    assert_eq!((&reports[1][1], &reports[3][1]), (&json!(60_000), &json!(20_000)));
    finish(fixture, browser).await;
}
