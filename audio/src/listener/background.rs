//! Whether what is heard is no louder than what is always there.
//!
//! The voice detector finds any voice. In a crowd there is one at every moment, and an utterance would not end before the crowd
//! does. So a voice counts only while it is louder than the noise floor: the level that a fifth of the last seconds did not reach,
//! which is that of the pauses between words, and of whoever talks in them. How much louder depends on the utterance: one that
//! is hardly louder than the floor itself is not cut short for its soft words. It also depends on what is always there: the level of
//! a crowd goes up and down with its words, so that a voice has to be louder there; of other noise the detector knows that it is none.

use crate::frame::FRAME_SAMPLES;

/// Frames of 20 ms whose levels are kept: 4 s.
const KEPT: usize = 200;
/// Frames before the floor is known: 1 s.
const KNOWN: usize = 50;
/// Frames whose mean power is the present level: 300 ms, so that syllables do not count, but words.
const PRESENT: usize = 15;
/// Part of the kept frames that is below the floor: one in five.
const BELOW: usize = 5;
/// Frames of the background outside of utterances over which it is averaged whether they have a voice: 2 s.
const VOICES_OVER: f32 = 100.0;
/// Their part above which the background is a crowd.
const CROWD_MIN: f32 = 0.5;

/// How much louder than the floor a voice has to be.
struct Margins {
    /// To begin an utterance, in decibels.
    begin_db: f32,
    /// Within one, in decibels, at most.
    above_db: f32,
    /// The same as a part of the distance from the floor to the utterance's own level.
    above_part: f32,
}

impl Margins {
    /// In decibels; `distance_db`: of an open utterance's own level from the floor.
    fn above(&self, distance_db: Option<f32>) -> f32 {
        distance_db.map_or(self.begin_db, |distance_db| self.above_db.min(self.above_part * distance_db))
    }
}

/// Chosen on one half of the clips of `cargo xtask bench front_end`, and on long ones.
const IN_NOISE: Margins = Margins { begin_db: 4.0, above_db: 3.0, above_part: 0.3 };
/// Where most of the background are voices. Chosen on one half of the clips of `cargo xtask bench crowd`.
const IN_A_CROWD: Margins = Margins { begin_db: 7.0, above_db: 5.0, above_part: 0.4 };

/// Part of an utterance's frames that is above its level: one in ten.
const ABOVE_LEVEL: usize = 10;
/// Levels of a decibel, half a decibel apart.
const STEPS: f32 = 2.0;
/// More than the loudest frame has: 90.3 dB above a mean square of 1.
const LEVELS: usize = 192;

/// Levels of the last seconds. Its state takes less than half a kilobyte.
pub(super) struct Background {
    /// Level of each frame, in half decibels; the oldest is at `next` once all are in use.
    levels: [u8; KEPT],
    /// How many frames have each level.
    counts: [u8; LEVELS],
    next: usize,
    known: usize,
    /// Mean squares of the last frames.
    powers: [f32; PRESENT],
    /// Part of the background's last frames that has a voice.
    voices: f32,
}

impl Background {
    pub(super) fn new() -> Self {
        Self { levels: [0; KEPT], counts: [0; LEVELS], next: 0, known: 0, powers: [0.0; PRESENT], voices: 0.0 }
    }

    /// Adds the next frame.
    pub(super) fn push(&mut self, frame: &[i16; FRAME_SAMPLES]) {
        let squares = frame.iter().map(|sample| f32::from(*sample) * f32::from(*sample));
        let power = squares.sum::<f32>() / FRAME_SAMPLES as f32;
        if self.known == KEPT {
            self.counts[usize::from(self.levels[self.next])] -= 1;
        }
        // The cast saturates; a mean square is at most 2^30, which is level 180.
        let level = (STEPS * decibels(power)) as u8;
        self.levels[self.next] = level;
        self.counts[usize::from(level)] += 1;
        self.powers.rotate_left(1);
        self.powers[PRESENT - 1] = power;
        self.next = (self.next + 1) % KEPT;
        self.known = (self.known + 1).min(KEPT);
    }

    /// Whether the present level, that of the frame that was added last, is that of the background. `is_voiced`: whether the detector
    /// finds a voice there; `utterance`: how many of the last frames belong to the open one.
    pub(super) fn is_all(&mut self, is_voiced: bool, utterance: Option<usize>) -> bool {
        if self.known < KNOWN {
            return false;
        }
        let floor_db = level_db(&self.counts, self.known / BELOW);
        let distance_db = utterance.map(|frames| self.utterance_db(frames.min(self.known)) - floor_db);
        let above_db = decibels(self.powers.iter().sum::<f32>() / PRESENT as f32) - floor_db;
        let is_below = |margins: &Margins| above_db < margins.above(distance_db);
        // Within an utterance soft words are below it, too.
        if utterance.is_none() && is_below(&IN_NOISE) {
            self.voices += (f32::from(u8::from(is_voiced)) - self.voices) / VOICES_OVER;
        }
        is_below(if self.voices > CROWD_MIN { &IN_A_CROWD } else { &IN_NOISE })
    }

