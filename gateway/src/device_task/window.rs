//! Acceptance window for sound sequences: RFC 3550, appendix A.1.

use device_protocol::limits::AUDIO_AHEAD_MAX;

/// Accepted sequences.
#[derive(Default)]
pub(super) struct Window {
    highest: u32,
    /// The successor of a packet that was too far ahead.
    expected: Option<u32>,
}

impl Window {
    /// The highest accepted sequence; 0: none.
    pub(super) fn highest(&self) -> u32 {
        self.highest
    }

    /// Whether this packet is accepted. One that is far ahead of all others is not, or all later packets would be too
    /// late. If the next one follows it directly, the device really is at that position.
    pub(super) fn takes(&mut self, sequence: u32) -> bool {
        let far = sequence.saturating_sub(self.highest) > AUDIO_AHEAD_MAX;
        if far && self.expected.replace(sequence.saturating_add(1)) != Some(sequence) {
            return false;
        }
        self.expected = None;
        self.highest = self.highest.max(sequence);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(sequences: &[u32]) -> Vec<u32> {
        let mut window = Window::default();
        sequences.iter().copied().filter(|sequence| window.takes(*sequence)).collect()
    }

    #[test]
    fn one_packet_far_ahead_is_passed_over() {
        assert_eq!(taken(&[1, 2, 1_000_000, 3, u32::MAX, 4, 5]), [1, 2, 3, 4, 5]);
        assert_eq!(taken(&[1_000_000, 1, 2]), [1, 2]);
        assert_eq!(taken(&[1, AUDIO_AHEAD_MAX + 1, 2, 2 * AUDIO_AHEAD_MAX + 2]), [1, AUDIO_AHEAD_MAX + 1, 2]);
    }

    #[test]
    fn a_device_that_goes_on_from_there_is_followed() {
        assert_eq!(taken(&[1, 9_000, 9_001, 9_002]), [1, 9_001, 9_002]);
        assert_eq!(taken(&[1, 9_000, 9_002, 9_003, 9_004]), [1, 9_003, 9_004], "the first pair in order");
        assert_eq!(taken(&[1, u32::MAX, u32::MAX]), [1, u32::MAX], "the numbers end there");
    }
}
