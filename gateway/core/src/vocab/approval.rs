//! Questions for the wearer's consent.

use alloc::{borrow::ToOwned as _, format, string::String};

use serde::{Deserialize, Serialize};

use super::turn::Turn;

/// The text of a question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// One line: the action, and who would perform it.
    pub title: String,
    /// The whole question for speech: short, with the arguments that matter.
    pub said: String,
    /// The text below the title: every argument. Lines are separated by `\n`.
    pub shown: String,
}

impl Question {
    /// Title and text in one string.
    pub fn whole(&self) -> String {
        format!("{}\n{}", self.title, self.shown).trim_end().to_owned()
    }
}

/// A question asked by the executor before a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Unique within the process.
    pub id: u64,
    /// The turn that the call belongs to; `None`: it comes from outside a turn, from an operator or a client.
    pub turn: Option<Turn>,
    /// Identifies the call, together with its turn or without one: a decision applies to no other call.
    pub reference: u64,
    /// What the wearer reads and hears.
    pub question: Question,
    /// Hash of exactly the arguments in the question.
    pub arguments_hash: u64,
    /// How long the question stays open, in milliseconds.
    pub expires_ms: u32,
}

impl Approval {
    /// Whether the call comes from outside: the wearer did not request it here.
    pub fn is_from_outside(&self) -> bool {
        self.turn.is_none()
    }

    /// This question, settled.
    pub fn settled(&self, outcome: ApprovalOutcome, by: AnsweredBy) -> Settlement {
        let Self { id, arguments_hash, reference, .. } = *self;
        Settlement { id, outcome, by, arguments_hash, reference }
    }
}

/// The wearer's answer by tap or by an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApprovalChoice {
    /// Go ahead.
    Yes,
    /// Do not.
    No,
}

impl From<ApprovalChoice> for ApprovalOutcome {
    fn from(choice: ApprovalChoice) -> Self {
        match choice {
            ApprovalChoice::Yes => Self::Approved,
            ApprovalChoice::No => Self::Denied,
        }
    }
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalOutcome {
    /// The wearer agreed.
    Approved,
    /// The wearer refused.
    Denied,
    /// Nobody answered in time.
    Expired,
    /// There was nobody to ask.
    Unasked,
    /// The turn ended first.
    Cancelled,
}

/// Who settled a question, and by which means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// The wearer, by voice.
    Voice,
    /// The wearer, by typed text.
    Text,
    /// The wearer, by a button or touch.
    Tap,
    /// An operator, in the wearer's place.
    Operator,
    /// The client that requested the call.
    Client,
    /// Nobody: the question expired, or its subject ended.
    #[default]
    Nobody,
}

/// The outcome of a question and what exactly it applies to: the executor compares before it runs the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// Number of the question.
    pub id: u64,
    /// How it ended.
    pub outcome: ApprovalOutcome,
    /// Who settled it.
    pub by: AnsweredBy,
    /// The arguments that the decision applies to.
    pub arguments_hash: u64,
    /// The call that it applies to.
    pub reference: u64,
}
