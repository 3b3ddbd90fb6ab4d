//! `note.delete`: deletes exactly one note.

use async_trait::async_trait;
use gateway_core::vocab::{ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, notes, schedule, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{ITEM_CHARS_MAX, NOTES_LISTED_MAX, QUERY_CHARS_MAX, SPOKEN_ITEMS_MAX},
    matching::{self, Choice},
    ports::Note,
    registry::RunContext,
    reply::cut,
    spoken,
};

const ASK: &str = "Which note should I delete?";

struct NoteDelete;

inventory::submit! { BuiltIn(&NoteDelete) }

#[async_trait]
impl Tool for NoteDelete {
    fn definition(&self) -> Definition {
        Definition {
            name: "note.delete",
            title: "Delete a note",
            description: "Deletes the one note that has all words of the query; \"last\" is the \
                          newest note. When several fit, none is deleted.",
            properties: json!({
                "id": {"type": "integer", "minimum": 1, "description": "The note's id, as asked back."},
                "query": {"type": "string", "question": ASK, "description": "Words of the note.", "examples": ["milk"]},
            }),
            required: &["query"],
            phrases: &[
                // The first one is what help shows.
                "delete the note about {query:name}",
                "(delete|remove|erase|forget|drop|clear|throw away) (the|my|that|any|all) (note|notes) (about|on|for|with|of|that says|mentioning|saying) [the|my] {query:name}",
                "(delete|remove|erase|forget) notes (about|on|for|with) [the|my] {query:name}",
                "(delete|remove|erase|drop|take) [the] {query:name} from [the|my] notes",
                "(delete|remove|erase) (the|my) {query:name} note",
            ],
            guidance: None,
            flags: ToolFlags { destructive: true, ..CHANGES },
        }
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let query = arguments.text_required("query", QUERY_CHARS_MAX, ASK)?;
        let port = &context.ports.notes;
        let chosen = if let Some(id) = arguments.integer("id") {
            let found = port.list(&context.user, usize::MAX).await?;
            found.into_iter().find(|note| u64::try_from(id) == Ok(note.id))
        } else if is_newest(&query) {
            port.list(&context.user, 1).await?.into_iter().next()
        } else {
            // Without a limit: the one note with exactly these words may be an old one.
            let found = port.search(&context.user, &query, usize::MAX).await?;
            match matching::choose(found, &query, |note| note.text.as_str()) {
                Choice::One(note) => Some(note),
                Choice::Several(several) => return Ok(which(context, &several)),
                Choice::None => None,
            }
        };
        let Some(note) = chosen else {
            let say = match is_newest(&query) {
                true => "You have no notes.".to_owned(),
                false => format!("I find no note about {}.", cut(&query, ITEM_CHARS_MAX)),
            };
            return Ok(told(say, "Notes", "None found", json!({"deleted": null})));
        };
        let Some(deleted) = port.delete(&context.user, note.id).await? else {
            let say = "That note is already gone.";
            return Ok(told(say, "Notes", "Gone", json!({"deleted": null})));
        };
        let say = spoken::sentence(&format!("Deleted: {}", notes::short(&deleted)));
        let data = json!({"deleted": notes::describe(context, &deleted)});
        Ok(told(say, "Deleted", notes::short(&deleted), data))
    }
}

/// Whether the newest note is meant: "last", "my latest note".
fn is_newest(query: &str) -> bool {
    let words = matching::words(query);
    let rest: Vec<_> = words.iter().filter(|word| *word != "note").collect();
    matches!(rest.as_slice(), [one] if ["last", "latest", "newest"].contains(&one.as_str()))
}

/// Asks which one is meant; nothing was deleted.
fn which(context: &RunContext, several: &[Note]) -> ToolResult {
    let mut names: Vec<String> = several.iter().take(SPOKEN_ITEMS_MAX).map(notes::short).collect();
    let shown = names.join("\n");
    if several.len() > SPOKEN_ITEMS_MAX {
        names.push("another one".to_owned());
    }
    let say = format!("Which note: {}?", spoken::list_or(&names));
    let all: Vec<_> = several
        .iter()
        .take(NOTES_LISTED_MAX)
        .map(|note| schedule::choice(notes::describe(context, note), &notes::short(note)))
        .collect();
    let data = json!({"deleted": null, "ask_which": all});
    let mut result = told(&*say, "Which note?", shown, data);
    result.content = format!("Nothing was deleted: several fit. Ask the wearer. {say}");
    result
}
