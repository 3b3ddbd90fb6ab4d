//! `timer.cancel`: stops one timer or all of them.

use async_trait::async_trait;
use gateway_core::vocab::{OpenEntry, ScheduleKind, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, schedule, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::TIMER_NAME_CHARS_MAX,
    matching::Choice,
    registry::RunContext,
    spoken,
};

struct TimerCancel;

inventory::submit! { BuiltIn(&TimerCancel) }

#[async_trait]
impl Tool for TimerCancel {
    fn definition(&self) -> Definition {
        Definition {
            name: "timer.cancel",
            title: "Cancel a timer",
            description: "Stops a running timer: the one with the name or the length, the only one, or all.",
            properties: json!({
                "id": {"type": "integer", "minimum": 1, "description": "The timer's id, as asked back."},
                "name": {"type": "string", "description": "The timer's name. Leave out when there is only one.", "examples": ["pasta"]},
                "seconds": {"type": "integer", "description": "The length in seconds with which it was set, of a timer without a name.", "examples": [600]},
                "all": {"type": "boolean", "description": "Stop all timers."},
            }),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "cancel the timer",
                "(cancel|stop|delete|remove|clear|end|kill|turn off|switch off|dismiss) {all=true} (all|every|each|all of|all the|all my|all of the|all of my) [running|active] (timers|timer)",
                "(cancel|stop|delete|remove|clear|end|kill|dismiss) {all=true} (the|my) timers",
                "(turn|switch) {all=true} all [of] [the|my] timers off",
                "(cancel|stop|delete|remove|clear|end|kill|turn off|switch off|dismiss|abort) [the|my|this|that] [running|current|last] timer",
                "(turn|switch) (the|my) timer off",
                "(cancel|stop|delete|remove|clear|end|kill|turn off|switch off|dismiss|abort) (the|my) {name:name} timer",
                "(turn|switch) (the|my) {name:name} timer off",
                // Without "abort", which "about" resembles: a length is evidence enough for "what about the ten minute timer".
                "(cancel|stop|delete|remove|clear|end|kill|turn off|switch off|dismiss) (the|my) {seconds:duration} timer",
                "(turn|switch) (the|my) {seconds:duration} timer off",
                "(cancel|stop|delete|remove|clear|end|turn off|switch off|dismiss|abort) (the|my) timer (called|named|for) [the|my] {name:name}",
                "(cancel|stop|delete|remove|clear|end|turn off|switch off|dismiss) (the|my) timer (of|for) {seconds:duration}",
            ],
            guidance: None,
            flags: CHANGES,
        }
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let timers = schedule::timers(context).await?;
        if timers.is_empty() {
            let data = json!({"cancelled": []});
            return Ok(told("No timers are running.", "Timers", "None", data));
        }
        let name = arguments.text_optional("name", TIMER_NAME_CHARS_MAX)?;
        let seconds = arguments.integer("seconds").map(|seconds| u64::try_from(seconds).unwrap_or(0));
        let by_id = arguments.integer("id").map(|id| schedule::by_id(&timers, id));
        let (wanted, chosen) = match (arguments.flag("all"), by_id, name, seconds) {
            (true, ..) => return cancel_all(context, &timers).await,
            (false, Some(Choice::None), ..) => return Ok(over()),
            (false, Some(chosen), ..) => (String::new(), chosen),
            (false, None, Some(name), _) => {
                let chosen = schedule::timer_called(&timers, &name);
                (name, chosen)
            }
            (false, None, None, Some(seconds)) => {
                (spoken::duration_adjective(seconds), schedule::timer_of_length(&timers, seconds))
            }
            (false, None, None, None) => (String::new(), Choice::among(timers.clone())),
        };
        let chosen = match chosen {
            Choice::None => return Ok(schedule::timer_not_found(context, &wanted, &timers, "cancelled")),
            Choice::One(timer) => timer,
            Choice::Several(several) => return Ok(schedule::which_timer(context, &several)),
        };
        let data = json!({"cancelled": [schedule::describe(context, &chosen)]});
        if !schedule::remove(context, &chosen).await? {
            return Ok(over());
        }
        let say = if chosen.entry.kind == (ScheduleKind::Timer { name: None }) {
            "Timer cancelled.".to_owned()
        } else {
            spoken::capitalised(&format!("{} cancelled.", schedule::timer_name(&chosen.entry)))
        };
        Ok(told(say, "Timer", "Cancelled", data))
    }
}

fn over() -> ToolResult {
    told("That timer is already over.", "Timer", "Over", json!({"cancelled": []}))
}

async fn cancel_all(context: &RunContext, timers: &[OpenEntry]) -> Result<ToolResult, Refusal> {
    let mut cancelled = Vec::new();
    for timer in timers {
        if schedule::remove(context, timer).await? {
            cancelled.push(schedule::describe(context, timer));
        }
    }
    let say = match cancelled.len() {
        0 => "No timers are running.".to_owned(),
        1 => "Timer cancelled.".to_owned(),
        n => format!("{} cancelled.", spoken::count(n, "timer")),
    };
    let shown = format!("{} cancelled", cancelled.len());
    Ok(told(say, "Timers", shown, json!({"cancelled": cancelled})))
}
