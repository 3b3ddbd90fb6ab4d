//! Converts the gateway's results into the protocol's.

use gateway_core::vocab::{Attachment, ErrorCode, ToolResult};
use rmcp::{
    ErrorData,
    model::{CallToolResult, ContentBlock, GetPromptResult, ReadResourceResult, ResultType},
};
use serde_json::{Value, json};

use crate::{
    caller::Exact,
    mcp::{client::Failure, uris::Prefixes},
    reply::seconds,
};

/// The outcome of a request.
pub(super) enum Outcome {
    Tool(CallToolResult),
    Prompt(GetPromptResult),
    Resource(ReadResourceResult),
}

/// The outcome of a tool call. `exact` is the answer of a downstream server, from which secrets have been redacted;
/// `server` is its name.
pub(super) fn tool(
    result: ToolResult,
    exact: Option<Exact>,
    server: Option<&str>,
    prefixes: &Prefixes,
) -> Result<CallToolResult, ErrorData> {
    match (exact, server) {
        (Some(Exact::Result(mut exact)), Some(server)) => {
            for block in exact.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
                rename(block, server, prefixes);
            }
            if let Ok(mut exact) = serde_json::from_value::<CallToolResult>(exact) {
                exact.result_type.get_or_insert(ResultType::COMPLETE);
                return Ok(exact);
            }
        }
        (Some(Exact::Error { code, message, data }), Some(_)) => {
            return Err(ErrorData::new(rmcp::model::ErrorCode(code), message, data));
        }
        _ => {}
    }
    if let Some(error) = &result.error
        && error.code == ErrorCode::ToolNotFound
    {
        return Err(ErrorData::invalid_params(error.message.clone(), None));
    }
    Ok(own(result))
}

/// A result of the gateway's own: of a built-in tool, a device, an app, or a failure before the call.
fn own(result: ToolResult) -> CallToolResult {
    let mut content = vec![ContentBlock::text(result.for_model())];
    content.extend(result.attachments.into_iter().filter_map(|attachment| match attachment {
        Attachment::Image { mime, data } => Some(ContentBlock::image(data, mime)),
        Attachment::Audio { mime, data } => {
            serde_json::from_value(json!({ "type": "audio", "data": data, "mimeType": mime })).ok()
        }
        Attachment::Resource { block } => serde_json::from_value(block).ok(),
    }));
    let failed = result.error.is_some();
    let mut out = if failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
    out.structured_content = match result.error {
        Some(error) => serde_json::to_value(error).ok().map(|error| json!({ "error": error })),
        None => result.data.filter(Value::is_object),
    };
    out
}

/// Converts URIs inside a content block to their external form.
pub(super) fn rename(block: &mut Value, server: &str, prefixes: &Prefixes) {
    let pointer = match block.get("type").and_then(Value::as_str) {
        Some("resource") => "/resource/uri",
        Some("resource_link") => "/uri",
        _ => return,
    };
    if let Some(uri) = block.pointer_mut(pointer)
        && let Some(inner) = uri.as_str()
    {
        *uri = prefixes.uri_out(server, inner).into();
    }
}

/// Sets the result's type: servers before 2026-07-28 do not, and clients of 2026-07-28 need it.
pub(super) fn complete_prompt(mut result: GetPromptResult) -> GetPromptResult {
    result.result_type.get_or_insert(ResultType::COMPLETE);
    result
}

/// Sets the result's type, for the same reason.
pub(super) fn complete_resource(mut result: ReadResourceResult) -> ReadResourceResult {
    result.result_type.get_or_insert(ResultType::COMPLETE);
    result
}

/// A failure of a downstream server in a request without a tool result.
pub(super) fn error(server: &str, failure: Failure) -> ErrorData {
    match failure {
        Failure::Refused(error) => error,
        Failure::Down(why) => {
            ErrorData::internal_error(format!("the MCP server '{server}' is not running: {why}"), None)
        }
        Failure::Broken(why) => {
            ErrorData::internal_error(format!("the MCP server '{server}' gave no answer: {why}"), None)
        }
        Failure::TooLarge => {
            ErrorData::internal_error(format!("the MCP server '{server}' answered with too much"), None)
        }
        Failure::Late(wait) => {
            let message = format!("the MCP server '{server}' did not answer within {}", seconds(wait));
            ErrorData::internal_error(message, None)
        }
    }
}