    /// The level that a tenth of the last frames exceeds.
    fn utterance_db(&self, frames: usize) -> f32 {
        let mut counts = [0; LEVELS];
        for back in 1..=frames {
            counts[usize::from(self.levels[(self.next + KEPT - back) % KEPT])] += 1;
        }
        level_db(&counts, frames - frames / ABOVE_LEVEL)
    }
}

/// The level below which so many frames are, in decibels.
fn level_db(counts: &[u8; LEVELS], mut below: usize) -> f32 {
    let level = counts.iter().position(|count| match below.checked_sub(usize::from(*count)) {
        Some(left) => {
            below = left;
            false
        }
        None => true,
    });
    level.unwrap_or_default() as f32 / STEPS
}

/// Of a mean square; 0 for silence.
fn decibels(power: f32) -> f32 {
    10.0 * (power + 1.0).log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of a square wave, in which no voice was found.
    fn hear(background: &mut Background, frames: usize, amplitude: i16) {
        hear_as(background, frames, amplitude, false);
    }

    fn hear_as(background: &mut Background, frames: usize, amplitude: i16, is_voiced: bool) {
        let frame: [i16; FRAME_SAMPLES] = std::array::from_fn(|at| if at % 2 == 0 { amplitude } else { -amplitude });
        for _ in 0..frames {
            background.push(&frame);
            background.is_all(is_voiced, None);
        }
    }

    fn floor_db(background: &Background) -> f32 {
        level_db(&background.counts, background.known / BELOW)
    }

    #[test]
    fn what_is_always_there_is_background_and_what_is_louder_is_not() {
        let mut background = Background::new();
        hear(&mut background, KNOWN - 1, 1_000);
        assert!(!background.is_all(true, None), "nothing is known yet");
        hear(&mut background, 1, 1_000);
        assert!(background.is_all(true, None));
        // 5 dB louder, for 3 s, and as before.
        hear(&mut background, 150, 1_780);
        assert!(!background.is_all(true, None));
        hear(&mut background, PRESENT, 1_000);
        assert!(background.is_all(true, None));
    }

    #[test]
    fn soft_words_of_an_utterance_that_is_hardly_louder_than_the_floor_count() {
        let mut background = Background::new();
        hear(&mut background, 150, 1_000);
        // 5 dB louder, and then 2.
        hear(&mut background, 30, 1_780);
        hear(&mut background, PRESENT, 1_260);
        assert!(background.is_all(true, None));
        assert!(!background.is_all(true, Some(45)));
        // 12 dB louder before.
        let mut background = Background::new();
        hear(&mut background, 150, 1_000);
        hear(&mut background, 30, 4_000);
        hear(&mut background, PRESENT, 1_260);
        assert!(background.is_all(true, Some(45)));
    }

    #[test]
    fn in_a_crowd_a_voice_has_to_be_louder_and_its_end_is_found_sooner() {
        for (is_crowd, begins, goes_on) in [(false, true, true), (true, false, false)] {
            let mut background = Background::new();
            hear_as(&mut background, 400, 1_000, is_crowd);
            // 5 dB louder.
            hear_as(&mut background, PRESENT, 1_780, true);
            assert_eq!(!background.is_all(true, None), begins, "{is_crowd}");
            // 12 dB louder, and then 4.
            hear_as(&mut background, 15, 4_000, true);
            assert!(!background.is_all(true, None));
            hear_as(&mut background, PRESENT, 1_580, is_crowd);
            assert_eq!(!background.is_all(true, Some(45)), goes_on, "{is_crowd}");
        }
    }

    #[test]
    fn behind_silence_every_voice_counts_until_it_is_always_there() {
        let mut background = Background::new();
        hear(&mut background, 300, 0);
        assert_eq!(floor_db(&background), 0.0);
        for frames in 1..160 {
            hear(&mut background, 1, 30);
            assert!(!background.is_all(true, None), "{frames}");
        }
        hear(&mut background, 1, 30);
        assert!(background.is_all(true, None), "four fifths of all that is known are like this");
    }

    #[test]
    fn the_loudest_and_the_most_silent_frames_have_a_level() {
        let mut background = Background::new();
        hear(&mut background, 500, i16::MAX);
        assert_eq!(floor_db(&background), 90.0);
        hear(&mut background, 500, 0);
        assert_eq!(floor_db(&background), 0.0);
    }
}
