//! Queries of the log against a reference that looks at everything, and how many rows they look at, while the clock is
//! set forwards and back.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicI64, Ordering},
    thread,
};

use tools::inspection::logs::{LogLevel, PAGE_BYTES_MAX};

use super::*;

/// When clocks that are right begin.
const BEGIN_MS: i64 = 1_700_000_000_000;
const DAY_MS: i64 = 86_400_000;
/// Rows at which a query may look in vain at each end of its times: a block less one.
const VAIN: usize = 63;

/// The same numbers for the same seed (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn is_one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn ms_below(&mut self, end: i64) -> i64 {
        self.below(end as u64) as i64
    }
}

fn line(wall_ms: i64, level: LogLevel, message: &str) -> Line {
    let row = row::Row { source: row::GATEWAY.to_owned(), message: message.to_owned(), ..row::Row::default() };
    Line { wall_ms, level, row }
}

fn turn(number: usize) -> Turn {
    Turn { device: "glasses".to_owned(), json: number.to_string() }
}

fn messages(entries: &[LogEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.message.as_str()).collect()
}

/// Rows that queries have looked at since the file was opened.
fn looked_at(disk: &Disk) -> usize {
    disk.with(|opened| Ok(opened.lines.looked_at() + opened.turns.looked_at())).unwrap()
}

/// All lines that are wanted, newest first, and how many were looked at.
fn query(disk: &Disk, filter: &LogFilter) -> (Vec<LogEntry>, usize) {
    let before = looked_at(disk);
    let query = LogQuery { filter: filter.clone(), limit: usize::MAX, ..LogQuery::default() };
    let page = disk.query(&query, usize::MAX).unwrap();
    assert_eq!(page.cursor, None);
    (page.logs, looked_at(disk) - before)
}

/// A log, and what must be in it.
struct Both {
    folder: tempfile::TempDir,
    ring: Ring,
    disk: Disk,
    next: u64,
    numbers: Numbers,
    clock_ms: i64,
    written: usize,
    /// Time, level and message, the oldest one first.
    lines: VecDeque<(i64, LogLevel, String)>,
    turns: VecDeque<(i64, usize)>,
}

impl Both {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ring = Ring { lines_max: 500, bytes_max: usize::MAX, turns_max: 150 };
        let (disk, next) = Disk::open(&folder.path().join("log"), ring).unwrap();
        let (lines, turns) = (VecDeque::new(), VecDeque::new());
        Self { folder, ring, disk, next, numbers: Numbers(seed), clock_ms: BEGIN_MS, written: 0, lines, turns }
    }

    fn set_clock(&mut self) {
        let days = self.numbers.ms_below(10 * DAY_MS);
        self.clock_ms = match self.numbers.below(5) {
            0 => self.clock_ms + days,
            1 => self.clock_ms - days,
            // A box without a clock begins here, and a wrong one may be anywhere.
            2 => 0,
            3 => -5_000,
            _ => BEGIN_MS,
        };
    }

    /// A group of lines and turns.
    fn write(&mut self) {
        let mut group = Group::default();
        for _ in 0..=self.numbers.below(80) {
            if self.numbers.is_one_in(100) {
                self.set_clock();
            }
            self.clock_ms += self.numbers.ms_below(20_000);
            let level = match self.numbers.below(60) {
                0 => LogLevel::Error,
                1 | 2 => LogLevel::Warn,
                _ => LogLevel::Info,
            };
            // What was written before 1970 counts as of then.
            let wall_ms = self.clock_ms.max(0);
            let message = format!("line {}", self.written);
            group.lines.push(line(self.clock_ms, level, &message));
            self.lines.push_back((wall_ms, level, message));
            if self.numbers.is_one_in(4) {
                group.turns.push((self.clock_ms, turn(self.written)));
                self.turns.push_back((wall_ms, self.written));
            }
            self.written += 1;
        }
        self.disk.append(&group, &mut self.next).unwrap();
        while self.lines.len() as u64 > self.ring.lines_max {
            self.lines.pop_front();
        }
        while self.turns.len() as u64 > self.ring.turns_max {
            self.turns.pop_front();
        }
    }

    fn open_again(&mut self) {
        self.disk.close();
        (self.disk, self.next) = Disk::open(&self.folder.path().join("log"), self.ring).unwrap();
    }

    /// Drops the lines before a time.
    fn clear(&mut self) {
        let before_ms = self.time().unwrap_or_default();
        let dropped = self.lines.iter().filter(|(wall_ms, ..)| *wall_ms < before_ms).count();
        let cleared = self.disk.without(|place, _, _| row::wall_ms(place) < before_ms, |_| false).unwrap();
        assert_eq!(cleared, dropped as u64);
        self.lines.retain(|(wall_ms, ..)| *wall_ms >= before_ms);
    }

    /// The time of some line, or one near it.
    fn time(&mut self) -> Option<i64> {
        let at = self.numbers.below(self.lines.len().max(1) as u64) as usize;
        let wall_ms = self.lines.get(at)?.0;
        Some(if self.numbers.is_one_in(2) { wall_ms } else { wall_ms + self.numbers.ms_below(120_000) - 60_000 })
    }

    fn filter(&mut self) -> LogFilter {
        LogFilter {
            level: [None, None, Some(LogLevel::Warn), Some(LogLevel::Error)][self.numbers.below(4) as usize],
            since_wall_ms: if self.numbers.is_one_in(2) { self.time() } else { None },
            before_wall_ms: if self.numbers.is_one_in(3) { self.time() } else { None },
            text: self.numbers.is_one_in(5).then(|| "7".to_owned()),
            ..LogFilter::default()
        }
    }

    /// Page after page holds what the reference has.
    fn check_lines(&mut self) {
        let filter = self.filter();
        let fits = |(wall_ms, level, message): &&(i64, LogLevel, String)| {
            filter.level.is_none_or(|least| *level <= least)
                && filter.since_wall_ms.is_none_or(|since| *wall_ms >= since)
                && filter.before_wall_ms.is_none_or(|before| *wall_ms < before)
                && filter.text.as_ref().is_none_or(|text| message.contains(text))
        };
        let expected: Vec<&str> =
            self.lines.iter().rev().filter(fits).map(|(_, _, message)| message.as_str()).collect();
        let (mut found, mut cursor) = (Vec::new(), None);
        let limit = 5 + self.numbers.below(100) as usize;
        loop {
            let query = LogQuery { filter: filter.clone(), limit, cursor, ..LogQuery::default() };
            let page = self.disk.query(&query, PAGE_BYTES_MAX).unwrap();
            found.extend(page.logs);
            cursor = page.cursor;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(messages(&found), expected, "{filter:?}");
        let (whole, looked_at) = query(&self.disk, &filter);
        assert_eq!(whole, found, "{filter:?}");
        assert!(looked_at <= self.lines.len(), "{filter:?}");
    }

    fn check_turns(&mut self) {
        let (Some(one), Some(other)) = (self.time(), self.time()) else { return };
        let ended = if self.numbers.is_one_in(3) { one..=i64::MAX } else { one.min(other)..=one.max(other) };
        let count = [0, 1, 20, usize::MAX][self.numbers.below(4) as usize];
        let wanted = self.turns.iter().rev().filter(|(wall_ms, _)| ended.contains(wall_ms)).take(count);
        let mut expected: Vec<Value> = wanted.map(|(_, number)| Value::from(*number)).collect();
        expected.reverse();
        assert_eq!(self.disk.turns(&ended, count).unwrap(), expected, "{ended:?} {count}");
    }
}

