//! Typed access to a call's arguments, with errors that can be spoken.

use gateway_core::vocab::{ErrorCode, ToolResult};
use serde_json::Value;

use crate::{ports::PortError, reply::cut};

/// Why a built-in tool did not do what was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Kind of failure.
    pub code: ErrorCode,
    /// For the model: what was wrong and what to do.
    pub message: String,
    /// For the wearer.
    pub say: String,
    /// Whether the same call may succeed later and is safe to repeat.
    pub retryable: bool,
}

impl Refusal {
    /// The arguments do not make sense; `say` asks for what is missing.
    pub fn arguments(message: impl Into<String>, say: impl Into<String>) -> Self {
        Self { code: ErrorCode::InvalidArguments, message: message.into(), say: say.into(), retryable: false }
    }

    /// As a result.
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
    /// A text: in one line, without control characters and surrounding space. `None` when absent
    /// or empty.
    pub fn text(&self, property: &str) -> Option<String> {
        let text = clean(self.0.get(property)?.as_str()?);
        (!text.is_empty()).then_some(text)
    }

    /// A text that must be there and have at most `chars_max` characters.
    pub fn text_required(&self, property: &str, chars_max: usize, ask: &str) -> Result<String, Refusal> {
        let text = self
            .text(property)
            .ok_or_else(|| Refusal::arguments(format!("'{property}' is missing or empty. Ask the wearer."), ask))?;
        within(&text, property, chars_max)?;
        Ok(text)
    }

    /// A text that may be there and has at most `chars_max` characters.
    pub fn text_optional(&self, property: &str, chars_max: usize) -> Result<Option<String>, Refusal> {
        let text = self.text(property);
        if let Some(text) = &text {
            within(text, property, chars_max)?;
        }
        Ok(text)
    }

    /// A whole number. JSON Schema counts 5.0 as one, so it is one here. Numbers beyond the range
    /// of `i64` are brought to its ends, where every tool's own limits refuse them.
    pub fn integer(&self, property: &str) -> Option<i64> {
        let value = self.0.get(property)?;
        value
            .as_i64()
            // Casts from floats saturate.
            .or_else(|| value.as_f64().map(|number| number as i64))
    }

    /// A truth value; false when absent.
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

/// One line of text: white space runs become one space, other control characters go.
pub fn clean(text: &str) -> String {
    let words = text.split_whitespace().map(|word| word.chars().filter(|c| !c.is_control()).collect::<String>());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
