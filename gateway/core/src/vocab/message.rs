//! The canonical conversation, the only stored form.

use alloc::{
    string::{String, ToString as _},
    vec,
    vec::Vec,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    tokens,
    tool::{ToolCall, ToolResult},
};

/// Tokens of a message besides its parts: role and delimiters, as OpenAI's cookbook ("How to count tokens") counts
/// them.
const MESSAGE_TOKENS: u32 = 4;
/// Tokens of a call or a result besides its text: its id and the surrounding structure.
const CALL_TOKENS: u32 = 12;
/// Tokens of a picture of the glasses' camera: providers count 258 to 1,600 for one of a megapixel.
const IMAGE_TOKENS: u32 = 1_000;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Standing instructions.
    System,
    /// The wearer, in speech or in text; and, for providers, the pictures that tools returned
    /// ([`Message::is_wearers`]).
    User,
    /// The assistant, its tool calls included.
    Assistant,
    /// Results of tools.
    Tool,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum Part {
    /// Plain text.
    Text { text: String },
    /// A picture of the glasses' camera.
    Image {
        /// Media type, for example `image/jpeg`.
        mime: String,
        /// Base64.
        data: String,
    },
    /// A model's reasoning before its answer. Opaque: returned unchanged to the provider that made it, omitted for all
    /// others.
    Thinking {
        /// The provider, by the name of its adapter.
        provider: String,
        /// The adapter's data.
        data: Value,
    },
    /// A tool call of the assistant.
    ToolCall {
        /// The call, with its arguments.
        call: ToolCall,
    },
    /// What a call returned.
    ToolResult { call_id: String, result: ToolResult },
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

    /// Whether it shows pictures. Tools return them; a wearer's message is text.
    pub fn has_picture(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Image { .. }))
    }

    /// Whether the wearer said it. Pictures that tools returned have the same role, since providers take pictures from
    /// no other one; the text beside them is the gateway's.
    pub fn is_wearers(&self) -> bool {
        self.role == Role::User && !self.has_picture()
    }

    /// Estimated tokens of the message in a model's context.
    pub fn tokens(&self) -> u32 {
        let part = |part: &Part| match part {
            Part::Text { text } => tokens::of_text(text),
            Part::Image { .. } => IMAGE_TOKENS,
            // Each provider counts it in its own way, whatever it contains; most of it is signature.
            Part::Thinking { data, .. } => tokens::of_text(&data.to_string()) / 2,
            Part::ToolCall { call } => {
                CALL_TOKENS + tokens::of_text(&call.name) + tokens::of_text(&call.arguments.to_string())
            }
            Part::ToolResult { result, .. } => CALL_TOKENS + tokens::of_text(&result.for_model()),
        };
        self.parts.iter().map(part).fold(MESSAGE_TOKENS, u32::saturating_add)
    }

    /// The text of all text parts, joined.
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
