//! The question before a call, and how its outcome is handled.

use std::collections::BTreeSet;

use gateway_core::vocab::{AnsweredBy, ApprovalOutcome, ErrorCode, Question, ToolResult};
use serde_json::Value;

use crate::{
    limits::{
        MESSAGE_BYTES_MAX, NAME_BYTES_MAX, QUESTION_BYTES_MAX, QUESTION_SAID_MAX, QUESTION_VALUE_CHARS_MAX,
        QUESTION_WHAT_CHARS_MAX,
    },
    registry::Registered,
    reply::cut,
    spoken,
    wording::{self, plain, quoted},
};

/// The text of the question: the definition's own with the arguments filled in, otherwise the action, its provider
/// and its arguments. Every argument that is not completely contained in the text is listed below it.
pub(crate) fn question(tool: &Registered, arguments: &Value) -> Question {
    if let Some(template) = &tool.spec.approval {
        let (asked, told) = fill(template, arguments);
        let rest = ordered(tool, arguments).into_iter().filter(|(name, _)| !told.contains(*name));
        return Question {
            title: tool.headline(),
            said: cut(&asked, MESSAGE_BYTES_MAX),
            shown: with_lines(asked, rest.collect()),
        };
    }
    let arguments = ordered(tool, arguments);
    let title = match tool.owner() {
        Some(owner) => format!("{} with {owner}?", tool.title()),
        None => format!("{}?", tool.title()),
    };
    let what = described(tool);
    let mut said: Vec<String> =
        arguments.iter().take(QUESTION_SAID_MAX).map(|(k, v)| wording::argument(k, v)).collect();
    if arguments.len() > QUESTION_SAID_MAX {
        said.push(format!("{} more", arguments.len() - QUESTION_SAID_MAX));
    }
    let said = (!said.is_empty()).then(|| spoken::sentence(&spoken::capitalised(&said.join(", "))));
    let said: Vec<String> = [Some(title.clone()), what.clone(), said].into_iter().flatten().collect();
    Question {
        title,
        said: cut(&said.join(" "), MESSAGE_BYTES_MAX),
        shown: with_lines(what.unwrap_or_default(), arguments),
    }
}

/// A question in the words that the tool's source has found for these arguments: one line, with every argument below it.
/// `None`: nothing is left of them.
pub(crate) fn computed(tool: &Registered, arguments: &Value, words: &str) -> Option<Question> {
    let asked = cut(&plain(words), MESSAGE_BYTES_MAX);
    let is_said = asked.chars().any(char::is_alphanumeric);
    is_said.then(|| Question {
        title: tool.headline(),
        said: asked.clone(),
        shown: with_lines(asked, ordered(tool, arguments)),
    })
}

/// Adds a sentence to a question.
pub(crate) fn with_more(question: Question, more: &str) -> Question {
    Question {
        said: cut(&format!("{} {more}", question.said), MESSAGE_BYTES_MAX),
        shown: cut(&format!("{more}\n{}", question.shown), QUESTION_BYTES_MAX),
        ..question
    }
}

/// Adds a notice to a question about a call that belongs to no turn: the wearer did not request it.
pub(crate) fn from_outside(question: Question, by_client: bool) -> Question {
    let whose = if by_client { "A connected program asks" } else { "Somebody at the gateway asks" };
    Question {
        title: whose.to_owned(),
        said: cut(&format!("{whose}: {}", question.said), MESSAGE_BYTES_MAX),
        shown: cut(&format!("{}\n{}", question.title, question.shown), QUESTION_BYTES_MAX),
    }
}

/// A question that a server asks during a call. It names the server, so that the words are not taken for the
/// assistant's.
pub(crate) fn from_server(server: &str, message: &str) -> Question {
    let title = format!("{} asks", spoken::capitalised(&plain(server)));
    Question {
        said: cut(&format!("{title}: {}", plain(message)), MESSAGE_BYTES_MAX),
        shown: cut(&wording::visible(message), QUESTION_BYTES_MAX),
        title,
    }
}

/// The first sentence of the tool's description, if it adds anything to the title.
fn described(tool: &Registered) -> Option<String> {
    let description = plain(&tool.spec.description);
    let first = description.split_once(". ").map_or(description.as_str(), |(first, _)| first);
    let first = first.trim_end_matches('.');
    let bare = |text: &str| {
        let words = wording::words(text).to_lowercase();
        let words: Vec<&str> = words.split(' ').filter(|word| !["a", "an", "the"].contains(word)).collect();
        words.join(" ")
    };
    let is_more = !first.is_empty() && bare(first) != bare(&tool.title()) && bare(first) != bare(&tool.local_name);
    is_more.then(|| spoken::sentence(&wording::shortened(first, QUESTION_WHAT_CHARS_MAX)))
}

