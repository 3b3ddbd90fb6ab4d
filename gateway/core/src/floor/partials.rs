//! Partial transcripts of an utterance: when the next one is due, and from where on the sound is decoded for it.
//!
//! Where words are followed, one is asked for as soon as the last one has ended: a word is never further behind the voice
//! than two decodes, and an utterance never takes more than one recognition thread. Recognition takes them last of all, those
//! of several devices by turns. Each one that it refuses or gives up doubles the time to the next, so that under load only the
//! last words remain.
//!
//! A decode of a long utterance would take longer and longer. Of what exceeds the cheapest decode only the end is decoded;
//! `caption` finds where its words go on from those that are known. If it cannot, the whole utterance is decoded for a while.

/// Voice before the first one, in microseconds: of less, a recogniser makes words that nobody has said, and some of them would stay.
const FIRST_US: u64 = 300_000;
/// How long the end of a partial is waited for, in microseconds: one that was lost on its way never comes.
const AWAITED_US_MAX: u64 = 2_000_000;
/// How often the time to the next one is doubled at most.
const DOUBLINGS_MAX: u8 = 4;
/// Longest sound that is decoded for a partial, in microseconds. With the silence before the voice it is below the 5 s up to
/// which a decode takes the least time.
const SOUND_US_MAX: u64 = 4_500_000;
/// What is decoded of a longer one: enough words that are known already, to find where the others go on.
const END_US: u64 = 2_500_000;
/// How long the whole utterance is decoded after an end whose place was not found, in microseconds.
const WHOLE_US: u64 = 2_000_000;

/// What a partial is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The utterance so far, or all of it that is ever decoded.
    Whole,
    /// Its last few seconds.
    End,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    revision: u16,
    at_us: u64,
    part: Part,
}

/// The partials of one utterance. Times are monotonic if nothing else is said.
#[derive(Clone, Debug)]
pub(super) struct Partials {
    /// The newest one whose text was taken.
    taken: u16,
    /// The last one that was asked for, until it ends.
    asked: Option<Request>,
    /// When that was, or when the voice began or went on.
    since_us: u64,
    /// When the first one is due.
    first_us: u64,
    /// How many in a row have failed.
    failed: u8,
    /// Capture time of the end that is decoded; `None`: the whole is.
    end_from_us: Option<u64>,
    /// Until when the whole is decoded, however long it is.
    whole_until_us: u64,
}

impl Partials {
    /// A voice has begun.
    pub(super) fn new(now_us: u64) -> Self {
        let first_us = now_us.saturating_add(FIRST_US);
        Self { taken: 0, asked: None, since_us: now_us, first_us, failed: 0, end_from_us: None, whole_until_us: 0 }
    }

    /// The voice goes on after a pause. `begun`: the decode of the whole that began with the pause and has not ended; where
    /// nothing else is awaited, it becomes a partial. Returns the decode that is awaited; the others are of no use.
    pub(super) fn go_on(&mut self, now_us: u64, begun: Option<u16>) -> Option<u16> {
        if !self.is_awaited(now_us) {
            // That of a long utterance would take too long.
            let begun = begun.filter(|_| self.end_from_us.is_none());
            self.asked = begun.map(|revision| Request { revision, at_us: now_us, part: Part::Whole });
        }
        self.asked.map(|asked| asked.revision)
    }

    /// Whether this decode is awaited.
    pub(super) fn awaits(&self, revision: u16) -> bool {
        self.asked.is_some_and(|asked| asked.revision == revision)
    }

    /// Nothing that was asked for is awaited any more.
    pub(super) fn cancel(&mut self) {
        self.asked = None;
    }

    /// Moves its times on by this time.
    pub(super) fn delay(&mut self, by_us: u64) {
        self.since_us = self.since_us.saturating_add(by_us);
        self.first_us = self.first_us.saturating_add(by_us);
        if let Some(asked) = &mut self.asked {
            asked.at_us = asked.at_us.saturating_add(by_us);
        }
    }

