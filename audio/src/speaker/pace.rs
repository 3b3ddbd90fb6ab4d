//! How far packets may run ahead of what the device plays.
//!
//! Two limits at once. Against the clock: a device that plays on in real time is kept one lead ahead, which is little
//! to throw away when the wearer interrupts. Against what the device *said*: it is never sent more than it can hold
//! beyond what it last said that it had played, so that a link that stalls, or a device that starves, is not overrun.

use crate::frame::FRAME_US;

/// What a device says of its playing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// How much of the speech came out, in microseconds.
    pub played_us: u64,
    /// When that was so, on the device's own clock.
    pub at_us: u64,
    /// Sound comes out, and went on coming out.
    pub playing: bool,
}

/// Where the device is in one speech.
pub(super) struct Pace {
    lead_us: u64,
    hold_us: u64,
    /// When the device began, or would have begun to play, had it never stood still; nothing before the first packet.
    began_us: Option<u64>,
    /// What it said last, its place made the most of.
    said: Option<Report>,
    /// Least time by which what it says is behind the clock: the way there and back, and what it waits for.
    lag_us: Option<u64>,
}

impl Pace {
    pub(super) fn new(lead_us: u64, hold_us: u64) -> Self {
        Self { lead_us, hold_us, began_us: None, said: None, lag_us: None }
    }

    /// When the packet behind `sent_us` may go; nothing: not before the device has played more.
    pub(super) fn due_us(&self, sent_us: u64) -> Option<u64> {
        let end_us = sent_us + FRAME_US;
        if end_us > self.place_us() + self.hold_us {
            return None;
        }
        Some(self.began_us.map_or(0, |began_us| began_us.saturating_add(end_us).saturating_sub(self.lead_us)))
    }

    /// The packet behind `sent_us` goes. Returns when it will be played, by the clock.
    pub(super) fn send(&mut self, sent_us: u64, now_us: u64) -> u64 {
        // A device that ran dry stood still: it goes on from this packet.
        let began_us = self.began_us.unwrap_or(now_us).max(now_us.saturating_sub(sent_us));
        self.began_us = Some(began_us);
        began_us.saturating_add(sent_us)
    }

    /// The device says something, which came at `now_us`.
    pub(super) fn hear(&mut self, report: Report, sent_us: u64, now_us: u64) {
        let Some(began_us) = self.began_us else { return };
        let before = self.said.unwrap_or(Report { playing: false, ..report });
        // Between two words of a device that plays on, it played, also what it does not count: lost sound that it made up.
        let meanwhile_us = if before.playing { report.at_us.saturating_sub(before.at_us) } else { 0 };
        let place_us = report.played_us.max(self.place_us().saturating_add(meanwhile_us)).min(sent_us);
        if report.playing {
            let lag_us = now_us.saturating_sub(began_us).saturating_sub(place_us);
            let least_us = *self.lag_us.get_or_insert(lag_us);
            if before.playing {
                self.lag_us = Some(least_us.min(lag_us));
            } else {
                // It stood still, and the clock did not know.
                self.began_us = Some(began_us.max(now_us.saturating_sub(place_us).saturating_sub(least_us)));
            }
        }
        self.said = Some(Report { played_us: place_us, ..report });
    }

    /// Where the device is by the clock, never behind what it said and never past what it has.
    pub(super) fn playhead_us(&self, sent_us: u64, now_us: u64) -> u64 {
        let elapsed_us = self.began_us.map_or(0, |began_us| now_us.saturating_sub(began_us));
        elapsed_us.max(self.place_us()).min(sent_us)
    }

    fn place_us(&self) -> u64 {
        self.said.map_or(0, |said| said.played_us)
    }
}
