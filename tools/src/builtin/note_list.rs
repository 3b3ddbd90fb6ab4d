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
            properties: json!({
                "count": {"type": "integer", "question": false, "description": "Only so many, the newest; default: all."},
            }),
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
                "(read|show|tell|give|read me|show me|tell me|give me|read out) (the|my) (last|latest|newest|most recent) {count=1} note",
                "what (is|was) (the|my) (last|latest|newest|most recent) {count=1} note",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    fn progress(&self) -> Option<&'static str> {
        Some("Reading your notes")
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        // One more than is listed shows whether there are more.
        let count = arguments.integer("count").and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
        let listed = count.unwrap_or(NOTES_LISTED_MAX).min(NOTES_LISTED_MAX);
        let mut found = context.ports.notes.list(&context.user, listed + 1).await?;
        let more = found.len() > listed;
        found.truncate(listed);
        let all: Vec<_> = found.iter().map(|note| notes::describe(context, note)).collect();
        let data = json!({"notes": all, "more": more});
        if found.is_empty() {
            return Ok(told("You have no notes.", "Notes", "None", data));
        }
        let are_all = !more && found.len() <= SPOKEN_ITEMS_MAX;
        found.truncate(SPOKEN_ITEMS_MAX);
        let first = match found.len() {
            all if are_all => format!("You have {}.", spoken::count(all, "note")),
            1 => "Your latest note:".to_owned(),
            latest => format!("Here are your {} latest notes.", spoken::number(latest as u64)),
        };
        let say = format!("{first} {}", notes::read_out(&found));
        Ok(told(say, "Notes", notes::lines(&found), data))
    }
}
