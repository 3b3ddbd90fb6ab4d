//! `note.clear`: deletes all notes, after a question.

use async_trait::async_trait;
use gateway_core::vocab::{ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, told};
use crate::{
    arguments::{Arguments, Refusal},
    registry::RunContext,
    spoken,
};

struct NoteClear;

inventory::submit! { BuiltIn(&NoteClear) }

#[async_trait]
impl Tool for NoteClear {
    fn definition(&self) -> Definition {
        Definition {
            name: "note.clear",
            title: "Delete all notes",
            description: "Deletes all of the wearer's notes for good.",
            properties: json!({}),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "delete all my notes",
                "(delete|remove|erase|forget|drop|clear|throw away) (all|every|each) [of] [the|my] (notes|note)",
                "clear [out] (the|my) notes",
                "(delete|remove|erase) every note [that] i have [taken|made|got]",
            ],
            guidance: None,
            // Rarely used, so it is not always offered.
            flags: ToolFlags { destructive: true, requires_approval: true, always: false, ..CHANGES },
        }
    }

    fn approval(&self) -> Option<&'static str> {
        Some("Shall I delete all of your notes?")
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let deleted = context.ports.notes.clear(&context.user).await?;
        let say = match deleted {
            0 => "You have no notes.".to_owned(),
            deleted => format!("Deleted {}.", spoken::count(deleted, "note")),
        };
        let shown = format!("{deleted} deleted");
        Ok(told(say, "Notes", shown, json!({"deleted": deleted})))
    }
}
