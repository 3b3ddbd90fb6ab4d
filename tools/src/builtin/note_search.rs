//! `note.search`: finds notes by their words.

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, notes, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{ITEM_CHARS_MAX, NOTES_LISTED_MAX, QUERY_CHARS_MAX, SPOKEN_ITEMS_MAX},
    registry::RunContext,
    reply::cut,
    spoken,
};

const ASK: &str = "What should I look for?";

struct NoteSearch;

inventory::submit! { BuiltIn(&NoteSearch) }

#[async_trait]
impl Tool for NoteSearch {
    fn definition(&self) -> Definition {
        Definition {
            name: "note.search",
            title: "Search the notes",
            description: "Finds the wearer's notes that have all words of the query.",
            properties: json!({
                "query": {"type": "string", "question": ASK, "description": "Words to look for.", "examples": ["milk"]},
            }),
            required: &["query"],
            phrases: &[
                // The first one is what help shows.
                "search my notes for {query:name}",
                "(search|look through|look in|check|go through) [in|through] [all] [the|my] notes (for|about) [the|my] {query:name}",
                "(find|show|read|get|open|show me|read me|find me|get me|look for|search for|look up) [the|my|a|any|all|all my] (note|notes) (about|on|for|with|of|mentioning|that mentions|that mention) [the|my] {query:name}",
                "(find|search for|look for|look up|search) [the|my] {query:name} in [the|my] notes",
                "what (did|have) i (note|noted|write|written|jot) [down] (about|on|for) [the|my] {query:name}",
                "what (do|did) my notes say (about|on) [the|my] {query:name}",
                "what (do i have|is there) in my notes (about|on) [the|my] {query:name}",
                "(do i have|are there|is there|have i got) (any|a) (notes|note) (about|on|for|with) [the|my] {query:name}",
                "what (is|was) (the|my) note about [the|my] {query:name}",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    fn progress(&self) -> Option<&'static str> {
        Some("Searching your notes for {query}")
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let query = arguments.text_required("query", QUERY_CHARS_MAX, ASK)?;
        // One more than is listed shows whether there are more.
        let asked = NOTES_LISTED_MAX + 1;
        let found = context.ports.notes.search(&context.user, &query, asked);
        let mut found = found.await?;
        let more = found.len() > NOTES_LISTED_MAX;
        found.truncate(NOTES_LISTED_MAX);
        let all: Vec<_> = found.iter().map(|note| notes::describe(context, note)).collect();
        let data = json!({"notes": all, "more": more});
        let query = cut(&query, ITEM_CHARS_MAX);
        if found.is_empty() {
            let say = format!("I find no note about {query}.");
            return Ok(told(say, "Notes", "None found", data));
        }
        let count = match (more, found.len()) {
            (true, n) => format!("more than {n} notes"),
            (false, n) => spoken::count(n, "note"),
        };
        let newest = if found.len() > SPOKEN_ITEMS_MAX { " The newest:" } else { "" };
        found.truncate(SPOKEN_ITEMS_MAX);
        let read = notes::read_out(&found);
        let say = format!("I found {count} about {query}.{newest} {read}");
        Ok(told(say, "Notes", notes::lines(&found), data))
    }
}
