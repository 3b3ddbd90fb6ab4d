//! Converts the response of an app's server to a tool call, in either format, into the common result type.

use gateway_core::vocab::{Attachment, ErrorCode, ToolResult};
use serde_json::{Map, Value};

use crate::{
    limits::{FOLLOW_UPS_MAX, MESSAGE_BYTES_MAX},
    reply::cut,
};

/// The reply by which an app states that it has displayed or spoken the answer itself.
pub const HANDLED: &str = "GIVE_APP_CONTROL_OF_TOOL_RESPONSE";
/// Maximum non-text parts of a result: a wearer cannot take in more.
const ATTACHMENTS_MAX: usize = 8;

/// Why a response is neither a result nor an error of the app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidResponse(pub String);

/// Parses the body of a response with a success status.
///
/// Published apps respond `{"status":"success","reply":…}`, those of the MCP format `{"success":true,"content":…}`.
/// Either is accepted from any app, since the two cannot be confused.
///
/// # Errors
/// It is not JSON, or JSON of neither format.
pub fn read(body: &[u8]) -> Result<ToolResult, InvalidResponse> {
    let value: Value = serde_json::from_slice(body).map_err(|error| InvalidResponse(format!("no JSON: {error}")))?;
    let Value::Object(mut fields) = value else {
        return Err(InvalidResponse("JSON, but no object".to_owned()));
    };
    if let Some(status) = fields.remove("status") {
        return match status.as_str() {
            Some("success") => Ok(replied(fields.remove("reply").unwrap_or_default())),
            Some("error") => Ok(refused(text(&fields, "message"), ErrorCode::ExecutionError, false)),
            _ => Err(InvalidResponse("`status` is neither \"success\" nor \"error\"".to_owned())),
        };
    }
    match fields.get("success").and_then(Value::as_bool) {
        Some(true) => Ok(succeeded(fields)),
        Some(false) => Ok(failed(&fields)),
        None => Err(InvalidResponse("it has neither `status` nor `success`".to_owned())),
    }
}

/// The message of an error body, if it has one: `{"message":…}` or `{"error":{"message":…}}`.
pub fn message(body: &[u8]) -> Option<String> {
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else { return None };
    let nested = fields.get("error").and_then(Value::as_object).and_then(|error| text(error, "message"));
    text(&fields, "message").or(nested)
}

/// The result of a call that has returned this.
pub fn replied(reply: Value) -> ToolResult {
    match reply {
        Value::Null => ToolResult::said("Done."),
        Value::String(text) if text == HANDLED => handled(),
        Value::String(text) if text.trim().is_empty() => ToolResult::said("Done."),
        Value::String(text) => ToolResult::said(text),
        Value::Bool(yes) => ToolResult::said(if yes { "Yes." } else { "No." }),
        Value::Number(number) => ToolResult::said(number.to_string()),
        structured => ToolResult { content: structured.to_string(), data: Some(structured), ..ToolResult::default() },
    }
}

fn handled() -> ToolResult {
    ToolResult {
        content: "The app has given the answer to the wearer itself; say nothing more about it.".to_owned(),
        handled_display: true,
        ..ToolResult::default()
    }
}

fn refused(message: Option<String>, code: ErrorCode, retryable: bool) -> ToolResult {
    let message = message.unwrap_or_else(|| "the app gave no reason".to_owned());
    let mut result = ToolResult::failed(code, message, retryable);
    // A message in an app's own response was written for people, unlike the text of an exception.
    result.say = result.error.as_ref().map(|error| cut(&error.message, MESSAGE_BYTES_MAX));
    result
}

fn succeeded(mut fields: Map<String, Value>) -> ToolResult {
    let mut result = match fields.remove("content").unwrap_or_default() {
        Value::Array(parts) if parts.iter().all(|part| part.get("type").is_some()) => from_parts(parts),
        content => replied(content),
    };
    if let Some(data) = fields.remove("structuredContent").filter(Value::is_object) {
        result.data = Some(data);
    }
    // The misspelling comes from the original source and is in use.
    let extensions = fields.get("mentraExtensions").or_else(|| fields.get("menpitraExtensions"));
    if let Some(extensions) = extensions {
        if extensions.get("handledDisplay").and_then(Value::as_bool) == Some(true) {
            result.handled_display = true;
            result.say = None;
        }
        let follow_ups = extensions.get("suggestedFollowUps").and_then(Value::as_array);
        result.follow_ups = follow_ups
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .take(FOLLOW_UPS_MAX)
            .map(str::to_owned)
            .collect();
    }
    result
}

fn from_parts(parts: Vec<Value>) -> ToolResult {
    let mut texts = Vec::new();
    let mut attachments = Vec::new();
    for part in parts {
        let field = |name: &str| part.get(name).and_then(Value::as_str).map(str::to_owned);
        let attachment = match field("type").as_deref() {
            Some("text") => {
                texts.extend(field("text"));
                continue;
            }
            Some("image") => field("mimeType").zip(field("data")).map(|(mime, data)| Attachment::Image { mime, data }),
            Some("audio") => field("mimeType").zip(field("data")).map(|(mime, data)| Attachment::Audio { mime, data }),
            _ => Some(Attachment::Resource { block: part }),
        };
        attachments.extend(attachment.filter(|_| attachments.len() < ATTACHMENTS_MAX));
    }
    let mut result = replied(Value::String(texts.join("\n")));
    result.attachments = attachments;
    result
}

fn failed(fields: &Map<String, Value>) -> ToolResult {
    let error = fields.get("error").and_then(Value::as_object);
    let code = error
        .and_then(|error| error.get("code"))
        .and_then(|code| serde_json::from_value(code.clone()).ok())
        .filter(|code| is_for_apps(*code))
        .unwrap_or(ErrorCode::ExecutionError);
    let retryable = error.and_then(|error| error.get("retryable")).and_then(Value::as_bool) == Some(true);
    refused(error.and_then(|error| text(error, "message")), code, retryable)
}

/// Whether an app can know this of a call that has reached it. What it says must neither have the call repeated nor count as
/// the wearer's word.
fn is_for_apps(code: ErrorCode) -> bool {
    !matches!(
        code,
        ErrorCode::ToolNotFound
            | ErrorCode::ApprovalDenied
            | ErrorCode::ApprovalExpired
            | ErrorCode::AppNotAvailable
            | ErrorCode::Cancelled
    )
}

fn text(fields: &Map<String, Value>, key: &str) -> Option<String> {
    let text = fields.get(key)?.as_str()?.trim();
    (!text.is_empty()).then(|| cut(text, MESSAGE_BYTES_MAX))
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
