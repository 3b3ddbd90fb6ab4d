//! The talk button: while it is held, pauses do not end the utterance; its release does.

use super::{
    Activity, Ear, Event, Floor,
    origin::{Grounds, Origin},
    utterance::Open,
};
use crate::{context::Context, timers::Timer};

/// Audio captured before the release may arrive this much later.
const LATE_MS: u32 = 200;
/// Speech that began before the release may be detected this much later.
const LATE_START_MS: u32 = 1_000;
/// Speech that begins up to this long before the button goes down counts as spoken to the assistant.
const EARLY_US: u64 = 1_000_000;

/// State of the talk button.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Talk {
    /// Not held: pauses end the utterance.
    #[default]
    Free,
    /// Held: pauses do not end the utterance.
    Held,
    /// Released: the pause, or the first one that follows, is the end.
    Released,
}

impl Floor {
    /// The talk button went down. Speech that has just begun belongs to what it is held for; older speech ends here.
    pub(crate) fn hold(&mut self, cx: &mut Context, activity: &Activity) -> Option<Event> {
        let grounds = self.grounds_now(cx.now_us());
        let is_talk = |open: &&mut Open| open.origin.grounds == Grounds::None && !open.wake.is_likely();
        let mut event = None;
        self.before_hold = None;
        if let Some(open) = self.open.as_mut().filter(|_| grounds != Grounds::None).filter(is_talk) {
            self.before_hold = Some((open.id, open.origin));
            if cx.now_us().saturating_sub(open.started_us) <= EARLY_US {
                open.origin = Origin { grounds, background: false, rest: false, ..open.origin };
            } else {
                event = self.close(cx, activity);
            }
        }
        self.talk = Talk::Held;
        cx.disarm(Timer::TalkReleased);
        event
    }

    /// Whether the talk button is down.
    pub(super) fn is_held_down(&self) -> bool {
        self.talk == Talk::Held
    }

    /// The talk button was released. The current utterance ends here.
    pub(crate) fn release(&mut self, cx: &mut Context, activity: &Activity) -> Option<Event> {
        self.talk = Talk::Free;
        match &self.open {
            None => {
                if let Ear::Open { .. } = self.ear {
                    let until_us = cx.after_ms(LATE_START_MS);
                    self.ear = Ear::Open { until_us };
                    cx.arm_at(Timer::EarCloses, until_us.saturating_add(1));
                }
                None
            }
            Some(open) => {
                self.talk = Talk::Released;
                if !open.voiced {
                    return self.close(cx, activity);
                }
                cx.arm(Timer::TalkReleased, LATE_MS);
                None
            }
        }
    }

    /// The utterance that its release was to end is over.
    pub(super) fn end_hold(&mut self) {
        if self.talk == Talk::Released {
            self.talk = Talk::Free;
        }
    }

    /// It was only a short press: pauses end the utterance again. Speech that was open gets back the origin that it had
    /// before the press; what continues it gets the same one.
    pub(crate) fn let_go(&mut self) {
        self.talk = Talk::Free;
        if let Some((utterance, origin)) = self.before_hold.take()
            && let Some(open) = self.open.as_mut().filter(|open| open.id >= utterance)
        {
            open.origin = origin;
        }
    }
}
