//! `memory.restore`: restores the fact that was deleted last.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, WITH_KEY, facts, told};
use crate::{
    arguments::{Arguments, Refusal},
    registry::RunContext,
    spoken,
};

struct MemoryRestore;

inventory::submit! { BuiltIn(&MemoryRestore) }

#[async_trait]
impl Tool for MemoryRestore {
    fn definition(&self) -> Definition {
        Definition {
            name: "memory.restore",
            title: "Bring back what was forgotten",
            description: "Brings back the fact that was forgotten last, within ten minutes.",
            properties: json!({}),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "bring that memory back",
                "bring back (that|the last) memory",
                "(undo forgetting|undo the forgetting|don't forget it after all)",
                "remember (that|it) again",
            ],
            guidance: None,
            flags: ToolFlags { always: false, ..CHANGES },
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        WITH_KEY
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let memory = &context.ports.memory;
        let now_us = facts::now_us(context);
        let Some(text) = memory.last_mentioned.take_forgotten(&context.user, now_us) else {
            let say = "There is nothing that I have just forgotten.";
            return Ok(told(say, "Memory", "Nothing", json!({"restored": null})));
        };
        let fact = match memory.facts.add(&context.user, &text).await {
            Ok(fact) => fact,
            Err(error) => {
                // It can be retried.
                memory.last_mentioned.forget(&context.user, &text, now_us);
                return Err(error.into());
            }
        };
        memory.last_mentioned.mention(&context.user, fact.id, now_us);
        let say = spoken::sentence(&format!("I remember again: {}", facts::short(&fact)));
        Ok(told(say, "Remembered", facts::short(&fact), json!({"restored": facts::describe(context, &fact)})))
    }
}
