//! `get_log_stats`: the gateway's log in numbers.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::{Value, json};

use super::{
    LOGS,
    form::{Inspects, reads, told},
    logs::{LogScope, LogStats, Logs},
    moment,
};
use crate::{
    arguments::{Arguments, Refusal},
    builtin::Definition,
    registry::RunContext,
};

/// Sources and contexts that are named; the others are counted together.
const NAMED_MAX: usize = 100;
/// The name of the others.
const OTHERS: &str = "others";

pub(super) struct GetLogStats(pub(super) Arc<dyn Logs>);

/// The most frequent ones by name, and the others together.
fn frequent(counts: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut sorted: Vec<_> = counts.into_iter().collect();
    sorted.sort_by(|(a_name, a), (b_name, b)| b.cmp(a).then_with(|| a_name.cmp(b_name)));
    let rest: u64 = sorted.iter().skip(NAMED_MAX).map(|(_, count)| count).sum();
    sorted.truncate(NAMED_MAX);
    if rest > 0 {
        sorted.push((OTHERS.to_owned(), rest));
    }
    sorted.into_iter().collect()
}

/// The numbers as the tool returns them.
fn numbers(stats: LogStats) -> Value {
    let mut data = json!({
        "total_logs": stats.total_logs,
        "by_level": stats.by_level,
        "by_source": frequent(stats.by_source),
        "by_context": frequent(stats.by_context),
        "dropped": stats.dropped,
    });
    for (name, wall_ms) in [("oldest_log", stats.oldest_wall_ms), ("newest_log", stats.newest_wall_ms)] {
        if let Some(wall_ms) = wall_ms {
            data[name] = moment::written(wall_ms).into();
        }
    }
    data
}

#[async_trait]
impl Inspects for GetLogStats {
    const CATEGORY: &'static str = LOGS;

    fn definition(&self) -> Definition {
        reads(
            "get_log_stats",
            "Count the gateway's log",
            "Counts the stored lines of the gateway's log by level, source and context, with the times of the oldest and the \
             newest one, and the lines that were dropped since the start.",
        )
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let stats = self.0.stats(LogScope::of(context)).await?;
        let say = format!("The log has {} lines.", stats.total_logs);
        Ok(told(numbers(stats), say))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_names_are_counted_together() {
        let counts = (0..NAMED_MAX + 3).map(|number| (format!("c{number:03}"), if number < 3 { 1 } else { 5 }));
        let named = frequent(counts.collect());
        assert_eq!((named.len(), named[OTHERS], named.get("c000")), (NAMED_MAX + 1, 3, None));
        assert_eq!(frequent(BTreeMap::from([("a".to_owned(), 2)])), BTreeMap::from([("a".to_owned(), 2)]));
    }
}
