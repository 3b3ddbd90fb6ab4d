//! Typed access to a call's arguments, with errors that can be spoken.

use gateway_core::vocab::{ErrorCode, ToolResult};
use serde_json::Value;

use crate::{ports::PortError, reply::cut};

/// Why a built-in tool could not do what was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Kind of failure.
    pub code: ErrorCode,
    /// For the model: the problem and what to do about it.
    pub message: String,
    /// For the wearer.
    pub say: String,
    /// Whether the same call may succeed later and is safe to repeat.
    pub retryable: bool,
}

impl Refusal {
    /// The arguments are invalid; `say` asks for what is missing.
    pub fn arguments(message: impl Into<String>, say: impl Into<String>) -> Self {
        Self { code: ErrorCode::InvalidArguments, message: message.into(), say: say.into(), retryable: false }
    }

    /// Converts it into a result.
    pub fn into_result(self) -> ToolResult {
        let mut result = ToolResult::failed(self.code, self.message, self.retryable);
        result.say = Some(self.say);
        result
    }
}

impl From<PortError> for Refusal {
    fn from(error: PortError) -> Self {
        let message = cut(&error.to_string(), crate::limits::MESSAGE_BYTES_MAX);
        let (code, say, retryable) = match error {
            PortError::Full(_) => (ErrorCode::ExecutionError, "I couldn't save that: the storage is full.", false),
            PortError::ReadOnly(_) => {
                (ErrorCode::ExecutionError, "I couldn't save that: the storage can't be written to.", false)
            }
            PortError::Unavailable(_) => (ErrorCode::AppNotAvailable, "I can't get at that right now.", true),
            PortError::Failed(_) => (ErrorCode::ExecutionError, "Sorry, that didn't work. Nothing was changed.", false),
        };
        Self { code, message: format!("Nothing was changed: {message}"), say: say.to_owned(), retryable }
    }
}

/// The arguments of a call.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a>(pub &'a Value);

impl<'a> Arguments<'a> {
    /// A text on one line, without control characters and surrounding white space. `None` if absent or empty.
    pub fn text(&self, property: &str) -> Option<String> {
        let text = clean(self.0.get(property)?.as_str()?);
        (!text.is_empty()).then_some(text)
    }

    /// A required text of at most `chars_max` characters.
    pub fn text_required(&self, property: &str, chars_max: usize, ask: &str) -> Result<String, Refusal> {
        let text = self
            .text(property)
            .ok_or_else(|| Refusal::arguments(format!("'{property}' is missing or empty. Ask the wearer."), ask))?;
        within(&text, property, chars_max)?;
        Ok(text)
    }

    /// An optional text of at most `chars_max` characters.
    pub fn text_optional(&self, property: &str, chars_max: usize) -> Result<Option<String>, Refusal> {
        let text = self.text(property);
        if let Some(text) = &text {
            within(text, property, chars_max)?;
        }
        Ok(text)
    }

    /// A whole number. JSON Schema treats 5.0 as an integer, so it is accepted. Numbers outside the range of `i64` are
    /// clamped to it; every tool's own limits reject them.
    pub fn integer(&self, property: &str) -> Option<i64> {
        let value = self.0.get(property)?;
        value
            .as_i64()
            // Casts from floats saturate.
            .or_else(|| value.as_f64().map(|number| number as i64))
    }

    /// A boolean; false if absent.
    pub fn flag(&self, property: &str) -> bool {
        self.0.get(property).and_then(Value::as_bool).unwrap_or(false)
    }
}

fn within(text: &str, property: &str, chars_max: usize) -> Result<(), Refusal> {
    let chars = text.chars().count();
    if chars > chars_max {
        return Err(Refusal::arguments(
            format!("'{property}' has {chars} characters; at most {chars_max} are accepted."),
            "That is too long for me.",
        ));
    }
    Ok(())
}

/// One line of text: each run of white space becomes one space, other control characters are removed.
pub fn clean(text: &str) -> String {
    let words = text.split_whitespace().map(|word| word.chars().filter(|c| !c.is_control()).collect::<String>());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
