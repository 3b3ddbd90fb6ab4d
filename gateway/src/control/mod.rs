//! The control socket: how every other command touches the running gateway. One JSON object a
//! line each way; a client asks once and reads one answer.

pub(crate) mod admin;
mod app_log;
pub mod apps;
pub mod ask;
mod attempt;
pub mod client;
mod commands;
mod mcp;
pub mod memory;
pub(crate) mod server;
mod sides;
pub(crate) mod status;
mod tools;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use ::tools::ledger::{Record, Usage};
use gateway_core::vocab::{ClientClass, ToolResult, ToolSpec};
use serde::{Deserialize, Serialize};

use crate::{approvals::Event, telemetry::TurnRecord};

/// Longest line: the manifest of an app, in which JSON doubles what it escapes.
const LINE_BYTES_MAX: usize = 2 * ::tools::apps::import::MANIFEST_BYTES_MAX + 64 * 1024;

/// What can be asked.
#[allow(missing_docs, reason = "the fields are the words of the command line")]
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Paired devices and those that wait.
    Devices,
    /// Pair the device that shows this code.
    PairCode { code: String, user: String, name: String },
    /// Open a window for the device with this fingerprint.
    PairFingerprint { fingerprint: String, user: String, name: String },
    /// Give a device another name.
    Rename { device: String, name: String },
    /// Shut a device out for good.
    Revoke { device: String },
    /// The latest turns.
    Turns { count: usize },
    /// Something about mini-apps.
    Apps { wish: apps::Wish },
    /// What happened to an app, then what happens to it, one answer a line, until the client leaves.
    FollowApp { package: String },
    /// Something about users and what is kept of them.
    Memory { wish: memory::Wish },
    /// Everything that is kept of a user: one answer after the other.
    Export { user: String },
    /// The tools that a user is offered.
    Tools { user: String },
    /// What could not be carried over from the definitions of apps and MCP servers.
    ToolReports,
    /// Call a tool as a user.
    CallTool { user: String, name: String, arguments: serde_json::Value },
    /// Switch a tool on or off for a user.
    SwitchTool { user: String, name: String, on: bool },
    /// Which tool a sentence of a user's leads to, and why.
    ExplainSentence { text: String, user: String },
    /// Tools that have changed are to count at once, in the turns of a user or of all.
    ApplyTools { user: Option<String> },
    /// What tools were used for, by one user or by all, since a moment.
    Usage { user: Option<String>, since_wall_ms: i64 },
    /// Decisions about calls, by one user or by all, since a moment.
    Decisions { user: Option<String>, since_wall_ms: i64 },
    /// Questions that wait for a wearer's answer.
    Approvals,
    /// The same, then every question and every answer as it comes: one answer a line, until the client leaves.
    WatchApprovals,
    /// An operator's answer to a question.
    AnswerApproval { id: u64, yes: bool },
    /// Ask the assistant as a user: one event a line, until the answer is complete.
    Ask { user: String, text: String },
    /// From the answer on, this connection carries MCP.
    Mcp { user: String, class: ClientClass },
    /// The MCP servers behind the gateway.
    McpServers,
    /// Start one of them anew.
    RestartMcpServer { name: String },
    /// What one of them said lately on its standard error and in its log.
    McpServerLogs { name: String },
    /// How the gateway is.
    Status,
}

/// What is answered.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// Paired devices and those that wait.
    Devices { paired: Vec<Paired>, waiting: Vec<Waits> },
    /// Done; in words.
    Done { message: String },
    /// The latest turns, oldest first.
    Turns { turns: Vec<serde_json::Value> },
    /// Installed apps.
    Apps { apps: Vec<apps::Listed> },
    /// What happened to an app lately, oldest first.
    AppLog { entries: Vec<::tools::apps::log::Entry> },
    /// What a sentence leads to.
    Tried { tried: apps::Tried },
    /// Tools, in the order of their names.
    Tools { tools: Vec<Offered> },
    /// What could not be carried over, by source.
    ToolReports { reports: Vec<(String, Vec<String>)> },
    /// What the offline engine makes of a sentence, and why.
    Explained { explanation: Box<chat_models::intents::Explanation> },
    /// What a tool answered; attachments are described, not given.
    ToolResult { result: Box<ToolResult>, attachments: Vec<String> },
    /// What tools were used for, by user.
    Usage { users: BTreeMap<String, Vec<Usage>> },
    /// Calls that were asked about and what was decided, newest first.
    Decisions { decisions: Vec<Record> },
    /// Questions to wearers, oldest first.
    Approvals { approvals: Vec<Event> },
    /// What becomes of a request to the assistant.
    Asked { event: ask::Event },
    /// Records as JSON objects.
    Records { records: Vec<serde_json::Value> },
    /// MCP servers, in the order of their names.
    McpServers { servers: Vec<McpServer> },
    /// Lines, oldest first, each with how many seconds ago it came.
    Lines { lines: Vec<(u64, String)> },
    /// How the gateway is.
    Status { status: Box<status::Status> },
    /// Not done; why and what to do.
    Error { message: String },
}

/// A tool that a user is offered, or has switched off.
#[derive(Debug, Serialize, Deserialize)]
pub struct Offered {
    /// Who provides it.
    pub source: String,
    /// Whether the user has switched it off.
    pub off: bool,
    /// Everything that it declares.
    pub spec: ToolSpec,
}

/// A paired device.
#[derive(Debug, Serialize, Deserialize)]
pub struct Paired {
    /// Fingerprint.
    pub device: String,
    /// What it is called.
    pub name: String,
    /// Whom it belongs to.
    pub user: String,
    /// Model.
    pub model: String,
    /// The session that it is in now.
    pub session: Option<SessionOf>,
    /// When the last one ended, in milliseconds since the Unix epoch, where the gateway has seen it.
    pub left_wall_ms: Option<i64>,
    /// Shut out.
    pub revoked: bool,
}

/// A device's session.
#[derive(Debug, Serialize, Deserialize)]
pub struct SessionOf {
    /// `ws`, `wss`, `quic` or `text`.
    pub transport: String,
    /// From where.
    pub peer: String,
    /// Seconds since it was opened.
    pub for_s: u64,
    /// What the device says of its firmware.
    pub firmware: String,
    /// Where it has told.
    pub battery_percent: Option<u8>,
}

/// An MCP server behind the gateway.
#[derive(Debug, Serialize, Deserialize)]
pub struct McpServer {
    /// Name in the configuration.
    pub name: String,
    /// `up`, `down` or `starting`.
    pub state: String,
    /// The protocol's revision where it is up; why it is down.
    pub detail: String,
    /// Seconds since when.
    pub for_s: u64,
    /// Tools that it offers, or offered last.
    pub tools: usize,
    /// Why it was down last, and how many seconds ago.
    pub last_down: Option<(String, u64)>,
    /// The last call that failed, why, and how many seconds ago.
    pub last_failure: Option<(String, u64)>,
    /// Its last words on its standard error.
    pub last_words: Vec<String>,
}

/// A device that waits for pairing.
#[derive(Debug, Serialize, Deserialize)]
pub struct Waits {
    /// Fingerprint.
    pub fingerprint: String,
    /// Model.
    pub model: String,
    /// Whether it shows a code.
    pub shows_code: bool,
    /// Seconds left.
    pub expires_s: u64,
}

/// Where the socket of a data folder is.
pub fn socket_path(data_dir: &Path) -> PathBuf {
    data_dir.join("control.sock")
}

fn turns_as_json(turns: &[TurnRecord]) -> Vec<serde_json::Value> {
    turns.iter().filter_map(|turn| serde_json::to_value(turn).ok()).collect()
}
