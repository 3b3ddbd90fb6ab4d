//! Shared code of timers and reminders.

use gateway_core::vocab::{OpenEntry, ScheduleEntry, ScheduleKind, ToolResult};
use serde_json::{Value, json};

use super::told;
use crate::{
    arguments::Refusal,
    limits::{ENTRIES_MAX, ITEM_CHARS_MAX, SPOKEN_ITEMS_MAX},
    matching,
    registry::RunContext,
    reply::cut,
    spoken,
};

/// The user's timers, the next one first.
pub(super) async fn timers(context: &RunContext) -> Result<Vec<OpenEntry>, Refusal> {
    entries(context, ScheduleKind::is_timer).await
}

/// The user's reminders, the next one first.
pub(super) async fn reminders(context: &RunContext) -> Result<Vec<OpenEntry>, Refusal> {
    entries(context, ScheduleKind::is_reminder).await
}

async fn entries(context: &RunContext, wanted: fn(&ScheduleKind) -> bool) -> Result<Vec<OpenEntry>, Refusal> {
    let mut entries = context.ports.schedule.list(&context.user).await?;
    entries.retain(|open| wanted(&open.entry.kind));
    entries.sort_by_key(|open| (remaining_ms(context, open), open.entry.id));
    Ok(entries)
}

/// Rejects an entry beyond the limit.
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
pub(super) fn remaining_ms(context: &RunContext, open: &OpenEntry) -> u64 {
    open.left_ms.unwrap_or_else(|| {
        let left = open.entry.due_wall_ms.saturating_sub(context.ports.clock.now().wall_ms);
        u64::try_from(left).unwrap_or(0)
    })
}

/// Seconds until the entry is due, rounded up: a timer that runs has never zero seconds left.
pub(super) fn remaining_seconds(context: &RunContext, open: &OpenEntry) -> u64 {
    remaining_ms(context, open).div_ceil(1_000)
}

/// "pasta timer", "ten minute timer", "timer": as it follows "the".
pub(super) fn timer_name(entry: &ScheduleEntry) -> String {
    if let ScheduleKind::Timer { name: Some(name) } = &entry.kind {
        format!("{name} timer")
    } else if let Some(duration_ms) = entry.duration_ms {
        let length = spoken::duration_adjective(duration_ms / 1_000);
        format!("{length} timer")
    } else {
        "timer".to_owned()
    }
}

/// When a reminder is due: "at 5 PM", "tomorrow at noon".
pub(super) fn due(context: &RunContext, entry: &ScheduleEntry) -> String {
    let clock = &*context.ports.clock;
    let at = spoken::local(entry.due_wall_ms, clock.zone());
    spoken::moment(&at, &spoken::now(clock), context.ports.style.hours)
}

/// An entry for a model.
pub(super) fn describe(context: &RunContext, open: &OpenEntry) -> Value {
    let entry = &open.entry;
    let at = spoken::local(entry.due_wall_ms, context.ports.clock.zone());
    let mut value = json!({
        "id": entry.id,
        "text": entry.kind.text(),
        "due": at.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
    });
    if let (true, Some(fields)) = (entry.kind.is_timer(), value.as_object_mut()) {
        let left = remaining_seconds(context, open);
        fields.insert("seconds_left".into(), json!(left));
        fields.insert("seconds".into(), json!(entry.duration_ms.unwrap_or(0) / 1_000));
    }
    value
}

/// Removes an entry that was listed before. `false`: it has become due in between.
pub(super) async fn remove(context: &RunContext, open: &OpenEntry) -> Result<bool, Refusal> {
    let removed = context.ports.schedule.remove(&context.user, open.entry.id).await?;
    Ok(removed.is_some())
}

/// Asks which one of several is meant; nothing was done.
pub(super) fn ask_which(context: &RunContext, title: &str, names: &[String], entries: &[OpenEntry]) -> ToolResult {
    let mut spoken_names: Vec<String> =
        names.iter().take(SPOKEN_ITEMS_MAX).map(|name| cut(name, ITEM_CHARS_MAX)).collect();
    let shown = spoken_names.join("\n");
    if names.len() > SPOKEN_ITEMS_MAX {
        spoken_names.push("another one".to_owned());
    }
    let say = format!("Which one: {}?", spoken::list_or(&spoken_names));
    let which: Vec<_> = entries.iter().map(|open| describe(context, open)).collect();
    let mut result = told(&*say, title, shown, json!({"done": false, "ask_which": which}));
    result.content = format!("Nothing was cancelled: several fit. Ask the wearer. {say}");
    result
}

/// Timers that are called by this name, with or without the word "timer", or by their length.
pub(super) fn choose_timer(timers: Vec<OpenEntry>, name: &str) -> matching::Choice<OpenEntry> {
    let query: Vec<String> = matching::words(name)
        .into_iter()
        .filter(|word| word != "timer" && word != "timers")
        .map(|word| {
            // "10 minute timer" and "ten minute timer" are the same.
            word.parse::<u64>().map_or(word, spoken::number)
        })
        .collect();
    let query = query.join(" ");
    let named: Vec<(String, OpenEntry)> = timers
        .into_iter()
        .map(|open| {
            let words: Vec<String> = matching::words(timer_name(&open.entry).trim_end_matches(" timer"))
                .into_iter()
                .map(|word| word.parse::<u64>().map_or(word, spoken::number))
                .collect();
            (words.join(" "), open)
        })
        .collect();
    match matching::choose(named, &query, |(name, _)| name.as_str()) {
        matching::Choice::None => matching::Choice::None,
        matching::Choice::One((_, open)) => matching::Choice::One(open),
        matching::Choice::Several(several) => {
            matching::Choice::Several(several.into_iter().map(|(_, open)| open).collect())
        }
    }
}
