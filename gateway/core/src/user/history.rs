//! The conversation of a user, and the part of it that a model is given.

use alloc::{string::String, vec::Vec};

use super::compaction::{Compaction, Config, Messages};
use crate::{
    limits::HISTORY_MESSAGES_MAX,
    vocab::{Message, Part, Role},
};

/// Messages, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    messages: Messages,
    compaction: Compaction,
}

impl History {
    pub(super) fn push(&mut self, messages: impl IntoIterator<Item = Message>) {
        let counted = messages.into_iter().map(|message| {
            let tokens = message.tokens();
            (message, tokens)
        });
        self.messages.extend(counted);
        let beyond = self.messages.len().saturating_sub(HISTORY_MESSAGES_MAX);
        self.messages.drain(..beyond);
        self.compaction.dropped(beyond);
    }

    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.compaction.clear();
    }

    /// What a model is given. What was thought in turns before the last one is left out: it matters within a turn only.
    pub(super) fn for_model(&self, config: &Config) -> Vec<Message> {
        let mut messages = self.compaction.for_model(config, &self.messages);
        let last = messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
        for message in messages.iter_mut().take(last) {
            message.parts.retain(|part| !matches!(part, Part::Thinking { .. }));
        }
        messages
    }

    /// Whether old turns are to be summed up now, and which.
    pub(super) fn consider(&mut self, now_us: u64, config: &Config) -> Option<(u64, Vec<Message>)> {
        self.compaction.consider(now_us, config, &self.messages)
    }

    pub(super) fn handle_summarised(&mut self, now_us: u64, config: &Config, request: u64, text: Option<String>) {
        self.compaction.handle_summarised(now_us, config, request, text, &self.messages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

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