/// The arguments, required ones first.
fn ordered<'a>(tool: &Registered, arguments: &'a Value) -> Vec<(&'a str, &'a Value)> {
    let required: Vec<&str> = tool
        .spec
        .input_schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let mut all: Vec<(&str, &Value)> =
        arguments.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value)).collect();
    all.sort_by_key(|(name, _)| required.iter().position(|other| other == name).unwrap_or(usize::MAX));
    all
}

/// A text with a line for each argument below it; it states how many did not fit.
fn with_lines(text: String, arguments: Vec<(&str, &Value)>) -> String {
    const ROOM_FOR_THE_REST: usize = 64;
    let mut shown = cut(&text, QUESTION_BYTES_MAX / 2);
    for (at, (name, value)) in arguments.iter().enumerate() {
        let line = wording::line(name, value);
        if shown.len() + 1 + line.len() + ROOM_FOR_THE_REST > QUESTION_BYTES_MAX {
            shown.push_str(&format!("\n({} more arguments, which have no room here)", arguments.len() - at));
            break;
        }
        if !shown.is_empty() {
            shown.push('\n');
        }
        shown.push_str(&line);
    }
    shown
}

/// Fills `{property}`. A value is one short line in quotation marks, so that an argument cannot be mistaken for the
/// gateway's own words. Also returns the properties that are contained unchanged and complete.
pub(crate) fn fill(template: &str, arguments: &Value) -> (String, BTreeSet<String>) {
    let mut out = String::new();
    let mut told = BTreeSet::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((property, after)) = after.split_once('}') else {
            break;
        };
        out.push_str(before);
        let is_whole = match arguments.get(property) {
            Some(Value::String(text)) => {
                let value = plain(text);
                out.push_str(&quoted(&value, QUESTION_VALUE_CHARS_MAX));
                value == *text && value.chars().count() <= QUESTION_VALUE_CHARS_MAX
            }
            Some(Value::Number(number)) => {
                out.push_str(&number.to_string());
                true
            }
            Some(Value::Bool(flag)) => {
                out.push_str(if *flag { "yes" } else { "no" });
                true
            }
            Some(Value::Null) | None => {
                out.push_str("nothing");
                true
            }
            Some(nested) => {
                out.push_str(&wording::said(nested));
                false
            }
        };
        if is_whole {
            told.insert(property.to_owned());
        }
        rest = after;
    }
    out.push_str(rest);
    (plain(&out), told)
}

/// `None` if the wearer, or who answers in the wearer's place, agreed; otherwise the reason why the call is not made.
pub(crate) fn refusal(outcome: ApprovalOutcome, by: AnsweredBy) -> Option<ToolResult> {
    let by_client = by == AnsweredBy::Client;
    let (code, message) = match outcome {
        ApprovalOutcome::Approved => return None,
        ApprovalOutcome::Denied if by_client => (ErrorCode::ApprovalDenied, "The client that made the call said no."),
        ApprovalOutcome::Denied => (ErrorCode::ApprovalDenied, "The wearer said no."),
        ApprovalOutcome::Expired if by_client => (
            ErrorCode::ApprovalExpired,
            "The client that made the call went away or did not answer in time; nothing was done.",
        ),
        ApprovalOutcome::Expired => {
            (ErrorCode::ApprovalExpired, "The wearer went away or did not answer in time; nothing was done.")
        }
        ApprovalOutcome::Unasked => (
            ErrorCode::ApprovalExpired,
            "It needs the wearer's consent, and nobody could be asked: no glasses of this user are connected, and no \
             operator watches (`lorgnette approvals watch`, or the page of approvals of the console). Nothing was done.",
        ),
        ApprovalOutcome::Cancelled if by_client => {
            (ErrorCode::Cancelled, "The client that made the call cancelled it, or went away; nothing was done.")
        }
        ApprovalOutcome::Cancelled => return Some(cancelled()),
    };
    Some(ToolResult::failed(code, message, false))
}

/// The tool of a call that waited, perhaps for the wearer and over a restart, is gone, or another one.
pub(crate) fn changed(tool: &str) -> ToolResult {
    let message = format!(
        "The tool '{}' is gone or has changed since the call came; nothing was done.",
        cut(tool, NAME_BYTES_MAX)
    );
    let mut result = ToolResult::failed(ErrorCode::ToolNotFound, message, false);
    result.say = Some("I can't do that any more: what was to do it has changed.".to_owned());
    result
}

/// Cancelled before anything was done.
pub(crate) fn cancelled() -> ToolResult {
    ToolResult::failed(ErrorCode::Cancelled, "The wearer interrupted; nothing was done.", false)
}

#[cfg(test)]
#[path = "consent_tests.rs"]
mod tests;
