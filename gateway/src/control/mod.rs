//! The control socket: the interface of all other commands to the running gateway. One JSON object per line in both
//! directions; a client sends one request and reads one answer.

pub(crate) mod admin;
mod app_log;
pub mod apps;
pub mod ask;
pub mod attempt;
mod backup;
pub mod client;
mod commands;
mod devices;
pub mod firmware;
pub(crate) mod gather;
mod invitation;
mod logs;
mod mcp;
pub mod memory;
mod names;
pub mod programs;
mod reply;
pub(crate) mod server;
mod sides;
pub(crate) mod status;
pub(crate) mod system;
mod tools;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use ::tools::{
    inspection::logs::{LogEntry, LogFilter},
    ledger::{Record, Usage},
    source::{About, Source},
};
use gateway_core::vocab::{ClientClass, ErrorCode, ToolResult, ToolSpec};
use serde::{Deserialize, Serialize};

pub(crate) use self::{
    commands::{about, name, run},
    invitation::{Invited, Open},
    names::check_name,
};
use crate::{approvals::Event, backup::LeftOut, identity::operators::Role, telemetry::TurnRecord, upgrade::Version};

/// Longest line: the manifest of an app, in which JSON doubles what it escapes.
const LINE_BYTES_MAX: usize = 2 * ::tools::apps::import::MANIFEST_BYTES_MAX + 64 * 1024;

/// The one line that a client sends: what it wants of the gateway.
#[allow(missing_docs, reason = "the fields are the words of the command line")]
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Paired and waiting devices.
    Devices,
    /// Pair the device that shows this code.
    PairCode { code: String, user: String, name: String },
    /// Open a window for the device with this fingerprint.
    PairFingerprint { fingerprint: String, user: String, name: String },
    /// Invite one device, which scans what is answered; then what became of it. Withdrawn when the client disconnects.
    Invite { user: String, name: String, addresses: Vec<String> },
    /// Rename a device.
    Rename { device: String, name: String },
    /// Keep a device out until its fingerprint is named again.
    Revoke { device: String },
    /// The latest turns.
    Turns { count: usize },
    /// The latest turns that ended since a time, or until another one, also of earlier runs.
    StoredTurns {
        count: usize,
        since_wall_ms: i64,
        #[serde(skip_serializing_if = "Option::is_none")]
        until_wall_ms: Option<i64>,
    },
    /// A request about mini-apps.
    Apps { request: apps::AppsRequest },
    /// An app's log, then its events, one answer per line, until the client disconnects.
    FollowApp { package: String },
    /// A request about users and their stored data.
    Memory { request: memory::MemoryRequest },
    /// A request about runs of programs and routines.
    Programs { request: programs::ProgramsRequest },
    /// A request about firmware for devices.
    Firmware { request: firmware::FirmwareRequest },
    /// All stored data of a user, in several answers.
    Export { user: String },
    /// The tools that a user is offered.
    Tools { user: String },
    /// The tools that programs of a user may call.
    Callable { user: String },
    /// What could not be converted from the definitions of apps and MCP servers.
    ToolReports,
    /// Call a tool as a user.
    CallTool { user: String, name: String, arguments: serde_json::Value },
    /// Switch a tool on or off for a user.
    SwitchTool { user: String, name: String, on: bool },
    /// Which tool a sentence of a user leads to, and why.
    ExplainSentence { text: String, user: String },
    /// Apply changed tools at once, in the turns of a user or of all.
    ApplyTools { user: Option<String> },
    /// Usage of tools since a time, by one user or by all.
    Usage { user: Option<String>, since_wall_ms: i64 },
    /// Decisions about calls since a time, by one user or by all.
    Decisions { user: Option<String>, since_wall_ms: i64 },
    /// Questions that wait for a wearer.
    Approvals,
    /// The same, then every question and answer as it occurs: one answer per line, until the client disconnects.
    WatchApprovals,
    /// An operator's answer to a question.
    AnswerApproval { id: u64, yes: bool },
    /// Ask the assistant as a user: one event per line, until the answer is complete.
    Ask { user: String, text: String },
    /// After the answer, this connection carries MCP.
    Mcp { user: String, class: ClientClass },
    /// The MCP servers behind the gateway.
    McpServers,
    /// Restart one of them.
    RestartMcpServer { name: String },
    /// Recent lines of one server's standard error and log.
    McpServerLogs { name: String },
    /// The gateway's status.
    Status,
    /// Lines of the stored log, newest first.
    Logs { filter: LogFilter, limit: usize, cursor: Option<String> },
    /// The latest lines of the stored log, then others as they come, oldest first, until the client disconnects.
    FollowLogs { filter: LogFilter, limit: usize },
    /// Its process and versions.
    Version,
    /// Have this program replace the gateway, if it is ready within so many seconds.
    Upgrade { program: PathBuf, wait_s: u64 },
    /// Read the configuration again, and take over what may change while the gateway runs.
    Reload,
    /// A one-time link to the console.
    ConsoleLink { role: Role },
    /// A snapshot of the data folder, which lasts as long as the client stays.
    Backup { device_keys: bool },
}

