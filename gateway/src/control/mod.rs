//! The control socket: how every other command touches the running gateway. One JSON object a
//! line each way; a client asks once and reads one answer.

pub mod client;
mod commands;
pub mod server;

use std::path::{Path, PathBuf};

use gateway_core::vocab::ClientClass;
use serde::{Deserialize, Serialize};

use crate::telemetry::TurnRecord;

/// Longest line.
const LINE_BYTES_MAX: usize = 64 * 1024;

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
    /// From the answer on, this connection carries MCP.
    Mcp { user: String, class: ClientClass },
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
    /// Not done; why and what to do.
    Error { message: String },
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
    /// In a session now.
    pub connected: bool,
    /// Shut out.
    pub revoked: bool,
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
