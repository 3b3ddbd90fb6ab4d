//! `reminder.set`: sets a reminder.

use async_trait::async_trait;
use gateway_core::vocab::{Due, OpenEntry, ScheduleKind, ToolResult};
use jiff::{Timestamp, ToSpan, Zoned, civil::DateTime, tz::TimeZone};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, schedule, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{QUERY_CHARS_MAX, REMINDER_CHARS_MAX, REMINDER_SECONDS_MAX},
    registry::RunContext,
    spoken,
};

/// Texts of alarms, as the sentences of each language set them.
const ALARMS: [&str; 8] = ["Alarm", "Wake up", "Wecker", "Aufwachen", "Alarma", "Despierta", "Alarme", "Debout"];

/// Whether a reminder is an alarm.
pub(super) fn is_alarm(text: &str) -> bool {
    ALARMS.contains(&text)
}

struct ReminderSet;

inventory::submit! { BuiltIn(&ReminderSet) }

const ASK_WHAT: &str = "What should I remind you of?";
const ASK_WHEN: &str = "When should I remind you?";
/// Of a date without a time of day.
const DATE_BYTES: usize = "2026-03-09".len();

#[async_trait]
impl Tool for ReminderSet {
    fn definition(&self) -> Definition {
        Definition {
            name: "reminder.set",
            title: "Set a reminder",
            description: "Reminds the wearer of something, after a length of time or at a local \
                          date and time. Give exactly one of in_seconds and at.",
            properties: json!({
                "text": {"type": "string", "question": ASK_WHAT, "description": "What to be reminded of, as the wearer would hear it.", "examples": ["check the oven"]},
                "in_seconds": {"type": "integer", "question": ASK_WHEN, "description": "Seconds from now."},
                "at": {"type": "string", "question": ASK_WHEN, "description": "Local date and time, YYYY-MM-DDTHH:MM."},
            }),
            required: &["text"],
            phrases: &[
                "remind me in {in_seconds:duration} (to|that|about|of) {text}",
                "remind me (to|that|about|of) {text} in {in_seconds:duration}",
                "remind me {in_seconds:duration} from now (to|that|about|of) {text}",
                "remind me (to|that|about|of) {text} {in_seconds:duration} from now",
                "in {in_seconds:duration} remind me (to|that|about|of) {text}",
                "(set|add|create|make|give me|set me|i need) [a] [new] reminder [for me] [for] in {in_seconds:duration} (to|that|about|for) {text}",
                "(set|add|create|make|give me|set me|i need) [a] [new] reminder [for me] (to|that|about|for) {text} in {in_seconds:duration}",
                "(do not|don't) let me forget to {text} in {in_seconds:duration}",
                "remind me {at:when} (to|that|about|of) {text}",
                "remind me (to|that|about|of) {text} {at:when}",
                "{at:when} remind me (to|that|about|of) {text}",
                "(set|add|create|make|give me|set me|i need) [a] [new] reminder [for me] [for] {at:when} (to|that|about|for) {text}",
                "(set|add|create|make|give me|set me|i need) [a] [new] reminder [for me] (to|that|about|for) {text} {at:when}",
                "(do not|don't) let me forget to {text} {at:when}",
                "remember to remind me in {in_seconds:duration} (to|that|about|of) {text}",
                "remember to remind me {at:when} (to|that|about|of) {text}",
                "wake me [up] {at:wake} {text=Wake up}",
                "wake me [up] in {in_seconds:duration} {text=Wake up}",
                "(set|make|create|give me|set me|i need) [a|an|the] [new] alarm [for] {at:wake} {text=Alarm}",
            ],
            guidance: Some("If the wearer gave no time for a reminder, ask for it instead of guessing."),
            flags: CHANGES,
        }
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let text = arguments.text_required("text", REMINDER_CHARS_MAX, ASK_WHAT)?;
        let in_seconds = arguments.integer("in_seconds");
        let at = arguments.text_optional("at", QUERY_CHARS_MAX)?;
        let now = spoken::now(&*context.ports.clock);
        let (due, when, moved) = match (in_seconds, at) {
            (Some(seconds), None) => {
                let seconds = check_ahead(seconds)?;
                let when = format!("in {}", spoken::duration(seconds));
                let duration_ms = seconds * 1_000;
                (Due::In { duration_ms }, Some(when), false)
            }
            (None, Some(at)) => {
                let (moment, moved) = moment(&at, &now, &context.ports.clock.zone())?;
                check_ahead(now.duration_until(&moment).as_secs().max(1))?;
                let wall_ms = moment.timestamp().as_millisecond();
                (Due::At { wall_ms }, None, moved)
            }
            (None, None) => {
                return Err(Refusal::arguments(
                    "One of 'in_seconds' and 'at' must be given. Ask the wearer when.",
                    ASK_WHEN,
                ));
            }
            (Some(_), Some(_)) => {
                return Err(Refusal::arguments("Only one of 'in_seconds' and 'at' may be given.", ASK_WHEN));
            }
        };
        schedule::check_room(context).await?;
        let kind = ScheduleKind::Reminder { text: text.clone() };
        let entry = context.ports.schedule.add(&context.user, due, kind).await?;
        let due = schedule::due(context, &entry);
        let when = when.unwrap_or_else(|| due.clone());
        let why = if moved { "That time has passed today, so the" } else { "The" };
        let say = spoken::sentence(&format!("{why} reminder is set for {}: {text}", bare(&when)));
        let say = if moved {
            say
        } else {
            // If the time was not moved, the short form is said.
            spoken::sentence(&format!("I'll remind you {when}: {text}"))
        };
        let shown = spoken::capitalised(&format!("{}\n{text}", bare(&due)));
        let data = schedule::describe(context, &OpenEntry { entry, left_ms: None });
        Ok(told(say, "Reminder", shown, data))
    }
}

