//! `reminder.cancel`: removes a reminder, or all of them.

use async_trait::async_trait;
use gateway_core::vocab::{OpenEntry, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, reminder_set::is_alarm, schedule, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{ITEM_CHARS_MAX, QUERY_CHARS_MAX},
    matching::{self, Choice},
    registry::RunContext,
    reply::cut,
    spoken,
};

struct ReminderCancel;

inventory::submit! { BuiltIn(&ReminderCancel) }

#[async_trait]
impl Tool for ReminderCancel {
    fn definition(&self) -> Definition {
        Definition {
            name: "reminder.cancel",
            title: "Cancel a reminder",
            description: "Drops pending reminders: the one about the text, the only one, or all.",
            properties: json!({
                "id": {"type": "integer", "minimum": 1, "description": "The reminder's id, as asked back."},
                "text": {"type": "string", "description": "Words of the reminder. Leave out when there is only one.", "examples": ["the oven"]},
                "all": {"type": "boolean", "description": "Drop all reminders."},
                "alarm": {"type": "boolean", "description": "Only alarms, which wake the wearer and have no other text."},
            }),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "cancel the reminder to {text:name}",
                "(cancel|delete|remove|clear|forget|drop|stop|dismiss) {all=true} (all|every|each) [of] [the|my] [pending] (reminders|reminder)",
                "(cancel|delete|remove|clear|forget|drop|stop|dismiss) {all=true} (the|my) reminders",
                "(cancel|delete|remove|clear|forget|drop|stop|dismiss) (the|my|that|this) [last|next] reminder",
                "(cancel|delete|remove|clear|forget|drop|stop|dismiss) (the|my|that) reminder (about|to|for|that|of|called) [the|my] {text:name}",
                "(cancel|delete|remove|clear|forget|drop|stop|dismiss) (the|my) {text:name} reminder",
                "(do not|don't) remind me (about|to|of) [the] {text:name}",
                "(cancel|delete|remove|clear|stop|turn off|switch off|dismiss) {alarm=true} [the|my|that] alarm",
                "(turn|switch) {alarm=true} (the|my) alarm off",
            ],
            guidance: None,
            flags: CHANGES,
        }
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let mut reminders = schedule::reminders(context).await?;
        let alarms = arguments.flag("alarm");
        reminders.retain(|reminder| !alarms || is_alarm(reminder.entry.kind.text()));
        if reminders.is_empty() {
            // "An alarm in 20 minutes" is a timer.
            let say = match alarms {
                false => "You have no reminders.",
                true if schedule::timers(context).await?.is_empty() => "You have no alarms.",
                true => "You have no alarms. To end a timer, say: cancel the timer.",
            };
            return Ok(told(say, "Reminders", "None", json!({"cancelled": null})));
        }
        if arguments.flag("all") {
            return cancel_all(context, &reminders).await;
        }
        let by_id = arguments.integer("id").map(|id| schedule::by_id(&reminders, id));
        let chosen = match arguments.text_optional("text", QUERY_CHARS_MAX)? {
            Some(text) => match by_id
                .unwrap_or_else(|| matching::choose(reminders, &text, |reminder| reminder.entry.kind.text()))
            {
                Choice::None => {
                    let text = cut(&text, ITEM_CHARS_MAX);
                    let say = format!("I don't find a reminder about {text}.");
                    let data = json!({"cancelled": null});
                    return Ok(told(say, "Reminder", "Not found", data));
                }
                Choice::One(reminder) => reminder,
                Choice::Several(several) => return Ok(which(context, &several)),
            },
            None => match by_id.unwrap_or_else(|| Choice::among(reminders)) {
                Choice::None => return Ok(over()),
                Choice::One(reminder) => reminder,
                Choice::Several(several) => return Ok(which(context, &several)),
            },
        };
        if !schedule::remove(context, &chosen).await? {
            return Ok(over());
        }
        let text = cut(chosen.entry.kind.text(), ITEM_CHARS_MAX);
        let say = spoken::sentence(&format!("Reminder cancelled: {text}"));
        let data = json!({"cancelled": schedule::describe(context, &chosen)});
        Ok(told(say, "Reminder cancelled", text, data))
    }
}

fn over() -> ToolResult {
    told("That reminder is already over.", "Reminder", "Over", json!({"cancelled": null}))
}

async fn cancel_all(context: &RunContext, reminders: &[OpenEntry]) -> Result<ToolResult, Refusal> {
    let mut cancelled = Vec::new();
    for reminder in reminders {
        if schedule::remove(context, reminder).await? {
            cancelled.push(schedule::describe(context, reminder));
        }
    }
    let say = format!("{} cancelled.", spoken::capitalised(&spoken::count(cancelled.len(), "reminder")));
    let shown = format!("{} cancelled", cancelled.len());
    Ok(told(say, "Reminders", shown, json!({"cancelled": cancelled})))
}

fn which(context: &RunContext, reminders: &[OpenEntry]) -> ToolResult {
    let names: Vec<String> = reminders
        .iter()
        .map(|reminder| {
            let text = cut(reminder.entry.kind.text(), ITEM_CHARS_MAX);
            format!("{text} {}", schedule::due(context, &reminder.entry))
        })
        .collect();
    schedule::ask_which(context, "Which reminder?", &names, reminders)
}
