//! Pacing: how far packets may run ahead of playback.
//!
//! Two limits apply. By the clock: a device that plays in real time is kept one lead ahead, so that little is discarded
//! when the wearer interrupts. By the device's *reports*: it is never sent more than it can hold beyond what it last
//! reported as played, so that a stalled link or a starved device is not overrun.

/// A device's report of its playback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// How much of the speech was played, in microseconds.
    pub played_us: u64,
    /// Time of the report on the device's own clock.
    pub at_us: u64,
    /// The device was playing at that time, and went on playing.
    pub playing: bool,
    /// It was played to its end, whatever was lost of it on the way.
    pub finished: bool,
}

impl Report {
    /// How much was played of a speech of which so much was sent.
    pub(super) fn place_us(&self, sent_us: u64) -> u64 {
        if self.finished { sent_us } else { self.played_us.min(sent_us) }
    }
}

/// Playback position in one speech.
pub(super) struct Pace {
    lead_us: u64,
    hold_us: u64,
    /// When playback began, or would have begun without stalls; `None` before the first packet.
    began_us: Option<u64>,
    /// The last report, with the position raised to the best estimate.
    said: Option<Report>,
    /// Least delay of reports behind the clock: the round trip and the device's waiting time.
    lag_us: Option<u64>,
}

impl Pace {
    pub(super) fn new(lead_us: u64, hold_us: u64) -> Self {
        Self { lead_us, hold_us, began_us: None, said: None, lag_us: None }
    }

    /// When the packet of this length at position `sent_us` may be sent; `None`: not before the device has played more.
    pub(super) fn due_us(&self, sent_us: u64, packet_us: u64) -> Option<u64> {
        let end_us = sent_us + packet_us;
        if end_us > self.place_us() + self.hold_us {
            return None;
        }
        Some(self.began_us.map_or(0, |began_us| began_us.saturating_add(end_us).saturating_sub(self.lead_us)))
    }

    /// Notes that the packet at position `sent_us` is sent. Returns when it will be played, by the clock.
    pub(super) fn send(&mut self, sent_us: u64, now_us: u64) -> u64 {
        // A device that ran dry resumes with this packet.
        let began_us = self.began_us.unwrap_or(now_us).max(now_us.saturating_sub(sent_us));
        self.began_us = Some(began_us);
        began_us.saturating_add(sent_us)
    }

    /// Takes a report of the device, received at `now_us`.
    pub(super) fn hear(&mut self, report: Report, sent_us: u64, now_us: u64) {
        let Some(began_us) = self.began_us else { return };
        let before = self.said.unwrap_or(Report { playing: false, ..report });
        // Between two reports of a device that plays on, it also played what it does not count: concealed losses.
        let meanwhile_us = if before.playing { report.at_us.saturating_sub(before.at_us) } else { 0 };
        let place_us = report.place_us(sent_us).max(self.place_us().saturating_add(meanwhile_us)).min(sent_us);
        if report.playing {
            let lag_us = now_us.saturating_sub(began_us).saturating_sub(place_us);
            let least_us = *self.lag_us.get_or_insert(lag_us);
            if before.playing {
                self.lag_us = Some(least_us.min(lag_us));
            } else {
                // The device stalled without the clock showing it.
                self.began_us = Some(began_us.max(now_us.saturating_sub(place_us).saturating_sub(least_us)));
            }
        }
        self.said = Some(Report { played_us: place_us, ..report });
    }

    /// Playback position by the clock, never behind the last report and never past what was sent.
    pub(super) fn playhead_us(&self, sent_us: u64, now_us: u64) -> u64 {
        let elapsed_us = self.began_us.map_or(0, |began_us| now_us.saturating_sub(began_us));
        elapsed_us.max(self.place_us()).min(sent_us)
    }

    fn place_us(&self) -> u64 {
        self.said.map_or(0, |said| said.played_us)
    }
}
