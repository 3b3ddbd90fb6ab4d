//! Commands that wait for further input of the wearer.

use alloc::{string::String, vec::Vec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{side::Side, tool::ToolCall};

/// An incomplete request: a command engine has asked about it, or the wearer may continue it.
///
/// The core keeps it and decides how long an answer counts; only the engine interprets its contents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pending {
    /// The wearer's words so far, verbatim.
    pub words: String,
    /// The candidate calls. Empty: nothing was asked; the words were a request, and more words may belong to it.
    pub calls: Vec<PendingCall>,
    /// Calls for it that have run, or may have: none of them may be repeated.
    pub done: Vec<ToolCall>,
    /// How often the same question was asked.
    pub asked: u8,
}

/// A call that is made once its missing arguments are known, or once it is chosen among several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PendingCall {
    /// Full name of the tool.
    pub name: String,
    /// JSON object: the known arguments.
    pub arguments: Value,
    /// The missing arguments, in the order of asking: for each entry one of these properties.
    pub missing: Vec<Vec<String>>,
    /// The word that chooses this call among several.
    pub label: String,
    /// Who would carry it out, if that was the question: the choice is stored.
    pub side: Option<Side>,
}
