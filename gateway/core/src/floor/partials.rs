//! Partial transcripts of an utterance: when the next one is due, and from where on the sound is decoded for it.
//!
//! Where words are followed, one is asked for as soon as the last one has ended, and another in the middle of its decode: a word
//! that just misses one need not wait for two. Where they may only stop the assistant they are asked for less often, and no more of
//! them are in work, either. Recognition takes the second only if a thread is free; if not, there is none for a while. It takes
//! partials last of all, those of several devices by turns. Each other one that it refuses or gives up doubles the time to the next,
//! so that under load only the last words remain.
//!
//! A decode of a long utterance would take longer and longer. Of what exceeds the cheapest decode only the end is decoded;
//! `caption` finds where its words go on from those that are known. If it cannot, the whole utterance is decoded for a while.

use alloc::vec::Vec;

/// Voice before the first one, in microseconds: of less, a recogniser makes words that nobody has said, and some of them would stay.
const FIRST_US: u64 = 300_000;
/// Those of an utterance at once.
const AT_ONCE_MAX: usize = 2;
/// Shortest and longest time from one to the next while the first is decoded, in microseconds. Between them it is half the time that
/// the last one took.
const STAGGER_US: (u64, u64) = (60_000, 250_000);
/// How long none is asked for beside another, after one that was not decoded, in microseconds.
const ALONE_US: u64 = 1_000_000;
/// How long the end of a partial is waited for before another is asked for, in microseconds: one that was lost on its way never
/// comes.
const AWAITED_US_MAX: u64 = 2_000_000;
/// How long its text counts all the same, in microseconds: on a machine that is slow, or has much to do, a decode takes seconds.
const KEPT_US_MAX: u64 = 15_000_000;
/// Those that are remembered.
const KEPT_MAX: usize = 4;
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
    /// Those that were asked for and have not ended, the oldest first.
    asked: Vec<Request>,
    /// When the last one was asked for, or when the voice began or went on.
    since_us: u64,
    /// How long the last one took.
    took_us: u64,
    /// Until when there is none beside another.
    alone_until_us: u64,
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
        Self {
            taken: 0,
            asked: Vec::new(),
            since_us: now_us,
            took_us: 0,
            alone_until_us: 0,
            first_us,
            failed: 0,
            end_from_us: None,
            whole_until_us: 0,
        }
    }

    /// The voice goes on after a pause. `begun`: the decode of the whole that began with the pause and has not ended; it becomes
    /// a partial where there is room, or, where `insists`, in any case. Returns the decodes that are awaited: the oldest ones, which
    /// are in work, and the newest. Those between them would only make a queue.
    pub(super) fn go_on(&mut self, now_us: u64, begun: Option<u16>, insists: bool) -> Vec<u16> {
        self.forget_lost(now_us);
        // That of a long utterance would take too long.
        let has_place = self.end_from_us.is_none() && (insists || self.in_work(now_us) < AT_ONCE_MAX);
        self.asked.extend(begun.filter(|_| has_place).map(|revision| Request {
            revision,
            at_us: now_us,
            part: Part::Whole,
        }));
        if self.asked.len() > AT_ONCE_MAX + 1 {
            self.asked.drain(AT_ONCE_MAX..self.asked.len() - 1);
        }
        self.asked.iter().map(|asked| asked.revision).collect()
    }

    /// How many others are waited for before another is asked for.
    fn in_work(&self, now_us: u64) -> usize {
        self.asked.iter().filter(|asked| now_us < asked.at_us.saturating_add(AWAITED_US_MAX)).count()
    }

    /// Those that never came count no longer.
    fn forget_lost(&mut self, now_us: u64) {
        self.asked.retain(|asked| now_us < asked.at_us.saturating_add(KEPT_US_MAX));
    }

    /// Whether this decode is awaited.
    pub(super) fn awaits(&self, revision: u16) -> bool {
        self.asked.iter().any(|asked| asked.revision == revision)
    }

    /// Nothing that was asked for is awaited any more.
    pub(super) fn cancel(&mut self) {
        self.asked.clear();
    }

    /// Moves its times on by this time.
    pub(super) fn delay(&mut self, by_us: u64) {
        self.since_us = self.since_us.saturating_add(by_us);
        self.first_us = self.first_us.saturating_add(by_us);
        self.alone_until_us = self.alone_until_us.saturating_add(by_us);
        for asked in &mut self.asked {
            asked.at_us = asked.at_us.saturating_add(by_us);
        }
    }

    /// When the next one is due where words are followed, with this least time between two.
    pub(super) fn due_us(&self, interval_ms: u32) -> u64 {
        let interval_us = (u64::from(interval_ms) * 1_000) << self.failed.min(DOUBLINGS_MAX);
        let due_us = self.since_us.saturating_add(interval_us).max(self.first_us);
        due_us.max(self.room_us())
    }

    /// Whether another one may be asked for where words are followed.
    pub(super) fn has_room(&self, now_us: u64) -> bool {
        now_us >= self.room_us()
    }

    /// From when on there is room for another one beside those that are awaited.
    fn room_us(&self) -> u64 {
        let newest = self.asked.get(self.asked.len().saturating_sub(AT_ONCE_MAX)..).unwrap_or_default();
        let (Some(first), Some(last)) = (newest.first(), newest.last()) else { return 0 };
        let lost_us = first.at_us.saturating_add(AWAITED_US_MAX);
        if newest.len() >= AT_ONCE_MAX {
            return lost_us;
        }
        let stagger_us = (self.took_us / 2).clamp(STAGGER_US.0, STAGGER_US.1);
        last.at_us.saturating_add(stagger_us).max(self.alone_until_us).min(lost_us)
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
        self.forget_lost(now_us);
        self.asked.drain(..self.asked.len().saturating_sub(KEPT_MAX - 1));
        self.asked.push(Request { revision, at_us: now_us, part });
        self.since_us = now_us;
    }

    /// A text has come; `None`: it does not count.
    pub(super) fn take(&mut self, revision: u16, now_us: u64) -> Option<Part> {
        let found = self.asked.iter().find(|asked| asked.revision == revision).copied();
        // An older one is in work until it ends, though it counts no more.
        self.asked.retain(|asked| asked.revision != revision);
        if revision <= self.taken {
            return None;
        }
        self.taken = revision;
        self.failed = 0;
        match found {
            Some(asked) => {
                self.took_us = now_us.saturating_sub(asked.at_us);
                Some(asked.part)
            }
            // An older one that was given up: of what it is made is known only if nothing else is.
            None => self.end_from_us.is_none().then_some(Part::Whole),
        }
    }

    /// A decode has failed; returns whether it was awaited.
    pub(super) fn fail(&mut self, revision: u16, now_us: u64) -> bool {
        let is_awaited = self.awaits(revision);
        let is_newest = self.asked.last().is_some_and(|asked| asked.revision == revision);
        self.asked.retain(|asked| asked.revision != revision);
        self.forget_lost(now_us);
        if is_newest && self.in_work(now_us) > 0 {
            self.alone_until_us = now_us.saturating_add(ALONE_US);
        } else if is_awaited {
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
    const NOW_US: u64 = 1_000_000;

    #[test]
    fn the_next_one_is_due_when_the_last_one_has_ended_and_never_before_the_interval() {
        let mut partials = Partials::new(1_000_000);
        assert_eq!(partials.due_us(INTERVAL_MS), 1_300_000, "the first one");
        partials.ask(1, 1_300_000, Part::Whole);
        assert_eq!(partials.take(1, 1_350_000), Some(Part::Whole));
        assert_eq!(partials.due_us(INTERVAL_MS), 1_400_000);
        assert_eq!(partials.due_us(700), 2_000_000);
    }

    #[test]
    fn a_second_one_is_due_in_the_middle_of_the_first_and_no_third() {
        let mut partials = Partials::new(1_000_000);
        partials.ask(1, 1_300_000, Part::Whole);
        assert!(!partials.has_room(1_359_999) && partials.has_room(1_360_000), "how long one takes is not known");
        assert_eq!(partials.due_us(INTERVAL_MS), 1_400_000);
        assert_eq!(partials.take(1, 1_600_000), Some(Part::Whole));
        partials.ask(2, 1_600_000, Part::Whole);
        assert_eq!(partials.due_us(INTERVAL_MS), 1_750_000, "half of the time of the first");
        partials.ask(3, 1_750_000, Part::Whole);
        assert_eq!(partials.due_us(INTERVAL_MS), 3_600_000);
        assert_eq!(partials.take(2, 1_900_000), Some(Part::Whole));
        assert_eq!(partials.due_us(INTERVAL_MS), 1_900_000);
    }

    #[test]
    fn where_a_second_one_is_not_decoded_there_is_none_for_a_second() {
        let mut partials = Partials::new(0);
        partials.ask(1, 1_000_000, Part::Whole);
        partials.ask(2, 1_100_000, Part::Whole);
        assert!(partials.fail(2, 1_100_000));
        assert_eq!(partials.due_us(INTERVAL_MS), 2_100_000);
        assert_eq!(partials.take(1, 1_200_000), Some(Part::Whole));
        assert_eq!(partials.due_us(INTERVAL_MS), 1_200_000, "the time to the next one is not doubled");
    }

    #[test]
    fn one_that_gives_way_delays_the_next_one_until_the_newer_one_comes() {
        let mut partials = Partials::new(0);
        partials.ask(1, 1_000_000, Part::Whole);
        partials.ask(2, 1_100_000, Part::Whole);
        assert!(partials.fail(1, 1_150_000));
        assert_eq!(partials.due_us(INTERVAL_MS), 1_300_000);
        assert_eq!(partials.take(2, 1_180_000), Some(Part::Whole));
        assert_eq!(partials.due_us(INTERVAL_MS), 1_200_000);
    }

    #[test]
    fn the_older_one_counts_no_more_once_the_newer_has_come() {
        let mut partials = Partials::new(0);
        partials.ask(1, 1_000_000, Part::Whole);
        partials.ask(2, 1_100_000, Part::Whole);
        assert_eq!(partials.take(2, 1_200_000), Some(Part::Whole));
        assert!(partials.awaits(1), "it still takes a thread");
        assert_eq!(partials.take(1, 1_250_000), None);
        assert!(!partials.awaits(1));
    }

    #[test]
    fn one_that_never_ends_is_waited_for_two_seconds_and_counts_for_fifteen() {
        let mut partials = Partials::new(0);
        partials.ask(1, 1_000_000, Part::Whole);
        partials.ask(2, 1_100_000, Part::Whole);
        assert!(!partials.has_room(2_999_999) && partials.has_room(3_000_000));
        partials.ask(3, 3_000_000, Part::Whole);
        assert_eq!(partials.go_on(15_999_999, None, false), [1, 2, 3]);
        assert_eq!(partials.go_on(16_000_000, None, false), [2, 3]);
        assert!(!partials.fail(1, 16_000_000), "nobody waits for it any more");
        assert!(partials.fail(3, 16_000_000));
        assert_eq!(partials.due_us(INTERVAL_MS), 3_200_000, "beside one that was lost it is a failure");
    }

    #[test]
    fn each_failure_in_a_row_doubles_the_time_to_the_next_one() {
        let mut partials = Partials::new(0);
        for (revision, expected_ms) in [(1, 200), (2, 400), (3, 800), (4, 1_600), (5, 1_600), (6, 1_600)] {
            partials.ask(revision, 1_000_000, Part::Whole);
            assert!(partials.fail(revision, 1_000_000));
            assert_eq!(partials.due_us(INTERVAL_MS), 1_000_000 + expected_ms * 1_000, "{revision}");
        }
        partials.ask(7, 1_000_000, Part::Whole);
        assert_eq!(partials.take(7, NOW_US), Some(Part::Whole));
        assert_eq!(partials.due_us(INTERVAL_MS), 1_100_000);
    }

    #[test]
    fn what_is_cancelled_with_a_pause_is_no_failure() {
        let mut partials = Partials::new(0);
        partials.ask(1, 800_000, Part::Whole);
        partials.cancel();
        assert!(!partials.fail(1, NOW_US));
        assert_eq!(partials.due_us(INTERVAL_MS), 900_000);
    }

    #[test]
    fn behind_a_pause_the_texts_that_are_awaited_still_come_and_that_of_the_pause() {
        let mut partials = Partials::new(0);
        partials.ask(1, 800_000, Part::Whole);
        assert_eq!(partials.go_on(900_000, Some(2), false), [1, 2]);
        assert_eq!(partials.go_on(900_000, Some(3), false), [1, 2], "no third");
        let mut insisting = partials.clone();
        assert_eq!(insisting.go_on(900_000, Some(3), true), [1, 2, 3], "unless its words may stop the assistant");
        assert_eq!(insisting.go_on(900_000, Some(4), true), [1, 2, 4], "the first ones end, and no queue is made");
        assert_eq!(partials.take(1, 950_000), Some(Part::Whole));
        assert_eq!(partials.take(2, 1_000_000), Some(Part::Whole));
        assert_eq!(partials.go_on(1_300_000, Some(3), false), [3]);
        assert_eq!(partials.take(3, 1_400_000), Some(Part::Whole));
        assert_eq!(partials.go_on(1_500_000, None, false), [0_u16; 0]);
        assert!(partials.begin_us(6_000_000, (0, 6_000_000), true).is_some());
        assert_eq!(partials.go_on(6_100_000, Some(5), false), [0_u16; 0], "of a long one the end is decoded instead");
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
        assert_eq!(partials.take(3, NOW_US), Some(Part::End));
        partials.give_up_end(6_100_000);
        assert_eq!(partials.begin_us(8_000_000, (0, 8_000_000), true), None);
        assert_eq!(partials.begin_us(8_100_000, (0, 8_100_000), true), Some(5_600_000));
    }

    #[test]
    fn a_text_counts_once_and_only_if_it_is_known_of_what_it_is() {
        let mut partials = Partials::new(0);
        partials.ask(1, 0, Part::Whole);
        partials.ask(2, 0, Part::Whole);
        assert_eq!(partials.take(1, NOW_US), Some(Part::Whole));
        assert_eq!(partials.take(2, NOW_US), Some(Part::Whole));
        assert_eq!(partials.take(2, NOW_US), None);
        partials.ask(3, 0, Part::Whole);
        assert!(partials.begin_us(9_000_000, (0, 9_000_000), true).is_some());
        (4..8).for_each(|revision| partials.ask(revision, 0, Part::End));
        assert_eq!(partials.take(3, NOW_US), None, "it may be the whole");
        assert_eq!(partials.take(4, NOW_US), Some(Part::End));
    }
}
