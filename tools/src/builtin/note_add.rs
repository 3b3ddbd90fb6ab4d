//! `note.add`: stores a note.

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, notes, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::NOTE_CHARS_MAX,
    registry::RunContext,
    spoken,
};

const ASK: &str = "What should the note say?";

struct NoteAdd;

inventory::submit! { BuiltIn(&NoteAdd) }

#[async_trait]
impl Tool for NoteAdd {
    fn definition(&self) -> Definition {
        Definition {
            name: "note.add",
            title: "Take a note",
            description: "Keeps a note for the wearer, in the wearer's own words.",
            properties: json!({
                "text": {"type": "string", "question": ASK, "description": "The note.", "examples": ["buy milk"]},
            }),
            required: &["text"],
            phrases: &[
                // The first one is what help shows.
                "take a note to {text}",
                "(take|make|add|save|create|write|store|start|record|leave) [down] [a|another] [new|quick] note (that|saying|to|about|of|which says) {text}",
                "(take|make|add|save|create|write|store|start|record|leave) [down] [a|another] [new|quick] note {text}",
                "new note {text}",
                "note to (self|myself) [that|to] {text}",
                "note that {text}",
                // With a colon.
                "note {text}",
                "(note|write|jot) down [that] {text}",
                "(note|write|jot) this down {text}",
                "add {text} to my notes",
                "(put|save|write) {text} (in|into|to) my notes",
            ],
            guidance: None,
            flags: CHANGES,
        }
    }

    fn progress(&self) -> Option<&'static str> {
        Some("Noting {text}")
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let text = arguments.text_required("text", NOTE_CHARS_MAX, ASK)?;
        let note = context.ports.notes.add(&context.user, &text).await?;
        let say = spoken::sentence(&format!("Noted: {}", notes::short(&note)));
        let data = notes::describe(context, &note);
        Ok(told(say, "Noted", notes::short(&note), data))
    }
}
