//! Questions that only the wearer may answer.

use alloc::string::String;

use super::turn::Turn;

/// A question put by the executor before a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Unique within the process.
    pub id: u64,
    /// The turn that the call belongs to.
    pub turn: Turn,
    /// Full name of the tool.
    pub tool: String,
    /// The question, in one sentence.
    pub question: String,
    /// Hash of exactly the arguments that were asked about.
    pub arguments_hash: u64,
    /// How long the question stands, in milliseconds.
    pub expires_ms: u32,
}

/// The wearer's answer by tap or by an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalChoice {
    /// Go ahead.
    Yes,
    /// Do not.
    No,
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalOutcome {
    /// The wearer agreed.
    Approved,
    /// The wearer refused.
    Denied,
    /// Nobody answered in time.
    Expired,
    /// The turn ended first.
    Cancelled,
}
