//! Every page in a real browser, in all its states: two widths, two colour schemes, judged by axe-core, used by keyboard
//! and with updates. The states are the tables of `states.rs`.

use firmware_sim::{Glasses, Seen, identity::Trust, invitation::Invitation};
use gateway::{apps::feed::Event, identity::operators::Role};

use super::{
    Visitor,
    camera::Camera,
    filled::{Filled, ask, deny},
    states::{FILLED, FOLDED, FORMS, MISSING, NEW},
};
use crate::{
    approvals::Wiper,
    peer::Peer,
    try_page::browser::Browser,
    world::{USER, World, until},
};

/// Ends all sessions of the console, as another window does.
fn end_sessions(world: &World) {
    world.gateway().admin().console.as_ref().expect("a console").operators.end(None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_fits_a_phone_and_a_desk_and_the_judge_finds_no_serious_fault() {
    let mut filled = Filled::start().await;
    let mut camera = Camera::start(&filled.world).await;
    camera.sign_in(&filled.world, Role::Operator).await;
    for (name, path, words, _) in FILLED {
        let path = filled.path(path).await;
        camera.open(&path).await;
        camera.look(name, words).await;
    }
    for (name, path, folded, words) in FOLDED {
        let path = filled.path(path).await;
        camera.open(&path).await;
        let script = format!("document.querySelectorAll({folded:?}).forEach((one) => one.click())");
        camera.browser.value(&script).await;
        camera.browser.until("document.querySelector('main details[open]') !== null").await;
        camera.look(&format!("{name}-unfolded"), words).await;
    }

    // The last page of the log leads to no earlier one.
    camera.open("/console/logs").await;
    let mut pages = 1;
    while camera.browser.value("document.querySelector('main a[href*=cursor]') !== null").await == true {
        camera.click("main a[href*=cursor]").await;
        pages += 1;
    }
    assert!(pages > 1, "all lines are on one page");
    camera.look("logs-last", "").await;

    // Words come under a note, until they are switched off.
    let path = filled.path("/console/devices/of/DEVICE").await;
    camera.open(&path).await;
    camera.browser.value("document.querySelector('#words-button').click()").await;
    camera.browser.until("!document.querySelector('#words-note').hidden").await;
    camera.look("words-none", "You are reading what wearer says now.").await;
    let feed = filled.world.gateway().services().apps.feeds.of(USER);
    let (utterance, text) = ("u1".into(), "the elephant is grey".into());
    let others = [].into();
    let said = Event::Transcript { utterance, text, language: "en", others, last: false, start_ms: 0, end_ms: 900 };
    // The page may not listen yet.
    while camera.browser.value("document.querySelectorAll('#words-list li').length").await != 1 {
        feed.tell(|| said.clone());
    }
    camera.look("words", "the elephant is grey").await;

    camera.open("/console/sessions").await;
    camera.browser.value("document.querySelector('#pause').click()").await;
    camera.look("paused", "Resume").await;
    camera.judged().await;
    filled.world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_viewer_sees_of_every_page() {
    let mut filled = Filled::start().await;
    let mut camera = Camera::start(&filled.world).await;
    camera.sign_in(&filled.world, Role::Viewer).await;
    camera.open("/console/devices").await;
    camera.submit("/console/devices/withdraw", &[]).await;
    // With this one before the pages, the judge sees each of them in the view in which it does not see the operator's.
    camera.look("form-viewer", "You may look at the console, and change nothing in it.").await;
    for (name, path, _, words) in FILLED {
        let path = filled.path(path).await;
        camera.open(&path).await;
        camera.look(&format!("{name}-viewer"), words).await;
    }
    camera.judged().await;
    filled.world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_gateway_and_its_doors() {
    let world = World::start().await;
    let mut camera = Camera::start(&world).await;
    camera.open("/console").await;
    camera.look("stranger", "lets one browser in once").await;
    camera.open("/console/enter").await;
    camera.look("link-without-key", "lets one browser in once").await;
    camera.open("/console/enter?link=x").await;
    camera.look("link", "This link lets this browser into the console").await;
    let address = format!("127.0.0.1:{}", world.web().port());
    camera.browser.open(&format!("http://console.localhost:{}/console", world.web().port())).await;
    camera.look("unknown-name", "This machine is not known by the name in the address").await;

    camera.sign_in(&world, Role::Operator).await;
    for (name, path, words) in NEW.into_iter().chain(MISSING) {
        camera.open(path).await;
        camera.look(name, words).await;
    }
    // A page of another site has a link to the console.
    camera.browser.open(&format!("http://localhost:{}/console", world.web().port())).await;
    camera.browser.leave(&format!("location.href = 'http://{address}/console'")).await;
    camera.look("from-another-page", "This request comes from another page.").await;
    camera.click("main a").await;
    camera.browser.until("document.querySelector('h1').textContent === 'Overview'").await;

    // The session ends in another window: what is looked at goes stale, and all that follows leads to the door.
    camera.open("/console/sessions").await;
    end_sessions(&world);
    camera.browser.until("document.querySelector('[data-live].stale') !== null").await;
    camera.browser.until("document.querySelector('#updates').textContent.startsWith('Not updated any more')").await;
    camera.look("ended-meanwhile", "No glasses are connected.").await;
    camera.click("nav a[href='/console/devices']").await;
    camera.look("ended", "lets one browser in once").await;
    camera.sign_in(&world, Role::Operator).await;
    camera.open("/console/devices").await;
    end_sessions(&world);
    camera.submit("/console/devices/withdraw", &[]).await;
    camera.look("form-after-the-end", "lets one browser in once").await;
    camera.sign_in(&world, Role::Operator).await;
    camera.click("form[action='/console/leave'] button").await;
    camera.look("signed-out", "This session has ended.").await;

    // Wrong links, until they are refused unread.
    for (name, words) in [("wrong-link", "this link was used already"), ("wrong-links", "too many wrong links")] {
        camera.open("/console/enter?link=guess").await;
        camera.click("main button").await;
        camera.look(name, words).await;
        for _ in 0..5 {
            Visitor::stranger(&world).post("/console/enter", &[("link", "guess")]).await;
        }
    }
    camera.judged().await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_forms_answer() {
    let world = World::start().await;
    let glasses = world.glasses("ws", "glasses").await;
    let named = |text: &str| text.replace("DEVICE", glasses.fingerprint());
    let mut camera = Camera::start(&world).await;
    camera.sign_in(&world, Role::Operator).await;
    for (name, page, action, fields, words) in FORMS {
        camera.open(&named(page)).await;
        let fields: Vec<(&str, String)> = fields.iter().map(|(name, value)| (*name, named(value))).collect();
        camera.submit(action, &fields).await;
        camera.look(&format!("form-{name}"), words).await;
    }

    // An invitation, as a picture and as a text, and what became of it.
    camera.open("/console/devices").await;
    let whose = [("invited-user", "ann".to_owned()), ("invited-name", "Hall".to_owned())];
    camera.submit("/console/devices/invite", &whose).await;
    camera.browser.until("document.querySelector('svg.qr') !== null").await;
    camera.look("invitation", "Scan this with the glasses").await;
    camera.browser.value("document.querySelector('main details summary').click()").await;
    camera.look("invitation-as-text", "For glasses without a camera").await;
    let text = camera.browser.value("document.querySelector('main pre').textContent").await;
    let invitation: Invitation = text.as_str().expect("a text").parse().expect("the simulator reads it");
    camera.browser.value("document.querySelector('main details summary').click()").await;
    let mut options = world.options("ws", "scanned");
    options.trust = Trust::Invitation(invitation.fingerprint, invitation.code);
    let mut scanned = Glasses::start(options).expect("an identity");
    scanned.welcomed().await.expect("a session");
    camera.look("invitation-used", "called Hall").await;
    camera.judged().await;
    drop((glasses, scanned));
    world.stop().await;
}

/// The configuration file of a running gateway becomes one that it cannot read: a fault, which every page names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_names_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, "name = \"Hearth\"\n").unwrap();
    let started = file.clone();
    let world = World::tuned("name = \"Hearth\"\n", |config| config.file = Some(started)).await;
    let mut camera = Camera::start(&world).await;
    camera.sign_in(&world, Role::Operator).await;
    camera.open("/console/configuration").await;
    camera.submit("/console/configuration/reload", &[]).await;
    camera.browser.until("document.querySelector('.notice[role=status]') !== null").await;
    camera.look("reloaded", "Hearth").await;

    // This box may have faults of its own, of which every page tells as much as the page of problems does.
    let banner = "document.querySelector('section.notice[aria-label=\"What is wrong\"]')";
    let known = format!("({banner} !== null) === (document.querySelector('td .badge.bad, td .badge.warn') !== null)");
    camera.open("/console/problems").await;
    assert_eq!(camera.browser.value(&known).await, true, "the banner is there exactly where something is wrong");

    std::fs::write(&file, "name = = 1\n").unwrap();
    camera.submit("/console/configuration/reload", &[]).await;
    camera.look("reload-refused", "correct the file and reload once more").await;
    camera.open("/console/configuration").await;
    camera.look("configuration-wrong", "line 1").await;
    camera.open("/console/problems").await;
    camera.submit("/console/problems/again", &[]).await;
    camera.browser.until("document.querySelector('td .badge.bad') !== null").await;
    camera.look("problems-fault", "What is wrong, and what to do").await;
    camera.open("/console/sessions").await;
    camera.browser.until(&format!("{banner}?.classList.contains('bad')")).await;
    camera.look("banner-fault", "What is wrong, and what to do").await;
    camera.judged().await;
    world.stop().await;
}

/// What cannot be reached by the Tab key, and what does not show that it has the focus.
async fn faults_of_keys(browser: &mut Browser) -> String {
    const WATCHED: &str = "(() => {
        document.querySelector('#pause:not([hidden])')?.click();
        const all = document.querySelectorAll('a[href], button, input, select, summary, [tabindex=\"0\"]');
        const controls = [...all].filter((one) => one.type !== 'hidden' && !one.disabled && one.checkVisibility());
        window.unreached = new Set(controls);
        // The first focus of a page that was just opened may count as the browser's, and is not shown then.
        window.unseen = new Set(controls);
        document.addEventListener('focusin', ({ target }) => {
            window.unreached.delete(target);
            const { outlineStyle, outlineWidth } = getComputedStyle(target);
            if (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2) { window.unseen.delete(target); }
        });
        return controls.length;
    })()";
    const FAULTS: &str = "(() => {
        const named = (what, all) => [...all].map((one) => `${what}: ${one.outerHTML.slice(0, 200)}`);
        return [...named('not reached', window.unreached), ...named('not seen', window.unseen)].join('\\n');
    })()";
    let controls = browser.value(WATCHED).await.as_u64().expect("a number");
    assert!(controls > 15, "the navigation alone has as many");
    // Some more, for what only scrolls, and for the first ones again.
    for _ in 0..controls + 8 {
        browser.key("down", "Tab").await;
        browser.key("up", "Tab").await;
    }
    browser.value(FAULTS).await.as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_control_is_reached_by_keyboard_and_shows_it() {
    let mut filled = Filled::start().await;
    let mut camera = Camera::start(&filled.world).await;
    camera.sign_in(&filled.world, Role::Operator).await;
    let mut faults = Vec::new();
    for (name, path, ..) in FILLED {
        let path = filled.path(path).await;
        camera.open(&path).await;
        let found = faults_of_keys(&mut camera.browser).await;
        faults.extend((!found.is_empty()).then(|| format!("{name}: {found}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    camera.judged().await;
    filled.world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_is_updated_and_used_by_keyboard() {
    let world = World::start().await;
    Wiper::plant(&world);
    let mut glasses = world.glasses("quic", "glasses").await;
    ask(&mut glasses).await;
    let mut camera = Camera::start(&world).await;
    camera.sign_in(&world, Role::Operator).await;
    let browser = &mut camera.browser;

    // The first key leads past the navigation.
    browser.key("down", "Tab").await;
    assert_eq!(browser.value("document.activeElement.textContent").await, "Skip to the content");

    // A question is answered here, and gone from the page; the glasses are told.
    browser.open(&format!("http://{}/console/approvals", world.web())).await;
    browser.until("document.querySelector('main').innerText.includes('Wipe the list')").await;
    browser.follow("section form:last-of-type button").await;
    browser.until("document.querySelector('.notice[role=status]')?.innerText.includes('is approved')").await;
    until(&mut glasses, "the decision", |event| matches!(event.seen, Seen::ApprovalSettled { .. })).await;

    // Another device that connects appears by itself, unless updates are paused.
    browser.open(&format!("http://{}/console/sessions", world.web())).await;
    let rows = "document.querySelectorAll('main tbody tr').length";
    browser.until(&format!("{rows} === 1")).await;
    browser.click("#pause").await;
    let other = world.glasses("ws", "other").await;
    assert_eq!(
        browser.value(&format!("[{rows}, document.querySelector('#pause').textContent].join()")).await,
        "1,Resume"
    );
    browser.click("#pause").await;
    browser.until(&format!("{rows} === 2")).await;

    // Words are off until they are asked for, and then come under a note.
    browser.open(&format!("http://{}/console/devices/of/{}", world.web(), glasses.fingerprint())).await;
    assert_eq!(browser.value("document.querySelector('#words-note').hidden").await, true);
    browser.click("#words-button").await;
    browser.until("!document.querySelector('#words-note').hidden").await;
    assert_eq!(browser.console, Vec::<String>::new(), "the page is silent");
    camera.judged().await;
    drop((glasses, other));
    world.stop().await;
}

/// What the page follows, followed once more: resolves when the question has come; `answered` when it has gone again.
const FOLLOWED: &str = "(() => {
    const source = new EventSource(document.querySelector('[data-live]').dataset.live);
    const has = (words) => new Promise((done) => {
        source.addEventListener('message', ({ data }) => { if (data.includes(words)) { done(true); } });
    });
    window.answered = has('Nothing waits.');
    return has('Wipe the list');
})()";
/// Clicks a button as soon as the next question has come; `refused` says whether the click counts for nothing.
const HASTY: &str = "window.refused = new Promise((done) => {
    new MutationObserver((_, watch) => {
        const button = document.querySelector('[data-live] form button');
        if (!button) { return; }
        watch.disconnect();
        done(!button.dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true })));
    }).observe(document.querySelector('[data-live]'), { childList: true });
}), true";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_while_a_part_is_used_is_shown_later_and_what_has_just_come_takes_no_click() {
    let world = World::start().await;
    Wiper::plant(&world);
    let mut glasses = world.glasses("quic", "glasses").await;
    let mut camera = Camera::start(&world).await;
    camera.sign_in(&world, Role::Operator).await;
    ask(&mut glasses).await;
    camera.open("/console/approvals").await;
    let browser = &mut camera.browser;
    browser.until("document.querySelector('main').innerText.includes('Wipe the list')").await;
    browser.value("document.querySelector('section summary').click()").await;
    let unfolded = "document.querySelector('section details[open]') !== null";
    browser.until(unfolded).await;
    assert_eq!(browser.value(FOLLOWED).await, true);
    deny(&world, &mut glasses).await;
    assert_eq!(browser.value("window.answered").await, true);
    assert_eq!(browser.value(unfolded).await, true, "it is not replaced while it is read");
    browser.value("document.querySelector('section summary').click()").await;
    browser.until("document.querySelector('[data-live]').innerText.includes('Nothing waits.')").await;

    browser.value(HASTY).await;
    ask(&mut glasses).await;
    assert_eq!(browser.value("window.refused").await, true, "nobody can have read it");
    camera.judged().await;
    drop(glasses);
    world.stop().await;
}

/// Pages of which the mean is told.
const ROUNDS: u32 = 200;

/// Processor time of this process, in milliseconds: `utime` and `stime` of proc(5), in hundredths of a second.
fn processor_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    // The first of these is the third of all, the state.
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    [fields[11], fields[12]].iter().map(|ticks| ticks.parse::<u64>().unwrap() * 10).sum()
}

/// Fifty devices on one page: all are there, and the page's part is of a bounded size.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_sessions_are_on_the_page() {
    let world = World::start().await;
    let mut peers = Vec::new();
    for number in 0..50 {
        peers.push(Peer::welcomed(&world, "ws", &format!("glasses {number}")).await);
    }
    let viewer = super::Visitor::signed_in(&world, Role::Viewer).await;
    let page = viewer.text("/console/sessions").await;
    assert_eq!(page.matches("role=\"row\"").count(), 51);
    assert!(page.len() < 100_000, "{} bytes", page.len());
    let before_ms = processor_ms();
    for _ in 0..ROUNDS {
        viewer.text("/console/sessions").await;
    }
    let each_ms = (processor_ms() - before_ms) as f64 / f64::from(ROUNDS);
    println!("{each_ms:.2} ms of processor time for each page, the client included");
    drop(peers);
    world.stop().await;
}
