//! When something was said, on the gateway's clock: after a lost or stalled link the glasses send what they have kept, so
//! that sound may come long after it was captured. Their clock is another one; the promptest sound tells how they differ.

/// Sound that comes so much later than the promptest was kept, or has waited. A network delays by less.
const LATE_US: u64 = 500_000;

/// Two clocks drift apart by less than one part in so many.
const DRIFT: u64 = 4_000;

/// As much sound as glasses keep at most.
const KEPT_US_MAX: u64 = 30_000_000;

/// While it is replayed, the backlog shrinks so many times as fast as time passes.
const REPLAY_SPEED: u64 = 3;

/// How much later than its replay the last of it is heard, at most.
const REPLAYED_US: u64 = 700_000;

/// The difference between the gateway's clock and that of the glasses, as far as sound has told it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SoundClock {
    /// What is added to a capture time, and when that was told.
    offset: Option<(i64, u64)>,
    /// Until then all sound may be a replay, none of which tells the difference.
    replay_until_us: u64,
}

impl SoundClock {
    /// The link is back after this time. With nothing heard before, it is not known what is a replay.
    pub(super) fn handle_resumed(&mut self, now_us: u64, lost_us: u64) {
        if self.offset.is_none() {
            let replay_us = lost_us.min(KEPT_US_MAX) / REPLAY_SPEED;
            self.replay_until_us = now_us.saturating_add(replay_us).saturating_add(REPLAYED_US);
        }
    }

    /// Sound up to this capture time is heard now.
    pub(super) fn note(&mut self, now_us: u64, heard_us: u64) {
        if now_us < self.replay_until_us {
            return;
        }
        let offset = signed(now_us).saturating_sub(signed(heard_us));
        let least = self.offset_now(now_us).map_or(offset, |before| before.min(offset));
        self.offset = Some((least, now_us));
    }

    /// When sound of this capture time was spoken, on the gateway's clock; 0: nobody knows.
    pub(super) fn spoken_us(&self, now_us: u64, at_us: u64) -> u64 {
        let spoken = self.offset_now(now_us).map_or(0, |offset| signed(at_us).saturating_add(offset));
        u64::try_from(spoken).unwrap_or(0).min(now_us)
    }

    fn offset_now(&self, now_us: u64) -> Option<i64> {
        self.offset.map(|(offset, told_us)| offset.saturating_add(signed(now_us.saturating_sub(told_us) / DRIFT)))
    }
}

/// Whether what began to be heard then was spoken much earlier.
pub(super) fn is_late(spoken_us: u64, started_us: u64) -> bool {
    started_us.saturating_sub(spoken_us) > LATE_US
}

fn signed(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_promptest_sound_tells_the_difference_of_the_clocks() {
        let mut clock = SoundClock::default();
        assert_eq!(clock.spoken_us(9_000_000, 1_000_000), 0, "nothing was heard yet");
        clock.note(10_300_000, 1_000_000);
        clock.note(11_100_000, 2_000_000);
        clock.note(19_000_000, 3_000_000);
        let spoken_us = clock.spoken_us(19_000_000, 3_000_000);
        assert!((12_100_000..12_110_000).contains(&spoken_us), "{spoken_us}");
        assert!(is_late(spoken_us, 19_000_000));
    }

    #[test]
    fn clocks_that_drift_apart_make_nothing_late() {
        let mut clock = SoundClock::default();
        // Eight hours, in which the clock of the glasses loses 100 parts in a million.
        for minute in 0..480_u64 {
            let now_us = minute * 60_000_000;
            let at_us = now_us - now_us / 10_000;
            clock.note(now_us, at_us);
            assert!(!is_late(clock.spoken_us(now_us, at_us), now_us), "{minute}");
        }
    }

    #[test]
    fn a_replay_does_not_tell_the_difference() {
        let mut clock = SoundClock::default();
        clock.handle_resumed(20_000_000, 6_000_000);
        clock.note(22_000_000, 1_000_000);
        assert_eq!(clock.spoken_us(22_000_000, 1_000_000), 0);
        clock.note(22_800_000, 4_000_000);
        assert_eq!(clock.spoken_us(22_800_000, 4_000_000), 22_800_000);
    }
}
