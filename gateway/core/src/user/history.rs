//! The conversation of a user, and the part of it that a model is given.

use alloc::{string::String, vec::Vec};

use super::compaction::{Compaction, Config, Messages, StoredSummary};
use crate::{
    limits::HISTORY_MESSAGES_MAX,
    vocab::{Message, Part, Role},
};

/// The messages of the current conversation, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    messages: Messages,
    compaction: Compaction,
    /// Time of the last message, wall clock: a pause may span a restart.
    last_wall_ms: Option<i64>,
    /// The next message begins a conversation.
    is_new: bool,
    /// The first message after the current turn begins a conversation.
    ends: bool,
}

impl History {
    /// Takes over what the store held.
    pub(super) fn restore(&mut self, summary: Option<String>, messages: Vec<Message>, last_wall_ms: Option<i64>) {
        self.compaction.restore(summary);
        self.push(messages);
        self.last_wall_ms = last_wall_ms;
    }

    /// Adds the messages of a finished turn. Returns whether they begin a conversation.
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
        let counted = messages.into_iter().map(|message| {
            let tokens = message.tokens();
            (message, tokens)
        });
        self.messages.extend(counted);
        let beyond = self.messages.len().saturating_sub(HISTORY_MESSAGES_MAX);
        self.messages.drain(..beyond);
        self.compaction.dropped(beyond);
    }

    /// The next message begins a conversation.
    pub(super) fn begin(&mut self) {
        self.clear();
        self.is_new = true;
        self.last_wall_ms = None;
    }

    /// The first message after this turn begins a conversation.
    pub(super) fn end(&mut self) {
        self.ends = true;
    }

    /// Ends the conversation after a pause of this length. A clock that went back does not count as a pause.
    pub(super) fn pause(&mut self, wall_ms: i64, pause_ms: u32) {
        if self.last_wall_ms.is_some_and(|last| wall_ms.saturating_sub(last) > i64::from(pause_ms)) {
            self.begin();
        }
    }

    /// Whether a new conversation was wished for that has not begun: the store does not know of it.
    pub(super) fn has_wish(&self) -> bool {
        self.is_new || self.ends
    }

    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.compaction.clear();
    }

    /// The messages for a model. Thinking is left out of turns before the last one: it matters only within its turn.
    pub(super) fn for_model(&self, config: &Config) -> Vec<Message> {
        let mut messages = self.compaction.for_model(config, &self.messages);
        let last = messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
        for message in messages.iter_mut().take(last) {
            message.parts.retain(|part| !matches!(part, Part::Thinking { .. }));
        }
        messages
    }

    /// Whether old turns are to be summarised now, and which.
    pub(super) fn consider(&mut self, now_us: u64, config: &Config) -> Option<(u64, Vec<Message>)> {
        self.compaction.consider(now_us, config, &self.messages)
    }

    /// Handles a summary; `None`: it could not be made. Returns what is to be stored.
    pub(super) fn handle_summarised(
        &mut self,
        now_us: u64,
        config: &Config,
        request: u64,
        text: Option<String>,
    ) -> Option<StoredSummary> {
        self.compaction.handle_summarised(now_us, config, request, text, &self.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn turn(number: usize) -> [Message; 2] {
        [(Role::User, "question"), (Role::Assistant, "answer")]
            .map(|(role, word)| Message::text(role, format!("{word} {number}")))
    }

    #[test]
    fn a_pause_or_a_wish_begins_a_conversation() {
        let mut history = History::default();
        assert!(!history.add(turn(1), 1_000), "the store begins the first one by itself");
        history.pause(1_000 + 60_000, 60_000);
        assert_eq!(history.for_model(&Config::default()).len(), 2, "not yet");
        history.pause(0, 60_000);
        assert_eq!(history.for_model(&Config::default()).len(), 2, "the clock went back");
        history.pause(1_001 + 60_000, 60_000);
        assert!(history.for_model(&Config::default()).is_empty());
        assert!(history.add(turn(2), 70_000), "a new one");
        assert!(!history.add(turn(3), 70_001));
        history.end();
        assert_eq!(history.for_model(&Config::default()).len(), 4, "the turn in which it was wished for goes on");
        assert!(!history.add(turn(4), 70_002), "and belongs to the old one");
        assert!(history.for_model(&Config::default()).is_empty());
        assert!(history.add(turn(5), 70_003));
        let mut restored = History::default();
        restored.restore(Some("They met.".into()), turn(1).into(), Some(5_000));
        assert_eq!(restored.for_model(&Config::default()).len(), 3, "the summary stands in front");
        restored.pause(5_000 + 60_001, 60_000);
        assert!(restored.for_model(&Config::default()).is_empty() && restored.add(turn(2), 90_000));
    }

    #[test]
    fn history_is_bounded_and_can_be_cleared() {
        let mut history = History::default();
        for number in 0..1_000 {
            history.push([Message::text(Role::User, format!("question {number}"))]);
        }
        assert_eq!(history.messages.len(), HISTORY_MESSAGES_MAX);
        history.clear();
        assert!(history.for_model(&Config::default()).is_empty());
    }
}
