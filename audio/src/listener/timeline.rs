//! Maps positions in the sound to capture times.

use crate::frame::{RATE_HZ, samples_to_us};

/// Maps stream positions at 16 kHz to the device's clock; updated by each packet.
pub(super) struct Timeline {
    /// A position and the capture time of its sample.
    anchor: Option<(u64, u64)>,
    /// Delay of the resampled sound behind its capture.
    delay_us: u64,
}

impl Timeline {
    pub(super) fn new(delay_us: u64) -> Self {
        Self { anchor: None, delay_us }
    }

    /// Notes that the packet whose sound starts at `position` was captured at `capture_us`.
    pub(super) fn anchor(&mut self, position: u64, capture_us: u64) {
        self.anchor = Some((position, capture_us));
    }

    /// Drops the anchor: the next packet may have any capture time.
    pub(super) fn unhook(&mut self) {
        self.anchor = None;
    }

    /// Expected capture time of a packet whose sound starts at `position`.
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
