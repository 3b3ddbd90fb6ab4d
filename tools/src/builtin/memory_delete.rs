//! `memory.delete`: deletes exactly one fact.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, WITH_KEY, facts, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{ITEM_CHARS_MAX, QUERY_CHARS_MAX},
    matching::Choice,
    registry::RunContext,
    reply::cut,
    spoken,
};

struct MemoryDelete;

inventory::submit! { BuiltIn(&MemoryDelete) }

#[async_trait]
impl Tool for MemoryDelete {
    fn definition(&self) -> Definition {
        Definition {
            name: "memory.delete",
            title: "Forget something",
            description: "Forgets one remembered fact, named by its id or by all of its telling words; \"last\" is the \
                          one that was spoken of. When several fit, none is forgotten. memory.restore brings the last \
                          one back.",
            properties: json!({
                "id": {"type": "integer", "minimum": 1, "description": "The fact's id."},
                "query": {"type": "string", "description": "Words of the fact, or \"last\".", "examples": ["my car"]},
            }),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "forget what I told you about {query:name}",
                "forget that {query=last}",
                "forget (what i just (said|told you)|the last thing [i told you]|that again) {query=last}",
                "forget that {query:name}",
                "forget (what i told you|everything|what you (know|remember)) (about|of) [the|my] {query:name}",
                "(delete|remove|erase) (what you remember|the memory|your memory|your memories) (about|of) [the|my] {query:name}",
            ],
            guidance: None,
            flags: ToolFlags { destructive: true, ..CHANGES },
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        WITH_KEY
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let query = arguments.text_optional("query", QUERY_CHARS_MAX)?.unwrap_or_else(|| "last".to_owned());
        let id = arguments.integer("id");
        let memory = &context.ports.memory;
        let fact = match facts::chosen(context, id, &query).await? {
            Choice::One(fact) => memory.facts.remove(&context.user, fact.id).await?,
            Choice::Several(several) => return Ok(facts::which(context, &several, "Which one should I forget")),
            Choice::None => None,
        };
        let Some(fact) = fact else {
            let say = match id {
                None if facts::is_last(&query) => "What should I forget?".to_owned(),
                None => format!("I remember nothing about {}.", cut(&query, ITEM_CHARS_MAX)),
                Some(id) => format!("There is no memory number {id}."),
            };
            return Ok(told(say, "Memory", "Nothing forgotten", json!({"deleted": null})));
        };
        memory.last_mentioned.forget(&context.user, &fact.text, facts::now_us(context));
        // In full: who hears what is gone needs no confirmation before.
        let say = spoken::sentence(&format!("Forgotten: {}", fact.text));
        let data = json!({"deleted": facts::describe(context, &fact)});
        let mut result = told(say, "Forgotten", facts::short(&fact), data);
        result.follow_ups = vec!["Bring that memory back".to_owned()];
        Ok(result)
    }
}
