//! `timer.list`: lists the running timers with their remaining time.

use async_trait::async_trait;
use gateway_core::vocab::{ScheduleKind, ToolResult};
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, schedule, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{SPOKEN_ITEMS_MAX, TIMER_NAME_CHARS_MAX},
    matching::Choice,
    registry::RunContext,
    spoken,
};

struct TimerList;

inventory::submit! { BuiltIn(&TimerList) }

#[async_trait]
impl Tool for TimerList {
    fn definition(&self) -> Definition {
        Definition {
            name: "timer.list",
            title: "List the timers",
            description: "Lists the running timers and how much time each has left: all, or those of a name.",
            properties: json!({
                "name": {"type": "string", "question": false, "description": "The timer's name. Leave out for all.", "examples": ["pasta"]},
            }),
            required: &[],
            phrases: &[
                "how long [is] (left|remaining) [on (the|my) timer]",
                "how much time is left [on (the|my) (timer|timers|clock)]",
                "how much time (do i have|have i got|remains) [left] [on (the|my) timer]",
                "how (long|much longer|much time) [is] [left] (on|for|until|till) (the|my) timer [is done|is up|ends|goes off]",
                "how long (does|do) (the|my) (timer|timers) have [left|to go]",
                "how much [longer|time] (does|do) (the|my) (timer|timers) have [left]",
                "(what is|what has) left on (the|my) timer",
                "(list|show|read|check|tell|give|tell me about|tell me|show me|read me) [all] [of] [the|my] [running|active] (timers|timer)",
                "(what|which) timers (are|do i have) [there] [running|active|set|going|on]",
                "(what|which) timers have i [got|set]",
                "(do i have|are there|have i got|have i set) (any|a) [active|running] (timers|timer) [running|set|going|active|on]",
                "is (there|the|my) (a timer|any timer|timer) [still] (running|active|set|on|going)",
                "how (is|are) (the|my) (timer|timers) [doing|going]",
                "[what is the] (timer|timers) status",
                "[what is the] status of (the|my) (timer|timers)",
                "when (does|will) (the|my) timer (end|finish|stop|ring|go off|expire|be done)",
                "when is (the|my) timer (done|over|up|finished)",
                "my timers",
                "how (long|much longer|much time) [is] [left] (on|for|until|till) (the|my) {name:name} timer [is done|is up|ends|goes off]",
                "how much [longer|time] does (the|my) {name:name} timer have [left]",
                "when (does|will) (the|my) {name:name} timer (end|finish|stop|ring|go off|expire|be done)",
                "when is (the|my) {name:name} timer (done|over|up|finished)",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    fn progress(&self) -> Option<&'static str> {
        Some("Looking at your timers")
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let mut timers = schedule::timers(context).await?;
        if let Some(name) = arguments.text_optional("name", TIMER_NAME_CHARS_MAX)?.filter(|_| !timers.is_empty()) {
            timers = match schedule::timer_called(&timers, &name) {
                Choice::None => return Ok(schedule::timer_not_found(context, &name, &timers, "timers")),
                Choice::One(timer) => vec![timer],
                Choice::Several(several) => several,
            };
        }
        let all: Vec<_> = timers.iter().map(|timer| schedule::describe(context, timer)).collect();
        let data = json!({"timers": all});
        let left = |timer| {
            let seconds = schedule::remaining_seconds(context, timer);
            format!("has {} left", spoken::duration(seconds))
        };
        let say = match timers.as_slice() {
            [] => "No timers are running.".to_owned(),
            [only] if only.entry.kind == (ScheduleKind::Timer { name: None }) => format!("Your timer {}.", left(only)),
            [only] => format!("The {} {}.", schedule::timer_name(&only.entry), left(only)),
            several => {
                let parts: Vec<_> = several
                    .iter()
                    .take(SPOKEN_ITEMS_MAX)
                    .map(|timer| format!("the {} {}", schedule::timer_name(&timer.entry), left(timer)))
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
                format!("{left} {}", timer.entry.kind.text()).trim_end().to_owned()
            })
            .collect();
        let shown = if lines.is_empty() { "None".to_owned() } else { lines.join("\n") };
        Ok(told(say, "Timers", shown, data))
    }
}
