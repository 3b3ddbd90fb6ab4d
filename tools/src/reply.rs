//! Postprocessing of results: reply templates are filled, limits enforced, and every result gets a sentence that can
//! be spoken.

use std::time::Duration;

use gateway_core::vocab::{Attachment, ToolResult};
use serde_json::Value;

use crate::limits::{
    ATTACHMENTS_BYTES_MAX, ATTACHMENTS_MAX, BINARY_CHARS_MIN, CONTENT_BYTES_MAX, DATA_BYTES_MAX, FOLLOW_UP_BYTES_MAX,
    FOLLOW_UPS_MAX, MESSAGE_BYTES_MAX, PROGRAM_RESULT_BYTES_MAX, SAY_BYTES_MAX, SHOW_BYTES_MAX,
};
use crate::wording;

/// Spoken for a success without any other text.
const DONE: &str = "Done.";

/// At most `bytes_max` bytes of the text, cut at a character boundary, with a mark at the cut.
pub fn cut(text: &str, bytes_max: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let mut end = bytes_max.saturating_sub(MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut out = text.get(..end).unwrap_or_default().to_owned();
    out.push_str(MARK);
    out
}

/// A duration in readable form: `8 s`, `1.5 s`.
pub(crate) fn seconds(time: Duration) -> String {
    // Rounded up to tenths: the rest of a timeout is a little shorter than the timeout itself.
    let tenths = time.as_millis().div_ceil(100);
    match tenths % 10 {
        0 => format!("{} s", tenths / 10),
        rest => format!("{}.{rest} s", tenths / 10),
    }
}

/// Fills `{property}` of a reply template from a result's data; lists are worded. `None` if a property is missing,
/// null or an object: an incomplete sentence is worse than none.
pub fn fill(template: &str, data: Option<&Value>) -> Option<String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (property, after) = after.split_once('}')?;
        out.push_str(before);
        match data?.get(property)? {
            Value::String(text) => out.push_str(text),
            Value::Number(number) => out.push_str(&number.to_string()),
            Value::Bool(true) => out.push_str("yes"),
            Value::Bool(false) => out.push_str("no"),
            list @ Value::Array(_) => out.push_str(&wording::said(list)),
            Value::Null | Value::Object(_) => return None,
        }
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// The properties that a template names in braces.
///
/// # Errors
/// A brace is not closed, or the braces are empty.
pub fn slots(template: &str) -> Result<Vec<&str>, String> {
    let mut slots = Vec::new();
    let mut rest = template;
    while let Some((_, after)) = rest.split_once('{') {
        let Some((property, after)) = after.split_once('}') else {
            return Err("'{' is not closed".to_owned());
        };
        if property.is_empty() {
            return Err("'{}' names no property".to_owned());
        }
        slots.push(property);
        rest = after;
    }
    Ok(slots)
}

/// Enforces the limits on a result and adds a text if it has none.
pub fn finish(result: ToolResult, template: Option<&str>) -> ToolResult {
    finish_within(result, template, (CONTENT_BYTES_MAX, DATA_BYTES_MAX))
}

/// The same for a program, which no model reads: it may have more content and data.
pub(crate) fn finish_for_program(result: ToolResult, template: Option<&str>) -> ToolResult {
    finish_within(result, template, (PROGRAM_RESULT_BYTES_MAX, PROGRAM_RESULT_BYTES_MAX))
}

fn finish_within(
    mut result: ToolResult,
    template: Option<&str>,
    (content_bytes_max, data_bytes_max): (usize, usize),
) -> ToolResult {
    let data_bytes = result.data.as_ref().map_or(0, |data| data.to_string().len());
    if data_bytes > data_bytes_max {
        tracing::warn!(data_bytes, "data of a tool result is too large and was left out");
        result.data = None;
    }
    // An empty sentence counts as none; `handled_display` is the way to request silence.
    result.say = result.say.filter(|say| !say.trim().is_empty());
    if result.say.is_none() && !result.handled_display {
        result.say = match (&result.error, template) {
            (Some(error), _) => Some(error.code.apology().to_owned()),
            (None, Some(template)) => fill(template, result.data.as_ref()),
            (None, None) => None,
        };
    }
    let left_out = bound_attachments(&mut result.attachments);
    if left_out > 0 {
        result.notes.push(format!("[{left_out} attachments were too large and left out]"));
    }
    without_binary(&mut result.content);
    if result.say.is_none() && !result.handled_display {
        result.say = Some(in_words(&result));
    }
    if result.content.is_empty() {
        result.content = match (&result.data, &result.say) {
            (Some(data), _) => data.to_string(),
            (None, Some(say)) => say.clone(),
            (None, None) => DONE.to_owned(),
        };
        without_binary(&mut result.content);
    }
    result.content = cut(&result.content, content_bytes_max);
    result.say = result.say.map(|say| cut(&say, SAY_BYTES_MAX));
    result.show = result.show.map(|show| show.map_texts(|text| cut(&text, SHOW_BYTES_MAX)));
    result.follow_ups.truncate(FOLLOW_UPS_MAX);
    for follow_up in &mut result.follow_ups {
        *follow_up = cut(follow_up, FOLLOW_UP_BYTES_MAX);
    }
    if let Some(error) = &mut result.error {
        error.message = cut(&error.message, MESSAGE_BYTES_MAX);
    }
    result
}

/// The spoken text of a result that has none of its own.
fn in_words(result: &ToolResult) -> String {
    let is_nothing = |data: &Value| data.is_null() || data.as_object().is_some_and(serde_json::Map::is_empty);
    let said = wording::result(&result.content, result.data.as_ref().filter(|data| !is_nothing(data)));
    if !said.is_empty() {
        return said;
    }
    let attached = match result.attachments.first() {
        None => DONE,
        Some(Attachment::Image { .. }) => "There is a picture, which I can't show you.",
        Some(Attachment::Audio { .. }) => "There is a recording, which I can't play to you.",
        Some(Attachment::Resource { .. }) => "There is a file, which I can't open for you.",
    };
    attached.to_owned()
}

/// Drops attachments that are too many or too large; returns how many were dropped.
fn bound_attachments(attachments: &mut Vec<Attachment>) -> usize {
    let (given, mut bytes) = (attachments.len(), 0_usize);
    attachments.truncate(ATTACHMENTS_MAX);
    attachments.retain(|part| {
        let own = match part {
            Attachment::Image { data, .. } | Attachment::Audio { data, .. } => data.len(),
            Attachment::Resource { block } => block.to_string().len(),
        };
        let fits = bytes + own <= ATTACHMENTS_BYTES_MAX;
        bytes += if fits { own } else { 0 };
        fits
    });
    given - attachments.len()
}

/// Replaces long runs of base64: they are useless to a model and cost tokens.
fn without_binary(text: &mut String) {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    let mut out = String::new();
    let (mut kept, mut run) = (0, 0);
    let bytes = text.as_bytes();
    for at in 0..=bytes.len() {
        if bytes.get(at).copied().is_some_and(is_base64) {
            continue;
        }
        if at - run >= BINARY_CHARS_MIN && looks_encoded(bytes.get(run..at).unwrap_or_default()) {
            out.push_str(text.get(kept..run).unwrap_or_default());
            out.push_str("[binary data left out]");
            kept = at;
        }
        run = at + 1;
    }
    if kept > 0 {
        out.push_str(text.get(kept..).unwrap_or_default());
        *text = out;
    }
}

/// Encoded bytes mix upper case, lower case and digits; a line of dashes does not.
fn looks_encoded(run: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| run.iter().any(test);
    has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit)
}
