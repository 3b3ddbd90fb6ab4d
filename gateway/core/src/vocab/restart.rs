//! What of a device's session is stored, so that a gateway that was restarted goes on with it.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use super::{pending::Pending, tool::ToolCall};

/// A time in which no wake phrase is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenEar {
    /// Whether the wearer called or pressed; otherwise an answer was heard.
    pub called: bool,
    /// When it ends, in milliseconds since the Unix epoch.
    pub until_wall_ms: i64,
}

/// A question of a command engine about a request that is not whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// What the wearer was asked, word for word.
    pub text: String,
    /// The request that waits for the answer.
    pub pending: Pending,
    /// Whether it was heard to its end: only then something that was said may be the answer.
    pub heard: bool,
    /// Until when an answer counts, in milliseconds since the Unix epoch.
    pub until_wall_ms: i64,
}

/// What is left of a session after a restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Remains {
    /// The time in which no wake phrase is needed, if it had not ended.
    pub ear: Option<OpenEar>,
    /// The question that waited for its answer.
    pub question: Option<OpenQuestion>,
    /// The turn that was under way, or one whose calls were. It is over.
    pub turn: Option<LostTurn>,
}

/// A turn that ended with the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LostTurn {
    /// The wearer's request; empty if only calls were under way.
    pub request: String,
    /// Calls of which it is not known whether they did what they were to do.
    pub unknown: Vec<LostCall>,
    /// Calls that waited for the wearer's consent: nothing of them was done.
    pub asked: Vec<ToolCall>,
}

/// A call that ended with the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostCall {
    /// Title of its tool.
    pub title: String,
    /// Of a program: titles of the tools whose changes were completed.
    pub done: Vec<String>,
}
