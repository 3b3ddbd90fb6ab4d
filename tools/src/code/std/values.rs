//! Arguments, contents and errors of the library's functions.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::code::HostError;

pub(super) fn error(code: &str, message: impl Into<String>) -> HostError {
    HostError { code: code.to_owned(), message: message.into(), retryable: false }
}

pub(super) fn unknown(function: &str) -> HostError {
    let name: String = function.chars().take(64).collect();
    error("unknown_function", format!("@lorgnette/std has no function '{name}'"))
}

/// The arguments of a function.
pub(super) fn read<T: DeserializeOwned>(function: &str, arguments: Value) -> Result<T, HostError> {
    serde_json::from_value(arguments).map_err(|misfit| error("invalid_arguments", format!("{function}: {misfit}")))
}

/// Content that is a text or, in base64, bytes: exactly one of them.
pub(super) fn content(text: Option<String>, bytes: Option<String>) -> Result<Vec<u8>, HostError> {
    match (text, bytes) {
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(bytes)) => from_base64(&bytes),
        _ => Err(error("invalid_arguments", "give either a text or bytes")),
    }
}

pub(super) fn from_base64(text: &str) -> Result<Vec<u8>, HostError> {
    STANDARD.decode(text).map_err(|why| error("invalid_arguments", format!("no valid base64: {why}")))
}

pub(super) fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}
