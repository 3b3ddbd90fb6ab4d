//! `note.add`: keeps a note.

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, notes, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::NOTE_CHARS_MAX,
    runner::RunContext,
    spoken,
};

struct NoteAdd;

inventory::submit! { BuiltIn(&NoteAdd) }

#[async_trait]
impl Tool for NoteAdd {
    fn definition(&self) -> Definition {
        Definition {
            name: "note.add",
            description: "Keeps a note for the wearer, in the wearer's own words.",
            properties: json!({
                "text": {"type": "string", "description": "The note.", "examples": ["buy milk"]},
            }),
            required: &["text"],
            phrases: &[
                "[please] (take|make|add|write|save|create) (a|another) note (to|that|saying|about) {text}",
                "[please] (take|make|add|write|save|create) (a|another) note {text}",
                "[please] note [down] [that] {text}",
                "[please] (write|jot|put) down [that] {text}",
                "[please] (remember|keep in mind) that {text}",
                "[please] add {text} to my notes",
                "[please] add to my notes [that] {text}",
                "new note {text}",
            ],
            guidance: None,
            flags: CHANGES,
        }
    }

    async fn run(
        &self,
        context: &RunContext,
        arguments: Arguments<'_>,
    ) -> Result<ToolResult, Refusal> {
        let ask = "What should the note say?";
        let text = arguments.text_required("text", NOTE_CHARS_MAX, ask)?;
        let note = context.ports.notes.add(&context.user, &text).await?;
        let say = spoken::sentence(&format!("Noted: {}", notes::short(&note)));
        let data = notes::describe(context, &note);
        Ok(told(say, "Noted", notes::short(&note), data))
    }
}
