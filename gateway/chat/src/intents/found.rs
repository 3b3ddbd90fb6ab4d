//! What is found in an utterance: a tool and its arguments, and how well they fit.

use gateway_core::vocab::{Side, ToolCall};
use serde_json::Value;

/// A reading of an utterance as a sentence of one tool.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub intent: Intent,
    pub side: Side,
    /// Greater is better; comparable only among readings of one utterance.
    pub score: f32,
    /// Evidence of its fixed words.
    pub evidence: f32,
    /// Words read as free text.
    pub text_words: usize,
    /// Missing parts: one property of each entry.
    pub missing: Vec<Vec<String>>,
    /// Index of the template in the grammar.
    pub template: usize,
}

/// A tool and its arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Intent {
    pub name: String,
    pub arguments: Value,
    /// Whether an argument is free text.
    pub free_text: bool,
}

impl Intent {
    pub fn into_call(self, id: String) -> ToolCall {
        ToolCall { id, name: self.name, arguments: self.arguments }
    }
}
