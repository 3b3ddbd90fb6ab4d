//! What a chat model streams back.

use alloc::string::String;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{pending::Pending, side::Preference, tool::ToolCall};

/// One event of a model's answer. `Done` or `Failed` comes last, exactly once.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum ModelEvent {
    /// More text of the answer.
    Text(String),
    /// What it thought, to be kept before the text and the calls that follow from it.
    Thinking {
        /// The provider, as its adapter calls itself.
        provider: String,
        /// What that adapter wants to see again.
        data: Value,
    },
    /// A complete tool call.
    ToolCall(ToolCall),
    /// More text of the answer, which asks the wearer about a request that is not whole. An engine of commands asks
    /// like this; a model needs no more than text that ends in a question mark.
    Question {
        /// What to say.
        text: String,
        /// What waits for the answer.
        pending: Pending,
    },
    /// More text of the answer, where nothing was understood. What is said at length once need not be said so again.
    NotUnderstood {
        /// With what can be said.
        text: String,
        /// How more than that could be understood, for a box without a model.
        without_model: String,
        /// For who was told that before.
        brief: String,
    },
    /// The wearer has chosen between sides, when an engine of commands asked.
    Chosen(Preference),
    /// The answer is complete.
    Done {
        /// Why it stopped.
        stop: StopReason,
        /// Tokens used.
        usage: Usage,
    },
    /// It will not be completed.
    Failed {
        kind: FailureKind,
        /// In words.
        message: String,
    },
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It was done.
    End,
    /// It waits for tool results.
    ToolCalls,
    /// It ran into its length limit.
    Length,
    /// A filter stopped it.
    Filtered,
}

/// Kinds of failure that the agent acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// May go away by itself: network, overload.
    Transient,
    /// Too many requests or no budget left.
    Limited,
    /// The model will not answer this.
    Refused,
    /// Key missing or wrong.
    Auth,
    /// The model tried to call a tool that it was not offered, or wrote no proper call: another attempt, with the
    /// tools of that moment, may do.
    BadCall,
    /// The request or the answer was malformed.
    Bug,
}

/// Tokens used, as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the request, those from a cache included.
    pub input: u32,
    /// Of these, tokens that the provider had in its cache.
    pub cached: u32,
    /// Tokens of the answer.
    pub output: u32,
}

/// A sentence for models of one family, in addition to the assistant's style instructions or in place of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptHint {
    /// In addition to them.
    Besides(&'static str),
    /// In place of them: longer instructions confuse a model this small.
    Only(&'static str),
}