    /// When the next one is due where words are followed, with this least time between two.
    pub(super) fn due_us(&self, interval_ms: u32) -> u64 {
        let interval_us = (u64::from(interval_ms) * 1_000) << self.failed.min(DOUBLINGS_MAX);
        let due_us = self.since_us.saturating_add(interval_us).max(self.first_us);
        self.asked.map_or(due_us, |asked| due_us.max(asked.at_us.saturating_add(AWAITED_US_MAX)))
    }

    /// Whether one is awaited.
    pub(super) fn is_awaited(&self, now_us: u64) -> bool {
        self.asked.is_some_and(|asked| now_us < asked.at_us.saturating_add(AWAITED_US_MAX))
    }

    /// Capture time from which on the next one is decoded where words are followed: `heard_us` is that of the end of the
    /// sound so far, and `whole_us` that of the beginning of the whole; `None`: all of the whole is. `known`: enough words are
    /// known for the place of others to be found.
    pub(super) fn begin_us(&mut self, now_us: u64, (whole_us, heard_us): (u64, u64), known: bool) -> Option<u64> {
        let sound_us = heard_us.saturating_sub(self.end_from_us.unwrap_or(whole_us));
        if sound_us > SOUND_US_MAX && known && now_us >= self.whole_until_us {
            self.end_from_us = Some(heard_us.saturating_sub(END_US));
        }
        self.end_from_us
    }

    pub(super) fn ask(&mut self, revision: u16, now_us: u64, part: Part) {
        self.asked = Some(Request { revision, at_us: now_us, part });
        self.since_us = now_us;
    }

    /// A text has come; `None`: it does not count.
    pub(super) fn take(&mut self, revision: u16) -> Option<Part> {
        if revision <= self.taken {
            return None;
        }
        self.taken = revision;
        self.failed = 0;
        match self.asked.take_if(|asked| asked.revision <= revision) {
            Some(asked) if asked.revision == revision => Some(asked.part),
            // An older one that was given up: of what it is made is known only if nothing else is.
            _ => self.end_from_us.is_none().then_some(Part::Whole),
        }
    }

    /// A decode has failed; returns whether it was the one that is awaited.
    pub(super) fn fail(&mut self, revision: u16) -> bool {
        let is_awaited = self.asked.take_if(|asked| asked.revision == revision).is_some();
        if is_awaited {
            self.failed = self.failed.saturating_add(1);
        }
        is_awaited
    }

