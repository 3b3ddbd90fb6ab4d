//! Announcements that wait until nobody speaks.

use alloc::collections::VecDeque;

use crate::{
    context::Context,
    input::{Announcement, AnnouncementId},
    limits::NOTICES_QUEUED_MAX,
    output::Output,
    timers::Timer,
};

/// How long an announcement waits for an utterance that is not meant for the assistant. Talk in the room must not hold
/// back a timer.
const PATIENCE_MS: u32 = 20_000;
/// How long after the wearer did something quiet hours do not count: a wearer who uses the glasses is not asleep.
const AWAKE_US: u64 = 120_000_000;

/// Announcements that wait for the floor, in order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    queue: VecDeque<Announcement>,
    impatient: bool,
    /// When the wearer last did something.
    awake_us: Option<u64>,
}

impl Notices {
    /// The wearer does something now.
    pub(crate) fn handle_awake(&mut self, now_us: u64) {
        self.awake_us = Some(now_us);
    }

    /// Whether the wearer may be asleep: in quiet hours, unless just awake.
    pub(crate) fn may_sleep(&self, cx: &Context) -> bool {
        let is_awake = self.awake_us.is_some_and(|at_us| cx.now_us().saturating_sub(at_us) < AWAKE_US);
        let are_quiet = cx.config.quiet_hours.is_some_and(|hours| hours.cover(cx.now()));
        are_quiet && !is_awake
    }

    /// Whether an app is not to be heard now. Timers and reminders are the wearer's own.
    fn is_quiet(&self, cx: &Context, id: AnnouncementId) -> bool {
        matches!(id, AnnouncementId::App(_)) && self.may_sleep(cx)
    }

    /// Queues an announcement, once; beyond the limit, or in quiet hours, it is returned as not heard.
    pub(crate) fn handle_announce(&mut self, cx: &mut Context, announcement: Announcement) {
        if self.queue.iter().any(|queued| queued.id == announcement.id) {
            return;
        }
        if self.queue.len() >= NOTICES_QUEUED_MAX || self.is_quiet(cx, announcement.id) {
            cx.push(Output::Announced { id: announcement.id, heard: false });
            return;
        }
        self.queue.push_back(announcement);
        if !cx.armed(Timer::NoticeDue) {
            cx.arm(Timer::NoticeDue, PATIENCE_MS);
        }
    }

    pub(crate) fn handle_due(&mut self) {
        self.impatient = !self.queue.is_empty();
    }

    /// The next announcement, if the floor is free or it has waited long enough.
    pub(crate) fn take(&mut self, cx: &mut Context, floor_is_free: bool) -> Option<Announcement> {
        if !floor_is_free && !self.impatient {
            return None;
        }
        let next = self.queue.pop_front()?;
        self.impatient = false;
        if self.queue.is_empty() {
            cx.disarm(Timer::NoticeDue);
        } else {
            cx.arm(Timer::NoticeDue, PATIENCE_MS);
        }
        Some(next)
    }

    /// Returns a waiting announcement as not heard.
    pub(crate) fn withdraw(&mut self, cx: &mut Context, id: AnnouncementId) {
        let waiting = self.queue.len();
        self.queue.retain(|queued| queued.id != id);
        if self.queue.len() < waiting {
            cx.push(Output::Announced { id, heard: false });
        }
        if self.queue.is_empty() {
            cx.disarm(Timer::NoticeDue);
        }
    }

    /// Returns all as not heard: the wearer cannot be reached, and the user's machine looks for another way.
    pub(crate) fn give_back(&mut self, cx: &mut Context) {
        for announcement in self.queue.drain(..) {
            cx.push(Output::Announced { id: announcement.id, heard: false });
        }
        self.impatient = false;
        cx.disarm(Timer::NoticeDue);
    }
}
