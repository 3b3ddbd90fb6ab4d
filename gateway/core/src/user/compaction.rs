//! A conversation that has grown beyond what a model should be given with every request: its old turns are summed up
//! by the model, between two turns; until that is done, and where there is no model, it is trimmed.
//!
//! The messages themselves stay as they are, here and in the store. A summary stands in front of those that it does
//! not cover.

use alloc::{collections::VecDeque, format, string::String, vec::Vec};

use crate::{
    limits::{HISTORY_FOR_MODEL_MAX, SUMMARY_CHARS_MAX},
    vocab::{Message, Role},
};

/// What a summary is told as.
const INTRODUCTION: &str = "What was said before, summed up:";
/// Part of the budget that is left full behind a summary, as one in so many: the next one is not due at once.
const LEFT_SHARE: u32 = 2;

/// Settings, times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Tokens of history, about, that a model is given.
    pub tokens_max: u32,
    /// Whether a model sums up; else old turns are only left out.
    pub summarise: bool,
    /// A summary that is not there by then was lost.
    pub summary_ms_max: u32,
    /// After one that failed, so long until the next is tried.
    pub again_ms: u32,
}

impl Default for Config {
    fn default() -> Self {
        // Some 40 short turns; a request's cost and its first word grow with it.
        Self { tokens_max: 4_000, summarise: false, summary_ms_max: 30_000, again_ms: 60_000 }
    }
}

/// Messages with what they take, oldest first.
pub(super) type Messages = VecDeque<(Message, u32)>;

/// The summary of old turns, and the one that is being made.
#[derive(Debug, Default)]
pub(super) struct Compaction {
    summary: Option<Summary>,
    asked: Option<Asked>,
    last_request: u64,
    /// Nothing is asked before this.
    again_us: u64,
}

#[derive(Debug)]
struct Summary {
    text: String,
    tokens: u32,
    /// Messages from the front that it stands for.
    covers: usize,
}

#[derive(Debug)]
struct Asked {
    request: u64,
    covers: usize,
    until_us: u64,
}

/// A summary that is to be kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) text: String,
    /// The newest messages that it does not stand for.
    pub(super) behind: usize,
}

impl Compaction {
    /// What stands for everything before the messages that the store gave back.
    pub(super) fn restore(&mut self, text: Option<String>) {
        self.summary = text.map(|text| Summary { tokens: tokens_of(&text), text, covers: 0 });
    }

    /// Messages went at the front, or all.
    pub(super) fn dropped(&mut self, count: usize) {
        if let Some(summary) = &mut self.summary {
            summary.covers = summary.covers.saturating_sub(count);
        }
        match &mut self.asked {
            // What is being summed up is gone: its end is not known any more.
            Some(asked) if asked.covers < count => self.asked = None,
            Some(asked) => asked.covers -= count,
            None => {}
        }
    }

    /// The conversation is another one.
    pub(super) fn clear(&mut self) {
        self.summary = None;
        self.asked = None;
    }

    fn covers(&self) -> usize {
        self.summary.as_ref().map_or(0, |summary| summary.covers)
    }

    /// What a model is given: all that no summary stands for, where the budget holds it; else the newest turns that
    /// fit, at most 20 messages. Turns are given whole or not at all, so that no tool call is parted from its result;
    /// the newest one is given in any case.
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

    /// Whether old turns are to be summed up now: the number of the request and what to sum up, with the summary so
    /// far in front.
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
        self.asked = Some(Asked {
            request: self.last_request,
            covers: self.covers() + count,
            until_us: now_us.saturating_add(u64::from(config.summary_ms_max).saturating_mul(1_000)),
        });
        let before = self.summary.iter().map(|summary| Message::text(Role::System, summary.text.clone()));
        let old = open.iter().take(count).map(|(message, _)| message.clone());
        Some((self.last_request, before.chain(old).collect()))
    }

    /// A summary is there, or could not be made. Answers what is to be kept.
    pub(super) fn handle_summarised(
        &mut self,
        now_us: u64,
        config: &Config,
        request: u64,
        text: Option<String>,
        messages: &Messages,
    ) -> Option<Kept> {
        let asked = self.asked.take_if(|asked| asked.request == request)?;
        let text = text.map(|text| text.trim().chars().take(SUMMARY_CHARS_MAX).collect::<String>());
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            self.failed(now_us, config);
            return None;
        };
        let covers = asked.covers.min(messages.len());
        self.summary = Some(Summary { tokens: tokens_of(&text), text: text.clone(), covers });
        Some(Kept { text, behind: messages.len() - covers })
    }

    fn failed(&mut self, now_us: u64, config: &Config) {
        self.asked = None;
        self.again_us = now_us.saturating_add(u64::from(config.again_ms).saturating_mul(1_000));
    }
}

fn tokens_of(summary: &str) -> u32 {
    Message::text(Role::System, summary).tokens()
}

/// Where the newest whole turns begin that take no more than these tokens and messages. The last turn counts as
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
