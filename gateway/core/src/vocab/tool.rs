//! Tools, as used throughout the workspace.

use alloc::{borrow::ToOwned as _, string::String, vec::Vec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{display::Content, side::Side};

/// Key of a result's data.
const PARTLY_DONE: &str = "partlyDone";

/// A tool's declaration.
///
/// It is all that the offline intent engine needs: a tool that is registered at run time with phrases can be used by
/// voice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Full name, for example `timer.set`. Never parsed: names contain dots.
    pub name: String,
    /// The name for people, for display and speech: a few words such as "Set a timer".
    #[serde(default)]
    pub title: Option<String>,
    /// Description for a model.
    pub description: String,
    /// JSON Schema of type object.
    pub input_schema: Value,
    /// Sentence templates per language.
    #[serde(default)]
    pub phrases: Vec<Phrases>,
    /// How to speak a result without a `say` of its own: text with `{property}` of its data.
    #[serde(default)]
    pub reply: Option<String>,
    /// Advice for a model, added only while the tool is offered.
    #[serde(default)]
    pub guidance: Option<String>,
    /// Its effects and requirements.
    #[serde(default)]
    pub flags: ToolFlags,
    /// Longest time a call may take, in milliseconds; the executor's default if absent.
    #[serde(default)]
    pub timeout_ms: Option<u32>,
    /// JSON Schema of the result's `data`.
    #[serde(default)]
    pub output_schema: Option<Value>,
    /// Category, for people who browse.
    #[serde(default)]
    pub category: Option<String>,
    /// Package of the mini-app that must run before a call.
    #[serde(default)]
    pub app: Option<String>,
    /// Its provider: set at registration, not declared.
    #[serde(skip)]
    pub side: Side,
    /// The clients that see it; absent: all.
    #[serde(default)]
    pub clients: Option<Vec<ClientClass>>,
    /// The question before a call that requires approval: text with `{property}` of its arguments.
    #[serde(default)]
    pub approval: Option<String>,
    /// Shown while a call runs: text with `{property}` of its arguments. Absent: made of the title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// How often one user may call it.
    #[serde(default)]
    pub rate_limit: Option<RateLimit>,
}

/// Classes of clients that use tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientClass {
    /// The gateway's own assistant, for the wearer.
    #[default]
    Internal,
    /// The wearer's own assistant on another machine.
    Copilot,
    /// Any other client with a key.
    External,
}

/// A limit of calls per span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// Calls, at least 1.
    pub calls: u32,
    /// The span in milliseconds, at least 1.
    pub per_ms: u32,
}

/// Sentence templates in one language.
///
/// Template syntax: words; `[optional]`; `(this|that)`, also in `[this|that]`; `{property}` or `{property:type}`, a
/// slot bound to a property of the input schema. Types: `text` (free, kept verbatim, the default of string properties),
/// `name` (free, used only for lookup: courtesy after it is not part of it), `number` (the default of number and
/// integer properties), `duration` (whole seconds), `time` (`HH:MM`, 24 hours), `date` (`YYYY-MM-DD`), `when` (local
/// date and time, `YYYY-MM-DDTHH:MM`), `wake` (the same, where an hour alone is one of the morning), `expression`
/// (arithmetic for the calculator), `app` (the name of an installed mini-app, by its sound), `choice` (the default of
/// properties with an enum). `{property=value}` matches nothing and sets the property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phrases {
    /// BCP 47 tag, for example `en`.
    pub language: String,
    /// The templates, most specific first.
    pub templates: Vec<String>,
}

/// A sentence that the template of [`Phrases`] matches, as it is written there: without optional parts, with the first of each group
/// of alternatives, and with what `slot` says for each slot (`property` or `property:type`). `None`: a bracket has no partner, or
/// `slot` says nothing.
pub fn first_sentence(template: &str, mut slot: impl FnMut(&str) -> Option<String>) -> Option<String> {
    let mut out = String::new();
    // For every open bracket, whether its content is kept.
    let mut kept: Vec<bool> = Vec::new();
    let mut rest = template.chars();
    while let Some(c) = rest.next() {
        let keep = kept.iter().all(|kept| *kept);
        match c {
            '[' => kept.push(false),
            '(' => kept.push(true),
            '|' => *kept.last_mut()? = false,
            ']' | ')' => drop(kept.pop()?),
            '{' => {
                let (inner, after) = rest.as_str().split_once('}')?;
                rest = after.chars();
                if keep && !inner.contains('=') {
                    out.push_str(&slot(inner)?);
                }
            }
            c if keep => out.push(c),
            _ => {}
        }
    }
    Some(out.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Effects and requirements of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolFlags {
    /// Changes nothing: may be repeated, cancelled and run in parallel.
    pub read_only: bool,
    /// A second call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// Destroys something irrecoverably.
    pub destructive: bool,
    /// The wearer is asked before every call.
    pub requires_approval: bool,
    /// Included in every request, never subject to routing.
    pub always: bool,
    /// Its calls are recorded in the ledger.
    pub persistent: bool,
    /// Draws on the display.
    pub requires_display: bool,
    /// Takes long: the wearer is informed before the wait.
    pub slow: bool,
}

/// A tool call of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Canonical and unique within the conversation.
    pub id: String,
    /// Full name.
    pub name: String,
    /// JSON object.
    pub arguments: Value,
}

/// The result of any kind of tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The tool's result as text; may be spoken to the wearer if there is no `say`.
    pub content: String,
    /// Notes of the gateway for the model, such as that it cannot see the picture. Never for the wearer.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The same, structured.
    #[serde(default)]
    pub data: Option<Value>,
    /// Text to speak to the wearer; a model may use its own words instead.
    #[serde(default)]
    pub say: Option<String>,
    /// Content to show to the wearer.
    #[serde(default)]
    pub show: Option<Content>,
    /// The tool draws and speaks by itself: the assistant stays silent.
    #[serde(default)]
    pub handled_display: bool,
    /// Sentences that the wearer might say next.
    #[serde(default)]
    pub follow_ups: Vec<String>,
    /// Parts that are not text. They never enter a model's context.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    /// Present when it failed.
    #[serde(default)]
    pub error: Option<ToolError>,
}

