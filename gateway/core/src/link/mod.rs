//! Whether the device is there: heartbeats, silence, loss and return.

pub(crate) mod quality;

use crate::{
    context::Context,
    output::{CloseReason, Output},
    timers::Timer,
};

/// How much later than due a heartbeat may come, in milliseconds.
const HEARTBEAT_LATE_MS: u32 = 1_000;

/// Whether the glasses are connected, lost for a while, or gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Link {
    /// No device has ever connected.
    #[default]
    Fresh,
    /// The device is there.
    Up,
    /// It is gone and may come back.
    Lost {
        /// Since when, monotonic.
        since_us: u64,
    },
    /// The session is over.
    Closed,
}

impl Link {
    pub(crate) fn is_up(self) -> bool {
        self == Self::Up
    }

    pub(crate) fn handle_connected(&mut self, cx: &mut Context) {
        *self = Self::Up;
        cx.linked = true;
        cx.disarm(Timer::ResumeExpired);
        cx.arm(Timer::Heartbeat, cx.config.heartbeat_ms);
        cx.arm(Timer::DeviceSilent, cx.config.silent_ms_max);
    }

    pub(crate) fn handle_alive(self, cx: &mut Context, at_us: u64) {
        if self.is_up() {
            // Nothing arrives in the future.
            let silent_us = u64::from(cx.config.silent_ms_max) * 1_000;
            cx.arm_at(Timer::DeviceSilent, at_us.min(cx.now_us()).saturating_add(silent_us));
        }
    }

    /// Whether nothing at all has come for longer than from one heartbeat to the next: the link is gone, or will be taken
    /// as lost soon.
    pub(crate) fn is_silent(self, cx: &Context) -> bool {
        let beat_ms = cx.config.heartbeat_ms.saturating_add(HEARTBEAT_LATE_MS);
        let left_us = cx.after_ms(cx.config.silent_ms_max.saturating_sub(beat_ms));
        self.is_up() && cx.due_us(Timer::DeviceSilent).is_some_and(|lost_us| lost_us < left_us)
    }

    pub(crate) fn handle_heartbeat(self, cx: &mut Context) {
        if self.is_up() {
            cx.push(Output::Heartbeat);
            cx.arm(Timer::Heartbeat, cx.config.heartbeat_ms);
        }
    }

    /// The link broke. The device may resume for a while.
    pub(crate) fn handle_lost(&mut self, cx: &mut Context) {
        *self = Self::Lost { since_us: cx.now_us() };
        cx.linked = false;
        cx.disarm(Timer::Heartbeat);
        cx.disarm(Timer::DeviceSilent);
        cx.arm(Timer::ResumeExpired, cx.config.resume_ms_max);
    }

    /// The device did not come back in time: the session is over.
    pub(crate) fn expire(&mut self, cx: &mut Context) {
        *self = Self::Closed;
        cx.push(Output::Close { reason: CloseReason::Expired });
    }

    /// Ends the session for good.
    pub(crate) fn close(&mut self, cx: &mut Context, reason: CloseReason) {
        if *self == Self::Up {
            cx.push(Output::Close { reason });
        }
        *self = Self::Closed;
    }
}
