//! What a server writes in addition to its answers: its standard error, and its log. The newest lines are kept for its
//! operator, and those of a failure are written to the gateway's own log.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::reply::cut;

/// Maximum lines kept of one server.
const KEPT_MAX: usize = 200;
/// Maximum bytes kept of a line.
const LINE_BYTES_MAX: usize = 1_024;
/// Maximum lines logged for one failure: the end of a traceback.
const TOLD_MAX: usize = 20;
/// Maximum lines logged per minute: a server that fails with every call must not fill the disk.
const TOLD_PER_MIN: usize = 60;

/// The newest lines that one server wrote, for the operator.
#[derive(Default)]
pub(crate) struct Words(Mutex<Lines>);

#[derive(Default)]
struct Lines {
    lines: VecDeque<Line>,
    /// Number of lines received so far.
    count: u64,
    /// The current minute, and the number of lines logged in it.
    minute: Option<(Instant, usize)>,
}

struct Line {
    at: Instant,
    text: String,
    /// It has been logged, or left out of what was.
    told: bool,
}

impl Words {
    /// Stores a line, from which secrets have been redacted.
    pub(super) fn push(&self, line: &str) {
        let line = cut(line.trim_end(), LINE_BYTES_MAX);
        if line.is_empty() {
            return;
        }
        let mut kept = self.kept();
        if kept.lines.len() >= KEPT_MAX {
            kept.lines.pop_front();
        }
        kept.lines.push_back(Line { at: Instant::now(), text: line, told: false });
        kept.count += 1;
    }

    /// The number of lines received so far: those of a failure come after it.
    pub(super) fn count(&self) -> u64 {
        self.kept().count
    }

    /// The last lines after the first `count` that were not logged before, up to the limit per minute; marks them as
    /// logged. Earlier ones stay for the failure that they belong to, which may be logged later.
    pub(super) fn tell(&self, count: u64) -> Vec<String> {
        let mut kept = self.kept();
        let now = Instant::now();
        let (since, told) = kept.minute.filter(|(since, _)| now - *since < Duration::from_secs(60)).unwrap_or((now, 0));
        let later = usize::try_from(kept.count.saturating_sub(count)).unwrap_or(usize::MAX);
        let before = kept.lines.len().saturating_sub(later);
        let new: Vec<&mut Line> = kept.lines.iter_mut().skip(before).filter(|line| !line.told).collect();
        let wanted = new.len().min(TOLD_MAX).min(TOLD_PER_MIN.saturating_sub(told));
        let left_out = new.len() - wanted;
        let mut lines = Vec::with_capacity(wanted);
        for (at, line) in new.into_iter().enumerate() {
            line.told = true;
            if at >= left_out {
                lines.push(line.text.clone());
            }
        }
        kept.minute = Some((since, told + wanted));
        lines
    }

    /// All stored lines, oldest first: the age of each line, and the line.
    pub(super) fn all(&self) -> Vec<(Duration, String)> {
        let now = Instant::now();
        self.kept().lines.iter().map(|line| (now - line.at, line.text.clone())).collect()
    }

    /// Drops all stored lines.
    pub(super) fn clear(&self) {
        self.kept().lines.clear();
    }

    fn kept(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(words: &Words, lines: std::ops::Range<usize>) {
        lines.for_each(|number| words.push(&format!("line {number}\n")));
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_lines_of_a_failure_are_told_once() {
        let words = Words::default();
        say(&words, 0..3);
        let count = words.count();
        assert_eq!(words.tell(count), Vec::<String>::new(), "nothing of before the failure");
        say(&words, 3..5);
        assert_eq!(words.tell(count), ["line 3", "line 4"]);
        assert_eq!(words.tell(count), Vec::<String>::new(), "not once more");
        say(&words, 5..105);
        let told = words.tell(count);
        assert_eq!((told.len(), told[0].as_str(), told[19].as_str()), (TOLD_MAX, "line 85", "line 104"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_failure_that_is_told_first_takes_nothing_from_an_earlier_one() {
        let words = Words::default();
        let first = words.count();
        say(&words, 0..2);
        let second = words.count();
        say(&words, 2..3);
        assert_eq!(words.tell(second), ["line 2"]);
        assert_eq!(words.tell(first), ["line 0", "line 1"]);
        assert_eq!(words.tell(0), Vec::<String>::new());
    }

    #[tokio::test]
    async fn lines_that_were_dropped_are_not_told_and_later_ones_are() {
        let words = Words::default();
        let before = words.count();
        say(&words, 0..3);
        words.clear();
        assert!(words.all().is_empty() && words.tell(before).is_empty());
        let after = words.count();
        say(&words, 3..5);
        assert_eq!(words.tell(after), ["line 3", "line 4"]);
    }

    #[tokio::test(start_paused = true)]
    async fn as_much_is_told_in_a_minute_as_may_be() {
        let words = Words::default();
        let mut told = 0;
        for round in 0..10 {
            say(&words, round * 10..round * 10 + 10);
            told += words.tell(0).len();
        }
        assert_eq!(told, TOLD_PER_MIN);
        tokio::time::advance(Duration::from_secs(60)).await;
        say(&words, 0..10);
        assert_eq!(words.tell(0).len(), 10);
    }

    #[tokio::test]
    async fn as_much_is_kept_as_may_be() {
        let words = Words::default();
        say(&words, 0..KEPT_MAX + 5);
        words.push(&"x".repeat(10_000));
        words.push("\n");
        let all = words.all();
        assert_eq!((all.len(), all[0].1.as_str()), (KEPT_MAX, "line 6"));
        assert!(all[KEPT_MAX - 1].1.len() <= LINE_BYTES_MAX, "{}", all[KEPT_MAX - 1].1.len());
    }
}
