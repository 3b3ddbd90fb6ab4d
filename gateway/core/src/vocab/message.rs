//! The canonical conversation: the only stored form.

use alloc::{string::String, vec, vec::Vec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tool::{ToolCall, ToolResult};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Standing instructions.
    System,
    /// The wearer.
    User,
    /// The assistant, its tool calls included.
    Assistant,
    /// Results of tools.
    Tool,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture, as the glasses' camera took it.
    Image {
        /// Media type, for example `image/jpeg`.
        mime: String,
        /// Base64.
        data: String,
    },
    /// What a model thought before it answered. Opaque: given back unchanged to the provider that
    /// made it, left out for every other one.
    Thinking {
        /// The provider, as its adapter calls itself.
        provider: String,
        /// What that adapter wants to see again.
        data: Value,
    },
    /// The assistant wants a tool to run.
    ToolCall {
        /// The call, with its arguments.
        call: ToolCall,
    },
    /// What came of it.
    ToolResult {
        /// The call.
        call_id: String,
        /// What came of it.
        result: ToolResult,
    },
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// In order.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message of one text part.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, parts: vec![Part::Text { text: text.into() }] }
    }

    /// All text parts, joined.
    pub fn plain_text(&self) -> String {
        let mut out = String::new();
        for part in &self.parts {
            if let Part::Text { text } = part {
                out.push_str(text);
            }
        }
        out
    }
}
