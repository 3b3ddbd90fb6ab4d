//! Pending transcripts: utterances that have ended and wait for their texts.
//!
//! A text is waited for as long as its decode may begin soon, and longer once it has begun: on a slow machine a late answer is
//! better than none, while in a queue of many the late ones give way to those that can still be answered in time.

use alloc::string::String;

use super::{Activity, Event, Floor, cancel_all, caption, decode_policy::ask, utterance::Closed};
use crate::{context::Context, limits::UTTERANCES_PENDING_MAX, timers::Timer, vocab::TranscriptKind};

/// How long a text is waited for whose decode has begun, in milliseconds.
const DECODE_MS_MAX: u32 = 30_000;

impl Floor {
    /// The decode of an utterance has begun.
    pub(crate) fn handle_transcript_begun(&mut self, cx: &mut Context, utterance: u32, revision: u16) {
        if let Some(open) = self.open.as_mut().filter(|open| open.id == utterance) {
            let begun = open.speculative.iter_mut().filter(|begun| begun.revision == revision);
            begun.for_each(|begun| begun.begun_us = Some(cx.now_us()));
        }
        let is_it =
            |closed: &&mut Closed| closed.id == utterance && closed.awaited == revision && closed.second_pass.is_none();
        if let Some(closed) = self.closed.iter_mut().find(is_it) {
            closed.begun_us = Some(cx.now_us());
            closed.deadline_us = closed.deadline_us.max(deadline_us(cx, true));
            self.watch_transcripts(cx);
        }
    }

    /// A decode has failed, or was left out. The last one of an utterance is made once more.
    pub(crate) fn handle_transcript_failed(
        &mut self,
        cx: &mut Context,
        activity: &Activity,
        utterance: u32,
        revision: u16,
    ) -> Option<Event> {
        if let event @ Some(_) = self.handle_second_pass_failed(cx, activity, (utterance, revision)) {
            return event;
        }
        if let Some(index) = self
            .closed
            .iter()
            .position(|closed| closed.id == utterance && closed.awaited == revision && closed.second_pass.is_none())
        {
            let mut closed = self.closed.remove(index)?;
            if closed.final_asked {
                self.watch_transcripts(cx);
                return Some(lost(cx, &closed));
            }
            // The speculative decode failed; the utterance is complete now, so that a final one is due.
            closed.awaited = closed.awaited.saturating_add(1);
            closed.final_asked = true;
            closed.begun_us = None;
            let meant = closed.origin.meant(cx, closed.wake.is_likely() || closed.is_interrupting());
            ask(cx, (utterance, closed.awaited), TranscriptKind::Final, (meant, closed.wake));
            self.closed.push_back(closed);
            return None;
        }
        if let Some(open) = self.open.as_mut().filter(|open| open.id == utterance) {
            open.speculative.take_if(|speculative| speculative.revision == revision);
            if open.partials.fail(revision, cx.now_us()) {
                self.partial_ended(cx, activity);
            }
        }
        None
    }

    pub(crate) fn handle_transcript_missing(&mut self, cx: &mut Context, activity: &Activity) -> Option<Event> {
        let Some(index) = self.closed.iter().position(|closed| closed.deadline_us <= cx.now_us()) else {
            self.watch_transcripts(cx);
            return None;
        };
        let closed = self.closed.remove(index)?;
        self.watch_transcripts(cx);
        Some(self.wait_no_longer(cx, activity, closed))
    }

    /// Waits a limited time for a better text than this one.
    pub(super) fn await_better(
        &mut self,
        cx: &mut Context,
        activity: &Activity,
        mut closed: Closed,
        text: String,
    ) -> Option<Event> {
        closed.text = text;
        closed.deadline_us = cx.after_ms(cx.config.second_pass_ms_max);
        self.keep_closed(cx, activity, closed)
    }

    /// An utterance waits for its text. Of too many the oldest does so no longer whose text is not being made: on a slow machine, where
    /// somebody talks on and on, none would ever be finished.
    pub(super) fn keep_closed(&mut self, cx: &mut Context, activity: &Activity, closed: Closed) -> Option<Event> {
        let is_full = self.closed.len() >= UTTERANCES_PENDING_MAX;
        let waits = || self.closed.iter().position(|closed| closed.begun_us.is_none());
        let oldest = if is_full { self.closed.remove(waits().unwrap_or(0)) } else { None };
        self.closed.push_back(closed);
        self.watch_transcripts(cx);
        oldest.map(|oldest| self.wait_no_longer(cx, activity, oldest))
    }

    /// No text comes of an utterance any more, or no better one.
    fn wait_no_longer(&mut self, cx: &mut Context, activity: &Activity, mut closed: Closed) -> Event {
        cancel_all(cx, closed.id);
        if closed.second_pass.take().is_some() {
            let text = core::mem::take(&mut closed.text);
            return self.said(cx, activity, closed, text);
        }
        lost(cx, &closed)
    }

    pub(super) fn watch_transcripts(&self, cx: &mut Context) {
        match self.closed.iter().map(|closed| closed.deadline_us).min() {
            Some(deadline_us) => cx.arm_at(Timer::TranscriptMissing, deadline_us),
            None => cx.disarm(Timer::TranscriptMissing),
        }
    }
}

/// Until when a text is waited for; `begun`: its decode has begun.
pub(super) fn deadline_us(cx: &Context, begun: bool) -> u64 {
    let ms = cx.config.transcript_ms_max;
    cx.after_ms(if begun { ms.max(DECODE_MS_MAX) } else { ms })
}

/// No text comes of the utterance.
pub(super) fn lost(cx: &mut Context, closed: &Closed) -> Event {
    caption::last(cx, (closed.id, closed.captions), false, "");
    closed.origin.lost(closed.is_interrupting() || closed.wake.in_text)
}
