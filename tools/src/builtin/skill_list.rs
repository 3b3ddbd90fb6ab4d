//! `skill.list`: lists the skills.

use std::collections::BTreeSet;

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolFlags, ToolResult};
use serde_json::json;

use super::{ASSISTANTS, BuiltIn, Definition, READ_ONLY, Tool, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::SPOKEN_ITEMS_MAX,
    registry::RunContext,
    spoken,
};

struct SkillList;

inventory::submit! { BuiltIn(&SkillList) }

/// The names of the tools that are offered.
pub(super) fn offered(context: &RunContext) -> BTreeSet<String> {
    context.offered.specs.iter().map(|spec| spec.name.clone()).collect()
}

#[async_trait]
impl Tool for SkillList {
    fn definition(&self) -> Definition {
        Definition {
            name: "skill.list",
            title: "List the skills",
            description: "Lists the skills: written instructions for certain tasks, read with skill.read.",
            properties: json!({}),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "what skills do you have",
                "(what|which) skills (do you have|are there|do you know)",
                "(list|show|show me|read me) [all] [of] [the|your|my] skills",
            ],
            guidance: None,
            flags: ToolFlags { always: false, ..READ_ONLY },
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        ASSISTANTS
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let all = context.ports.memory.skills.list(&offered(context)).await?;
        let listed: Vec<_> =
            all.iter().map(|skill| json!({"name": skill.name, "description": skill.description})).collect();
        let data = json!({"skills": listed});
        if all.is_empty() {
            return Ok(told("I have no skills installed.", "Skills", "None", data));
        }
        let names: Vec<&str> = all.iter().take(SPOKEN_ITEMS_MAX).map(|skill| skill.name.as_str()).collect();
        let say = match all.len() - names.len() {
            0 => format!("I have {}: {}.", spoken::count(all.len(), "skill"), spoken::list(&names)),
            more => format!("I have {}: {} and {more} more.", spoken::count(all.len(), "skill"), names.join(", ")),
        };
        Ok(told(say, "Skills", names.join("\n"), data))
    }
}
