//! `conversation.search`: searches earlier conversations.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, WEARER_ONLY, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{ITEM_CHARS_MAX, QUERY_CHARS_MAX},
    memory::FoundMessage,
    registry::RunContext,
    reply::cut,
    spoken,
};

/// Maximum number of results.
const FOUND_MAX: usize = 10;
/// Bytes of each result for a model.
const EXCERPT_BYTES_MAX: usize = 400;

const ASK: &str = "What should I look for?";

struct ConversationSearch;

inventory::submit! { BuiltIn(&ConversationSearch) }

#[async_trait]
impl Tool for ConversationSearch {
    fn definition(&self) -> Definition {
        Definition {
            name: "conversation.search",
            title: "Search what was said",
            description: "Finds what was said in earlier conversations with the wearer, newest first, by all words of the \
                          query.",
            properties: json!({
                "query": {"type": "string", "question": ASK, "description": "Words to look for.", "examples": ["the boat"]},
            }),
            required: &["query"],
            phrases: &[
                // The first one is what help shows.
                "when did we talk about {query:name}",
                "what did we (say|talk) about [the|my] {query:name}",
                "when did we (talk|speak) about [the|my] {query:name}",
                "(search|look through) (our|my) [earlier|old] conversations (for|about) [the|my] {query:name}",
                "(find|look for) [the|my] {query:name} in (our|my) conversations",
            ],
            guidance: None,
            flags: ToolFlags { always: false, ..READ_ONLY },
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        WEARER_ONLY
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let query = arguments.text_required("query", QUERY_CHARS_MAX, ASK)?;
        let found = context.ports.memory.conversations.search(&context.user, &query, FOUND_MAX).await?;
        let at = |said: &FoundMessage| spoken::local(said.wall_ms, context.ports.clock.zone());
        let all: Vec<_> = found
            .iter()
            .map(|said| {
                json!({
                    "conversation": said.conversation,
                    "title": said.title,
                    "by": if said.by_wearer { "wearer" } else { "assistant" },
                    "text": cut(&said.text, EXCERPT_BYTES_MAX),
                    "when": at(said).strftime("%Y-%m-%dT%H:%M").to_string(),
                })
            })
            .collect();
        let data = json!({"found": all});
        let Some(first) = found.iter().find(|said| said.by_wearer).or(found.first()) else {
            let say = format!("We have not talked about {}.", cut(&query, ITEM_CHARS_MAX));
            return Ok(told(say, "Conversations", "None found", data));
        };
        let now = spoken::now(context.ports.clock.as_ref());
        let when = spoken::moment(&at(first), &now, context.ports.style.hours);
        let who = if first.by_wearer { "You" } else { "I" };
        let words = cut(&first.text, ITEM_CHARS_MAX);
        let say = spoken::sentence(&format!("{who} said {when}: {words}"));
        Ok(told(say, "Conversations", words, data))
    }
}
