//! The recent conversation, for the mini-apps that declare that they need it to understand a call.

use std::sync::Arc;

use gateway_core::vocab::{Message, Role};
use serde::Serialize;

use crate::{
    limits::{CONVERSATION_BYTES_MAX, CONVERSATION_MESSAGES_MAX},
    reply::cut,
};

/// Something that was said: one message of the conversation as an app gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PastMessage {
    /// `user` or `assistant`.
    pub role: &'static str,
    /// What was said, cut to the limit.
    pub content: String,
}

/// What the wearer and the assistant said last, oldest first, as in a request to a model: the current words of the
/// wearer are included, and what belongs to an earlier conversation is not. Neither are calls and their results,
/// pictures, thoughts, summaries and the gateway's own texts.
pub fn recent(messages: &[Message]) -> Arc<[PastMessage]> {
    let mut said = Vec::new();
    let mut left = CONVERSATION_BYTES_MAX;
    for message in messages.iter().rev() {
        let role = match message.role {
            Role::User if message.is_wearers() => "user",
            Role::Assistant => "assistant",
            Role::User | Role::System | Role::Tool => continue,
        };
        let content = message.plain_text();
        if content.trim().is_empty() {
            continue;
        }
        let is_whole = content.len() <= left;
        let content = cut(&content, left);
        left = left.saturating_sub(content.len());
        said.push(PastMessage { role, content });
        if !is_whole || said.len() >= CONVERSATION_MESSAGES_MAX {
            break;
        }
    }
    said.reverse();
    said.into()
}

#[cfg(test)]
mod tests {
    use gateway_core::vocab::{Part, ToolCall, ToolResult};
    use serde_json::json;

    use super::*;
    use crate::test_support::picture;

    #[test]
    fn only_the_words_of_both_sides_are_taken() {
        let call = ToolCall { id: "c".into(), name: "note.add".into(), arguments: json!({"text": "hidden"}) };
        let messages = [
            Message::text(Role::System, "hidden"),
            Message::text(Role::User, "Remember the milk."),
            Message { role: Role::Assistant, parts: vec![Part::ToolCall { call }] },
            Message {
                role: Role::Tool,
                parts: vec![Part::ToolResult { call_id: "c".into(), result: ToolResult::said("hidden") }],
            },
            picture(),
            Message {
                role: Role::Assistant,
                parts: vec![
                    Part::Thinking { provider: "p".into(), data: json!("hidden") },
                    Part::Text { text: "Noted.".into() },
                ],
            },
            Message::text(Role::User, "And eggs."),
        ];
        let said: Vec<_> = recent(&messages).iter().map(|said| (said.role, said.content.clone())).collect();
        let wanted = [("user", "Remember the milk."), ("assistant", "Noted."), ("user", "And eggs.")];
        assert_eq!(said, wanted.map(|(role, text)| (role, text.to_owned())));
    }

    #[test]
    fn the_newest_are_taken_within_both_limits() {
        let many: Vec<Message> = (0..100).map(|n| Message::text(Role::User, n.to_string())).collect();
        let said = recent(&many);
        assert_eq!((said.len(), said[0].content.as_str(), said[19].content.as_str()), (20, "80", "99"));
        let long: Vec<Message> =
            (0..3).map(|_| Message::text(Role::User, "é".repeat(CONVERSATION_BYTES_MAX / 3))).collect();
        let said = recent(&long);
        assert_eq!(said.len(), 2, "the second fills what is left");
        assert!(said.iter().map(|said| said.content.len()).sum::<usize>() <= CONVERSATION_BYTES_MAX);
        assert!(recent(&[]).is_empty());
    }
}