    /// The place of an end was not found.
    pub(super) fn give_up_end(&mut self, now_us: u64) {
        self.end_from_us = None;
        self.whole_until_us = now_us.saturating_add(WHOLE_US);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL_MS: u32 = 100;

    #[test]
    fn the_next_one_is_due_when_the_last_one_has_ended_and_never_before_the_interval() {
        let mut partials = Partials::new(1_000_000);
        assert_eq!(partials.due_us(INTERVAL_MS), 1_300_000, "the first one");
        partials.ask(1, 1_300_000, Part::Whole);
        assert!(partials.is_awaited(1_300_000));
        assert_eq!(partials.due_us(INTERVAL_MS), 3_300_000, "not while it is awaited");
        assert_eq!(partials.take(1), Some(Part::Whole));
        assert_eq!(partials.due_us(INTERVAL_MS), 1_400_000);
        assert_eq!(partials.due_us(700), 2_000_000);
    }

    #[test]
    fn one_that_never_ends_is_waited_for_two_seconds() {
        let mut partials = Partials::new(0);
        partials.ask(1, 1_000_000, Part::Whole);
        assert!(partials.is_awaited(2_999_999) && !partials.is_awaited(3_000_000));
        partials.ask(2, 3_000_000, Part::Whole);
        assert!(!partials.fail(1), "nobody waits for it any more");
        assert!(partials.fail(2));
    }

    #[test]
    fn each_failure_in_a_row_doubles_the_time_to_the_next_one() {
        let mut partials = Partials::new(0);
        for (revision, expected_ms) in [(1, 200), (2, 400), (3, 800), (4, 1_600), (5, 1_600), (6, 1_600)] {
            partials.ask(revision, 1_000_000, Part::Whole);
            assert!(partials.fail(revision));
            assert_eq!(partials.due_us(INTERVAL_MS), 1_000_000 + expected_ms * 1_000, "{revision}");
        }
        partials.ask(7, 1_000_000, Part::Whole);
        assert_eq!(partials.take(7), Some(Part::Whole));
        assert_eq!(partials.due_us(INTERVAL_MS), 1_100_000);
    }

    #[test]
    fn what_is_cancelled_with_a_pause_is_no_failure() {
        let mut partials = Partials::new(0);
        partials.ask(1, 800_000, Part::Whole);
        partials.cancel();
        assert!(!partials.fail(1));
        assert_eq!(partials.due_us(INTERVAL_MS), 900_000);
    }

    #[test]
    fn behind_a_pause_the_text_that_is_awaited_still_comes_or_else_that_of_the_pause() {
        let mut partials = Partials::new(0);
        partials.ask(1, 800_000, Part::Whole);
        assert_eq!(partials.go_on(900_000, Some(2)), Some(1));
        assert_eq!(partials.take(1), Some(Part::Whole));
        assert_eq!(partials.go_on(1_300_000, Some(3)), Some(3));
        assert!(partials.awaits(3) && partials.is_awaited(1_300_000));
        assert_eq!(partials.take(3), Some(Part::Whole));
        assert_eq!(partials.go_on(1_500_000, None), None);
        assert!(partials.begin_us(6_000_000, (0, 6_000_000), true).is_some());
        assert_eq!(partials.go_on(6_100_000, Some(5)), None, "of a long one the end is decoded instead");
    }

    #[test]
    fn of_a_long_utterance_its_end_is_decoded() {
        let mut partials = Partials::new(0);
        let began_us = 500_000;
        let mut begin_us = |heard_us, known| partials.begin_us(heard_us, (began_us, heard_us), known);
        assert_eq!(begin_us(5_000_000, true), None);
        assert_eq!(begin_us(5_000_001, false), None, "too few words to go on from");
        assert_eq!(begin_us(5_100_000, true), Some(2_600_000));
        // It stays until the end is as long again.
        assert_eq!(begin_us(7_100_000, true), Some(2_600_000));
        assert_eq!(begin_us(7_200_000, true), Some(4_700_000));
    }

    #[test]
    fn an_end_without_a_place_has_the_whole_decoded_for_a_while() {
        let mut partials = Partials::new(0);
        assert_eq!(partials.begin_us(6_000_000, (0, 6_000_000), true), Some(3_500_000));
        partials.ask(3, 6_000_000, Part::End);
        assert_eq!(partials.take(3), Some(Part::End));
        partials.give_up_end(6_100_000);
        assert_eq!(partials.begin_us(8_000_000, (0, 8_000_000), true), None);
        assert_eq!(partials.begin_us(8_100_000, (0, 8_100_000), true), Some(5_600_000));
    }

    #[test]
    fn a_text_counts_once_and_only_if_it_is_known_of_what_it_is() {
        let mut partials = Partials::new(0);
        partials.ask(1, 0, Part::Whole);
        partials.ask(2, 0, Part::Whole);
        assert_eq!(partials.take(1), Some(Part::Whole));
        assert_eq!(partials.take(2), Some(Part::Whole));
        assert_eq!(partials.take(2), None);
        partials.ask(3, 0, Part::Whole);
        assert!(partials.begin_us(9_000_000, (0, 9_000_000), true).is_some());
        partials.ask(4, 0, Part::End);
        assert_eq!(partials.take(3), None, "it may be the whole");
        assert_eq!(partials.take(4), Some(Part::End));
    }
}
