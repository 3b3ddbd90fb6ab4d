//! `note.list`: lists the latest notes.

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, notes, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{NOTES_LISTED_MAX, SPOKEN_ITEMS_MAX},
    registry::RunContext,
    spoken,
};

struct NoteList;

inventory::submit! { BuiltIn(&NoteList) }

#[async_trait]
impl Tool for NoteList {
    fn definition(&self) -> Definition {
        Definition {
            name: "note.list",
            title: "Read the notes",
            description: "Reads the wearer's latest notes, newest first.",
            properties: json!({}),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "read my notes",
                "(read|list|show|open|check|give|tell|read me|show me|tell me|give me|read out|read back) [all] [of] [the|my] notes",
                "(what|which) are [all] my notes",
                "(what|which) notes (do i have|are there|have i got|have i taken|did i take|have i made|did i make)",
                "(do i have|are there|have i got) (any|some) notes",
                "what (is|do i have|have i got) in my notes",
                "what did i (note|write) down",
                "my notes",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    fn progress(&self) -> Option<&'static str> {
        Some("Reading your notes")
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        // One more than is listed shows whether there are more.
        let asked = NOTES_LISTED_MAX + 1;
        let mut found = context.ports.notes.list(&context.user, asked).await?;
        let more = found.len() > NOTES_LISTED_MAX;
        found.truncate(NOTES_LISTED_MAX);
        let all: Vec<_> = found.iter().map(|note| notes::describe(context, note)).collect();
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
