//! Stopping what is played: for good, for a question, or until it is known whether the wearer interrupts.

use super::{
    clause::{Kind, State},
    playout::Playout,
};
use crate::{context::Context, output::Output, timers::Timer};

impl Playout {
    pub(super) fn is_paused(&self) -> bool {
        self.paused_at.is_some()
    }

    /// Stops the playback until [`resume`](Self::resume).
    pub(super) fn pause(&mut self, cx: &mut Context) {
        if self.paused_at.is_none() {
            self.paused_at = Some(self.settled());
            self.hush(cx);
        }
    }

    /// The playback goes on where it was paused. What is handed out again is waited for, also a clause that had failed before
    /// its place was reached.
    pub(super) fn resume(&mut self) {
        let Some(from) = self.paused_at.take() else {
            return;
        };
        for clause in self.clauses.iter_mut().take(self.released).skip(from) {
            clause.state = match clause.state {
                State::Cut(part) if part > 0.0 => State::Partly(part),
                State::Cut(_) | State::Failed => State::Waiting,
                other => other,
            };
            // Its sound is made once more.
            clause.duration_us = clause.duration_us.filter(|_| clause.sound.is_some());
        }
        self.base = from.min(self.released);
        self.released = self.base;
    }

    /// Stops the playback. Clauses that were handed out and not played are lost; the others may still be said, in a new
    /// speech.
    pub(super) fn hush(&mut self, cx: &mut Context) {
        if let Some(speech) = self.speech.take()
            && (self.settled() < self.released || !self.last_told)
        {
            cx.push(Output::Hush { speech });
        }
        for clause in self.clauses.iter_mut().take(self.released) {
            clause.state = match clause.state {
                State::Waiting => State::Cut(0.0),
                State::Partly(part) => State::Cut(part),
                other => other,
            };
        }
        self.base = self.released;
        self.last_told = false;
        cx.disarm(Timer::SpeechStalled);
    }

    /// The device has stopped the sound by itself, for example because the wearer has muted its speaker. What is said goes on
    /// without it: who has a display reads the rest.
    pub(super) fn silence(&mut self, cx: &mut Context) {
        if let Some(speech) = self.speech.take() {
            cx.push(Output::Hush { speech });
        }
        self.is_silenced = true;
        self.leave_unsaid();
        cx.disarm(Timer::SpeechStalled);
    }

    /// Nothing that waits is said any more.
    pub(super) fn leave_unsaid(&mut self) {
        for clause in &mut self.clauses {
            clause.state = match clause.state {
                State::Waiting | State::Partly(_) if self.readable => State::Failed,
                State::Waiting => State::Cut(0.0),
                State::Partly(part) => State::Cut(part),
                other => other,
            };
        }
        self.released = self.clauses.len();
        self.base = self.released;
    }

    /// Removes what is left of a settled question. Clauses handed out after it are said again from their beginning; while the
    /// playback is paused, none are handed out.
    pub(super) fn drop_question(&mut self, cx: &mut Context, id: u64) {
        let settled = self.settled();
        let mut index = self.paused_at.unwrap_or(settled);
        let mut was_out = false;
        while let Some(clause) = self.clauses.get(index) {
            if clause.kind == Kind::Question(id) {
                if index < self.released {
                    self.released -= 1;
                    was_out = true;
                }
                self.clauses.remove(index);
            } else {
                index += 1;
            }
        }
        if was_out && !self.is_paused() {
            if let Some(speech) = self.speech.take() {
                cx.push(Output::Hush { speech });
            }
            self.base = settled;
            self.released = settled;
            self.last_told = false;
            cx.disarm(Timer::SpeechStalled);
            for clause in self.clauses.iter_mut().skip(settled) {
                clause.state = State::Waiting;
            }
        }
    }
}
