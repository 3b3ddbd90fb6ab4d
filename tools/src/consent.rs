//! The question before a call, and what its outcome means.

use gateway_core::vocab::{ApprovalOutcome, ErrorCode, ToolResult};
use serde_json::Value;

use crate::{
    arguments::clean,
    limits::{MESSAGE_BYTES_MAX, QUESTION_VALUE_BYTES_MAX},
    registry::Registered,
    reply::cut,
};

/// The question in one sentence: the definition's own with the arguments in their places, else
/// what the tool does.
pub(crate) fn question(tool: &Registered, arguments: &Value) -> String {
    if let Some(template) = &tool.spec.approval {
        return cut(&fill(template, arguments), MESSAGE_BYTES_MAX);
    }
    let description = tool.spec.description.trim();
    let first = description.split_once(". ").map_or(description, |(first, _)| first);
    let first = cut(first.trim_end_matches('.'), MESSAGE_BYTES_MAX);
    format!("May I use {}? {first}.", tool.spec.name)
}

/// What the wearer is told before a question about a call that belongs to no turn: it was somebody else's wish.
pub(crate) fn from_outside(question: &str, by_client: bool) -> String {
    let whose = if by_client { "A connected program asks" } else { "Somebody at the gateway asks" };
    cut(&format!("{whose}: {question}"), MESSAGE_BYTES_MAX)
}

/// Fills `{property}`. A value is one short line in quotation marks, so that what an argument says
/// cannot be taken for what the house says.
fn fill(template: &str, arguments: &Value) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((property, after)) = after.split_once('}') else {
            break;
        };
        out.push_str(before);
        match arguments.get(property) {
            Some(Value::String(text)) => {
                let text = clean(text).replace(['"', '“', '”'], "'");
                out.push_str(&format!("\"{}\"", cut(&text, QUESTION_VALUE_BYTES_MAX)));
            }
            Some(Value::Number(number)) => out.push_str(&number.to_string()),
            Some(Value::Bool(flag)) => out.push_str(if *flag { "yes" } else { "no" }),
            Some(Value::Null) | None => out.push_str("nothing"),
            Some(list) => out.push_str(&cut(&clean(&list.to_string()), QUESTION_VALUE_BYTES_MAX)),
        }
        rest = after;
    }
    out.push_str(rest);
    clean(&out)
}

/// Nothing where the wearer agreed, else why the call is not made.
pub(crate) fn refusal(outcome: ApprovalOutcome) -> Option<ToolResult> {
    let (code, message) = match outcome {
        ApprovalOutcome::Approved => return None,
        ApprovalOutcome::Denied => (ErrorCode::ApprovalDenied, "The wearer said no."),
        ApprovalOutcome::Expired => {
            (ErrorCode::ApprovalExpired, "The wearer was not there or did not answer in time; nothing was done.")
        }
        ApprovalOutcome::Cancelled => return Some(cancelled()),
    };
    Some(ToolResult::failed(code, message, false))
}

/// Before anything was done.
pub(crate) fn cancelled() -> ToolResult {
    ToolResult::failed(ErrorCode::Cancelled, "The wearer interrupted; nothing was done.", false)
}
