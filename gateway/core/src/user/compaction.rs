//! Bounds what a model is given of a long conversation. Old turns are summarised by the model, between two turns. Until
//! then, and without a model, the history is trimmed.
//!
//! The messages themselves remain unchanged, here and in the store. A summary is placed before those that it does not
//! cover.

use alloc::{collections::VecDeque, format, string::String, vec::Vec};

use crate::{
    limits::{HISTORY_FOR_MODEL_MAX, SUMMARY_CHARS_MAX},
    vocab::{Message, Role},
};

/// Prefix of a summary in a request to the model.
const INTRODUCTION: &str = "What was said before, summed up:";
/// After a summary, messages of at most one in this many of the budget's tokens stay verbatim, so that the next summary
/// is not due at once.
const LEFT_SHARE: u32 = 2;

/// Settings, times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Approximate number of history tokens that a model is given.
    pub tokens_max: u32,
    /// Whether a model summarises old turns; otherwise they are only left out.
    pub summarise: bool,
    /// A summary that has not arrived by then counts as failed.
    pub summary_ms_max: u32,
    /// Time from a failed summary to the next attempt.
    pub again_ms: u32,
}

impl Default for Config {
    fn default() -> Self {
        // Some 40 short turns; a request's cost and the time to its first token grow with it.
        Self { tokens_max: 4_000, summarise: false, summary_ms_max: 30_000, again_ms: 60_000 }
    }
}

/// Messages with their token counts, oldest first.
pub(super) type Messages = VecDeque<(Message, u32)>;

/// The summary of old turns, and the one that was requested.
#[derive(Debug, Default)]
pub(super) struct Compaction {
    summary: Option<Summary>,
    asked: Option<Request>,
    last_request: u64,
    /// Nothing is requested before this time.
    again_us: u64,
}

#[derive(Debug)]
struct Summary {
    text: String,
    tokens: u32,
    /// Number of messages, counted from the oldest, that it covers.
    covers: usize,
}

#[derive(Debug)]
struct Request {
    request: u64,
    covers: usize,
    until_us: u64,
}

/// A summary to be stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StoredSummary {
    pub(super) text: String,
    /// Number of newest messages that it does not cover.
    pub(super) behind: usize,
}

impl Compaction {
    /// Takes over the stored summary: it covers everything before the messages that the store returned.
    pub(super) fn restore(&mut self, text: Option<String>) {
        self.summary = text.map(|text| Summary { tokens: tokens_of(&text), text, covers: 0 });
    }

    /// Reports that this many of the oldest messages were dropped.
    pub(super) fn dropped(&mut self, count: usize) {
        if let Some(summary) = &mut self.summary {
            summary.covers = summary.covers.saturating_sub(count);
        }
        match &mut self.asked {
            // More was dropped than is being summarised: messages would be missing between summary and history.
            Some(asked) if asked.covers < count => self.asked = None,
            Some(asked) => asked.covers -= count,
            None => {}
        }
    }

    /// Another conversation begins.
    pub(super) fn clear(&mut self) {
        self.summary = None;
        self.asked = None;
    }

    fn covers(&self) -> usize {
        self.summary.as_ref().map_or(0, |summary| summary.covers)
    }

    /// The messages for a model: all that the summary does not cover, if the budget suffices; otherwise the newest
    /// turns that fit, at most [`HISTORY_FOR_MODEL_MAX`] messages. Turns are given whole or not at all, so that no tool
    /// call is separated from its result. The newest one is always given.
    pub(super) fn for_model(&self, config: &Config, messages: &Messages) -> Vec<Message> {
        let mut given = Vec::new();
        let mut left = config.tokens_max;
        if let Some(summary) = &self.summary {
            given.push(Message::text(Role::System, format!("{INTRODUCTION} {}", summary.text)));
            left = left.saturating_sub(summary.tokens);
        }
        let open: Vec<&(Message, u32)> = messages.iter().skip(self.covers()).collect();
        let tokens: u32 = open.iter().fold(0, |sum, (_, tokens)| sum.saturating_add(*tokens));
        let from = if tokens <= left { 0 } else { newest(&open, left, HISTORY_FOR_MODEL_MAX) };
        let turns = open.iter().skip(from).skip_while(|(message, _)| message.role != Role::User);
        given.extend(turns.map(|(message, _)| message.clone()));
        given
    }

    /// Whether old turns are to be summarised now: the request's number and the messages, preceded by the current
    /// summary.
    pub(super) fn consider(
        &mut self,
        now_us: u64,
        config: &Config,
        messages: &Messages,
    ) -> Option<(u64, Vec<Message>)> {
        if self.asked.as_ref().is_some_and(|asked| asked.until_us <= now_us) {
            self.failed(now_us, config);
        }
        if !config.summarise || self.asked.is_some() || now_us < self.again_us {
            return None;
        }
        let open: Vec<&(Message, u32)> = messages.iter().skip(self.covers()).collect();
        let tokens: u32 = open.iter().fold(0, |sum, (_, tokens)| sum.saturating_add(*tokens));
        let summary = self.summary.as_ref().map_or(0, |summary| summary.tokens);
        if tokens.saturating_add(summary) <= config.tokens_max {
            return None;
        }
        let count = newest(&open, config.tokens_max / LEFT_SHARE, usize::MAX);
        if count == 0 {
            return None;
        }
        self.last_request = self.last_request.saturating_add(1);
        self.asked = Some(Request {
            request: self.last_request,
            covers: self.covers() + count,
            until_us: now_us.saturating_add(u64::from(config.summary_ms_max).saturating_mul(1_000)),
        });
        let before = self.summary.iter().map(|summary| Message::text(Role::System, summary.text.clone()));
        let old = open.iter().take(count).map(|(message, _)| message.clone());
        Some((self.last_request, before.chain(old).collect()))
    }

    /// Handles a summary; `None`: it could not be made. Returns what is to be stored.
    pub(super) fn handle_summarised(
        &mut self,
        now_us: u64,
        config: &Config,
        request: u64,
        text: Option<String>,
        messages: &Messages,
    ) -> Option<StoredSummary> {
        let asked = self.asked.take_if(|asked| asked.request == request)?;
        let text = text.map(|text| text.trim().chars().take(SUMMARY_CHARS_MAX).collect::<String>());
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            self.failed(now_us, config);
            return None;
        };
        let covers = asked.covers.min(messages.len());
        self.summary = Some(Summary { tokens: tokens_of(&text), text: text.clone(), covers });
        Some(StoredSummary { text, behind: messages.len() - covers })
    }

    fn failed(&mut self, now_us: u64, config: &Config) {
        self.asked = None;
        self.again_us = now_us.saturating_add(u64::from(config.again_ms).saturating_mul(1_000));
    }
}

fn tokens_of(summary: &str) -> u32 {
    Message::text(Role::System, summary).tokens()
}

/// Index at which the newest whole turns begin that fit into these tokens and messages. The last turn always counts as
/// fitting.
fn newest(messages: &[&(Message, u32)], tokens_max: u32, messages_max: usize) -> usize {
    let (mut begin, mut tokens) = (messages.len(), 0_u32);
    for (at, (message, own)) in messages.iter().enumerate().rev() {
        tokens = tokens.saturating_add(*own);
        let fits = tokens <= tokens_max && messages.len() - at <= messages_max;
        if !fits && begin < messages.len() {
            break;
        }
        if message.role == Role::User {
            begin = at;
        }
    }
    if begin == messages.len() { 0 } else { begin }
}

#[cfg(test)]
#[path = "compaction_tests.rs"]
mod tests;