/// The time as it follows "for": "at 5 PM" becomes "5 PM", "on Friday at noon" becomes "Friday at noon".
fn bare(when: &str) -> &str {
    when.strip_prefix("at ").or_else(|| when.strip_prefix("on ")).unwrap_or(when)
}

fn check_ahead(seconds: i64) -> Result<u64, Refusal> {
    if seconds < 1 {
        return Err(Refusal::arguments("The time must lie in the future. Ask the wearer when.", ASK_WHEN));
    }
    if seconds > REMINDER_SECONDS_MAX {
        return Err(Refusal::arguments(
            format!("A reminder may lie at most {REMINDER_SECONDS_MAX} seconds ahead."),
            "That is too far away. I can remind you within the next five years.",
        ));
    }
    Ok(seconds.unsigned_abs())
}

/// The instant of a local date and time. A time of day that has passed today means tomorrow (`true`); an earlier day is
/// an error. In the hour that a clock change repeats, the first occurrence that is still to come is meant; in a skipped
/// hour, the time moved forward by the gap. One with an offset or a time zone is the instant that it names.
fn moment(at: &str, now: &Zoned, zone: &TimeZone) -> Result<(Zoned, bool), Refusal> {
    let misread = || {
        Refusal::arguments(
            "'at' must be a local date and time like 2026-03-09T17:30.",
            "I didn't get the time. When should I remind you?",
        )
    };
    let past = || {
        Refusal::arguments(
            "'at' lies in the past. Ask the wearer for another time.",
            "That time has already passed. When should I remind you?",
        )
    };
    if let Ok(instant) = at.parse::<Zoned>().map(|at| at.timestamp()).or_else(|_| at.parse::<Timestamp>()) {
        let at = instant.to_zoned(zone.clone());
        return if at > *now { Ok((at, false)) } else { Err(past()) };
    }
    // A date alone would be midnight.
    if at.trim().len() <= DATE_BYTES {
        return Err(misread());
    }
    let at: DateTime = at.parse().map_err(|_| misread())?;
    let resolve = |at: DateTime| -> Option<Zoned> {
        let ambiguous = zone.to_ambiguous_zoned(at);
        let first = ambiguous.clone().compatible().ok()?;
        if first > *now {
            return Some(first);
        }
        ambiguous.later().ok()
    };
    let first = resolve(at).ok_or_else(misread)?;
    if first > *now {
        return Ok((first, false));
    }
    if at.date() == now.date() {
        let next = at.checked_add(1.day()).map_err(|_| misread())?;
        return Ok((resolve(next).ok_or_else(misread)?, true));
    }
    Err(past())
}
