//! Commands that wait for more words of the wearer.

use alloc::{string::String, vec::Vec};
use serde_json::Value;

use super::{side::Side, tool::ToolCall};

/// A request that is not whole yet: an engine of commands has asked about it, or the wearer may go on with it.
///
/// The core keeps it and decides how long an answer counts; the engine alone reads and writes what is in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pending {
    /// What the wearer has said of it so far, word for word.
    pub words: String,
    /// The calls that may be meant. Empty: nothing was asked; the words were a request, and more words may belong to it.
    pub calls: Vec<PendingCall>,
    /// What was done about it already, or may have been: nothing of it is to be done twice.
    pub done: Vec<ToolCall>,
    /// How often the same was asked.
    pub asked: u8,
}

/// A call that may be meant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PendingCall {
    /// Full name of the tool.
    pub name: String,
    /// JSON object: the arguments that are known.
    pub arguments: Value,
    /// What has to be known besides, in the order of asking: of each entry one of these properties.
    pub missing: Vec<Vec<String>>,
    /// What chooses this call where several may be meant.
    pub label: String,
    /// Who would carry it out, where that is what was asked: the choice is kept.
    pub side: Option<Side>,
}
