//! The talk button of glasses that tell both of its edges.

use super::Conversation;

/// Held for less than this it was pressed, not held, in microseconds: nobody says anything in that time.
const PRESS_US_MAX: u64 = 400_000;

/// The talk button, since it went down.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    since_us: u64,
    /// Whether it has stopped something: a short press does no more than that.
    stopped: bool,
}

impl Conversation {
    pub(super) fn talk_down(&mut self) {
        if self.muted || !self.link.is_up() {
            return;
        }
        let stopped = self.is_busy();
        // What is said to a question is the answer to it, and needs no ear to be opened.
        if self.approvals.standing().is_none() {
            self.stop(true);
            self.call();
        }
        self.held = Some(Held { since_us: self.cx.now_us(), stopped });
        self.floor.hold(&mut self.cx);
    }

    pub(super) fn talk_up(&mut self) {
        let Some(held) = self.held.take() else {
            return;
        };
        if self.cx.now_us().saturating_sub(held.since_us) >= PRESS_US_MAX {
            let activity = self.activity();
            let event = self.floor.release(&mut self.cx, &activity);
            return self.heard(event);
        }
        self.floor.let_go();
        // As a short press does: what goes on is stopped, a question with it, and that is all.
        if held.stopped {
            self.stop(true);
            self.floor.close_ear(&mut self.cx);
        }
    }
}
