//! Questions that only the wearer may answer.

use alloc::{borrow::ToOwned as _, format, string::String};

use serde::{Deserialize, Serialize};

use super::turn::Turn;

/// What the wearer is asked, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// One line: what would be done, and by whom.
    pub title: String,
    /// The whole question for the ear: short, with the arguments that matter.
    pub said: String,
    /// What stands below the title: every argument. Lines are parted by `\n`.
    pub shown: String,
}

impl Question {
    /// Title and text in one, for who reads both at once.
    pub fn whole(&self) -> String {
        format!("{}\n{}", self.title, self.shown).trim_end().to_owned()
    }
}

/// A question put by the executor before a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approval {
    /// Unique within the process.
    pub id: u64,
    /// The turn that the call belongs to; `None`: it comes from outside of any turn, from an operator or a client.
    pub turn: Option<Turn>,
    /// Names the call, beside its turn or in its place: a decision is about no other one.
    pub reference: u64,
    /// The question.
    pub question: Question,
    /// Hash of exactly the arguments that were asked about.
    pub arguments_hash: u64,
    /// How long the question stands, in milliseconds.
    pub expires_ms: u32,
}

impl Approval {
    /// Whether the call comes from outside: the wearer did not wish for it here.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Nobody was there to be asked.
    Unasked,
    /// The turn ended first.
    Cancelled,
}

/// Who settled a question, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// The wearer said it.
    Voice,
    /// The wearer typed it.
    Text,
    /// The wearer pressed or touched the glasses.
    Tap,
    /// An operator, in the wearer's place.
    Operator,
    /// The client that wished for the call.
    Client,
    /// Nobody: the time was over, or what was asked about.
    #[default]
    Nobody,
}

/// How a question was settled, and what exactly it was about: the executor compares before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// Number of the question.
    pub id: u64,
    /// How it ended.
    pub outcome: ApprovalOutcome,
    /// Who settled it.
    pub by: AnsweredBy,
    /// The arguments that the decision is bound to.
    pub arguments_hash: u64,
    /// The call that it is bound to.
    pub reference: u64,
}
