//! `timer.extend`: gives a running timer more time.

use async_trait::async_trait;
use gateway_core::vocab::{Content, OpenEntry, ScheduleKind, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, schedule, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{TIMER_NAME_CHARS_MAX, TIMER_SECONDS_MAX},
    matching::Choice,
    registry::RunContext,
    spoken,
};

const ASK: &str = "How much longer?";

struct TimerExtend;

inventory::submit! { BuiltIn(&TimerExtend) }

#[async_trait]
impl Tool for TimerExtend {
    fn definition(&self) -> Definition {
        Definition {
            name: "timer.extend",
            title: "Extend a timer",
            description: "Extends a running timer: the one with the name, or the only one.",
            properties: json!({
                "id": {"type": "integer", "minimum": 1, "description": "The timer's id, as asked back."},
                "seconds": {"type": "integer", "question": ASK, "description": "Seconds to add, 1 to 86400.", "examples": [300]},
                "name": {"type": "string", "description": "The timer's name. Leave out when there is only one.", "examples": ["pasta"]},
            }),
            required: &["seconds"],
            phrases: &[
                // The first one is what help shows.
                "add {seconds:duration} to the timer",
                "(add|put) [another] {seconds:duration} (to|on) (the|my) timer",
                "(add|put) [another] {seconds:duration} (to|on) (the|my) {name:name} timer",
                "(extend|lengthen|prolong) (the|my) timer [by|for] [another] {seconds:duration}",
                "(extend|lengthen|prolong) (the|my) {name:name} timer [by|for] [another] {seconds:duration}",
                "give (the|my) timer [another] {seconds:duration} [more]",
                "give (the|my) {name:name} timer [another] {seconds:duration} [more]",
                "add [another] {seconds:duration} [to it]",
                "i need {seconds:duration} [more] on (the|my) timer",
                "[i need|give me] {seconds:duration} more",
            ],
            guidance: None,
            flags: CHANGES,
        }
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let seconds = arguments.integer("seconds").unwrap_or(0);
        if seconds < 1 {
            return Err(Refusal::arguments("'seconds' must be at least 1. Ask the wearer how much longer.", ASK));
        }
        let name = arguments.text_optional("name", TIMER_NAME_CHARS_MAX)?;
        let timers = schedule::timers(context).await?;
        if timers.is_empty() {
            return Ok(told("No timers are running.", "Timers", "None", json!({"extended": []})));
        }
        let by_id = arguments.integer("id").map(|id| schedule::by_id(&timers, id));
        let chosen = match (by_id, &name) {
            (Some(Choice::None), _) => return Ok(over()),
            (Some(chosen), _) => chosen,
            (None, Some(name)) => schedule::timer_called(&timers, name),
            (None, None) => Choice::among(timers.clone()),
        };
        let before = match chosen {
            Choice::None => {
                return Ok(schedule::timer_not_found(context, &name.unwrap_or_default(), &timers, "extended"));
            }
            Choice::One(timer) => timer,
            Choice::Several(several) => return Ok(schedule::which_timer(context, &several)),
        };
        let more_ms = seconds.unsigned_abs().saturating_mul(1_000);
        let left_ms = schedule::remaining_ms(context, &before).saturating_add(more_ms);
        if left_ms > TIMER_SECONDS_MAX.unsigned_abs() * 1_000 {
            return Err(Refusal::arguments(
                format!("A timer runs for at most {TIMER_SECONDS_MAX} seconds; use reminder.set."),
                "A timer can run for up to 24 hours. For more, ask me for a reminder.",
            ));
        }
        let extended = context.ports.schedule.extend(&context.user, before.entry.id, more_ms).await?;
        let Some(entry) = extended else {
            return Ok(over());
        };
        let open = OpenEntry { entry, left_ms: Some(left_ms) };
        let title = match &open.entry.kind {
            ScheduleKind::Timer { name: Some(name) } => spoken::capitalised(&format!("{name} timer")),
            _ => "Timer".to_owned(),
        };
        let left = spoken::duration(left_ms.div_ceil(1_000));
        let data = json!({"extended": [schedule::describe(context, &open)]});
        let mut result = told(format!("{title}: {left} left."), &title, "", data);
        result.show = Some(Content::Countdown { title, left_ms: u32::try_from(left_ms).unwrap_or(u32::MAX) });
        Ok(result)
    }
}

fn over() -> ToolResult {
    told("That timer is over.", "Timer", "Over", json!({"extended": []}))
}