/// A line that the gateway sends back; most requests get one, those that go on until the client leaves get many.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// Paired and waiting devices.
    Devices { paired: Vec<Paired>, waiting: Vec<Waits> },
    /// An invitation: a text for glasses, and the seconds until it expires.
    Invited { text: String, expires_s: u64 },
    /// Done, with a text.
    Done { message: String },
    /// The latest turns, oldest first.
    Turns { turns: Vec<serde_json::Value> },
    /// Installed apps.
    Apps { apps: Vec<apps::Listed> },
    /// Recent events of an app, oldest first.
    AppLog { entries: Vec<::tools::apps::log::Entry> },
    /// What a sentence leads to.
    Tried { tried: attempt::Tried },
    /// Tools, by name.
    Tools { tools: Vec<Offered> },
    /// Tools that may be called, by name.
    Callable { tools: Vec<Callable> },
    /// What could not be converted, by source.
    ToolReports { reports: Vec<(String, Vec<String>)> },
    /// The offline engine's result for a sentence, and why.
    Explained { explanation: Box<chat_models::intents::Explanation> },
    /// The result of a tool; attachments are described, not included.
    ToolResult { result: Box<ToolResult>, attachments: Vec<String> },
    /// Usage of tools, by user.
    Usage { users: BTreeMap<String, Vec<Usage>> },
    /// Calls that required a decision and the decisions, newest first. `left_out`: the number of older ones that are not
    /// in the list.
    Decisions {
        decisions: Vec<Record>,
        #[serde(default)]
        left_out: usize,
    },
    /// Questions to wearers, oldest first.
    Approvals { approvals: Vec<Event> },
    /// An event of a request to the assistant.
    Asked { event: ask::Event },
    /// Records as JSON objects.
    Records { records: Vec<serde_json::Value> },
    /// MCP servers, by name.
    McpServers { servers: Vec<McpServer> },
    /// Lines, oldest first, each with its age in seconds.
    Lines { lines: Vec<(u64, String)> },
    /// The gateway's status.
    Status { status: Box<status::Status> },
    /// Lines of the stored log, and where the next page begins, if there is one.
    Logs { logs: Vec<LogEntry>, cursor: Option<String> },
    /// The state of firmware.
    Firmware { firmware: Box<crate::firmware::facts::Facts> },
    /// The gateway's process, or the one that replaces it now, and its versions. `started_us`: when the gateway that
    /// answers was started, on the monotonic clock: a process may start one again.
    Version { pid: u32, version: Version, started_us: u64 },
    /// The configuration was read again.
    Reloaded { reloaded: admin::Reloaded },
    /// A link to the console: its path, the address of the pages, and the seconds until it expires. `certificate`: its
    /// fingerprint, to be compared by people, if no authority vouches for it.
    ConsoleLink {
        path: String,
        web: String,
        expires_s: u64,
        #[serde(default)]
        certificate: Option<String>,
    },
    /// A snapshot for a backup is made, without these.
    Snapshot { left_out: LeftOut },
    /// Not done; why, and what to do.
    Error { message: String },
}

/// A tool that a user is offered, or has switched off.
#[derive(Debug, Serialize, Deserialize)]
pub struct Offered {
    /// Who provides it, as text.
    pub source: String,
    /// Whether the user has switched it off.
    pub off: bool,
    /// Whether the operator has set its classes of clients (`[tools] clients`).
    #[serde(default)]
    pub clients_configured: bool,
    /// Its full declaration.
    pub spec: ToolSpec,
}

