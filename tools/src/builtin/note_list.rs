//! `note.list`: the latest notes.

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, notes, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{NOTES_LISTED_MAX, SPOKEN_ITEMS_MAX},
    runner::RunContext,
    spoken,
};

struct NoteList;

inventory::submit! { BuiltIn(&NoteList) }

#[async_trait]
impl Tool for NoteList {
    fn definition(&self) -> Definition {
        Definition {
            name: "note.list",
            description: "Reads the wearer's latest notes, newest first.",
            properties: json!({}),
            required: &[],
            phrases: &[
                "(read|list|show|tell) [me] [all] [of] my [(last|latest|recent)] notes [please]",
                "what are my [(last|latest|recent)] notes",
                "(what|which) notes (do I have|have I taken|did I take|are there)",
                "what (is|have I got) in my notes",
                "(do I have|are there|have I got) any notes",
                "(list|show) [all] [the] notes",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    async fn run(
        &self,
        context: &RunContext,
        _arguments: Arguments<'_>,
    ) -> Result<ToolResult, Refusal> {
        // One more than is listed tells whether there are more.
        let asked = NOTES_LISTED_MAX + 1;
        let mut found = context.ports.notes.list(&context.user, asked).await?;
        let more = found.len() > NOTES_LISTED_MAX;
        found.truncate(NOTES_LISTED_MAX);
        let all: Vec<_> = found
            .iter()
            .map(|note| notes::describe(context, note))
            .collect();
        let data = json!({"notes": all, "more": more});
        if found.is_empty() {
            return Ok(told("You have no notes.", "Notes", "None", data));
        }
        let several = found.len() > SPOKEN_ITEMS_MAX;
        let first = if several {
            let latest = spoken::number(SPOKEN_ITEMS_MAX as u64);
            format!("Here are your {latest} latest notes.")
        } else {
            format!("You have {}.", spoken::count(found.len(), "note"))
        };
        found.truncate(SPOKEN_ITEMS_MAX);
        let say = format!("{first} {}", notes::read_out(&found));
        Ok(told(say, "Notes", notes::lines(&found), data))
    }
}
