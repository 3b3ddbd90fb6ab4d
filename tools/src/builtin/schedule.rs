//! What timers and reminders have in common.

use gateway_core::vocab::ToolResult;
use serde_json::{Value, json};

use super::told;
use crate::{
    arguments::Refusal,
    limits::{ENTRIES_MAX, ITEM_CHARS_MAX, SPOKEN_ITEMS_MAX},
    matching,
    ports::{Entry, EntryKind},
    registry::RunContext,
    reply::cut,
    spoken,
};

/// The user's entries of a kind, the next one first.
pub(super) async fn entries(context: &RunContext, kind: EntryKind) -> Result<Vec<Entry>, Refusal> {
    let mut entries = context.ports.schedule.list(&context.user).await?;
    entries.retain(|entry| entry.kind == kind);
    entries.sort_by_key(|entry| (remaining_ms(context, entry), entry.id));
    Ok(entries)
}

/// Refuses one entry too many.
pub(super) async fn check_room(context: &RunContext) -> Result<(), Refusal> {
    if context.ports.schedule.list(&context.user).await?.len() < ENTRIES_MAX {
        return Ok(());
    }
    Err(Refusal {
        code: gateway_core::vocab::ErrorCode::RateLimited,
        message: format!("There are already {ENTRIES_MAX} timers and reminders. Cancel some first."),
        say: "You have too many timers and reminders. Please cancel some first.".to_owned(),
        retryable: false,
    })
}

/// Milliseconds until the entry is due, by its own countdown where there is one.
pub(super) fn remaining_ms(context: &RunContext, entry: &Entry) -> u64 {
    entry.remaining_ms.unwrap_or_else(|| {
        let left = entry.due_wall_ms.saturating_sub(context.ports.clock.now().wall_ms);
        u64::try_from(left).unwrap_or(0)
    })
}

/// Seconds until the entry is due, rounded up: a timer that runs has never zero seconds left.
pub(super) fn remaining_seconds(context: &RunContext, entry: &Entry) -> u64 {
    remaining_ms(context, entry).div_ceil(1_000)
}

/// "pasta timer", "ten minute timer", "timer": as it follows "the".
pub(super) fn timer_name(entry: &Entry) -> String {
    if !entry.text.is_empty() {
        format!("{} timer", entry.text)
    } else if entry.duration_ms > 0 {
        let length = spoken::duration_adjective(entry.duration_ms / 1_000);
        format!("{length} timer")
    } else {
        "timer".to_owned()
    }
}

/// When a reminder is due: "at 5 PM", "tomorrow at noon".
pub(super) fn due(context: &RunContext, entry: &Entry) -> String {
    let clock = &*context.ports.clock;
    let at = spoken::local(entry.due_wall_ms, clock.zone());
    spoken::moment(&at, &spoken::now(clock), context.ports.style.hours)
}

/// An entry for a model.
pub(super) fn describe(context: &RunContext, entry: &Entry) -> Value {
    let at = spoken::local(entry.due_wall_ms, context.ports.clock.zone());
    let mut value = json!({
        "id": entry.id,
        "text": entry.text,
        "due": at.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
    });
    if let (EntryKind::Timer, Some(fields)) = (entry.kind, value.as_object_mut()) {
        let left = remaining_seconds(context, entry);
        fields.insert("seconds_left".into(), json!(left));
        fields.insert("seconds".into(), json!(entry.duration_ms / 1_000));
    }
    value
}

/// Removes an entry that was listed before. `false`: it had come due in between.
pub(super) async fn remove(context: &RunContext, entry: &Entry) -> Result<bool, Refusal> {
    let removed = context.ports.schedule.remove(&context.user, entry.id).await?;
    Ok(removed.is_some())
}

/// Asks which one of several is meant; nothing was done.
pub(super) fn ask_which(context: &RunContext, title: &str, names: &[String], entries: &[Entry]) -> ToolResult {
    let mut spoken_names: Vec<String> =
        names.iter().take(SPOKEN_ITEMS_MAX).map(|name| cut(name, ITEM_CHARS_MAX)).collect();
    let shown = spoken_names.join("\n");
    if names.len() > SPOKEN_ITEMS_MAX {
        spoken_names.push("another one".to_owned());
    }
    let say = format!("Which one: {}?", spoken::list_or(&spoken_names));
    let which: Vec<_> = entries.iter().map(|entry| describe(context, entry)).collect();
    let mut result = told(&*say, title, shown, json!({"done": false, "ask_which": which}));
    result.content = format!("Nothing was cancelled: several fit. Ask the wearer. {say}");
    result
}

/// Timers that are called by this name, with or without the word "timer", or by their length.
pub(super) fn choose_timer(timers: Vec<Entry>, name: &str) -> matching::Choice<Entry> {
    let query: Vec<String> = matching::words(name)
        .into_iter()
        .filter(|word| word != "timer" && word != "timers")
        .map(|word| {
            // "10 minute timer" and "ten minute timer" are the same.
            word.parse::<u64>().map_or(word, spoken::number)
        })
        .collect();
    let query = query.join(" ");
    let named: Vec<(String, Entry)> = timers
        .into_iter()
        .map(|entry| {
            let words: Vec<String> = matching::words(timer_name(&entry).trim_end_matches(" timer"))
                .into_iter()
                .map(|word| word.parse::<u64>().map_or(word, spoken::number))
                .collect();
            (words.join(" "), entry)
        })
        .collect();
    match matching::choose(named, &query, |(name, _)| name.as_str()) {
        matching::Choice::None => matching::Choice::None,
        matching::Choice::One((_, entry)) => matching::Choice::One(entry),
        matching::Choice::Several(several) => {
            matching::Choice::Several(several.into_iter().map(|(_, entry)| entry).collect())
        }
    }
}
