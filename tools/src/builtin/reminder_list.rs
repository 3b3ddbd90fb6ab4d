//! `reminder.list`: lists the pending reminders.

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, schedule, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{ITEM_CHARS_MAX, SPOKEN_ITEMS_MAX},
    registry::RunContext,
    reply::cut,
    spoken,
};

struct ReminderList;

inventory::submit! { BuiltIn(&ReminderList) }

#[async_trait]
impl Tool for ReminderList {
    fn definition(&self) -> Definition {
        Definition {
            name: "reminder.list",
            title: "List the reminders",
            description: "Lists the wearer's pending reminders, the next one first.",
            properties: json!({}),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "what are my reminders",
                "(what|which) (are|were) my [upcoming|open|next] reminders",
                "(list|show|read|tell|give|check|open|show me|read me|tell me|give me|read out) [all] [of] [the|my] [upcoming|open] reminders",
                "(what|which) reminders (do i have|are set|are there|have i got|have i set|did i set|are coming up|are open)",
                "(do i have|are there|have i got) (any|some) [upcoming|open] reminders [set|left|today]",
                "what (do i have|did i want|am i supposed) to remember",
                "what (should|do) you remind me (of|about)",
                "what is my next reminder",
                "my reminders",
                "(what|which) alarms (do i have|are set|are there|have i got|have i set|did i set)",
                "(list|show|read|check|show me|read me|tell me) [all] [of] [the|my] alarms",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    fn progress(&self) -> Option<&'static str> {
        Some("Reading your reminders")
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let reminders = schedule::reminders(context).await?;
        let all: Vec<_> = reminders.iter().map(|reminder| schedule::describe(context, reminder)).collect();
        let data = json!({"reminders": all});
        if reminders.is_empty() {
            return Ok(told("You have no reminders.", "Reminders", "None", data));
        }
        let mut say = format!("You have {}.", spoken::count(reminders.len(), "reminder"));
        let mut lines = Vec::new();
        for reminder in reminders.iter().take(SPOKEN_ITEMS_MAX) {
            let text = cut(reminder.entry.kind.text(), ITEM_CHARS_MAX);
            let due = spoken::capitalised(&schedule::due(context, &reminder.entry));
            let line = format!("{due}: {text}");
            say.push(' ');
            say.push_str(&spoken::sentence(&line));
            lines.push(line);
        }
        if reminders.len() > SPOKEN_ITEMS_MAX {
            say.push_str(" The others come later.");
        }
        Ok(told(say, "Reminders", lines.join("\n"), data))
    }
}
