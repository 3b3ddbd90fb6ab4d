//! Every route, for a stranger, a viewer, an operator, and pages of other sites.

use std::{collections::BTreeSet, path::Path};

use gateway::identity::operators::Role;

use super::Visitor;
use crate::{
    approvals::Wiper,
    world::{USER, World, until},
};

/// Pages that everybody who is signed in may see.
const FOR_ALL: [&str; 15] = [
    "/console",
    "/console/",
    "/console/problems",
    "/console/sessions",
    "/console/devices",
    "/console/devices/of/DEVICE",
    "/console/firmware",
    "/console/approvals",
    "/console/turns",
    "/console/logs",
    "/console/tools",
    "/console/apps",
    "/console/models",
    "/console/configuration",
    "/console/access",
];
/// The same, where the addition to the path names something.
const FOR_ALL_TOO: [&str; 2] = ["/console/mcp", "/console/live/"];
/// What may hold words of wearers, or of programs about them.
const FOR_OPERATORS: [&str; 6] = [
    "/console/devices/invitation",
    "/console/conversations",
    "/console/conversations/one?user=wearer&id=1",
    "/console/conversations/search?user=wearer&words=oven",
    "/console/conversations/export?user=wearer",
    "/console/mcp/log?name=none",
];
/// Parts that are sent while they are looked at.
const LIVE: [&str; 9] =
    ["overview", "sessions", "devices", "firmware", "invitation", "approvals", "turns", "logs", "mcp"];
/// Files for everybody, and the page of a link.
const OPEN: [&str; 5] =
    ["/console/look.css", "/console/console.css", "/console/console.js", "/console/icon.svg", "/console/enter?link=x"];
/// Forms: path, fields.
const FORMS: [(&str, &[(&str, &str)]); 16] = [
    ("/console/problems/again", &[]),
    ("/console/devices/rename", &[("device", "DEVICE"), ("name", "Renamed")]),
    ("/console/devices/pair", &[("code", "000000"), ("user", "wearer"), ("name", "")]),
    ("/console/devices/window", &[("fingerprint", "00112233445566778899aabbccddeeff"), ("user", "wearer")]),
    ("/console/devices/invite", &[("invited-user", "wearer"), ("invited-name", ""), ("invited-address", "")]),
    ("/console/devices/withdraw", &[]),
    ("/console/firmware/pause", &[("model", "none")]),
    ("/console/tools/switch", &[("user", "wearer"), ("name", "timer.set"), ("on", "false")]),
    ("/console/approvals/answer", &[("id", "QUESTION"), ("answer", "no")]),
    ("/console/apps/act", &[("package", "none"), ("user", "wearer"), ("act", "restart")]),
    ("/console/mcp/restart", &[("name", "none")]),
    ("/console/conversations/erase", &[("user", "wearer")]),
    ("/console/configuration/reload", &[]),
    ("/console/devices/revoke", &[("device", "DEVICE")]),
    ("/console/access/end", &[("session", "999")]),
    ("/console/leave", &[]),
];
/// Paths that stand in no list above: those that only show something that is named.
const NAMED: [&str; 4] = ["/console/turns/one", "/console/apps/of", "/console/live/words/", "/console/devices/of/"];

/// What there is to change, and whether it was.
struct Fixture {
    world: World,
    device: String,
    question: String,
    wiper: std::sync::Arc<Wiper>,
}

impl Fixture {
    /// Glasses whose wearer is being asked something.
    async fn start() -> (Self, firmware_sim::Glasses) {
        let world = World::start().await;
        let wiper = Wiper::plant(&world);
        let mut glasses = world.glasses("ws", "glasses").await;
        glasses.text("wipe the shopping list").await.unwrap();
        until(&mut glasses, "a question", |event| matches!(event.seen, firmware_sim::Seen::ApprovalRequest { .. }))
            .await;
        let device = glasses.fingerprint().to_owned();
        let question = world.gateway().services().approvals.list()[0].id.to_string();
        (Self { world, device, question, wiper }, glasses)
    }

    fn named(&self, text: &str) -> String {
        text.replace("DEVICE", &self.device).replace("QUESTION", &self.question)
    }

    fn form(&self, fields: &[(&'static str, &'static str)]) -> Vec<(&'static str, String)> {
        fields.iter().map(|(name, value)| (*name, self.named(value))).collect()
    }

    /// What the forms would change.
    fn state(&self) -> (String, bool, usize, bool) {
        let services = self.world.gateway().services();
        let disk = services.store.disk();
        let (_, device) = disk.devices().unwrap().into_iter().find(|(id, _)| *id == self.device).unwrap();
        let denied = tools::permissions::Switches::denied(&*self.world.gateway().admin().switches, USER).len();
        let asked = services.approvals.list().iter().any(|event| event.id.to_string() == self.question);
        (device.name, device.revoked, denied, asked)
    }
}

async fn status(visitor: &Visitor, path: &str) -> u16 {
    visitor.get(path).await.status().as_u16()
}

