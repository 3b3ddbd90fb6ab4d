//! Replies to tool results, and to utterances that were not understood.

use gateway_core::vocab::{Message, Part, Role, ToolResult};

/// Reply if a tool returned nothing to say.
const DONE: &str = "Done.";
/// Reply to thanks.
pub(super) const WELCOME: &str = "You're welcome.";
/// Replies to a greeting and a farewell.
pub(super) const GREETING: &str = "Hello. What can I do for you?";
pub(super) const FAREWELL: &str = "Goodbye.";
/// Reply to a wearer who does not answer a question.
pub(super) const DECLINED: &str = "All right.";
/// Hint that a language model would understand more than commands.
pub(super) const WITHOUT_MODEL: &str =
    "For anything else a language model has to be set up, in the gateway's configuration.";

/// The reply to the results at the end of the conversation; `None` if the last message is of another kind. An empty
/// text means that the tools' own output suffices.
pub(super) fn to_results(messages: &[Message]) -> Option<String> {
    let messages = up_to_results(messages);
    let last_other = messages.iter().rposition(|message| message.role != Role::Tool).map_or(0, |index| index + 1);
    let trailing = messages.get(last_other..).unwrap_or(&[]);
    if trailing.is_empty() {
        return None;
    }
    let mut sentences: Vec<String> = Vec::new();
    for part in trailing.iter().flat_map(|message| &message.parts) {
        if let Part::ToolResult { result, .. } = part {
            let sentence = sentence(result);
            if !sentence.is_empty() && !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
    }
    Some(sentences.join(" "))
}

/// Whether the conversation ends with results of this engine's calls.
pub(super) fn is_to_own_calls(messages: &[Message]) -> bool {
    let own = |part: &Part| matches!(part, Part::ToolResult { call_id, .. } if call_id.starts_with(super::CALL_PREFIX));
    let last = up_to_results(messages).last();
    last.is_some_and(|last| last.role == Role::Tool && last.parts.iter().all(own))
}

/// The conversation without the pictures at its end: they belong to the results before them.
fn up_to_results(messages: &[Message]) -> &[Message] {
    let end = messages.iter().rposition(|message| !message.has_picture()).map_or(0, |index| index + 1);
    messages.get(..end).unwrap_or_default()
}

fn sentence(result: &ToolResult) -> String {
    if result.handled_display {
        return String::new();
    }
    match (&result.say, &result.error) {
        (Some(say), _) => finished(say),
        // The details of an error or a result are for a model, unless a text for the wearer exists.
        (None, Some(error)) => error.code.apology().to_owned(),
        (None, None) => DONE.to_owned(),
    }
}

fn finished(text: &str) -> String {
    let text = text.trim();
    let ends = text.ends_with(['.', '!', '?', ':', '\u{2026}', '"']);
    if text.is_empty() || ends { text.to_owned() } else { format!("{text}.") }
}

/// Reply to an unknown command, for a wearer who has heard the examples before.
pub(super) const NOT_UNDERSTOOD: &str = "I did not get that.";

/// Reply to an unknown command.
pub(super) fn to_unknown(near: Option<&str>, examples: &[String]) -> String {
    let quoted = |text: &str| format!("\u{201c}{text}\u{201d}");
    match (near, examples) {
        (Some(near), _) => format!("I did not understand that. You can say, for example, {}.", quoted(near)),
        (None, []) => "That is no command that I know.".to_owned(),
        (None, examples) => {
            let list: Vec<String> = examples.iter().map(|text| quoted(text)).collect();
            format!("That is no command that I know. You can say, for example, {}.", list.join(" or "))
        }
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::vocab::{ErrorCode, ToolCall};
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

    #[test]
    fn results_are_said() {
        let silent = ToolResult { handled_display: true, ..ToolResult::said("never") };
        let for_models =
            ToolResult { content: r#"{"a":1}"#.into(), data: Some(json!({"a": 1})), ..ToolResult::default() };
        let cases = [
            (vec![ToolResult::said("Timer set")], "Timer set."),
            (vec![for_models], "Done."),
            (vec![ToolResult::failed(ErrorCode::Timeout, "Do not repeat it.", true)], "That took too long."),
            (vec![ToolResult::said("One."), ToolResult::said("Two!")], "One. Two!"),
            (vec![silent], ""),
        ];
        for (results, expected) in cases {
            let said = to_results(&conversation(results));
            assert_eq!(said.as_deref(), Some(expected));
        }
        assert_eq!(to_results(&[Message::text(Role::User, "x")]), None);
        assert_eq!(to_results(&[]), None);
    }

    #[test]
    fn pictures_behind_results_belong_to_them() {
        let picture = Part::Image { mime: "image/jpeg".into(), data: "/9j/".into() };
        let seen = Message { role: Role::User, parts: vec![Part::Text { text: "[seen]".into() }, picture] };
        let mut messages = conversation(vec![ToolResult::said("Photo taken.")]);
        messages.push(seen.clone());
        assert_eq!(to_results(&messages).as_deref(), Some("Photo taken."));
        assert!(!is_to_own_calls(&messages), "the call is a model's");
        assert_eq!(to_results(std::slice::from_ref(&seen)), None);
        let result = ToolResult::said("Photo taken.");
        let part = Part::ToolResult { call_id: format!("{}1", crate::intents::CALL_PREFIX), result };
        assert!(is_to_own_calls(&[Message { role: Role::Tool, parts: vec![part] }, seen]));
    }
}
