//! The conversation of a user, and the part of it that a model is given.

use alloc::{collections::VecDeque, vec::Vec};

use crate::{
    limits::{HISTORY_FOR_MODEL_MAX, HISTORY_MESSAGES_MAX},
    vocab::{Message, Part, Role},
};

/// The messages of the conversation that is under way, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    messages: VecDeque<Message>,
    /// When something was last said, on the wall clock: a pause may span a restart.
    last_wall_ms: Option<i64>,
    /// What is said next begins a conversation.
    is_new: bool,
    /// What is said after the turn that is under way does.
    ends: bool,
}

impl History {
    /// Takes over what the store held.
    pub(super) fn restore(&mut self, messages: Vec<Message>, last_wall_ms: Option<i64>) {
        self.push(messages);
        self.last_wall_ms = last_wall_ms;
    }

    /// A turn was over. Answers whether its messages begin a conversation.
    pub(super) fn add(&mut self, messages: impl IntoIterator<Item = Message>, wall_ms: i64) -> bool {
        let began = core::mem::take(&mut self.is_new);
        self.push(messages);
        self.last_wall_ms = Some(wall_ms);
        if core::mem::take(&mut self.ends) {
            self.begin();
        }
        began
    }

    fn push(&mut self, messages: impl IntoIterator<Item = Message>) {
        self.messages.extend(messages);
        while self.messages.len() > HISTORY_MESSAGES_MAX {
            self.messages.pop_front();
        }
    }

    /// What is said next begins a conversation.
    pub(super) fn begin(&mut self) {
        self.messages.clear();
        self.is_new = true;
        self.last_wall_ms = None;
    }

    /// What is said after this turn begins a conversation.
    pub(super) fn end(&mut self) {
        self.ends = true;
    }

    /// After a pause of this length a conversation is over. A clock that went back makes no pause.
    pub(super) fn pause(&mut self, wall_ms: i64, pause_ms: u32) {
        if self.last_wall_ms.is_some_and(|last| wall_ms.saturating_sub(last) > i64::from(pause_ms)) {
            self.begin();
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
    fn a_pause_or_a_wish_begins_a_conversation() {
        let mut history = History::default();
        assert!(!history.add(turn(1, 0), 1_000), "the store begins the first one by itself");
        history.pause(1_000 + 60_000, 60_000);
        assert_eq!(history.for_model().len(), 2, "not yet");
        history.pause(0, 60_000);
        assert_eq!(history.for_model().len(), 2, "the clock went back");
        history.pause(1_001 + 60_000, 60_000);
        assert!(history.for_model().is_empty());
        assert!(history.add(turn(2, 0), 70_000), "a new one");
        assert!(!history.add(turn(3, 0), 70_001));
        history.end();
        assert_eq!(history.for_model().len(), 4, "the turn in which it was wished for goes on");
        assert!(!history.add(turn(4, 0), 70_002), "and belongs to the old one");
        assert!(history.for_model().is_empty());
        assert!(history.add(turn(5, 0), 70_003));
        let mut restored = History::default();
        restored.restore(turn(1, 0), Some(5_000));
        restored.pause(5_000 + 60_001, 60_000);
        assert!(restored.for_model().is_empty() && restored.add(turn(2, 0), 90_000));
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
