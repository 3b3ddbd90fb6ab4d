//! Whether the voice of an utterance is the assistant's own, from the device's speaker: what follows from its likeness
//! to the sound that is played, and, on glasses that hear themselves, from the time at which that sound ends.

/// Likeness from which on one look tells an echo. These thresholds are judged by `cargo xtask bench echo`.
const SAME: f32 = 0.75;
/// Likeness from which on [`LOOKS`] looks in a row tell an echo.
const LIKE: f32 = 0.6;
/// Likeness below which as many tell that somebody else speaks.
const UNLIKE: f32 = 0.45;
/// Looks in a row: a single one is sometimes wrong.
const LOOKS: u8 = 2;

/// How long behind the end of what is played a voice may be no more than its echo, in microseconds: glasses may tell of the end
/// a little before it sounds, and a room goes on sounding. Whoever answers at once is not done by then.
const TAIL_US: u64 = 400_000;
/// How much of such a voice may lie before that end and be noticed behind it, in microseconds: until a voice is found, and its
/// sound has come.
const NOTICED_US: u64 = 400_000;
/// How long behind that end the assistant's own words give no consent, in microseconds: glasses that report what they were sent, in
/// place of what has sounded, tell of the end 600 ms too early.
const OWN_WORDS_US: u64 = 800_000;

/// What the looks at one utterance tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Echo {
    is_present: bool,
    /// Looks in a row that found the echo, and that did not.
    like: u8,
    unlike: u8,
}

impl Echo {
    /// Whether the voice is the assistant's, as far as is known.
    pub(super) fn is_present(&self) -> bool {
        self.is_present
    }

    /// Counts another look. Whether it is an echo from now on; `None`: as before.
    pub(super) fn judge(&mut self, likeness: f32) -> Option<bool> {
        let count = |before: u8, another: bool| if another { before.saturating_add(1) } else { 0 };
        self.like = count(self.like, likeness >= LIKE);
        self.unlike = count(self.unlike, likeness < UNLIKE);
        let is_echo = if self.is_present { self.unlike < LOOKS } else { self.like >= LOOKS || likeness >= SAME };
        (core::mem::replace(&mut self.is_present, is_echo) != is_echo).then_some(is_echo)
    }
}

/// When the assistant is heard, by what the glasses report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnVoice {
    is_heard: bool,
    /// When it ended last, monotonic.
    ended_us: Option<u64>,
}

impl OwnVoice {
    pub(super) fn note(&mut self, is_heard: bool, now_us: u64) {
        if core::mem::replace(&mut self.is_heard, is_heard) && !is_heard {
            self.ended_us = Some(now_us);
        }
    }

    /// Moves the end on by this time.
    pub(super) fn delay(&mut self, by_us: u64) {
        self.ended_us = self.ended_us.map(|ended_us| ended_us.saturating_add(by_us));
    }

    /// Whether it is over, and a voice that ended at this time, monotonic, may have been no more than its echo.
    pub(super) fn covers(&self, voice_us: u64) -> bool {
        !self.is_heard && self.ended_us.is_some_and(|ended_us| voice_us <= ended_us.saturating_add(TAIL_US))
    }

    /// Whether a voice that began behind its end, was over at this time, monotonic, and has this length by the glasses' clock may
    /// have been no more than its echo. The sound of a link that stalls, or comes back, is all there at once, however long it is.
    pub(super) fn may_be_rest(&self, voice_us: u64, length_us: u64) -> bool {
        length_us <= TAIL_US + NOTICED_US && self.covers(voice_us)
    }

    /// Whether a voice that began at this time, monotonic, may have said the last of its words.
    pub(super) fn may_go_on_until(&self, began_us: u64) -> bool {
        self.ended_us.is_some_and(|ended_us| began_us <= ended_us.saturating_add(OWN_WORDS_US))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voice_that_ends_with_the_assistants_or_soon_behind_it_may_be_its_echo() {
        let mut own = OwnVoice::default();
        assert!(!own.covers(0), "nothing was said");
        own.note(true, 1_000_000);
        assert!(!own.covers(1_100_000), "it goes on");
        own.note(false, 3_000_000);
        own.note(false, 9_000_000);
        assert!(own.covers(2_900_000) && own.covers(3_400_000) && !own.covers(3_400_001));
        assert!(own.may_be_rest(3_400_000, 800_000) && !own.may_be_rest(3_400_000, 800_001));
        assert!(own.may_go_on_until(3_800_000) && !own.may_go_on_until(3_800_001));
        own.delay(2_000_000);
        assert!(own.covers(5_400_000) && !own.covers(5_400_001));
    }

    #[test]
    fn an_echo_is_plain_or_found_twice_before_it_counts_and_missed_twice_before_it_does_not() {
        let mut echo = Echo::default();
        let told = [0.7, 0.5, 0.7, 0.7, 0.3, 0.5, 0.2, 0.1, 0.5, 0.9].map(|one| echo.judge(one));
        assert_eq!(told, [None, None, None, Some(true), None, None, None, Some(false), None, Some(true)]);
    }
}
