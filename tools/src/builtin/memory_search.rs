//! `memory.search`: finds facts by words.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolResult};
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, WITH_KEY, facts, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{ITEM_CHARS_MAX, NOTES_LISTED_MAX, QUERY_CHARS_MAX},
    registry::RunContext,
    reply::cut,
};

const ASK: &str = "What should I look for?";

struct MemorySearch;

inventory::submit! { BuiltIn(&MemorySearch) }

#[async_trait]
impl Tool for MemorySearch {
    fn definition(&self) -> Definition {
        Definition {
            name: "memory.search",
            title: "Search what was remembered",
            description: "Finds what is remembered about the wearer by its words, the most fitting first.",
            properties: json!({
                "query": {"type": "string", "question": ASK, "description": "Words to look for.", "examples": ["my car"]},
            }),
            required: &["query"],
            phrases: &[
                // The first one is what help shows.
                "what do you remember about {query:name}",
                "what (do you remember|have you remembered) (about|of) [the|my] {query:name}",
                "(tell me|say) what you remember (about|of) [the|my] {query:name}",
                "what (did|have) i (tell|told) you about [the|my] {query:name}",
                "do you remember (anything|something) about [the|my] {query:name}",
                "(search|look in|check|look through) (your|my) (memory|memories) (for|about) [the|my] {query:name}",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        WITH_KEY
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let query = arguments.text_required("query", QUERY_CHARS_MAX, ASK)?;
        let found = facts::found(context, &query, NOTES_LISTED_MAX).await?;
        let all: Vec<_> = found.iter().map(|fact| facts::describe(context, fact)).collect();
        let data = json!({"facts": all});
        let Some(first) = found.first() else {
            let say = format!("I remember nothing about {}.", cut(&query, ITEM_CHARS_MAX));
            return Ok(told(say, "Memory", "Nothing", data));
        };
        if found.len() == 1 {
            context.ports.memory.last_mentioned.mention(&context.user, first.id, facts::now_us(context));
        }
        Ok(told(facts::read_out(&found), "Memory", facts::lines(&found), data))
    }
}
