//! The numbers of the stored lines, kept beside them.

use std::collections::BTreeMap;

use tools::inspection::logs::{LogLevel, LogStats};

/// How many lines there are, and of which kinds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) lines: u64,
    /// Of keys and values.
    pub(super) bytes: usize,
    by_level: BTreeMap<LogLevel, u64>,
    by_source: BTreeMap<String, u64>,
    by_context: BTreeMap<String, u64>,
}

/// What is counted of a line.
pub(super) struct Counted<'l> {
    pub(super) bytes: usize,
    pub(super) level: LogLevel,
    pub(super) source: &'l str,
    pub(super) context: &'l str,
}

impl Counts {
    pub(super) fn add(&mut self, line: &Counted<'_>) {
        self.lines += 1;
        self.bytes += line.bytes;
        *self.by_level.entry(line.level).or_default() += 1;
        add(&mut self.by_source, line.source);
        add(&mut self.by_context, line.context);
    }

    pub(super) fn remove(&mut self, line: &Counted<'_>) {
        self.lines = self.lines.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(line.bytes);
        if let Some(count) = self.by_level.get_mut(&line.level) {
            *count = count.saturating_sub(1);
        }
        remove(&mut self.by_source, line.source);
        remove(&mut self.by_context, line.context);
    }

    /// As the tools have them, without what is not counted here.
    pub(super) fn stats(&self) -> LogStats {
        let levels = LogLevel::ALL.into_iter();
        LogStats {
            total_logs: self.lines,
            by_level: levels
                .map(|level| (level.name().to_owned(), self.by_level.get(&level).copied().unwrap_or_default()))
                .collect(),
            by_source: self.by_source.clone(),
            by_context: self.by_context.clone(),
            ..LogStats::default()
        }
    }
}

fn add(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(counts.insert(name.to_owned(), 1)),
    }
}

fn remove(counts: &mut BTreeMap<String, u64>, name: &str) {
    if let Some(count) = counts.get_mut(name) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(name);
        }
    }
}
