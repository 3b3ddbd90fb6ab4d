//! `prompt.delete`: deletes a standing instruction, or all of them.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, WEARER_ONLY, facts, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{ITEM_CHARS_MAX, QUERY_CHARS_MAX},
    matching::{self, Choice},
    registry::RunContext,
    reply::cut,
    spoken,
};

const ASK: &str = "Which instruction should I drop?";

struct PromptDelete;

inventory::submit! { BuiltIn(&PromptDelete) }

#[async_trait]
impl Tool for PromptDelete {
    fn definition(&self) -> Definition {
        Definition {
            name: "prompt.delete",
            title: "Drop a standing instruction",
            description: "Drops the one standing instruction that has all words of the query, or every one for \"all\". \
                          When several fit, none is dropped.",
            properties: json!({
                "id": {"type": "integer", "minimum": 1, "description": "The instruction's id, as asked back."},
                "query": {"type": "string", "question": ASK, "description": "Words of the instruction, or \"all\".",
                          "examples": ["sentence"]},
            }),
            required: &["query"],
            phrases: &[
                // The first one is what help shows.
                "delete the instruction about {query:name}",
                "(delete|remove|drop|forget|cancel) (the|my|that) [standing] instruction (about|to|that|on|for) [the|my] {query:name}",
                "(delete|remove|drop|forget|cancel) all [of] [the|my] [standing] instructions {query=all}",
            ],
            guidance: None,
            flags: ToolFlags { destructive: true, always: false, ..CHANGES },
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        WEARER_ONLY
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let query = arguments.text_required("query", QUERY_CHARS_MAX, ASK)?;
        let instructions = &context.ports.memory.instructions;
        let all = instructions.list(&context.user).await?;
        let chosen = if let Some(id) = arguments.integer("id") {
            all.into_iter().filter(|kept| u64::try_from(id) == Ok(kept.id)).collect()
        } else if query.eq_ignore_ascii_case("all") {
            all
        } else {
            match matching::choose(all, &query, |kept| kept.text.as_str()) {
                Choice::One(one) => vec![one],
                Choice::Several(several) => {
                    return Ok(facts::which(context, &several, "Which instruction should I drop"));
                }
                Choice::None => Vec::new(),
            }
        };
        let mut dropped = Vec::new();
        for kept in chosen {
            dropped.extend(instructions.remove(&context.user, kept.id).await?);
        }
        let data = json!({"deleted": dropped.iter().map(|kept| facts::describe(context, kept)).collect::<Vec<_>>()});
        let say = match dropped.as_slice() {
            [] => format!("I find no instruction about {}.", cut(&query, ITEM_CHARS_MAX)),
            [one] => spoken::sentence(&format!("No longer: {}", facts::short(one))),
            several => format!("I dropped {}.", spoken::count(several.len(), "instruction")),
        };
        let shown = if dropped.is_empty() { "None found".to_owned() } else { facts::lines(&dropped) };
        Ok(told(say, "Instructions", shown, data))
    }
}