#[test]
fn queries_find_what_a_look_at_everything_finds() {
    for seed in 0..5 {
        let mut both = Both::new(seed);
        // About three times as many lines as are kept.
        for _ in 0..40 {
            both.write();
            match both.numbers.below(12) {
                0 => both.open_again(),
                1 => both.clear(),
                _ => {}
            }
            for _ in 0..3 {
                both.check_lines();
                both.check_turns();
            }
        }
        both.disk.close();
    }
}

/// A line and a turn a second, with the clock set back by a day in the middle, and right again after a quarter.
fn time(number: usize) -> i64 {
    let set_back = if (2_000..3_000).contains(&number) { DAY_MS } else { 0 };
    BEGIN_MS - set_back + 1_000 * number as i64
}

/// Lines and turns of these times. Lines 500 and 3,500 are errors.
fn four_thousand(folder: &tempfile::TempDir, ring: Ring) -> Disk {
    let (disk, mut next) = Disk::open(&folder.path().join("log"), ring).unwrap();
    for first in (0..4_000).step_by(200) {
        let numbers = first..first + 200;
        let level = |number| if number % 3_000 == 500 { LogLevel::Error } else { LogLevel::Info };
        let lines = numbers.clone().map(|number| line(time(number), level(number), &number.to_string())).collect();
        let turns = numbers.map(|number| (time(number), turn(number))).collect();
        disk.append(&Group { lines, turns }, &mut next).unwrap();
    }
    disk
}

/// The first and the last number that are found, newest first, how many, and how many rows were looked at.
fn found(disk: &Disk, filter: &LogFilter) -> (Option<(String, String)>, usize, usize) {
    let (entries, looked_at) = query(disk, filter);
    let ends = entries.first().zip(entries.last());
    (ends.map(|(first, last)| (first.message.clone(), last.message.clone())), entries.len(), looked_at)
}

