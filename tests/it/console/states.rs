//! The pages of the console in all their states: where each is found, and by which words it is known.
//!
//! In paths, names in capitals stand for what there is in the gateway at hand (`filled.rs`).

/// Name of the picture, path, words of the page.
pub type State = (&'static str, &'static str, &'static str);

/// What a viewer reads where there is no right.
pub const NO_RIGHT: &str = "This page is for operators";

/// A gateway that has just been installed. Its tools are those that are built in.
pub const NEW: [State; 17] = [
    ("new-overview", "/console", "Nobody has spoken since the start."),
    ("new-problems", "/console/problems", "Looked at"),
    ("new-sessions", "/console/sessions", "No glasses are connected."),
    ("new-devices", "/console/devices", "No device is paired."),
    ("new-invitation", "/console/devices/invitation", "No invitation is open."),
    ("new-firmware", "/console/firmware", "lorgnette firmware add"),
    ("new-approvals", "/console/approvals", "Nothing waits."),
    ("new-turns", "/console/turns", "No turns yet."),
    ("new-logs", "/console/logs?text=zebra&level=error", "No such lines."),
    ("new-tools", "/console/tools", "Switch off"),
    ("new-apps", "/console/apps", "lorgnette apps add"),
    ("new-mcp", "/console/mcp", "None is configured."),
    ("new-models", "/console/models", "No model was asked in this time."),
    ("new-conversations", "/console/conversations", "No conversation of this user is kept."),
    ("new-search", "/console/conversations/search?user=wearer&words=oven", "Nobody said this."),
    ("new-configuration", "/console/configuration", "The gateway was started without a file."),
    ("new-access", "/console/access", "this one"),
];

/// What is not there, for somebody who is signed in.
pub const MISSING: [State; 9] = [
    ("no-page", "/console/none", "The console has no such page."),
    ("no-device", "/console/devices/of/00", "No such device is paired."),
    ("no-turn", "/console/turns/one?device=none&turn=1&ended=1", "No such turn is stored."),
    ("no-app", "/console/apps/of?package=none", "No such app is installed."),
    ("no-conversation", "/console/conversations/one?user=wearer&id=999999", "wearer has no conversation 999999"),
    ("no-number", "/console/conversations/one?user=wearer&id=x", "The console has no such page."),
    ("no-user", "/console/conversations?user=%07", "a name has 1 to 64 bytes"),
    ("no-moment", "/console/logs?since=soon", "soon is no moment"),
    ("no-server", "/console/mcp/log?name=none", "no MCP server is called"),
];

/// A gateway with something on every page. Name, path, words for an operator, words for a viewer. What goes by itself comes
/// first: sessions without a link, glasses that wait.
pub const FILLED: [(&str, &str, &str, &str); 29] = [
    ("sessions", "/console/sessions", "no link for", "no link for"),
    ("device-lost", "/console/devices/of/LOST", "no link for", "no link for"),
    ("devices", "/console/devices", "Waiting for pairing", "Waiting for pairing"),
    ("approvals", ASKED, "Wipe the list", "Only operators see the question"),
    ("overview", "/console", "2 installed", "2 installed"),
    ("problems", "/console/problems", "Looked at", "Looked at"),
    ("device", "/console/devices/of/DEVICE", "Show words", "Only operators may read along."),
    ("device-away", "/console/devices/of/AWAY", "Last seen", "Last seen"),
    ("device-revoked", "/console/devices/of/REVOKED", "revoked", "revoked"),
    ("device-firmware", "/console/devices/of/UPDATED", "boot: the image does not start", "1.1.0: rolled back"),
    ("firmware", "/console/firmware", "1 of 1 devices report failure", "1 of 1 devices report failure"),
    ("turns", "/console/turns?since=1h", "Percentiles of every stage", "Percentiles of every stage"),
    ("turns-month", "/console/turns?since=30d", "Percentiles of every stage", "Percentiles of every stage"),
    ("turn", "/console/turns/one?TURN", "Where the time went", "Where the time went"),
    ("logs", "/console/logs", "Earlier lines", "Earlier lines"),
    (
        "logs-filtered",
        "/console/logs?level=&text=withdraw&since=1h",
        "withdraw an invitation",
        "withdraw an invitation",
    ),
    ("logs-none", "/console/logs?text=zebra&level=error", "No such lines.", "No such lines."),
    ("tools", "/console/tools", "Not converted", "Not converted"),
    ("apps", "/console/apps", "wearer: ", "wearer: "),
    ("app", "/console/apps/of?package=com.example.list", "Request and answer", "Only operators see it"),
    ("app-away", "/console/apps/of?package=com.example.gone", "wearer: ", "wearer: "),
    ("mcp", "/console/mcp", "down", "down"),
    ("mcp-log", "/console/mcp/log?name=broken", "out of order", NO_RIGHT),
    ("models", "/console/models", "Money of each day with requests", "Money of each day with requests"),
    ("conversations", "/console/conversations", "Export all", NO_RIGHT),
    ("conversation", "/console/conversations/one?user=wearer&id=CONVERSATION", "ten minutes", NO_RIGHT),
    ("search", "/console/conversations/search?user=wearer&words=timer", "ten minutes", NO_RIGHT),
    ("configuration", "/console/configuration", "The gateway in the hall.", "Only operators see the file itself."),
    ("access", "/console/access", "this one", "this one"),
];
/// The page of questions; one is asked before it is looked at, since none waits for long.
pub const ASKED: &str = "/console/approvals";

/// What is folded until somebody unfolds it: name, path, the element that unfolds it, words inside.
pub const FOLDED: [(&str, &str, &str, &str); 9] = [
    ("question", ASKED, "section.card summary", "\"list\""),
    ("invite", "/console/devices", "main details summary", "Glasses with a camera scan it."),
    ("revoke", "/console/devices/of/DEVICE", ".confirm summary", "it stays out until somebody pairs it again"),
    ("percentiles", "/console/turns?since=1h", "main details summary", "p95"),
    ("tool", "/console/tools", ".about summary", ""),
    ("fault", "/console/apps/of?package=com.example.list", "td details summary", "hologram"),
    ("erase-all", "/console/conversations", ".confirm summary", "They are erased for good"),
    (
        "erase-one",
        "/console/conversations/one?user=wearer&id=CONVERSATION",
        ".confirm summary",
        "It is erased for good",
    ),
    ("keys", "/console/configuration", "main details summary", "listen.console"),
];

/// Forms as browsers send them: name, the page that they are on, their path, fields, words of the next page.
pub type Form = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

const DEVICES: &str = "/console/devices";
const KITCHEN: &[(&str, &str)] = &[("device", "DEVICE"), ("name", "Kitchen")];
/// As long as a name may be, and without a place where it could be broken.
const LONG: &[(&str, &str)] =
    &[("device", "DEVICE"), ("name", "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW")];
const NAMELESS: &[(&str, &str)] = &[("device", "DEVICE"), ("name", "")];
const KEY: &[(&str, &str)] = &[("fingerprint", "00112233445566778899aabbccddeeff"), ("user", "wearer")];
const SWITCH: &str = "/console/tools/switch";
const NOTES: &[(&str, &str)] = &[("user", "wearer"), ("name", "note.add"), ("on", "false")];
const ANSWER: &str = "/console/approvals/answer";
const ACT: &str = "/console/apps/act";
const END: &str = "/console/access/end";
const ERASE: &str = "/console/conversations/erase";

pub const FORMS: [Form; 25] = [
    (
        "code-refused",
        DEVICES,
        "/console/devices/pair",
        &[("code", "12"), ("user", "wearer")],
        "a pairing code has six digits",
    ),
    ("key-expected", DEVICES, "/console/devices/window", KEY, "will be admitted"),
    ("renamed", "/console/devices/of/DEVICE", "/console/devices/rename", KITCHEN, "is now called Kitchen"),
    ("renamed-long", "/console/devices/of/DEVICE", "/console/devices/rename", LONG, "is now called WWWW"),
    ("rename-refused", "/console/devices/of/DEVICE", "/console/devices/rename", NAMELESS, "a name has 1 to 64 bytes"),
    ("invite-refused", DEVICES, "/console/devices/invite", &[("invited-user", "")], "a name has 1 to 64 bytes"),
    ("withdrawn", DEVICES, "/console/devices/withdraw", &[], "the invitation is withdrawn"),
    (
        "pause-refused",
        "/console/firmware",
        "/console/firmware/pause",
        &[("model", "none")],
        "nothing is rolled out to none",
    ),
    ("tool-off", "/console/tools", SWITCH, NOTES, "note.add is now off for wearer"),
    ("tool-refused", "/console/tools", SWITCH, &[("user", "wearer"), ("name", "")], "give the full name of a tool"),
    ("answer-late", ASKED, ANSWER, &[("id", "999"), ("answer", "no")], "no question 999 is open"),
    ("answer-none", ASKED, ANSWER, &[("id", "1"), ("answer", "perhaps")], "Answer yes or no."),
    ("answer-to-none", ASKED, ANSWER, &[("id", "x"), ("answer", "no")], "Name a question."),
    ("act-none", "/console/apps", ACT, &[("package", "none"), ("act", "dance")], "Start, restart or stop."),
    ("act-on-none", "/console/apps", ACT, &[("package", "none"), ("act", "restart")], "No such app is installed."),
    ("server-refused", "/console/mcp", "/console/mcp/restart", &[("name", "none")], "no MCP server is called none"),
    ("looked-again", "/console/problems", "/console/problems/again", &[], "the box was looked at again"),
    ("end-none", "/console/access", END, &[("session", "x")], "Name a session."),
    ("end-other", "/console/access", END, &[("session", "999")], "0 sessions ended"),
    ("erase-none", "/console/conversations", ERASE, &[("user", "wearer"), ("id", "x")], "Name a conversation."),
    ("erased", "/console/conversations", ERASE, &[("user", "wearer")], "wearer: erased "),
    ("revoked", "/console/devices/of/DEVICE", "/console/devices/revoke", &[("device", "DEVICE")], "revoked"),
    ("revoke-refused", DEVICES, "/console/devices/revoke", &[("device", "none")], "no device is called none"),
    ("reload-refused", "/console/configuration", "/console/configuration/reload", &[], "there is nothing to read"),
    (
        "form-of-another-session",
        DEVICES,
        "/console/devices/withdraw",
        &[("token", "00")],
        "This form is from another session.",
    ),
];
