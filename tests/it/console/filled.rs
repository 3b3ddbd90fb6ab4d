//! A gateway with something on every page of its console.

use std::time::Duration;

use firmware_sim::{Glasses, Seen};
use gateway::{
    clock,
    control::{Answer, Request},
    identity::operators::Role,
    models::spending,
};
use gateway_core::{
    input::Spending,
    vocab::{AppKind, AppState},
};
use serde_json::json;
use tempfile::TempDir;
use tools::apps::manifest::App;

use super::{Visitor, states::ASKED};
use crate::{
    approvals::Wiper,
    apps::fake::{FakeApp, PACKAGE, Socket},
    firmware,
    mcp::{self, fixture},
    programs::Programs,
    world::{USER, WAIT, World, text, until},
};

/// An app whose server has gone.
const GONE: &str = "com.example.gone";
/// Lines of the log on a page.
const LINES: usize = 100;
const DAY_MS: i64 = 86_400_000;

pub struct Filled {
    pub world: World,
    /// Glasses in a session.
    pub glasses: Glasses,
    /// What the names in paths stand for.
    names: Vec<(&'static str, String)>,
    /// Others: without a link, with firmware that was rolled back, waiting.
    _others: Vec<Glasses>,
    _app: (FakeApp, Socket),
    _file: TempDir,
}

impl Filled {
    pub async fn start() -> Self {
        // What it installs, if it is the first, takes longer than sessions and questions wait.
        drop(Programs::console());
        gateway::telemetry::start(false);
        let (world, file) = world().await;
        let operator = Visitor::signed_in(&world, Role::Operator).await;
        let mut glasses = talk(&world).await;
        let app = apps(&world).await;
        let updated = firmware::glasses_that_roll_back(&world, "updated").await;
        ask(&mut glasses).await;
        deny(&world, &mut glasses).await;
        spend(&world).await;
        world
            .ask(Request::SwitchTool { user: USER.to_owned(), name: "timer.set".to_owned(), on: false })
            .await
            .expect("it is off");
        for _ in 0..=LINES {
            assert_eq!(operator.post("/console/devices/withdraw", &[]).await.status(), 303);
        }
        has(&operator, "/console/logs", "Earlier lines").await;
        has(&operator, "/console/mcp/log?name=broken", "out of order").await;
        mcp::up(&world, "fixture").await;
        has(&operator, &format!("/console/apps/of?package={PACKAGE}"), "hologram").await;

        let mut names =
            vec![("DEVICE", glasses.fingerprint().to_owned()), ("UPDATED", updated.fingerprint().to_owned())];
        glasses.battery(12).await.expect("told");
        let away = world.glasses("ws", "away").await;
        names.push(("AWAY", away.fingerprint().to_owned()));
        away.goodbye().await;
        let revoked = world.glasses("ws", "revoked").await;
        let device = revoked.fingerprint().to_owned();
        names.push(("REVOKED", device.clone()));
        world.ask(Request::Revoke { device }).await.expect("it is revoked");
        let turn = world.gateway().services().telemetry.turns.last(1).remove(0);
        names.push(("TURN", format!("device={}&turn={}&ended={}", turn.device, turn.turn, turn.ended_wall_ms)));
        let conversation = world.gateway().services().store.disk().conversations(USER).unwrap().remove(0).id;
        names.push(("CONVERSATION", conversation.to_string()));
        // What does not stay for long comes last.
        let others = vec![updated, waiting(&world, "shows", true), waiting(&world, "hides", false), lost(&world).await];
        names.push(("LOST", others[3].fingerprint().to_owned()));
        wait_for_pairing(&world, 2).await;
        has(&operator, "/console/sessions", "no link for").await;
        Self { world, glasses, names, _others: others, _app: app, _file: file }
    }