/// A tool that may be called.
#[derive(Debug, Serialize, Deserialize)]
pub struct Callable {
    /// Who provides it, and so carries it out.
    pub source: Source,
    /// Its provider's own name for it.
    pub local_name: String,
    /// The capability that it is a function of.
    #[serde(default)]
    pub about: Option<About>,
    /// Its full declaration.
    pub spec: ToolSpec,
}

/// A device as `lorgnette devices` lists it, connected or not.
#[derive(Debug, Serialize, Deserialize)]
pub struct Paired {
    /// Fingerprint.
    pub device: String,
    /// Given by the operator, or else the model.
    pub name: String,
    /// Whom it belongs to.
    pub user: String,
    /// Maker and model, as the device says.
    pub model: String,
    /// Its current session.
    pub session: Option<SessionOf>,
    /// End of its last session, in milliseconds since the Unix epoch, if the gateway has seen it.
    pub left_wall_ms: Option<i64>,
    /// Whether it may not connect any more.
    pub revoked: bool,
}

/// A device's session.
#[derive(Debug, Serialize, Deserialize)]
pub struct SessionOf {
    /// `ws`, `wss`, `quic` or `text`.
    pub transport: String,
    /// The peer's address.
    pub peer: String,
    /// Seconds since it was opened.
    pub for_s: u64,
    /// Seconds since its connection was lost, if it was: the session waits for the device.
    #[serde(default)]
    pub lost_s: Option<u64>,
    /// The firmware as reported by the device.
    pub firmware: String,
    /// If reported.
    pub battery_percent: Option<u8>,
    /// Whether its microphone is off.
    #[serde(default)]
    pub muted: bool,
    /// What is wrong with its microphone: `dead`, `clipping`, `quiet`, `offset`.
    #[serde(default)]
    pub microphone: Vec<String>,
    /// Whether it has a speaker for which no sound can be coded.
    #[serde(default)]
    pub speaker_silent: bool,
    /// Number of the turn that is under way.
    #[serde(default)]
    pub turn: Option<u32>,
}

/// An MCP server behind the gateway.
#[derive(Debug, Serialize, Deserialize)]
pub struct McpServer {
    /// Name in the configuration.
    pub name: String,
    /// `up`, `down` or `starting`.
    pub state: String,
    /// The protocol revision if it is up, else why it is down.
    pub detail: String,
    /// Seconds in this state.
    pub for_s: u64,
    /// Tools that it offers, or offered last.
    pub tools: usize,
    /// Why it was last down, and how many seconds ago.
    pub last_down: Option<(String, u64)>,
    /// The last call that failed, why, and how many seconds ago. For the operator only, as `last_words`: both may be the
    /// server's own text, and repeat what a wearer said.
    pub last_failure: Option<(String, u64)>,
    /// The tool of that call, and the kind of failure.
    pub last_failed: Option<(String, ErrorCode)>,
    /// Last lines of its standard error.
    pub last_words: Vec<String>,
}

/// A device that waits for pairing.
#[derive(Debug, Serialize, Deserialize)]
pub struct Waits {
    /// Of its key, by which the operator knows it.
    pub fingerprint: String,
    /// Maker and model, as the device says.
    pub model: String,
    /// Whether it shows a code.
    pub shows_code: bool,
    /// Seconds left.
    pub expires_s: u64,
}

/// Path of a data folder's socket.
pub fn socket_path(data_dir: &Path) -> PathBuf {
    data_dir.join("control.sock")
}

fn turns_as_json(turns: &[TurnRecord]) -> Vec<serde_json::Value> {
    turns.iter().filter_map(|turn| serde_json::to_value(turn).ok()).collect()
}

/// What the log has of a request, for `tests/fuzz` only.
#[cfg(feature = "fuzzing")]
pub(crate) fn told(request: &Request) -> (&'static str, Option<&str>) {
    (commands::name(request), commands::about(request))
}

/// What a pairing is granted for, if these are names, for `tests/fuzz` only.
#[cfg(feature = "fuzzing")]
pub(crate) fn granted(user: &str, name: &str) -> Option<crate::identity::grant::Grant> {
    devices::grant(user.to_owned(), name.to_owned()).ok()
}
