//! `memory.get`: reads one fact by its number.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, WITH_KEY, facts, told};
use crate::{
    arguments::{Arguments, Refusal},
    registry::RunContext,
    spoken,
};

struct MemoryGet;

inventory::submit! { BuiltIn(&MemoryGet) }

#[async_trait]
impl Tool for MemoryGet {
    fn definition(&self) -> Definition {
        Definition {
            name: "memory.get",
            title: "Recall one thing",
            description: "Gets one remembered fact by its id, as list and search give it.",
            properties: json!({
                "id": {"type": "integer", "minimum": 1, "description": "The fact's id.", "examples": [5]},
            }),
            required: &["id"],
            phrases: &[
                // The first one is what help shows.
                "read memory number {id:number}",
                "(read|show|show me|get|open) [the] memory [number] {id:number}",
                "what (is|does) memory [number] {id:number} [say]",
            ],
            guidance: None,
            flags: ToolFlags { always: false, ..READ_ONLY },
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        WITH_KEY
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let id = arguments.integer("id").and_then(|id| u64::try_from(id).ok()).unwrap_or(0);
        let Some(fact) = context.ports.memory.facts.get(&context.user, id).await? else {
            let say = format!("There is no memory number {id}.");
            return Ok(told(say, "Memory", "Nothing", json!({"fact": null})));
        };
        context.ports.memory.last_mentioned.mention(&context.user, fact.id, facts::now_us(context));
        let say = spoken::sentence(&spoken::capitalised(&fact.text));
        Ok(told(say, "Memory", facts::short(&fact), json!({"fact": facts::describe(context, &fact)})))
    }
}
