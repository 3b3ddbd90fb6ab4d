//! The talk button: while it is held no pause ends what is said, and letting go does.

use super::{Activity, Ear, Event, Floor};
use crate::context::{Context, Timer};

/// Sound that was captured before the button came up may be under way for so long.
const LATE_MS: u32 = 200;
/// What was begun before the button came up may be noticed so much later.
const LATE_START_MS: u32 = 1_000;

/// What the talk button does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Talk {
    /// Nothing: pauses end what is said.
    #[default]
    Free,
    /// It is held.
    Held,
    /// It came up while somebody spoke: the first pause is the end.
    Released,
}

impl Floor {
    /// The talk button went down.
    pub(crate) fn hold(&mut self, cx: &mut Context) {
        self.talk = Talk::Held;
        cx.disarm(Timer::EndOfTurn);
    }

    /// It came up again. What is being said ends here.
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
            Some(open) if open.voiced => {
                self.talk = Talk::Released;
                cx.arm(Timer::EndOfTurn, LATE_MS);
                None
            }
            Some(_) => self.close(cx, activity),
        }
    }

    /// It came up at once: that was no more than a press, and pauses count again.
    pub(crate) fn let_go(&mut self) {
        self.talk = Talk::Free;
    }
}
