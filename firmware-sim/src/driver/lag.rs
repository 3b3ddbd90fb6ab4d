//! Whether the way to the gateway keeps up with the microphone: PROTOCOL.md, section 1.

/// Age of sound at its acknowledgement from which on the way does not keep up, and under which it does again. In
/// microseconds; both include the round trip.
const BEHIND_US: u64 = 500_000;
const CAUGHT_UP_US: u64 = 250_000;
/// Acknowledgements in a row that must agree: a single one may have waited for a packet that was lost.
const LATE_ACKS: u8 = 2;

/// How far the gateway is behind.
#[derive(Debug, Default)]
pub(super) struct Lag {
    is_behind: bool,
    late: u8,
    newest: u32,
}

impl Lag {
    /// A new connection; `replays`: sound is waiting for it.
    pub(super) fn begin(&mut self, replays: bool) {
        *self = Self { is_behind: replays, ..Self::default() };
    }

    /// The gateway has received sound up to this sequence, which was captured so long ago. Whether that is news.
    pub(super) fn acknowledged(&mut self, sequence: u32, age_us: u64) -> bool {
        // In silence the same is acknowledged again.
        if sequence <= self.newest {
            return false;
        }
        self.newest = sequence;
        self.late = if age_us > BEHIND_US { self.late.saturating_add(1) } else { 0 };
        if self.late >= LATE_ACKS {
            self.is_behind = true;
        } else if age_us < CAUGHT_UP_US {
            self.is_behind = false;
        }
        true
    }

    /// Sound has to be sent in order now, behind what is still on its way.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_that_falls_behind_is_used_in_order_until_it_has_caught_up() {
        let mut lag = Lag::default();
        for (sequence, age_ms, is_behind) in [
            (20, 90, false),
            (40, 600, false),
            (60, 100, false),
            (80, 600, false),
            // Acknowledged again in silence.
            (80, 2_000, false),
            (100, 700, true),
            (120, 400, true),
            (140, 240, false),
        ] {
            lag.acknowledged(sequence, age_ms * 1_000);
            assert_eq!(lag.is_behind(), is_behind, "{sequence}");
        }
        lag.begin(true);
        lag.acknowledged(10, 3_000_000);
        assert!(lag.is_behind(), "a replay");
        lag.acknowledged(20, 200_000);
        assert!(!lag.is_behind());
    }
}
