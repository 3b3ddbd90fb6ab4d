//! `clock.date`: a date, its day of the week, and how far it is.

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use jiff::civil::Date;
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, told};
use crate::{
    arguments::{Arguments, Refusal},
    registry::RunContext,
    spoken,
};

struct ClockDate;

inventory::submit! { BuiltIn(&ClockDate) }

/// Of a date, with room for what is none.
const DATE_CHARS_MAX: usize = 40;

#[async_trait]
impl Tool for ClockDate {
    fn definition(&self) -> Definition {
        Definition {
            name: "clock.date",
            title: "Tell the date",
            description: "Tells the date and the day of the week where the wearer is: of today, or of a date, with the days \
                          until then.",
            properties: json!({
                "date": {"type": "string", "format": "date", "question": false, "description": "YYYY-MM-DD. Leave out for today.", "examples": ["2026-12-24"]},
            }),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "what day is it today",
                "what (day|date) is it [today]",
                "what (day|date) is [it] today",
                "which (day|date) is [it] today",
                "which (day|date) is it [today]",
                "what is (the|today's) (date|day) [today]",
                "(tell|give|show) me (the|today's) (date|day)",
                "(tell me|do you know) what (day|date) it is [today]",
                "what day of the (week|month) is it [today]",
                "what day of the (week|month) is today",
                "(what|which) (day|date) [of the week] do we have [today]",
                "what is the (day of the week|weekday) [today]",
                "is (it|today) [a] (monday|tuesday|wednesday|thursday|friday|saturday|sunday) [today]",
                "today's date",
                "the date today",
                "current date",
                "(what|which) year is it [now]",
                "(what|which) (day|date|weekday) [of the week] (is|will it be) {date:date}",
                "what is the (date|day|weekday) [of|on] {date:date}",
                "(what|which) (day|weekday) [of the week] does {date:date} fall on",
                "how (many days|long) [is it|are there|are left|is left|do i have] (until|till|to) {date:date}",
                "how many days (is it|are there|are left) (until|till|to) {date:date}",
            ],
            guidance: None,
            flags: READ_ONLY,
        }
    }

    fn progress(&self) -> Option<&'static str> {
        Some("Looking up the date")
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let today = spoken::now(&*context.ports.clock).date();
        let Some(date) = arguments.text_optional("date", DATE_CHARS_MAX)? else {
            let say = today.strftime("Today is %A, %B %-d, %Y.").to_string();
            return Ok(answer(today, say, today.strftime("%B %-d, %Y").to_string(), 0));
        };
        let date: Date = date.parse().map_err(|_error| {
            Refusal::arguments(format!("'date' is no date such as 2026-03-09: {date}"), "Which date?")
        })?;
        let days = i64::from(today.until(date).map_or(0, |span| span.get_days()));
        let apart = spoken::count(usize::try_from(days.unsigned_abs()).unwrap_or(usize::MAX), "day");
        let written = date.strftime("%A, %B %-d, %Y");
        let (say, when) = match days {
            0 => (format!("Today is {written}."), "today".to_owned()),
            1 => (format!("Tomorrow is {written}."), "tomorrow".to_owned()),
            -1 => (format!("Yesterday was {written}."), "yesterday".to_owned()),
            2.. => (format!("{written} is in {apart}."), format!("in {apart}")),
            _ => (format!("{written} was {apart} ago."), format!("{apart} ago")),
        };
        Ok(answer(date, say, format!("{}\n{when}", date.strftime("%B %-d, %Y")), days))
    }
}

fn answer(date: Date, say: String, shown: String, days: i64) -> ToolResult {
    let weekday = date.strftime("%A").to_string();
    let data = json!({"date": date.to_string(), "weekday": weekday, "days_from_today": days});
    told(say, &weekday, shown, data)
}
