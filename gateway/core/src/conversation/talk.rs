//! The talk button of glasses that tell both of its edges.

use super::{Conversation, stopping::Stop};
use crate::limits::PRESS_US_MAX;

/// The talk button, since it went down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// When, on the glasses' clock.
    at_us: u64,
    /// When that has arrived, monotonic.
    since_us: u64,
    /// Whether something was going on: a short press does no more than to stop that.
    stopped: bool,
    /// Whether that was something else than a translation that is read out: those that wait are still read out behind it.
    behind: bool,
    /// Whether that goes on: it has begun behind a restart, and the press was before.
    spares: bool,
}

impl Held {
    /// For how long, where the release at this time arrives now. A link that replays both edges brings them sooner one
    /// behind the other, a stalled one later; a clock that stands still tells nothing.
    fn held_us(&self, released_at_us: u64, now_us: u64) -> u64 {
        match released_at_us.saturating_sub(self.at_us) {
            0 => now_us.saturating_sub(self.since_us),
            held_us => held_us,
        }
    }
}

impl Conversation {
    /// `spares`: it stops nothing.
    pub(super) fn talk_down(&mut self, at_us: u64, spares: bool) {
        if self.muted || !self.link.is_up() {
            return;
        }
        let (stopped, behind) = (self.can_be_stopped(), self.do_translations_wait_behind());
        // What is said to a question is the answer to it, and needs no ear to be opened.
        if self.approvals.standing().is_none() {
            if !spares {
                self.stop(Stop::Called);
                self.by_hand_us = self.cx.now_us();
            }
            self.call();
        }
        self.held = Some(Held { at_us, since_us: self.cx.now_us(), stopped, behind, spares });
        let activity = self.activity();
        let event = self.floor.hold(&mut self.cx, &activity);
        self.heard(event);
    }

    pub(super) fn talk_up(&mut self, at_us: u64) {
        let Some(held) = self.held.take() else {
            return;
        };
        if held.held_us(at_us, self.cx.now_us()) >= PRESS_US_MAX {
            let activity = self.activity();
            let event = self.floor.release(&mut self.cx, &activity);
            return self.heard(event);
        }
        self.floor.let_go();
        // As a short press does: what goes on is stopped, a question with it, and that is all.
        if held.spares {
            self.floor.end_call(&mut self.cx);
        } else if held.stopped {
            let has_ended_it = held.behind && !self.is_answering();
            self.stop(if has_ended_it { Stop::Called } else { Stop::Dismissed });
            self.floor.close_ear(&mut self.cx);
        }
    }
}
