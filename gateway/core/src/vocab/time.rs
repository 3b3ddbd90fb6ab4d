//! The core's only source of the current time.

use serde::{Deserialize, Serialize};

/// A moment: three clock readings taken together.
///
/// Countdowns use `mono_us`, appointments use `wall_ms` and `offset_s`: if the wall clock jumps, neither may a
/// countdown fire early nor an appointment twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timestamp {
    /// Microseconds since the process started; monotonic.
    pub mono_us: u64,
    /// Milliseconds since the Unix epoch, UTC; may jump in either direction.
    pub wall_ms: i64,
    /// Current offset of local time from UTC in seconds, positive to the east.
    pub offset_s: i32,
}

/// Hours of the day, by the wearer's clock, in which nobody is disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuietHours {
    /// Minute of the day at which they begin.
    pub from_minute: u16,
    /// Minute of the day at which they end; before `from_minute`: on the next day.
    pub to_minute: u16,
}

impl QuietHours {
    /// Whether this moment lies in them.
    pub fn cover(self, now: Timestamp) -> bool {
        const DAY_MIN: i64 = 24 * 60;
        let local_min = now.wall_ms.saturating_add(i64::from(now.offset_s) * 1_000).div_euclid(60_000);
        let minute = u16::try_from(local_min.rem_euclid(DAY_MIN)).unwrap_or(0);
        let Self { from_minute, to_minute } = self;
        match from_minute <= to_minute {
            true => (from_minute..to_minute).contains(&minute),
            false => minute >= from_minute || minute < to_minute,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_hours_may_span_midnight_and_follow_the_wearers_clock() {
        let at = |hour: i64, minute: i64, offset_s| Timestamp {
            wall_ms: ((20_000 * 24 + hour) * 60 + minute) * 60_000,
            offset_s,
            ..Timestamp::default()
        };
        let night = QuietHours { from_minute: 22 * 60, to_minute: 7 * 60 };
        for (hour, minute, quiet) in [(21, 59, false), (22, 0, true), (3, 0, true), (6, 59, true), (7, 0, false)] {
            assert_eq!(night.cover(at(hour, minute, 0)), quiet, "{hour}:{minute}");
        }
        assert!(night.cover(at(20, 30, 7_200)) && !night.cover(at(6, 0, 7_200)));
        let noon = QuietHours { from_minute: 720, to_minute: 780 };
        assert!(noon.cover(at(12, 30, 0)) && !noon.cover(at(13, 0, 0)) && !noon.cover(at(11, 59, 0)));
    }
}
