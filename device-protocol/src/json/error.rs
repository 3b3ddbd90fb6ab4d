//! Errors of JSON messages.

use alloc::string::{String, ToString};

/// Why a JSON message was not decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// Not JSON.
    #[error("not JSON: {message}")]
    Syntax {
        /// The parser's error message, with line and column.
        message: String,
    },
    /// Not a JSON object.
    #[error("`{field}` is not an object")]
    NotAnObject {
        /// Name of the field; `message` for the whole message.
        field: &'static str,
    },
    /// The whole message is too long.
    #[error("JSON message of {length} bytes is longer than the maximum of {max}")]
    MessageTooLong {
        /// Bytes found.
        length: usize,
        /// Most bytes that a message may have.
        max: usize,
    },
    /// A field is missing.
    #[error("field `{field}` is missing")]
    Missing {
        /// Name of the field.
        field: &'static str,
    },
    /// A field has the wrong type.
    #[error("field `{field}` is not {expected}")]
    WrongType {
        /// Name of the field.
        field: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// A text, byte string or list is longer than its maximum.
    #[error("field `{field}` has {length}, the maximum is {max}")]
    TooLong {
        /// Name of the field.
        field: &'static str,
        /// Bytes (or items of a list) found.
        length: usize,
        /// Most bytes (or items) that the field may have.
        max: usize,
    },
    /// An error of the binary form.
    #[error(transparent)]
    Wire(#[from] crate::Error),
}

impl JsonError {
    pub(crate) fn syntax(error: &serde_json::Error) -> Self {
        Self::Syntax { message: error.to_string() }
    }
}