async fn sent(visitor: &Visitor, fixture: &Fixture, (path, fields): (&str, &[(&'static str, &'static str)])) -> u16 {
    let fields = fixture.form(fields);
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    visitor.post(path, &fields).await.status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_gets_only_what_is_for_them() {
    let (fixture, glasses) = Fixture::start().await;
    let stranger = Visitor::stranger(&fixture.world);
    let viewer = Visitor::signed_in(&fixture.world, Role::Viewer).await;
    let operator = Visitor::signed_in(&fixture.world, Role::Operator).await;
    let before = fixture.state();
    for path in OPEN {
        assert_eq!(status(&stranger, path).await, 200, "{path}");
    }
    let live = LIVE.map(|part| format!("/console/live/{part}"));
    let words = format!("/console/live/words/{}", fixture.device);
    let for_all = FOR_ALL.iter().chain(&FOR_ALL_TOO[..1]).map(|path| fixture.named(path)).chain(live);
    for path in for_all {
        let of = [status(&stranger, &path).await, status(&viewer, &path).await, status(&operator, &path).await];
        assert_eq!(of, [401, 200, 200], "{path}");
    }
    for path in FOR_OPERATORS.into_iter().chain([words.as_str()]) {
        let of = [status(&stranger, path).await, status(&viewer, path).await];
        assert_eq!(of, [401, 403], "{path}");
        assert_eq!(status(&operator, path).await, 200, "{path}");
    }
    assert_eq!([status(&stranger, "/console/none").await, status(&operator, "/console/none").await], [401, 404]);

    // A viewer tries everything that an operator may; of the question there is nothing to read.
    for form in &FORMS[..FORMS.len() - 1] {
        assert_eq!(
            [sent(&stranger, &fixture, *form).await, sent(&viewer, &fixture, *form).await],
            [401, 403],
            "{form:?}"
        );
    }
    let page = viewer.text("/console/approvals").await;
    assert!(!page.contains("Wipe the list") && page.contains("Only operators"), "{page}");
    assert!(operator.text("/console/approvals").await.contains("Wipe the list"));
    let page = viewer.text("/console/configuration").await;
    assert!(!page.contains("action=\"/console/configuration"), "no forms");
    assert_eq!(fixture.state(), before, "nothing has changed");

    // An operator does it all.
    assert_eq!(sent(&operator, &fixture, ("/console/conversations/erase", &[("user", "wearer")])).await, 303);
    assert!(operator.text("/console/conversations").await.contains("wearer: erased "));
    for form in FORMS {
        assert!([200, 303].contains(&sent(&operator, &fixture, form).await), "{form:?}");
    }
    assert_eq!(fixture.state(), ("Renamed".to_owned(), true, before.2 + 1, false));
    assert_eq!(fixture.wiper.runs(), 0, "it was denied");
    assert_eq!(status(&operator, "/console").await, 401, "the last form signs out");
    drop(glasses);
    fixture.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_change_and_read_nothing() {
    let (fixture, glasses) = Fixture::start().await;
    let operator = Visitor::signed_in(&fixture.world, Role::Operator).await;
    let before = fixture.state();
    for (why, visitor, expected) in [
        ("another site", operator.with("origin", "http://evil.example"), 403),
        ("another port of this machine", operator.with("origin", "http://127.0.0.1:1"), 403),
        ("a sealed frame", operator.with("origin", "null"), 403),
        ("another scheme", operator.with("origin", "https://127.0.0.1"), 403),
        ("another page, as the browser says", operator.with("sec-fetch-site", "same-site"), 403),
        ("a name that resolves to this machine", operator.with("host", "evil.example"), 421),
    ] {
        for form in FORMS {
            assert_eq!(sent(&visitor, &fixture, form).await, expected, "{why}: {form:?}");
        }
    }
    for (path, _) in FORMS {
        for token in ["", "x", "00"] {
            assert_eq!(operator.post_with(path, &[], token).await.status(), 403, "{path} with the token `{token}`");
        }
    }
    for path in FOR_ALL.iter().chain(&FOR_OPERATORS) {
        let path = fixture.named(path);
        for site in ["cross-site", "same-site"] {
            assert_eq!(status(&operator.with("sec-fetch-site", site), &path).await, 403, "{path} from {site}");
        }
        assert_eq!(status(&operator.with("host", "evil.example"), &path).await, 421, "{path}");
        assert_eq!(status(&operator.with("host", "localhost"), &path).await, 200, "{path}");
    }
    assert_eq!(fixture.state(), before, "nothing has changed");
    drop(glasses);
    fixture.world.stop().await;
}

/// A new route stands in the tables above.
#[test]
fn no_route_is_left_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gateway/src/http/console");
    let mut paths = BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        // Without tests, and without the forms of paths with a name in them.
        let text = text.split("#[cfg(test)]").next().unwrap().to_owned();
        let literals = text.split('"').filter(|part| part.starts_with("/console"));
        paths.extend(literals.map(|path| path.split('{').next().unwrap().to_owned()));
    }
    assert!(paths.len() > 35, "{paths:?}");
    let known: BTreeSet<String> = FOR_ALL
        .iter()
        .chain(&FOR_ALL_TOO)
        .chain(&FOR_OPERATORS)
        .chain(&OPEN)
        .chain(&NAMED)
        .chain(FORMS.iter().map(|(path, _)| path))
        .map(|path| path.split('?').next().unwrap().to_owned())
        .collect();
    let missing: Vec<&String> = paths.difference(&known).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
