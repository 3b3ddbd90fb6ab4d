//! `memory.list`: lists the facts, newest first.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, WITH_KEY, facts, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::SPOKEN_ITEMS_MAX,
    registry::RunContext,
    spoken,
};

/// Facts that a model is given at once; it can search for more.
const LISTED_MAX: usize = 100;

struct MemoryList;

inventory::submit! { BuiltIn(&MemoryList) }

#[async_trait]
impl Tool for MemoryList {
    fn definition(&self) -> Definition {
        Definition {
            name: "memory.list",
            title: "Recall what was remembered",
            description: "Lists what is remembered about the wearer, newest first.",
            properties: json!({}),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "what do you remember about me",
                "what do you (know|remember) about me",
                "what do you remember",
                "(list|show|show me|read|read me) [all] [of] (your|my) memories",
                "tell me (everything|all|what) you (remember|know about me|remember about me)",
            ],
            guidance: None,
            flags: ToolFlags { always: false, ..READ_ONLY },
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        WITH_KEY
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let all = context.ports.memory.facts.list(&context.user).await?;
        let listed: Vec<_> = all.iter().take(LISTED_MAX).map(|fact| facts::describe(context, fact)).collect();
        let data = json!({"facts": listed, "count": all.len()});
        let say = match all.len() {
            0 => "I remember nothing about you yet.".to_owned(),
            count if count > SPOKEN_ITEMS_MAX => {
                let (count, latest) = (spoken::count(count, "thing"), spoken::number(SPOKEN_ITEMS_MAX as u64));
                format!("I remember {count}. The latest {latest}: {}", facts::read_out(&all))
            }
            count => format!("I remember {}. {}", spoken::count(count, "thing"), facts::read_out(&all)),
        };
        let shown = if all.is_empty() { "Nothing".to_owned() } else { facts::lines(&all) };
        Ok(told(say, "Memory", shown, data))
    }
}
