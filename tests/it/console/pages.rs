//! Every page in a real browser: two widths, two colour schemes, judged by axe-core, used by keyboard and with updates.

use gateway::{
    control::{
        Request,
        apps::{AppsRequest, Given},
    },
    identity::operators::Role,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::link;
use crate::{
    approvals::Wiper,
    peer::Peer,
    programs::Programs,
    try_page::browser::Browser,
    world::{World, text, until},
};

/// Pages: name of the picture, path.
const PAGES: [(&str, &str); 23] = [
    ("overview", "/console"),
    ("problems", "/console/problems"),
    ("sessions", "/console/sessions"),
    ("devices", "/console/devices"),
    ("device", "/console/devices/of/DEVICE"),
    ("invitation", "/console/devices/invitation"),
    ("firmware", "/console/firmware"),
    ("approvals", "/console/approvals"),
    ("turns", "/console/turns?since=1h"),
    ("turn", "/console/turns/one?TURN"),
    ("logs", "/console/logs"),
    ("logs-none", "/console/logs?text=zebra&level=error"),
    ("tools", "/console/tools"),
    ("apps", "/console/apps"),
    ("app", "/console/apps/of?package=com.example.shop"),
    ("mcp", "/console/mcp"),
    ("mcp-log", "/console/mcp/log?name=broken"),
    ("models", "/console/models"),
    ("conversations", "/console/conversations"),
    ("conversation", "/console/conversations/one?user=wearer&id=CONVERSATION"),
    ("search", "/console/conversations/search?user=wearer&words=timer"),
    ("configuration", "/console/configuration"),
    ("access", "/console/access"),
];
/// What the judge calls serious.
const SERIOUS: [&str; 2] = ["serious", "critical"];
/// Longest picture, in pixels.
const HEIGHT_MAX: u64 = 4_000;

/// A gateway with something on every page, and the glasses whose wearer is being asked something.
async fn everything_there() -> (World, firmware_sim::Glasses, TempDir) {
    let settings = "name = \"Hearth\"\n[assistant]\nplace = \"Lisbon, Portugal\"\n[mcp.servers.broken]\ncommand = \"/bin/false\"\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, format!("# The gateway in the hall.\n{settings}")).unwrap();
    let world = World::tuned(settings, |config| config.file = Some(file)).await;
    Wiper::plant(&world);
    let manifest = json!({
        "packageName": "com.example.shop", "name": "Shop", "publicUrl": "http://127.0.0.1:9",
        "tools": [{"id": "add", "description": "Adds something to a list.", "activateApp": false}]
    });
    let given = Given { manifest: manifest.to_string(), ..Given::default() };
    world.ask(Request::Apps { request: AppsRequest::Add(given) }).await.expect("installed");
    drop(
        world
            .ask(Request::Apps {
                request: AppsRequest::Start { package: "com.example.shop".to_owned(), user: "wearer".to_owned() },
            })
            .await,
    );
    let mut glasses = world.glasses("quic", "glasses").await;
    for request in ["set a timer for ten minutes", "what is fifteen percent of eighty", "what time is it"] {
        text(&mut glasses, request).await;
        until(&mut glasses, "an answer", |event| {
            matches!(event.seen, firmware_sim::Seen::SpeechHeard { complete: true, .. })
        })
        .await;
    }
    text(&mut glasses, "wipe the shopping list").await;
    until(&mut glasses, "a question", |event| matches!(event.seen, firmware_sim::Seen::ApprovalRequest { .. })).await;
    (world, glasses, folder)
}

async fn sign_in(browser: &mut Browser, world: &World, role: Role) {
    let link = link(world, role).await;
    browser.open(&format!("http://{}/console/enter?link={link}", world.web())).await;
    browser.follow("main button").await;
    browser.until("location.pathname === '/console'").await;
}

/// The path of a page, with what there is now.
fn path(world: &World, path: &str) -> String {
    let services = world.gateway().services();
    let device = services.store.disk().devices().unwrap().remove(0).0;
    let turn = services.telemetry.turns.last(1).remove(0);
    let turn = format!("device={}&turn={}&ended={}", turn.device, turn.turn, turn.ended_wall_ms);
    let conversation = services.store.disk().conversations("wearer").unwrap().first().map_or(1, |first| first.id);
    path.replace("DEVICE", &device).replace("TURN", &turn).replace("CONVERSATION", &conversation.to_string())
}

/// Sets the window to the whole page, and takes its picture.
async fn picture(browser: &mut Browser, width: u32, scheme: &str, name: &str) {
    browser.look(width, 860, scheme).await;
    let height = browser.value("document.documentElement.scrollHeight").await.as_u64().unwrap();
    browser.look(width, u32::try_from(height.clamp(860, HEIGHT_MAX)).unwrap(), scheme).await;
    browser.shot(&format!("{name}-{width}-{scheme}")).await;
    let overflow = browser.value("document.documentElement.scrollWidth - innerWidth").await;
    assert!(overflow.as_i64().unwrap() <= 0, "{name} is wider than {width} px by {overflow}");
}

/// Serious faults of the page, as the judge finds them: rule, element, why.
async fn faults(browser: &mut Browser, judge: &str) -> Vec<String> {
    browser.value(&format!("{judge}; true")).await;
    let found =
        browser.value("axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations)").await;
    let of = |fault: &Value| {
        let nodes = fault["nodes"].as_array().unwrap();
        let nodes: Vec<String> =
            nodes.iter().map(|node| format!("{} {}", node["html"], node["failureSummary"])).collect();
        format!("{} ({}): {}", fault["id"], fault["impact"], nodes.join("\n  "))
    };
    let found = found.as_array().unwrap();
    found.iter().filter(|fault| SERIOUS.iter().any(|serious| fault["impact"] == *serious)).map(of).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_fits_a_phone_and_a_desk_and_the_judge_finds_no_serious_fault() {
    let judge = std::fs::read_to_string(Programs::console().script("axe-core/axe.min.js")).unwrap();
    let (world, glasses, _folder) = everything_there().await;
    let mut browser = Browser::start(None).await;
    browser.look(1200, 860, "light").await;
    browser.open(&format!("http://{}/console", world.web())).await;
    let mut found = Vec::new();
    let views = [(1200, "light"), (1200, "dark"), (390, "light"), (390, "dark")];
    for (width, scheme) in views {
        picture(&mut browser, width, scheme, "stranger").await;
    }
    sign_in(&mut browser, &world, Role::Operator).await;
    browser.open(&format!("http://{}/console/devices", world.web())).await;
    browser.look(1200, 1400, "light").await;
    browser.click("main details summary").await;
    browser.follow("form[action$=invite] button").await;
    browser.until("document.querySelector('svg.qr') !== null").await;
    for (name, at) in PAGES {
        browser.open(&format!("http://{}{}", world.web(), path(&world, at))).await;
        for (width, scheme) in views {
            picture(&mut browser, width, scheme, name).await;
            if [(1200, "light"), (390, "dark")].contains(&(width, scheme)) {
                let faults = faults(&mut browser, &judge).await;
                found.extend(faults.into_iter().map(|fault| format!("{name}, {width} px, {scheme}: {fault}")));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    browser.close().await;
    drop(glasses);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_is_updated_and_used_by_keyboard() {
    let (world, mut glasses, _folder) = everything_there().await;
    let mut browser = Browser::start(None).await;
    browser.look(1200, 860, "light").await;
    sign_in(&mut browser, &world, Role::Operator).await;

    // The first key leads past the navigation.
    browser.key("down", "Tab").await;
    assert_eq!(browser.value("document.activeElement.textContent").await, "Skip to the content");

    // A question is answered here, and gone from the page; the glasses are told.
    browser.open(&format!("http://{}/console/approvals", world.web())).await;
    browser.until("document.querySelector('main').innerText.includes('Wipe the list')").await;
    browser.follow("section form:last-of-type button").await;
    browser.until("document.querySelector('.notice[role=status]')?.innerText.includes('is approved')").await;
    until(&mut glasses, "the decision", |event| matches!(event.seen, firmware_sim::Seen::ApprovalSettled { .. })).await;

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
    let device = format!("http://{}{}", world.web(), of(glasses.fingerprint()));
    browser.open(&device).await;
    assert_eq!(browser.value("document.querySelector('#words-note').hidden").await, true);
    browser.click("#words-button").await;
    browser.until("!document.querySelector('#words-note').hidden").await;
    assert_eq!(browser.console, Vec::<String>::new(), "the page is silent");
    browser.close().await;
    drop((glasses, other));
    world.stop().await;
}

fn of(device: &str) -> String {
    format!("/console/devices/of/{device}")
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
