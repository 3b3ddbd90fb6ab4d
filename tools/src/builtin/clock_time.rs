//! `clock.time`: the current time.

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, told};
use crate::{
    arguments::{Arguments, Refusal},
    registry::RunContext,
    spoken,
};

struct ClockTime;

inventory::submit! { BuiltIn(&ClockTime) }

#[async_trait]
impl Tool for ClockTime {
    fn definition(&self) -> Definition {
        Definition {
            name: "clock.time",
            title: "Tell the time",
            description: "Tells the wearer's local time.",
            properties: json!({}),
            required: &[],
            phrases: &[
                "what time is it",
                "what (is|'s) the [current|exact] time",
                "(tell|give|show) me the [current] time",
                "(tell me|do you know) what time it is",
                "do you have the time",
                "have you got the time",
                "how late is it",
                "what hour is it",
                "[check] the [current] time",
                "current time",
                "time check",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    fn progress(&self) -> Option<&'static str> {
        Some("Reading the clock")
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let now = spoken::now(&*context.ports.clock);
        let hours = context.ports.style.hours;
        let say = format!("It's {}.", spoken::time(now.time(), hours));
        let show = spoken::time_digits(now.time(), hours);
        let data = json!({
            "time": now.strftime("%H:%M").to_string(),
            "utc_offset": now.strftime("%:z").to_string(),
        });
        Ok(told(say, "Time", show, data))
    }
}
