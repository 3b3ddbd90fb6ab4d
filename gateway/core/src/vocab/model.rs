//! Events of a chat model's stream.

use alloc::string::String;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{pending::Pending, side::Preference, tool::ToolCall};

/// One event of a model's answer. `Done` or `Failed` comes last, exactly once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum ModelEvent {
    /// More text of the answer.
    Text(String),
    /// Reasoning, to be stored before the text and the calls that follow from it.
    Thinking {
        /// The provider, by the name of its adapter.
        provider: String,
        /// The adapter's data.
        data: Value,
    },
    /// A complete tool call.
    ToolCall(ToolCall),
    /// More text of the answer, a question about an incomplete request. Used by a command engine; a model only needs
    /// text that ends in a question mark.
    Question {
        /// The spoken text.
        text: String,
        /// The request that waits for the answer.
        pending: Pending,
    },
    /// More text of the answer, for a request that was not understood. The long form need be spoken only once.
    NotUnderstood {
        /// Lists what can be said.
        text: String,
        /// How more could be understood, for a gateway without a model.
        without_model: String,
        /// For a wearer who was informed before.
        brief: String,
    },
    /// The wearer has chosen between sides, as asked by a command engine.
    Chosen(Preference),
    /// The answer is complete.
    Done {
        /// Why it stopped.
        stop: StopReason,
        /// Tokens used.
        usage: Usage,
    },
    /// The answer will not be completed.
    Failed {
        kind: FailureKind,
        /// Error text.
        message: String,
    },
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// The answer was finished.
    End,
    /// It waits for tool results.
    ToolCalls,
    /// It reached its length limit.
    Length,
    /// A filter stopped it.
    Filtered,
}

/// Kinds of failure that the agent distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// May resolve by itself: network, overload.
    Transient,
    /// Too many requests or no budget left.
    Limited,
    /// The model refuses to answer this.
    Refused,
    /// Key missing or wrong.
    Auth,
    /// The model called a tool that it was not offered, or produced a malformed call: another attempt, with the tools
    /// of that moment, may succeed.
    BadCall,
    /// The request or the answer was malformed.
    Bug,
}

/// Tokens used, as counted by the provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the request, those from a cache included.
    pub input: u32,
    /// Of these, tokens from the provider's cache.
    pub cached: u32,
    /// Tokens of the answer.
    pub output: u32,
}

/// An instruction for models of one family, in addition to the assistant's style instructions or instead of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptHint {
    /// In addition to them.
    Besides(&'static str),
    /// Instead of them: longer instructions confuse a model this small.
    Only(&'static str),
}
