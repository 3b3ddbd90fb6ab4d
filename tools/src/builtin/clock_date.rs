//! `clock.date`: the current date.

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, told};
use crate::{
    arguments::{Arguments, Refusal},
    registry::RunContext,
    spoken,
};

struct ClockDate;

inventory::submit! { BuiltIn(&ClockDate) }

#[async_trait]
impl Tool for ClockDate {
    fn definition(&self) -> Definition {
        Definition {
            name: "clock.date",
            title: "Tell the date",
            description: "Tells today's date and day of the week where the wearer is.",
            properties: json!({}),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "what day is it today",
                "what (day|date) is it [today]",
                "what (day|date) is [it] today",
                "which (day|date) is [it] today",
                "which (day|date) is it [today]",
                "what is (the|today's) (date|day) [today]",
                "(tell|give|show) me (the|today's) (date|day)",
                "(tell me|do you know) what (day|date) it is [today]",
                "what day of the (week|month) is it [today]",
                "what day of the (week|month) is today",
                "(what|which) (day|date) [of the week] do we have [today]",
                "what is the (day of the week|weekday) [today]",
                "is (it|today) [a] (monday|tuesday|wednesday|thursday|friday|saturday|sunday) [today]",
                "today's date",
                "the date today",
                "current date",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    fn progress(&self) -> Option<&'static str> {
        Some("Looking up the date")
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let today = spoken::now(&*context.ports.clock).date();
        let say = today.strftime("Today is %A, %B %-d, %Y.").to_string();
        let title = today.strftime("%A").to_string();
        let show = today.strftime("%B %-d, %Y").to_string();
        let data = json!({"date": today.to_string(), "weekday": title});
        Ok(told(say, &title, show, data))
    }
}
