//! One drawing of an app, and how long it is valid.

use alloc::string::String;

use crate::{
    limits::APP_TEXT_CHARS_MAX,
    vocab::{Content, DrawingDuration},
};

/// Shortest time that a timed drawing is shown: less is not perceptible, and would circumvent the minimum time between
/// two drawings.
const STANDS_MS_MIN: u32 = 100;

/// A drawing of an app.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Drawing {
    /// Unique number.
    pub(super) serial: u64,
    pub(super) content: Content,
    duration: DrawingDuration,
    /// When it first became visible, monotonic.
    shown_us: Option<u64>,
}

impl Drawing {
    pub(super) fn new(serial: u64, content: Content, duration: DrawingDuration) -> Self {
        Self { serial, content: bounded(content), duration, shown_us: None }
    }

    /// It is visible from now on, unless it was already.
    pub(super) fn show(&mut self, now_us: u64) {
        self.shown_us.get_or_insert(now_us);
    }

    /// When it expires, counted from when it first became visible.
    pub(super) fn ends_us(&self) -> Option<u64> {
        let DrawingDuration::Ms(ms) = self.duration else { return None };
        Some(self.shown_us?.saturating_add(u64::from(ms.get().max(STANDS_MS_MIN)) * 1_000))
    }

    pub(super) fn has_ended(&self, now_us: u64) -> bool {
        self.ends_us().is_some_and(|ends_us| ends_us <= now_us)
    }

    /// Whether it may be shown again after it was covered: a timed drawing while its time lasts, one that is shown until it
    /// is replaced unless the wearer has had time to read it.
    pub(super) fn comes_back(&self, now_us: u64, consumed_ms: u32) -> bool {
        let Some(shown_us) = self.shown_us else {
            return true;
        };
        match self.duration {
            DrawingDuration::Once => false,
            DrawingDuration::Ms(_) => !self.has_ended(now_us),
            DrawingDuration::UntilReplaced => now_us.saturating_sub(shown_us) < u64::from(consumed_ms) * 1_000,
        }
    }

    /// It was covered and comes back: without a duration, its time begins anew then.
    pub(super) fn cover(&mut self) {
        if !matches!(self.duration, DrawingDuration::Ms(_)) {
            self.shown_us = None;
        }
    }
}

/// Whether it has no visible content.
pub(super) fn is_empty(content: &Content) -> bool {
    let blank = content.texts().iter().all(|text| text.trim().is_empty());
    blank && !matches!(content, Content::Bitmap { .. })
}

fn bounded(content: Content) -> Content {
    content.map_texts(|text| match text.char_indices().nth(APP_TEXT_CHARS_MAX) {
        Some((end, _)) => text.get(..end).map_or_else(String::new, String::from),
        None => text,
    })
}
