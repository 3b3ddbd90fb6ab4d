//! `memory.update`: replaces one fact by another.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, WITH_KEY, facts, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::QUERY_CHARS_MAX,
    matching::Choice,
    memory::FACT_CHARS_MAX,
    registry::RunContext,
    spoken,
};

const ASK: &str = "What is right?";

struct MemoryUpdate;

inventory::submit! { BuiltIn(&MemoryUpdate) }

#[async_trait]
impl Tool for MemoryUpdate {
    fn definition(&self) -> Definition {
        Definition {
            name: "memory.update",
            title: "Correct what was remembered",
            description: "Corrects one remembered fact, named by its id or by all of its telling words; \"last\" is the \
                          one that was spoken of. When several fit, none is changed.",
            properties: json!({
                "id": {"type": "integer", "minimum": 1, "description": "The fact's id."},
                "query": {"type": "string", "description": "Words of the fact, or \"last\".", "examples": ["car"]},
                "text": {"type": "string", "question": ASK, "description": "The fact as it is now.",
                         "examples": ["my car is on level two"]},
            }),
            required: &["text"],
            phrases: &[
                // The first one is what help shows.
                "change that memory to {text} {query=last}",
                "(correct|change|update) (that|the last) memory (to|into) {text} {query=last}",
                "(correct|change|update) what you remember to {text} {query=last}",
                "no remember that {text} {query=last}",
            ],
            guidance: None,
            flags: CHANGES,
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        WITH_KEY
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let text = arguments.text_required("text", FACT_CHARS_MAX, ASK)?;
        let query = arguments.text_optional("query", QUERY_CHARS_MAX)?.unwrap_or_else(|| "last".to_owned());
        let memory = &context.ports.memory;
        let before = match facts::chosen(context, arguments.integer("id"), &query).await? {
            Choice::One(fact) => Some(fact),
            Choice::Several(several) => return Ok(facts::which(context, &several, "Which one should I change")),
            Choice::None => None,
        };
        let changed = match &before {
            Some(before) => memory.facts.change(&context.user, before.id, &text).await?,
            None => None,
        };
        let Some(changed) = changed else {
            let say = "I don't know what to change. Tell me to remember it.";
            return Ok(told(say, "Memory", "Nothing changed", json!({"changed": null})));
        };
        memory.last_mentioned.mention(&context.user, changed.id, facts::now_us(context));
        let say = spoken::sentence(&format!("Changed: {}", facts::short(&changed)));
        let data = json!({
            "changed": facts::describe(context, &changed),
            "before": before.map(|before| before.text),
        });
        Ok(told(say, "Changed", facts::short(&changed), data))
    }
}
