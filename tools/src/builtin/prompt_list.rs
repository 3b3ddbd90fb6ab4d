//! `prompt.list`: the wearer's standing instructions.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, WEARER_ONLY, facts, told};
use crate::{
    arguments::{Arguments, Refusal},
    registry::RunContext,
    spoken,
};

struct PromptList;

inventory::submit! { BuiltIn(&PromptList) }

#[async_trait]
impl Tool for PromptList {
    fn definition(&self) -> Definition {
        Definition {
            name: "prompt.list",
            title: "List the standing instructions",
            description: "Lists the wearer's standing instructions, newest first.",
            properties: json!({}),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "what are my instructions",
                "(what|which) [standing] instructions (do you have|have i given you|do you follow)",
                "what are my standing instructions",
                "(list|read|read me|show|show me) [all] [the|my] [standing] instructions",
            ],
            guidance: None,
            flags: ToolFlags { always: false, ..READ_ONLY },
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        WEARER_ONLY
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let all = context.ports.memory.instructions.list(&context.user).await?;
        let listed: Vec<_> = all.iter().map(|kept| facts::describe(context, kept)).collect();
        let data = json!({"instructions": listed});
        if all.is_empty() {
            return Ok(told("You have given me no standing instructions.", "Instructions", "None", data));
        }
        let say = format!("You gave me {}. {}", spoken::count(all.len(), "instruction"), facts::read_out(&all));
        Ok(told(say, "Instructions", facts::lines(&all), data))
    }
}
