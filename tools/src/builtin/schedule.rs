//! Shared code of timers and reminders.

use gateway_core::vocab::{OpenEntry, ScheduleEntry, ScheduleKind, ToolResult};
use serde_json::{Value, json};

use super::told;
use crate::{
    arguments::Refusal,
    limits::{ENTRIES_MAX, ITEM_CHARS_MAX, SPOKEN_ITEMS_MAX},
    matching::{self, Choice},
    registry::RunContext,
    reply::cut,
    spoken,
};

/// Words of a length of a single unit: "ten minute".
const LENGTH_WORDS: usize = 2;

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

/// The entry with this id.
pub(super) fn by_id(entries: &[OpenEntry], id: i64) -> Choice<OpenEntry> {
    let id = u64::try_from(id).ok();
    Choice::among(entries.iter().filter(|open| Some(open.entry.id) == id).cloned().collect())
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
    let which: Vec<_> = entries.iter().zip(names).map(|(open, name)| choice(describe(context, open), name)).collect();
    let mut result = told(&*say, title, shown, json!({"done": false, "ask_which": which}));
    result.content = format!("Nothing was cancelled: several fit. Ask the wearer. {say}");
    result
}

/// One of several in `ask_which`, with the words that choose it.
pub(super) fn choice(mut described: Value, label: &str) -> Value {
    if let Some(fields) = described.as_object_mut() {
        fields.insert("label".into(), json!(label));
    }
    described
}

/// Timers that were set with this length. One that has a name is meant only where none without a name has the length.
pub(super) fn timer_of_length(timers: &[OpenEntry], seconds: u64) -> Choice<OpenEntry> {
    let of_length = timers.iter().filter(|open| open.entry.duration_ms == Some(seconds.saturating_mul(1_000)));
    let (named, unnamed): (Vec<_>, Vec<_>) = of_length.cloned().partition(|open| has_name(&open.entry));
    Choice::among(if unnamed.is_empty() { named } else { unnamed })
}

/// Timers that are called by this name, with or without the word "timer". One without a name is called by its length as
/// [`timer_name`] writes it. "Hour" is enough for "one hour", but "30 minute" is another length than "1 hour 30 minute".
pub(super) fn timer_called(timers: &[OpenEntry], name: &str) -> Choice<OpenEntry> {
    let query = spelled(name);
    let called = timers.iter().map(|open| (spelled(&timer_name(&open.entry)), open));
    // "The second timer" counts timers.
    let counts = query.split(' ').next() == Some("second");
    let may_be_part =
        |name: &str, open: &OpenEntry| has_name(&open.entry) || (!counts && name.split(' ').count() <= LENGTH_WORDS);
    let called = called.filter(|(name, open)| may_be_part(name, open) || matching::same(name, &query));
    match matching::choose(called.collect(), &query, |(name, _)| name.as_str()) {
        Choice::None => Choice::None,
        Choice::One((_, open)) => Choice::One(open.clone()),
        Choice::Several(several) => Choice::Several(several.into_iter().map(|(_, open)| open.clone()).collect()),
    }
}

/// That no timer has this name. `none`: what the data calls those that were found.
pub(super) fn timer_not_found(context: &RunContext, name: &str, timers: &[OpenEntry], none: &str) -> ToolResult {
    let there = timers.iter().take(SPOKEN_ITEMS_MAX).map(|timer| format!("the {}", timer_name(&timer.entry)));
    let there = spoken::list(&there.collect::<Vec<_>>());
    let say = format!("I don't find the {} timer. You have {there}.", cut(name, ITEM_CHARS_MAX));
    let running: Vec<_> = timers.iter().map(|timer| describe(context, timer)).collect();
    told(say, "Timer", "Not found", json!({none: [], "running": running}))
}

fn has_name(entry: &ScheduleEntry) -> bool {
    matches!(entry.kind, ScheduleKind::Timer { name: Some(_) })
}

/// The words of a timer's name without the word "timer". "10 minute" and "ten minute" are the same.
fn spelled(name: &str) -> String {
    let words = matching::words(name).into_iter().filter(|word| word != "timer" && word != "timers");
    let words: Vec<String> = words.map(|word| word.parse::<u64>().map_or(word, spoken::number)).collect();
    words.join(" ")
}

/// Asks which of several timers is meant.
pub(super) fn which_timer(context: &RunContext, timers: &[OpenEntry]) -> ToolResult {
    let names: Vec<String> = timers.iter().map(|timer| format!("the {}", timer_name(&timer.entry))).collect();
    // Timers with the same name are distinguished by their remaining time.
    let alike = names.iter().enumerate().any(|(at, name)| names.iter().skip(at + 1).any(|other| other == name));
    let names: Vec<String> = if alike {
        timers
            .iter()
            .zip(&names)
            .map(|(timer, name)| {
                let left = spoken::duration(remaining_seconds(context, timer));
                format!("{name} with {left} left")
            })
            .collect()
    } else {
        names
    };
    ask_which(context, "Which timer?", &names, timers)
}
