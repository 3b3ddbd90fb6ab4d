//! What is said when a tool has answered, and when nothing was understood.

use std::sync::Arc;

use gateway_core::vocab::{Message, Part, Role, ToolResult, ToolSpec};
use serde_json::Value;

/// Longest content that is read out where a tool gave nothing to say.
const SPOKEN_CHARS_MAX: usize = 300;

/// What to say to the results at the end of the conversation; none where the last message is not
/// of that kind. An empty text means that the tools speak for themselves.
pub(super) fn to_results(messages: &[Message], tools: &[Arc<ToolSpec>]) -> Option<String> {
    let last_other = messages.iter().rposition(|message| message.role != Role::Tool).map_or(0, |index| index + 1);
    let trailing = messages.get(last_other..).unwrap_or(&[]);
    if trailing.is_empty() {
        return None;
    }
    let mut sentences: Vec<String> = Vec::new();
    for part in trailing.iter().flat_map(|message| &message.parts) {
        if let Part::ToolResult { call_id, result } = part {
            let tool = called_tool(messages, call_id).and_then(|name| tools.iter().find(|tool| tool.name == name));
            let sentence = sentence(result, tool.map(AsRef::as_ref));
            if !sentence.is_empty() && !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
    }
    Some(sentences.join(" "))
}

/// Whether the conversation ends with results of calls that this engine has made.
pub(super) fn is_to_own_calls(messages: &[Message]) -> bool {
    let own = |part: &Part| matches!(part, Part::ToolResult { call_id, .. } if call_id.starts_with(super::CALL_PREFIX));
    messages.last().is_some_and(|last| last.role == Role::Tool && last.parts.iter().all(own))
}

fn called_tool<'a>(messages: &'a [Message], call_id: &str) -> Option<&'a str> {
    let parts = messages.iter().rev().flat_map(|message| &message.parts);
    parts
        .filter_map(|part| match part {
            Part::ToolCall { call } if call.id == call_id => Some(call.name.as_str()),
            _ => None,
        })
        .next()
}

fn sentence(result: &ToolResult, tool: Option<&ToolSpec>) -> String {
    if result.handled_display {
        return String::new();
    }
    if let Some(say) = &result.say {
        return finished(say);
    }
    if let Some(error) = &result.error {
        return finished(&format!("Sorry, that did not work: {}", error.message));
    }
    let filled = tool.and_then(|tool| tool.reply.as_deref()).and_then(|template| fill(template, result.data.as_ref()?));
    finished(&filled.unwrap_or_else(|| shortened(&result.content)))
}

/// `{property}` replaced by the data; none where the data lacks one.
fn fill(template: &str, data: &Value) -> Option<String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        out.push_str(before);
        match data.get(name.trim())? {
            Value::String(text) => out.push_str(text),
            value @ (Value::Number(_) | Value::Bool(_)) => out.push_str(&value.to_string()),
            Value::Array(items) => {
                let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                out.push_str(&texts?.join(", "));
            }
            Value::Null | Value::Object(_) => return None,
        }
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

fn finished(text: &str) -> String {
    let text = text.trim();
    let ends = text.ends_with(['.', '!', '?', ':', '\u{2026}', '"']);
    if text.is_empty() || ends { text.to_owned() } else { format!("{text}.") }
}

fn shortened(content: &str) -> String {
    if content.chars().count() <= SPOKEN_CHARS_MAX {
        return content.to_owned();
    }
    let cut: String = content.chars().take(SPOKEN_CHARS_MAX).collect();
    let end = cut.rfind(['.', ' ']).unwrap_or(cut.len());
    format!("{}\u{2026}", &cut[..end])
}

/// What is said when no command was understood.
pub(super) fn to_unknown(near: Option<&str>, examples: &[String]) -> String {
    let quoted = |text: &str| format!("\u{201c}{text}\u{201d}");
    match (near, examples) {
        (Some(near), _) => format!("I did not understand that. You can say, for example, {}.", quoted(near)),
        (None, []) => "That is no command that I know.".into(),
        (None, examples) => {
            let list: Vec<String> = examples.iter().map(|text| quoted(text)).collect();
            format!("That is no command that I know. You can say, for example, {}.", list.join(" or "))
        }
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::vocab::{ErrorCode, ToolCall, ToolFlags};
    use serde_json::json;

    use super::*;

    fn conversation(results: Vec<ToolResult>) -> Vec<Message> {
        let mut messages = vec![Message::text(Role::User, "well?")];
        for (index, result) in results.into_iter().enumerate() {
            let id = format!("c{index}");
            messages.insert(
                1 + index,
                Message {
                    role: Role::Assistant,
                    parts: vec![Part::ToolCall {
                        call: ToolCall { id: id.clone(), name: "t".into(), arguments: json!({}) },
                    }],
                },
            );
            messages.push(Message { role: Role::Tool, parts: vec![Part::ToolResult { call_id: id, result }] });
        }
        messages
    }

    fn tool() -> ToolSpec {
        ToolSpec {
            name: "t".into(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
            phrases: Vec::new(),
            reply: Some("It is {count} {unit}, {list}".into()),
            guidance: None,
            flags: ToolFlags::default(),
            timeout_ms: None,
            ..ToolSpec::default()
        }
    }

    #[test]
    fn results_are_said() {
        let with_data = |data: Value| ToolResult { content: "raw".into(), data: Some(data), ..ToolResult::default() };
        let silent = ToolResult { handled_display: true, ..ToolResult::said("never") };
        let cases = [
            (vec![ToolResult::said("Timer set")], "Timer set."),
            (vec![with_data(json!({"count": 3, "unit": "m", "list": ["a", "b"]}))], "It is 3 m, a, b."),
            (vec![with_data(json!({"count": 3}))], "raw."),
            (vec![ToolResult::failed(ErrorCode::Timeout, "no answer", true)], "Sorry, that did not work: no answer."),
            (vec![ToolResult::said("One."), ToolResult::said("Two!")], "One. Two!"),
            (vec![silent], ""),
        ];
        for (results, expected) in cases {
            let said = to_results(&conversation(results), &[tool().into()]);
            assert_eq!(said.as_deref(), Some(expected));
        }
        assert_eq!(to_results(&[Message::text(Role::User, "x")], &[]), None);
        assert_eq!(to_results(&[], &[]), None);
    }

    #[test]
    fn long_content_is_cut_at_a_word() {
        let said = shortened(&"wörter ".repeat(100));
        assert!(said.chars().count() <= SPOKEN_CHARS_MAX + 1);
        assert!(said.ends_with("wörter\u{2026}"));
    }
}
