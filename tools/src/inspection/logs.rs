//! The stored log, as the tools read it.

use std::{collections::BTreeMap, fmt, str::FromStr};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{ports::PortError, registry::RunContext};

/// Lines of a page, if the query names no number.
pub const LINES_USUAL: usize = 100;
/// Lines of a page at most: it is read by a program or a person, who asks for the next one.
pub const LINES_MAX: usize = 1_000;
/// Bytes of a page as JSON, so that neither the text nor the data of a tool's result is cut.
pub const PAGE_BYTES_MAX: usize = 30 * 1024;

/// Severity of a line, the most severe first. Nothing below `Info` is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Something does not work.
    Error,
    /// Something may not work soon, or was given up.
    Warn,
    /// Something happened.
    Info,
}

impl LogLevel {
    /// All of them, the most severe first.
    pub const ALL: [Self; 3] = [Self::Error, Self::Warn, Self::Info];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
        }
    }
}

impl FromStr for LogLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| format!("`{text}` is no level: write error, warn or info"))
    }
}

/// Which lines. All conditions that are present must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogFilter {
    /// At least this severe.
    pub level: Option<LogLevel>,
    /// A prefix of the context.
    pub context: Option<String>,
    /// Exactly this source.
    pub source: Option<String>,
    /// Not older than this, in milliseconds since the Unix epoch.
    pub since_wall_ms: Option<i64>,
    /// Older than this, in the same unit.
    pub before_wall_ms: Option<i64>,
    /// Words in the message, in any case of letters.
    pub text: Option<String>,
}

/// The place of a line: lines are in the order in which they were written, whatever the clock was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogCursor(pub u128);

impl fmt::Display for LogCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for LogCursor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let place = is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        place.map(Self).ok_or_else(|| "this is no cursor of a page before".to_owned())
    }
}

/// Whose lines are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogScope {
    /// Everybody's: to an operator.
    #[default]
    Everybody,
    /// Those about one user, and those about nobody: to the holder of a user's key.
    User {
        /// Whose key it is.
        user: String,
        /// The user's devices, by their fingerprints. Empty until the port that knows them has filled them in.
        devices: Vec<String>,
    },
}

impl LogScope {
    /// Of the caller of a tool.
    pub(super) fn of(context: &RunContext) -> Self {
        match &context.caller {
            Some(caller) if !caller.is_operator() => Self::User { user: context.user.clone(), devices: Vec::new() },
            _ => Self::Everybody,
        }
    }
}

/// A page of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Only lines that match it.
    pub filter: LogFilter,
    /// How many at most.
    pub limit: usize,
    /// Only lines before this place: where the page before ended.
    pub cursor: Option<LogCursor>,
    /// Only lines that the reader may see.
    pub scope: LogScope,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// When it was written, in milliseconds since the Unix epoch.
    pub wall_ms: i64,
    /// `error`, `warn` or `info`.
    pub level: LogLevel,
    /// The part of the program that wrote it.
    pub context: String,
    /// `gateway`, `device:ID`, `app:PACKAGE` or `mcp:SERVER`: what it is about.
    pub source: String,
    /// The text, with the values that belong to it as `name=value`.
    pub message: String,
}

/// Lines, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPage {
    /// At most as many as were asked for.
    pub logs: Vec<LogEntry>,
    /// Where the next page begins, if there is one.
    pub cursor: Option<LogCursor>,
}

/// What is stored, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogStats {
    /// Lines.
    pub total_logs: u64,
    /// The same by level.
    pub by_level: BTreeMap<String, u64>,
    /// The same by source.
    pub by_source: BTreeMap<String, u64>,
    /// The same by context.
    pub by_context: BTreeMap<String, u64>,
    /// Time of the oldest line, in milliseconds since the Unix epoch.
    pub oldest_wall_ms: Option<i64>,
    /// Time of the newest line, in the same unit.
    pub newest_wall_ms: Option<i64>,
    /// Lines that were not stored since the start: too many came at once, or the disk took none.
    pub dropped: u64,
}

/// Access to the stored log, which the gateway implements.
#[async_trait]
pub trait Logs: Send + Sync {
    /// A page of lines, newest first: at most [`LINES_MAX`] and [`PAGE_BYTES_MAX`].
    async fn query(&self, query: LogQuery) -> Result<LogPage, PortError>;
    /// What is stored, in numbers.
    async fn stats(&self, scope: LogScope) -> Result<LogStats, PortError>;
    /// Deletes lines, so that no byte of them is left in the file; returns their number.
    async fn clear(&self, filter: LogFilter, scope: LogScope) -> Result<u64, PortError>;
}
