//! The conversation of a user, and the part of it that a model is given.

use alloc::{collections::VecDeque, vec::Vec};

use crate::{
    limits::{HISTORY_FOR_MODEL_MAX, HISTORY_MESSAGES_MAX},
    vocab::{Message, Part, Role},
};

/// Messages, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    messages: VecDeque<Message>,
}

impl History {
    pub(super) fn push(&mut self, messages: impl IntoIterator<Item = Message>) {
        self.messages.extend(messages);
        while self.messages.len() > HISTORY_MESSAGES_MAX {
            self.messages.pop_front();
        }
    }

    pub(super) fn clear(&mut self) {
        self.messages.clear();
    }

    /// The newest messages that fit, beginning with one of the wearer's: a turn is given whole or
    /// not at all, so that no tool call is parted from its result. What was thought in turns before the
    /// last one is left out: it matters within a turn only.
    pub(super) fn for_model(&self) -> Vec<Message> {
        let oldest = self.messages.len().saturating_sub(HISTORY_FOR_MODEL_MAX);
        let mut messages: Vec<Message> =
            self.messages.iter().skip(oldest).skip_while(|message| message.role != Role::User).cloned().collect();
        let last = messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
        for message in messages.iter_mut().take(last) {
            message.parts.retain(|part| !matches!(part, Part::Thinking { .. }));
        }
        messages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, vec};

    fn turn(number: usize, steps: usize) -> Vec<Message> {
        let mut messages = vec![Message::text(Role::User, format!("question {number}"))];
        for _ in 0..steps {
            messages.push(Message::text(Role::Assistant, "call"));
            messages.push(Message::text(Role::Tool, "result"));
        }
        messages.push(Message::text(Role::Assistant, format!("answer {number}")));
        messages
    }

    #[test]
    fn a_model_is_given_whole_turns_only() {
        for steps in 0..8 {
            let mut history = History::default();
            for number in 0..30 {
                history.push(turn(number, steps));
            }
            let given = history.for_model();
            assert_eq!(given.first().map(|first| first.role), Some(Role::User));
            assert_eq!(given.last().map(Message::plain_text), Some("answer 29".into()));
            assert!(given.len() <= HISTORY_FOR_MODEL_MAX);
            assert!(given.len() + 2 * steps + 2 > HISTORY_FOR_MODEL_MAX, "as much as fits");
        }
    }

    #[test]
    fn history_is_bounded_and_can_be_cleared() {
        let mut history = History::default();
        for number in 0..1_000 {
            history.push(turn(number, 0));
        }
        assert_eq!(history.messages.len(), HISTORY_MESSAGES_MAX);
        history.clear();
        assert!(history.for_model().is_empty());
    }
}
