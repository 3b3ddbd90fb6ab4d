//! `timer.set`: starts a countdown.

use async_trait::async_trait;
use gateway_core::vocab::{Content, Due, OpenEntry, ScheduleKind, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, schedule, told};
use crate::{
    arguments::{Arguments, Refusal, clean},
    limits::{TIMER_NAME_CHARS_MAX, TIMER_SECONDS_MAX},
    registry::RunContext,
    spoken,
};

const ASK: &str = "For how long?";

struct TimerSet;

inventory::submit! { BuiltIn(&TimerSet) }

#[async_trait]
impl Tool for TimerSet {
    fn definition(&self) -> Definition {
        Definition {
            name: "timer.set",
            title: "Set a timer",
            description: "Starts a timer that rings after a length of time, at most 24 hours. \
                          For a clock time or a thing to be reminded of, use reminder.set.",
            properties: json!({
                "seconds": {"type": "integer", "question": ASK, "description": "Length in seconds, 1 to 86400.", "examples": [600]},
                "name": {"type": "string", "description": "What it is for, in a word or two, without the word timer.", "examples": ["pasta"]},
            }),
            required: &["seconds"],
            phrases: &[
                // The first one is what help shows.
                "set a timer for {seconds:duration}",
                "(set|start|make|create|put|add|run|begin|give me|set me|start me|make me|i need|i want|can i have|can i get|could i have|get me) [a|an|the|my|another] [new] timer [on|going|running] [for|of|to|at|with] {seconds:duration}",
                "(set|start|make|create|put|add|run|begin|give me|set me|start me|make me|i need|i want|can i have|can i get|could i have|get me) [a|an|the|another] [new] {seconds:duration} [long] timer",
                "(set|start|make|create|put|add|give me|set me|i need|i want|can i have|can i get|could i have) [a|an|the|another] [new] {seconds:duration} timer (for|called|named) [the|my] {name:name}",
                "(set|start|make|create|put|add|give me|set me|i need|i want|can i have|can i get|could i have) [a|an|the|another] [new] {seconds:duration} {name:name} timer",
                "(set|start|make|create|put|add|give me|set me|i need|i want|can i have|can i get|could i have) [a|an|the|another] [new] {name:name} timer [on] (for|of|to) {seconds:duration}",
                "(set|start|make|create|put|add|give me|set me|i need|i want|can i have|can i get|could i have) [a|an|the|another] [new] timer (called|named) {name:name} (for|of|to) {seconds:duration}",
                "(set|start|make|create|put|add|give me|set me|i need|i want|can i have|can i get|could i have) [a|an|the|another] [new] timer [on] (for|of|to) {seconds:duration} (for|called|named) [the|my] {name:name}",
                "(set|start|make|create|put|add|give me|set me|i need|i want|can i have|can i get|could i have) [a|an|the|another] [new] timer for [the|my] {name:name} (for|of|to) {seconds:duration}",
                "[new|another] timer [for|of] {seconds:duration}",
                "[a|another] {seconds:duration} timer",
                "{name:name} timer for {seconds:duration}",
                "give me {seconds:duration} on the timer",
                "(set|start|make|give me|set me|i need) [a|an|the] alarm (for|in) {seconds:duration}",
                "time {seconds:duration} for me",
                "(set|start|begin|do|give me) [a] countdown [of|from|for|with] {seconds:duration}",
                "(set|start|begin|do|give me) [a] {seconds:duration} countdown",
                "(countdown|count down) [from|for] {seconds:duration}",
            ],
            guidance: None,
            flags: CHANGES,
        }
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let seconds = arguments.integer("seconds").unwrap_or(0);
        if seconds < 1 {
            return Err(Refusal::arguments("'seconds' must be at least 1. Ask the wearer how long.", ASK));
        }
        if seconds > TIMER_SECONDS_MAX {
            return Err(Refusal::arguments(
                format!("'seconds' must be at most {TIMER_SECONDS_MAX}; use reminder.set."),
                "A timer can run for up to 24 hours. For more, ask me for a reminder.",
            ));
        }
        let name = arguments.text_optional("name", TIMER_NAME_CHARS_MAX)?.map(|name| bare_name(&name));
        let name = name.filter(|name| !name.is_empty());
        schedule::check_room(context).await?;
        let seconds = seconds.unsigned_abs();
        let due = Due::In { duration_ms: seconds * 1_000 };
        let entry = context.ports.schedule.add(&context.user, due, ScheduleKind::Timer { name: name.clone() }).await?;
        let open = OpenEntry { entry, left_ms: None };
        let title = name.map_or_else(|| "Timer".to_owned(), |name| spoken::capitalised(&format!("{name} timer")));
        let say = format!("{title} set for {}.", spoken::exact_duration(seconds));
        let data = schedule::describe(context, &open);
        let mut result = told(say, &title, "", data);
        let left_ms = u32::try_from(schedule::remaining_ms(context, &open)).unwrap_or(u32::MAX);
        result.show = Some(Content::Countdown { title, left_ms });
        Ok(result)
    }
}

/// The name without an article and the word "timer": "my pasta timer" becomes "pasta".
fn bare_name(name: &str) -> String {
    let mut words: Vec<&str> = name.split(' ').collect();
    while let [first, _, ..] = words.as_slice()
        && ["a", "an", "the", "my"].contains(&first.to_lowercase().as_str())
    {
        words.remove(0);
    }
    if words.last().is_some_and(|last| last.eq_ignore_ascii_case("timer")) {
        words.pop();
    }
    clean(&words.join(" "))
}
