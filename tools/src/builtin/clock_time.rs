//! `clock.time`: what time it is.

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, told};
use crate::{
    arguments::{Arguments, Refusal},
    runner::RunContext,
    spoken,
};

struct ClockTime;

inventory::submit! { BuiltIn(&ClockTime) }

#[async_trait]
impl Tool for ClockTime {
    fn definition(&self) -> Definition {
        Definition {
            name: "clock.time",
            description: "Tells the wearer's local time.",
            properties: json!({}),
            required: &[],
            phrases: &[
                "what time is it [(now|right now|please)]",
                "[(tell|give) me] [what is] the [current] time [please]",
                "(what is|what's) the [current] time [(now|right now|please)]",
                "(do you have|have you got|you got) the time",
                "[(can|could) you] tell me (the|what) time [it is] [please]",
                "how late is it",
                "current time",
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
