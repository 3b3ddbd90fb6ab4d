//! How much of Whisper's 30-second window is computed.
//!
//! The encoder's cost grows with its context of up to 1,500 positions of 20 ms. With a context that just covers the
//! sound the decoder loops; with a wide margin it does not. Hence few, wide tiers.

use super::SAMPLE_RATE_HZ;

/// Length of Whisper's window; longer sound would be cut.
pub(super) const SECONDS_MAX: u64 = 30;
/// The same in samples: the longest sound that is decoded at once.
pub const SAMPLES_MAX: usize = 30 * SAMPLE_RATE_HZ as usize;
/// Whisper returns no text for shorter sound.
pub(super) const SAMPLES_MIN: usize = SAMPLE_RATE_HZ as usize / 10;
/// The encoder's whole context.
const FULL: i32 = 1_500;

/// Longest sound in milliseconds, and the context it gets.
const TIERS: [(u64, i32); 3] = [(5_000, 512), (9_000, 768), (14_000, 1_024)];

/// English speech has at most about 5 tokens per second of text; a loop has hundreds.
const TOKENS_PER_SECOND_MAX: u64 = 6;
/// Words of other languages are cut into more tokens, those in Cyrillic letters into the most.
const FOREIGN_TOKENS_PER_SECOND_MAX: u64 = 14;
/// Added for short sound, whose tokens are mostly punctuation.
const TOKENS_BASE: u64 = 16;

/// Which context to compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Context {
    /// The smallest tier that holds the sound with its margin; the full context when that loops.
    #[default]
    Tiered,
    /// The full context: about four times the cost, for measurements.
    Full,
}

impl Context {
    /// Encoder positions for sound of this length.
    pub(super) fn positions(self, duration_ms: u64) -> i32 {
        let tier = TIERS.iter().find(|(longest, _)| duration_ms <= *longest);
        match (self, tier) {
            (Self::Tiered, Some((_, positions))) => *positions,
            _ => FULL,
        }
    }
}

pub(super) fn is_full(positions: i32) -> bool {
    positions == FULL
}

pub(super) fn full() -> i32 {
    FULL
}

/// The most tokens that sound of this length can hold.
pub(super) fn tokens_max(duration_ms: u64, is_english: bool) -> i32 {
    let per_second = if is_english { TOKENS_PER_SECOND_MAX } else { FOREIGN_TOKENS_PER_SECOND_MAX };
    let tokens = duration_ms * per_second / 1_000 + TOKENS_BASE;
    i32::try_from(tokens).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_have_their_borders() {
        for (duration_ms, positions) in [
            (0, 512),
            (5_000, 512),
            (5_001, 768),
            (9_000, 768),
            (9_001, 1_024),
            (14_000, 1_024),
            (14_001, 1_500),
            (30_000, 1_500),
        ] {
            assert_eq!(Context::Tiered.positions(duration_ms), positions, "{duration_ms} ms");
            assert_eq!(Context::Full.positions(duration_ms), 1_500);
        }
    }

    #[test]
    fn every_tier_holds_its_sound_with_a_fifth_to_spare() {
        for (longest_ms, positions) in TIERS {
            assert!(positions as u64 * 20 * 10 >= longest_ms * 12, "{positions}");
        }
    }

    #[test]
    fn tokens_grow_with_the_sound() {
        assert_eq!(tokens_max(0, true), 16);
        assert_eq!(tokens_max(2_000, true), 28);
        assert_eq!(tokens_max(2_000, false), 44);
        assert_eq!(tokens_max(30_000, true), 196);
    }
}
