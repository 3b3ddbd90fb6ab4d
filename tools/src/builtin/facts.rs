//! Shared code of the memory tools.

use gateway_core::vocab::ToolResult;
use serde_json::{Value, json};

use super::{schedule, told};
use crate::{
    arguments::Refusal,
    limits::{ITEM_CHARS_MAX, NOTES_LISTED_MAX, SPOKEN_ITEMS_MAX},
    matching::{self, Choice},
    memory::{self, Text},
    registry::RunContext,
    reply::cut,
    spoken,
};

/// A text for a model.
pub(super) fn describe(context: &RunContext, text: &Text) -> Value {
    let since = spoken::local(text.changed_wall_ms, context.ports.clock.zone());
    json!({"id": text.id, "text": text.text, "since": since.strftime("%Y-%m-%dT%H:%M").to_string()})
}

/// A text as one of several.
pub(super) fn short(text: &Text) -> String {
    cut(&text.text, ITEM_CHARS_MAX)
}

/// One sentence for each.
pub(super) fn read_out(texts: &[Text]) -> String {
    let sentences: Vec<_> =
        texts.iter().take(SPOKEN_ITEMS_MAX).map(|text| spoken::sentence(&spoken::capitalised(&short(text)))).collect();
    sentences.join(" ")
}

/// For small displays: one line each.
pub(super) fn lines(texts: &[Text]) -> String {
    let lines: Vec<_> = texts.iter().take(SPOKEN_ITEMS_MAX).map(short).collect();
    lines.join("\n")
}

/// Current time of the monotonic clock.
pub(super) fn now_us(context: &RunContext) -> u64 {
    context.ports.clock.now().mono_us
}

/// Whether the arguments refer to the last mentioned fact.
pub(super) fn is_last(query: &str) -> bool {
    ["last", "that", "it", "this"].contains(&query.to_lowercase().trim_end_matches('.'))
}

/// The one fact that the arguments mean: by number, by "last", or by its words.
pub(super) async fn chosen(context: &RunContext, id: Option<i64>, query: &str) -> Result<Choice<Text>, Refusal> {
    let facts = &context.ports.memory.facts;
    if let Some(id) = id {
        let found = facts.get(&context.user, u64::try_from(id).unwrap_or(0)).await?;
        return Ok(found.map_or(Choice::None, Choice::One));
    }
    if is_last(query) {
        let Some(id) = context.ports.memory.last_mentioned.mentioned(&context.user, now_us(context)) else {
            return Ok(Choice::None);
        };
        return Ok(facts.get(&context.user, id).await?.map_or(Choice::None, Choice::One));
    }
    let all = facts.list(&context.user).await?;
    Ok(matching::choose(all, query, |text| text.text.as_str()))
}

/// Asks which one is meant; nothing was changed.
pub(super) fn which(context: &RunContext, several: &[Text], question: &str) -> ToolResult {
    let mut names: Vec<String> = several.iter().take(SPOKEN_ITEMS_MAX).map(short).collect();
    let shown = names.join("\n");
    if several.len() > SPOKEN_ITEMS_MAX {
        names.push("another one".to_owned());
    }
    let say = format!("{question}: {}?", spoken::list_or(&names));
    let all: Vec<_> = several
        .iter()
        .take(NOTES_LISTED_MAX)
        .map(|text| schedule::choice(describe(context, text), &short(text)))
        .collect();
    let mut result = told(&*say, &format!("{question}?"), shown, json!({"ask_which": all}));
    result.content = format!("Nothing was changed: several fit. Ask the wearer. {say}");
    result
}

/// The facts about these words: all that contain every word, otherwise the relevant ones.
pub(super) async fn found(context: &RunContext, query: &str, limit: usize) -> Result<Vec<Text>, Refusal> {
    let all = context.ports.memory.facts.list(&context.user).await?;
    let mut exact: Vec<Text> = all.iter().filter(|text| matching::matches(&text.text, query)).cloned().collect();
    exact.truncate(limit);
    Ok(if exact.is_empty() { memory::relevant(all, query, limit) } else { exact })
}