/// A part of a result that is not text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Attachment {
    /// A picture.
    Image {
        /// Media type.
        mime: String,
        /// Base64.
        data: String,
    },
    /// A sound.
    Audio {
        /// Media type.
        mime: String,
        /// Base64.
        data: String,
    },
    /// A resource of an MCP server or a link to one, unchanged.
    Resource {
        /// The content block.
        block: Value,
    },
}

impl ToolResult {
    /// A success whose text is both spoken and given to the model.
    pub fn said(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { content: text.clone(), say: Some(text), ..Self::default() }
    }

    /// The result of a call that failed; a model reads the message.
    pub fn failed(code: ErrorCode, message: impl Into<String>, retryable: bool) -> Self {
        let message = message.into();
        Self { content: message.clone(), error: Some(ToolError { code, message, retryable }), ..Self::default() }
    }

    /// The complete text for a model: the content followed by the notes.
    pub fn for_model(&self) -> String {
        let mut text = self.content.clone();
        for note in self.notes.iter().filter(|note| !note.is_empty()) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(note);
        }
        text
    }

    /// Whether it withdraws the pictures of its turn, with `"withdrawsPictures": true` in its data: no model is sent
    /// them any more.
    pub fn withdraws_pictures(&self) -> bool {
        self.data.as_ref().and_then(|data| data.get("withdrawsPictures")?.as_bool()).unwrap_or_default()
    }

    /// Whether it is that of a program that was stopped after some of its changes were done, with `"partlyDone": true` in
    /// its data: the wearer is told of these even if the turn was interrupted.
    pub fn is_partly_done(&self) -> bool {
        self.data.as_ref().and_then(|data| data.get(PARTLY_DONE)?.as_bool()).unwrap_or_default()
    }

    /// Sets or removes that mark; data that is not an object stays as it is.
    pub fn mark_partly_done(&mut self, is_partly_done: bool) {
        if is_partly_done {
            let data = self.data.get_or_insert_with(|| Value::Object(serde_json::Map::new()));
            if let Value::Object(data) = data {
                data.insert(PARTLY_DONE.to_owned(), Value::Bool(true));
            }
        } else if let Some(Value::Object(data)) = &mut self.data {
            data.remove(PARTLY_DONE);
        }
    }

    /// Whether it failed.
    pub fn is_error(&self) -> bool {
        self.error.is_some()
    }

    /// Whether the call was certainly not executed.
    pub fn has_not_run(&self) -> bool {
        use ErrorCode::{
            ApprovalDenied, ApprovalExpired, InvalidArguments, PermissionDenied, RateLimited, ToolNotFound,
        };
        self.error.as_ref().is_some_and(|error| {
            matches!(
                error.code,
                ToolNotFound | InvalidArguments | PermissionDenied | RateLimited | ApprovalDenied | ApprovalExpired
            )
        })
    }
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    /// Kind of failure.
    pub code: ErrorCode,
    /// Error text, for the model.
    pub message: String,
    /// Whether the same call may succeed later and is safe to repeat.
    pub retryable: bool,
}

/// Kinds of failure of a tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ErrorCode {
    /// No tool of that name is offered.
    ToolNotFound,
    /// The arguments do not fit the schema.
    InvalidArguments,
    /// This caller may not use the tool.
    PermissionDenied,
    /// Too many calls.
    RateLimited,
    /// The wearer refused.
    ApprovalDenied,
    /// The wearer did not answer in time.
    ApprovalExpired,
    /// The app or device behind the tool is not available.
    AppNotAvailable,
    /// The app answered with an error status.
    HttpError,
    /// No answer in time.
    Timeout,
    /// The turn was interrupted.
    Cancelled,
    /// The tool itself failed.
    ExecutionError,
}

impl ErrorCode {
    /// The spoken text for a failed call without a better one.
    pub fn apology(self) -> &'static str {
        match self {
            Self::ToolNotFound => "I don't have a tool for that right now.",
            Self::InvalidArguments => "I didn't get all I need for that.",
            Self::PermissionDenied => "I'm not allowed to do that.",
            Self::RateLimited => "That was asked too often. Please try again in a moment.",
            Self::ApprovalDenied => "Okay, I won't.",
            Self::ApprovalExpired => "I didn't hear a yes, so I left it.",
            Self::AppNotAvailable => "That isn't available right now.",
            Self::HttpError => "The app answered with an error.",
            Self::Timeout => "That took too long.",
            Self::Cancelled => "Okay, cancelled.",
            Self::ExecutionError => "Sorry, that didn't work.",
        }
    }
}