    /// A path with what the names in it stand for; where it is that of questions, the wearer is asked one.
    pub async fn path(&mut self, path: &str) -> String {
        if path == ASKED {
            deny(&self.world, &mut self.glasses).await;
            ask(&mut self.glasses).await;
        }
        self.names.iter().fold(path.to_owned(), |path, (name, stands_for)| path.replace(name, stands_for))
    }
}

/// The gateway, and the folder of its file.
async fn world() -> (World, TempDir) {
    let server = fixture::serve().await;
    let settings = format!(
        "name = \"Hearth\"\n[assistant]\nplace = \"Lisbon, Portugal\"\n[limits]\nresume_s = 120\n\
         [tools]\nclients.\"note.cleer\" = []\n[mcp.servers.fixture]\nurl = \"http://{server}/\"\n\
         [mcp.servers.broken]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"echo out of order >&2; exit 1\"]\n{}",
        firmware::settings()
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, format!("# The gateway in the hall.\n{settings}")).unwrap();
    let world = World::tuned(&settings, |config| config.file = Some(file)).await;
    Wiper::plant(&world);
    (world, folder)
}

/// Loads a page until it has these words.
async fn has(visitor: &Visitor, path: &str, words: &str) {
    let loading = async { while !visitor.text(path).await.contains(words) {} };
    tokio::time::timeout(WAIT, loading).await.unwrap_or_else(|_| panic!("{path} never has `{words}`"));
}

/// Glasses with some turns behind them.
async fn talk(world: &World) -> Glasses {
    let mut glasses = world.glasses("quic", "glasses").await;
    for request in ["set a timer for ten minutes", "what is fifteen percent of eighty", "what time is it"] {
        text(&mut glasses, request).await;
        until(&mut glasses, "an answer", |event| matches!(event.seen, Seen::SpeechHeard { complete: true, .. })).await;
    }
    glasses
}

/// Has the wearer asked something.
pub async fn ask(glasses: &mut Glasses) {
    text(glasses, "wipe the shopping list").await;
    until(glasses, "a question", |event| matches!(event.seen, Seen::ApprovalRequest { .. })).await;
}

/// Denies what is open, up to the end of what is said about it.
pub async fn deny(world: &World, glasses: &mut Glasses) {
    let open = world.gateway().services().approvals.list().first().map(|question| question.id);
    let Some(id) = open else { return };
    // It may expire meanwhile, which settles it as well.
    drop(world.ask(Request::AnswerApproval { id, yes: false }).await);
    until(glasses, "the decision", |event| matches!(event.seen, Seen::ApprovalSettled { .. })).await;
    until(glasses, "its end", |event| matches!(event.seen, Seen::SpeechHeard { complete: true, .. })).await;
}

/// Tokens and money of three days.
async fn spend(world: &World) {
    let today = clock::wall_ms() / DAY_MS;
    for (day, nano) in [(today - 2, 40_000_000), (today - 1, 310_000_000), (today, 120_000_000)] {
        let spending = Spending { day, nano, input: nano / 1_000, output: nano / 9_000 };
        let write = spending::write(USER.to_owned(), spending);
        world.gateway().services().store.write(write).await.expect("it is stored");
    }
}

/// An app whose server has gone, and one that runs, and has sent what nobody can draw.
async fn apps(world: &World) -> (FakeApp, Socket) {
    let (gone, socket) = start_app(world, GONE, AppKind::Background).await;
    drop((gone, socket));
    let apps = world.gateway().services().apps.clone();
    let away = async {
        while apps.states(USER).get(GONE) != Some(&AppState::Away) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, away).await.expect("it is tried again");
    let (app, mut socket) = start_app(world, PACKAGE, AppKind::Foreground).await;
    socket.send(json!({"type": "display_event", "layout": {"layoutType": "hologram"}})).await;
    socket.settled().await;
    (app, socket)
}

async fn start_app(world: &World, package: &str, kind: AppKind) -> (FakeApp, Socket) {
    let app = FakeApp::start(package).await;
    let manifest = App { kind, ..app.manifest() };
    world.gateway().admin().installed.add(manifest).await.expect("it is installed");
    let (apps, wanted) = (world.gateway().services().apps.clone(), package.to_owned());
    let starting = tokio::spawn(async move { apps.start(USER, &wanted, Duration::from_secs(20)).await });
    let request = app.got("session_request", 0).await.json();
    let socket = Socket::dial(&request, package).await;
    assert_eq!(starting.await.unwrap(), Ok(true));
    (app, socket)
}

/// Glasses that wait for being paired, with a display for their code or without.
fn waiting(world: &World, name: &str, has_display: bool) -> Glasses {
    let mut options = world.options("ws", name);
    if !has_display {
        options.profile.display = None;
    }
    Glasses::start(options).expect("an identity")
}

async fn wait_for_pairing(world: &World, count: usize) {
    let waiting = async {
        loop {
            let Ok(Answer::Devices { waiting, .. }) = world.ask(Request::Devices).await else { panic!("no devices") };
            if waiting.len() == count {
                return;
            }
        }
    };
    tokio::time::timeout(WAIT, waiting).await.expect("they wait");
}

/// Glasses whose link is lost; their session waits for them.
async fn lost(world: &World) -> Glasses {
    let lost = world.glasses("ws", "lost").await;
    lost.cut().await.expect("it is cut");
    lost
}