#[test]
fn queries_look_at_few_lines_that_they_do_not_want() {
    let folder = tempfile::tempdir().unwrap();
    let ring = Ring { turns_max: 4_000, ..Ring::default() };
    let mut disk = four_thousand(&folder, ring);
    let between = |first: usize, end: usize| LogFilter {
        since_wall_ms: Some(time(first)),
        before_wall_ms: Some(time(end)),
        ..LogFilter::default()
    };
    for _ in ["as it was written", "opened again"] {
        for (filter, newest, oldest, count, in_vain) in [
            // The latest, with nothing newer behind them.
            (LogFilter { since_wall_ms: Some(time(3_990)), ..LogFilter::default() }, 3_999, 3_990, 10, VAIN),
            // Between others, when the clock was right and when it was not.
            (between(1_000, 1_010), 1_009, 1_000, 10, 2 * VAIN),
            (between(2_500, 2_510), 2_509, 2_500, 10, 2 * VAIN),
            // Before everything else by their times, and in the middle by their numbers.
            (LogFilter { before_wall_ms: Some(BEGIN_MS), ..LogFilter::default() }, 2_999, 2_000, 1_000, 2 * VAIN),
            (LogFilter { level: Some(LogLevel::Warn), ..LogFilter::default() }, 3_500, 500, 2, 2 * VAIN),
        ] {
            let (ends, all, looked_at) = found(&disk, &filter);
            assert_eq!((ends, all), (Some((newest.to_string(), oldest.to_string())), count), "{filter:?}");
            assert!((count..=count + in_vain).contains(&looked_at), "{filter:?}: {looked_at} were looked at");
        }
        let tomorrow = LogFilter { since_wall_ms: Some(BEGIN_MS + DAY_MS), ..LogFilter::default() };
        assert_eq!(found(&disk, &tomorrow), (None, 0, 0));
        let error_then = LogFilter { level: Some(LogLevel::Error), ..between(1_000, 1_500) };
        assert_eq!(found(&disk, &error_then), (None, 0, 0));
        disk.close();
        (disk, _) = Disk::open(&folder.path().join("log"), ring).unwrap();
    }
    disk.close();
}

#[test]
fn a_page_further_back_looks_at_nothing_newer() {
    let folder = tempfile::tempdir().unwrap();
    let disk = four_thousand(&folder, Ring { turns_max: 0, ..Ring::default() });
    let mut query = LogQuery { limit: 10, ..LogQuery::default() };
    for newest in [3_999, 3_989, 3_979] {
        let before = looked_at(&disk);
        let page = disk.query(&query, usize::MAX).unwrap();
        assert_eq!((page.logs.len(), page.logs[0].message.as_str()), (10, newest.to_string().as_str()));
        // The one that finds no room.
        assert_eq!(looked_at(&disk) - before, 11);
        query.cursor = page.cursor;
    }
    disk.close();
}

#[test]
fn a_turn_is_found_by_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let disk = four_thousand(&folder, Ring { turns_max: 4_000, ..Ring::default() });
    for number in [0, 1_999, 2_000, 2_500, 3_999] {
        let before = looked_at(&disk);
        assert_eq!(disk.turns(&(time(number)..=time(number)), 9).unwrap(), [Value::from(number)]);
        assert!(looked_at(&disk) - before <= 1 + VAIN, "{number}");
    }
    disk.close();
}

#[test]
fn lines_that_are_gone_are_not_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let ring = Ring { lines_max: 300, turns_max: 0, ..Ring::default() };
    let disk = four_thousand(&folder, ring);
    assert_eq!(found(&disk, &LogFilter::default()), (Some(("3999".to_owned(), "3700".to_owned())), 300, 300));
    let gone = LogFilter { before_wall_ms: Some(time(3_000)), ..LogFilter::default() };
    assert_eq!(found(&disk, &gone), (None, 0, 0));
    let blocks = disk.with(|opened| Ok(opened.lines.blocks_known())).unwrap();
    assert!(blocks <= 12, "{blocks}: those of one group more than are kept");
    assert_eq!(disk.without(|place, _, _| row::wall_ms(place) < time(3_900), |_| false).unwrap(), 200);
    assert_eq!(found(&disk, &LogFilter::default()), (Some(("3999".to_owned(), "3900".to_owned())), 100, 100));
    disk.close();
}

#[test]
fn a_reader_beside_the_writer_sees_whole_groups() {
    const GROUPS: i64 = 60;
    const LINES: usize = 20;
    let folder = tempfile::tempdir().unwrap();
    let (disk, mut next) = Disk::open(&folder.path().join("log"), Ring::default()).unwrap();
    let written = AtomicI64::new(0);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for group in 1..=GROUPS {
                // Each at a time that no block before it has.
                let lines = (0..LINES).map(|_| line(1_000 * group, LogLevel::Info, "")).collect();
                disk.append(&Group { lines, turns: Vec::new() }, &mut next).unwrap();
                written.store(group, Ordering::SeqCst);
            }
        });
        while !writer.is_finished() {
            let stored = written.load(Ordering::SeqCst);
            let filter = LogFilter { since_wall_ms: Some(1_000 * stored), ..LogFilter::default() };
            let (entries, _) = query(&disk, &filter);
            assert_eq!(entries.len() % LINES, 0, "a group is seen as a whole");
            assert!(stored == 0 || entries.len() >= LINES, "what was stored before is seen");
        }
    });
    assert_eq!(query(&disk, &LogFilter::default()).0.len(), LINES * GROUPS as usize);
    disk.close();
}
