//! From positions in the sound to capture times.

use crate::frame::{RATE_HZ, samples_to_us};

/// Maps stream positions at 16 kHz to the device's clock, anew with each packet.
pub(super) struct Timeline {
    /// A position and the capture time of its sample.
    anchor: Option<(u64, u64)>,
    /// How far converted sound lags behind what was captured.
    delay_us: u64,
}

impl Timeline {
    pub(super) fn new(delay_us: u64) -> Self {
        Self { anchor: None, delay_us }
    }

    /// The packet whose sound starts at `position` was captured at `capture_us`.
    pub(super) fn anchor(&mut self, position: u64, capture_us: u64) {
        self.anchor = Some((position, capture_us));
    }

    /// Forgets the anchor: the next packet may continue at any time.
    pub(super) fn unhook(&mut self) {
        self.anchor = None;
    }

    /// Capture time that a packet would have whose sound starts at `position`.
    pub(super) fn packet_us(&self, position: u64) -> Option<u64> {
        let (anchor, capture_us) = self.anchor?;
        Some(if position >= anchor {
            capture_us.saturating_add(samples_to_us(position - anchor, RATE_HZ))
        } else {
            capture_us.saturating_sub(samples_to_us(anchor - position, RATE_HZ))
        })
    }

    /// Capture time of the sound at `position`.
    pub(super) fn capture_us(&self, position: u64) -> u64 {
        self.packet_us(position).unwrap_or(0).saturating_sub(self.delay_us)
    }
}
