//! What is known of rows without a look at them. Their numbers are in the order in which they were written, their times are
//! not: a clock may be set forwards and back. So the times and levels of each block of numbers are kept in memory, and a
//! query passes over the blocks that can hold nothing that is wanted.

use std::{
    collections::BTreeMap,
    ops::{Range, RangeInclusive},
};

use tools::inspection::logs::{LogCursor, LogLevel};

use super::row;

/// Numbers of a block. A query looks at fewer rows than these in vain at each end of its times, and where the clock was set.
const NUMBERS: u64 = 64;

struct Block {
    /// From the earliest to the latest one, in milliseconds since the Unix epoch.
    times: RangeInclusive<i64>,
    most_severe: LogLevel,
}

/// The blocks in which rows can be, by their place among all blocks. Every row that a query can see is in one of them and
/// within its times; a block may promise more than there is.
#[derive(Default)]
pub(super) struct Blocks(BTreeMap<u64, Block>);

impl Blocks {
    /// There is a row with this key, or will be soon. Turns have no level. What is no key is in no block: nothing reads it.
    pub(super) fn add(&mut self, key: &[u8]) {
        let parts = row::parts(key).or_else(|| Some((row::place_of_turn(key)?, LogLevel::Info)));
        let Some((place, level)) = parts else { return };
        let at = row::wall_ms(place);
        let block = self.0.entry(index(place)).or_insert(Block { times: at..=at, most_severe: level });
        block.times = at.min(*block.times.start())..=at.max(*block.times.end());
        block.most_severe = level.min(block.most_severe);
    }

    /// There are no rows before this place any more.
    pub(super) fn forget_before(&mut self, first: LogCursor) {
        self.0 = self.0.split_off(&index(first));
    }

    /// Where rows before a place can be of which `can_hold` accepts times and most severe level: places, the newest first.
    pub(super) fn ranges(
        &self,
        before: LogCursor,
        can_hold: impl Fn(&RangeInclusive<i64>, LogLevel) -> bool,
    ) -> Vec<Range<LogCursor>> {
        let mut ranges: Vec<Range<LogCursor>> = Vec::new();
        let mut goes_on = false;
        for (index, block) in self.0.range(..=index(before)).rev() {
            let is_wanted = can_hold(&block.times, block.most_severe);
            let Range { start, end } = places(*index);
            match ranges.last_mut() {
                // Between two known blocks there is nothing.
                Some(newer) if is_wanted && goes_on => newer.start = start,
                _ if is_wanted => ranges.push(start..end.min(before)),
                _ => {}
            }
            goes_on = is_wanted;
        }
        ranges
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

fn index(place: LogCursor) -> u64 {
    row::number(place) / NUMBERS
}

/// From the first place of a block to the first one behind it.
fn places(index: u64) -> Range<LogCursor> {
    let start = u128::from(index * NUMBERS) << 64;
    LogCursor(start)..LogCursor(start.saturating_add(u128::from(NUMBERS) << 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: LogCursor = LogCursor(u128::MAX);

    fn place(number: u64) -> LogCursor {
        LogCursor(u128::from(number) << 64)
    }

    /// Five blocks, of which the fourth is of another time, and the third holds the only warning.
    fn five() -> Blocks {
        let mut blocks = Blocks::default();
        for number in 0..5 * NUMBERS {
            let index = number / NUMBERS;
            let wall_ms = if index == 3 { 9_000 } else { 1_000 * index as i64 + 1 };
            let level = if number == 3 * NUMBERS - 1 { LogLevel::Warn } else { LogLevel::Info };
            blocks.add(&row::key(wall_ms, number, level));
        }
        blocks
    }

    /// The numbers at which ranges begin and end.
    fn numbers(ranges: Vec<Range<LogCursor>>) -> Vec<(u64, u64)> {
        ranges.into_iter().map(|range| (row::number(range.start), row::number(range.end))).collect()
    }

    #[test]
    fn blocks_that_hold_something_wanted_are_found_by_time_and_level() {
        let blocks = five();
        let since = |since: i64| numbers(blocks.ranges(END, |times, _| *times.end() >= since));
        assert_eq!(since(0), [(0, 5 * NUMBERS)], "one range");
        assert_eq!(since(2_000), [(2 * NUMBERS, 5 * NUMBERS)]);
        assert_eq!(since(4_000), [(3 * NUMBERS, 5 * NUMBERS)]);
        assert_eq!(since(5_000), [(3 * NUMBERS, 4 * NUMBERS)]);
        assert!(since(9_001).is_empty());
        let before = numbers(blocks.ranges(END, |times, _| *times.start() < 5_000));
        assert_eq!(before, [(4 * NUMBERS, 5 * NUMBERS), (0, 3 * NUMBERS)], "the newest first");
        let warnings = numbers(blocks.ranges(END, |_, most_severe| most_severe <= LogLevel::Warn));
        assert_eq!(warnings, [(2 * NUMBERS, 3 * NUMBERS)]);
    }

    #[test]
    fn ranges_end_before_the_place_that_is_given() {
        let blocks = five();
        let ranges = |number| numbers(blocks.ranges(place(number), |_, _| true));
        assert_eq!(ranges(5 * NUMBERS), [(0, 5 * NUMBERS)]);
        assert_eq!(ranges(NUMBERS + 1), [(0, NUMBERS + 1)]);
        let newest = numbers(blocks.ranges(place(NUMBERS + 1), |times, _| *times.start() > 1_000));
        assert_eq!(newest, [(NUMBERS, NUMBERS + 1)]);
    }

    #[test]
    fn blocks_without_rows_are_forgotten() {
        let mut blocks = five();
        // Some rows of the third block are left.
        blocks.forget_before(place(3 * NUMBERS - 1));
        assert_eq!(numbers(blocks.ranges(END, |_, _| true)), [(2 * NUMBERS, 5 * NUMBERS)]);
        blocks.forget_before(place(5 * NUMBERS));
        assert_eq!(blocks.count(), 0);
    }

    #[test]
    fn keys_of_turns_and_of_the_last_numbers_have_blocks_and_others_have_none() {
        let mut blocks = Blocks::default();
        blocks.add(b"short");
        blocks.add(&[u8::MAX; 17]);
        assert_eq!(blocks.count(), 0);
        blocks.add(&row::key_of_turn(-5, 0));
        assert_eq!(numbers(blocks.ranges(END, |times, _| *times == (0..=0))), [(0, NUMBERS)]);
        blocks.add(&row::key_of_turn(7, u64::MAX));
        let last = numbers(blocks.ranges(END, |times, _| *times == (7..=7)));
        assert_eq!(last, [(u64::MAX - NUMBERS + 1, u64::MAX)]);
    }
}
