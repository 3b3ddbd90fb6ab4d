//! `skill.read`: reads the instructions of a skill, or a file of it.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ErrorCode, ToolResult};
use serde_json::json;

use super::{ASSISTANTS, BuiltIn, Definition, READ_ONLY, Tool, skill_list, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::ITEM_CHARS_MAX,
    matching,
    memory::{SKILL_NAME_CHARS_MAX, SKILL_PATH_CHARS_MAX},
    registry::RunContext,
    reply::cut,
    spoken,
};

const ASK: &str = "Which skill?";

struct SkillRead;

inventory::submit! { BuiltIn(&SkillRead) }

#[async_trait]
impl Tool for SkillRead {
    fn definition(&self) -> Definition {
        Definition {
            name: "skill.read",
            title: "Read a skill",
            description: "Reads a skill's instructions, or a file of its folder that they name. Read a skill before doing \
                          what it is for.",
            properties: json!({
                "name": {"type": "string", "question": ASK, "description": "The skill's name.", "examples": ["barista"]},
                "file": {"type": "string", "description": "Path of a file within the skill's folder."},
            }),
            required: &["name"],
            phrases: &[
                // The first one is what help shows.
                "open the skill {name:name}",
                "(open|use|read|follow) [the|my|your] skill {name:name}",
                "(open|use|read|follow) (the|my|your) {name:name} skill",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        ASSISTANTS
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let name = arguments.text_required("name", SKILL_NAME_CHARS_MAX, ASK)?;
        let file = arguments.text_optional("file", SKILL_PATH_CHARS_MAX)?;
        let skills = &context.ports.memory.skills;
        let all = skills.list(&skill_list::offered(context)).await?;
        // Spoken names have spaces where written ones have hyphens.
        let skill = all.iter().find(|skill| skill.name == name || matching::same(&skill.name, &name));
        let missing = |what: String| Refusal {
            code: ErrorCode::InvalidArguments,
            message: what.clone(),
            say: what,
            retryable: false,
        };
        let Some(skill) = skill else {
            return Err(missing(format!("I have no skill named {}.", cut(&name, ITEM_CHARS_MAX))));
        };
        let Some(text) = skills.read(&skill.name, file.as_deref()).await? else {
            let file = file.as_deref().unwrap_or("SKILL.md");
            return Err(missing(format!("The skill {} has no readable file {file}.", skill.name)));
        };
        let say = spoken::sentence(&format!("{}: {}", spoken::capitalised(&skill.name), skill.description));
        let data = json!({"name": skill.name, "file": file});
        let mut result = told(say, "Skill", cut(&skill.name, ITEM_CHARS_MAX), data);
        result.content = text;
        Ok(result)
    }
}
