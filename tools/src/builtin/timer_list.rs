//! `timer.list`: which timers run, and what is left of them.

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, schedule, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::SPOKEN_ITEMS_MAX,
    ports::EntryKind,
    runner::RunContext,
    spoken,
};

struct TimerList;

inventory::submit! { BuiltIn(&TimerList) }

#[async_trait]
impl Tool for TimerList {
    fn definition(&self) -> Definition {
        Definition {
            name: "timer.list",
            description: "Lists the running timers and how much time each has left.",
            properties: json!({}),
            required: &[],
            phrases: &[
                "how (much time|long) (is|do I have|have I got) left [on (my|the) (timer|timers)]",
                "how (much|long) (is|time is) left on (my|the) (timer|timers)",
                "(list|show|check|read) [me] [all] [of] [(my|the)] (timer|timers) [please]",
                "(what|which) timers (are running|are set|are there|do I have [running])",
                "(do I have|are there|have I got) any timers [running]",
                "how (is|are) (my|the) (timer|timers) doing",
                "when (is|does) (my|the) timer (done|up|over|finished|ring|end|go off)",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    async fn run(
        &self,
        context: &RunContext,
        _arguments: Arguments<'_>,
    ) -> Result<ToolResult, Refusal> {
        let timers = schedule::entries(context, EntryKind::Timer).await?;
        let all: Vec<_> = timers
            .iter()
            .map(|timer| schedule::describe(context, timer))
            .collect();
        let data = json!({"timers": all});
        let left = |timer| {
            let seconds = schedule::remaining_seconds(context, timer);
            format!("has {} left", spoken::duration(seconds))
        };
        let say = match timers.as_slice() {
            [] => "No timers are running.".to_owned(),
            [only] if only.text.is_empty() => format!("Your timer {}.", left(only)),
            [only] => format!("The {} {}.", schedule::timer_name(only), left(only)),
            several => {
                let parts: Vec<_> = several
                    .iter()
                    .take(SPOKEN_ITEMS_MAX)
                    .map(|timer| format!("the {} {}", schedule::timer_name(timer), left(timer)))
                    .collect();
                let count = spoken::count(several.len(), "timer");
                let parts = spoken::capitalised(&spoken::list(&parts));
                format!("You have {count}. {parts}.")
            }
        };
        let lines: Vec<_> = timers
            .iter()
            .take(SPOKEN_ITEMS_MAX)
            .map(|timer| {
                let left = spoken::countdown(schedule::remaining_seconds(context, timer));
                format!("{left} {}", timer.text).trim_end().to_owned()
            })
            .collect();
        let shown = if lines.is_empty() {
            "None".to_owned()
        } else {
            lines.join("\n")
        };
        Ok(told(say, "Timers", shown, data))
    }
}
