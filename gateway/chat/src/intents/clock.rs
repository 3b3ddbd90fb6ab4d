//! Times, dates and appointments in words, resolved against the moment of speaking.
//!
//! Without "am" or "pm" an hour means its next occurrence today; on another day, hours from one to
//! six are in the afternoon and the others in the morning or at noon. A day without an hour means nine o'clock.

use jiff::{
    SignedDuration, ToSpan,
    civil::{Date, DateTime, Time, Weekday},
};

use super::{duration, utterance::View, words::Kind};

/// Readings of a time of day as `HH:MM`, longest first.
pub(super) fn read_time(view: View<'_>, at: usize) -> Vec<(usize, String)> {
    plans(view, at)
        .into_iter()
        .filter(|(_, plan)| plan.clock.is_some() && plan.date.is_none())
        .filter_map(|(end, plan)| Some((end, plan.resolve(view.utterance.now)?)))
        .map(|(end, when)| (end, when.strftime("%H:%M").to_string()))
        .collect()
}

/// Readings of a date as `YYYY-MM-DD`, longest first.
pub(super) fn read_date(view: View<'_>, at: usize) -> Vec<(usize, String)> {
    date(view, at, view.utterance.now.date()).into_iter().map(|(end, date)| (end, date.to_string())).collect()
}

/// Readings of an appointment as `YYYY-MM-DDTHH:MM`, longest first.
pub(super) fn read_when(view: View<'_>, at: usize) -> Vec<(usize, String)> {
    let now = view.utterance.now;
    let format = |when: DateTime| when.strftime("%Y-%m-%dT%H:%M").to_string();
    if view.text(at) == "in" {
        let spans = duration::read(view, at + 1).into_iter();
        let later = spans.filter_map(|(end, seconds)| {
            let when = now.checked_add(SignedDuration::from_secs(seconds)).ok()?;
            Some((end, format(when)))
        });
        let later: Vec<_> = later.collect();
        if !later.is_empty() {
            return later;
        }
    }
    plans(view, at).into_iter().filter_map(|(end, plan)| Some((end, format(plan.resolve(now)?)))).collect()
}

/// A time on the dial.
#[derive(Clone, Copy, Debug)]
struct Clock {
    hour: i8,
    minute: i8,
    /// Whether the half of the day is known.
    exact: bool,
}

/// A part of the day: the half of the day it implies for an hour, and its default hour.
#[derive(Clone, Copy, Debug)]
struct Part {
    afternoon: bool,
    hour: i8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    date: Option<Date>,
    part: Option<Part>,
    clock: Option<Clock>,
}

impl Plan {
    fn resolve(self, now: DateTime) -> Option<DateTime> {
        let today = now.date();
        let time = |hour: i8, minute: i8| Time::new(hour, minute, 0, 0).ok();
        let Some(clock) = self.clock else {
            // A day without an hour: nine o'clock, if that is still in the future.
            let hour = self.part.map_or(9, |part| part.hour);
            let when = self.date.unwrap_or(today).to_datetime(time(hour, 0)?);
            return match self.date {
                None if when <= now => when.checked_add(1.day()).ok(),
                Some(_) if when <= now => None,
                _ => Some(when),
            };
        };
        let hour = match self.part {
            Some(part) if part.afternoon && clock.hour < 12 && !clock.exact => clock.hour + 12,
            Some(part) if !part.afternoon && clock.hour == 12 && !clock.exact => 0,
            _ => clock.hour,
        };
        let exact = clock.exact || self.part.is_some();
        if exact {
            let when = self.date.unwrap_or(today).to_datetime(time(hour, clock.minute)?);
            let passed = self.date.is_none() && when <= now;
            return if passed { when.checked_add(1.day()).ok() } else { Some(when) };
        }
        let likely = if (1..=6).contains(&hour) { hour + 12 } else { hour };
        match self.date {
            Some(date) if date != today => Some(date.to_datetime(time(likely, clock.minute)?)),
            _ => {
                let next = [hour % 12, hour % 12 + 12]
                    .into_iter()
                    .filter_map(|hour| Some(today.to_datetime(time(hour, clock.minute)?)))
                    .find(|when| *when > now);
                let tomorrow = || {
                    let date = today.checked_add(1.day()).ok()?;
                    Some(date.to_datetime(time(likely, clock.minute)?))
                };
                next.or_else(tomorrow)
            }
        }
    }
}

/// Every way to read date, part of the day and time, in any order, from `at`; longest first.
fn plans(view: View<'_>, at: usize) -> Vec<(usize, Plan)> {
    let mut out = Vec::new();
    let preposition = at > 0 && is_preposition(view.utterance.words[at - 1].text.as_str());
    extend(view, at, Plan::default(), preposition, &mut out);
    out.sort_by_key(|(end, _)| std::cmp::Reverse(*end));
    out.dedup_by_key(|(end, _)| *end);
    out
}

fn extend(view: View<'_>, at: usize, plan: Plan, bare: bool, out: &mut Vec<(usize, Plan)>) {
    let today = view.utterance.now.date();
    if plan.clock.is_none() {
        let preposition = is_preposition(view.text(at));
        let from = at + usize::from(preposition);
        for (end, clock, strong) in clocks(view, from) {
            if strong || bare || preposition || plan.date.is_some() {
                let plan = Plan { clock: Some(clock), ..plan };
                out.push((end, plan));
                extend(view, end, plan, true, out);
            }
        }
    }
    if plan.date.is_none()
        && let Some((end, date)) = date(view, at, today)
    {
        let plan = Plan { date: Some(date), ..plan };
        out.push((end, plan));
        extend(view, end, plan, true, out);
    }
    if plan.part.is_none()
        && let Some((end, part, is_today)) = part(view, at, plan)
    {
        let plan = Plan { part: Some(part), date: plan.date.or(is_today.then_some(today)), ..plan };
        out.push((end, plan));
        extend(view, end, plan, true, out);
    }
}

fn is_preposition(word: &str) -> bool {
    matches!(word, "at" | "by" | "around" | "about")
}

/// Part of the day, and whether it means today.
fn part(view: View<'_>, at: usize, plan: Plan) -> Option<(usize, Part, bool)> {
    if let Some(end) = view.phrase(at, "tonight") {
        let part = Part { afternoon: true, hour: 20 };
        return Some((end, part, true));
    }
    let (from, today) = if let Some(end) = view.phrase(at, "this") {
        (end, true)
    } else if let Some(end) = view.any_phrase(at, &["in the", "at"]) {
        (end, false)
    } else if plan.date.is_some() {
        (at, false)
    } else {
        return None;
    };
    let (afternoon, hour) = match view.text(from) {
        "morning" => (false, 9),
        "afternoon" => (true, 15),
        "evening" => (true, 19),
        "night" => (true, 21),
        _ => return None,
    };
    Some((from + 1, Part { afternoon, hour }, today))
}

/// One past the last word, the time, and whether it is valid without a preposition.
fn clocks(view: View<'_>, at: usize) -> Vec<(usize, Clock, bool)> {
    let mut out = Vec::new();
    let mut push = |end: usize, hour: i64, minute: i64, exact: bool, strong: bool| {
        let Ok(hour) = i8::try_from(hour) else { return };
        let Ok(minute) = i8::try_from(minute) else {
            return;
        };
        if let Some((after, afternoon)) = meridiem(view, end)
            && (1..=12).contains(&hour)
        {
            let clock = Clock { hour: hour % 12 + if afternoon { 12 } else { 0 }, minute, exact: true };
            out.push((after, clock, true));
        }
        let clock = Clock { hour, minute, exact: exact || hour > 12 || hour == 0 };
        out.push((end, clock, strong));
    };
    match view.text(at) {
        "noon" | "midday" => push(at + 1, 12, 0, true, true),
        "midnight" => push(at + 1, 0, 0, true, true),
        _ => {}
    }
    if let Some(Kind::Clock(hour, minute)) = view.word(at).map(|word| word.kind) {
        push(at + 1, hour.into(), minute.into(), false, true);
    }
    if let Some((end, minute)) = minutes(view, at) {
        let direction = view.text(end);
        if let Some((end, hour)) = view.integer(end + 1, 1..=12) {
            match direction {
                "past" | "after" => push(end, hour, minute, false, true),
                "to" | "before" | "till" => {
                    push(end, (hour + 10) % 12 + 1, 60 - minute, false, true);
                }
                _ => {}
            }
        }
    }
    if let Some((end, hour)) = view.integer(at, 0..=23) {
        if let Some((end, minute)) = view.integer(end, 10..=59) {
            push(end, hour, minute, false, true);
        }
        match view.text(end) {
            "o'clock" | "oclock" => push(end + 1, hour, 0, false, true),
            _ => push(end, hour, 0, false, false),
        }
    }
    out
}

fn minutes(view: View<'_>, at: usize) -> Option<(usize, i64)> {
    match view.text(at) {
        "half" => Some((at + 1, 30)),
        "quarter" => Some((at + 1, 15)),
        "a" if view.text(at + 1) == "quarter" => Some((at + 2, 15)),
        _ => {
            let (end, minutes) = view.integer(at, 1..=59)?;
            let unit = matches!(view.text(end), "minutes" | "minute");
            Some((end + usize::from(unit), minutes))
        }
    }
}

/// One past "am" or "pm", and whether it is the afternoon.
fn meridiem(view: View<'_>, at: usize) -> Option<(usize, bool)> {
    if let Some(end) = view.any_phrase(at, &["am", "a m"]) {
        return Some((end, false));
    }
    view.any_phrase(at, &["pm", "p m"]).map(|end| (end, true))
}

/// A date, at most one reading for each length, longest first.
fn date(view: View<'_>, at: usize, today: Date) -> Option<(usize, Date)> {
    let at = at + usize::from(matches!(view.text(at), "on" | "for"));
    let in_days = |days: i64| today.checked_add(days.days()).ok();
    let relative =
        [("the day after tomorrow", 2), ("day after tomorrow", 2), ("tomorrow", 1), ("today", 0), ("next week", 7)];
    for (phrase, days) in relative {
        if let Some(end) = view.phrase(at, phrase) {
            return Some((end, in_days(days)?));
        }
    }
    if let Some(weekday) = weekday(view.text(at)) {
        return Some((at + 1, in_days(days_until(today, weekday))?));
    }
    if let Some(weekday) = weekday(view.text(at + 1)) {
        let days = match view.text(at) {
            "this" | "coming" => days_until(today, weekday),
            // "next" is in the week that begins on the coming Monday.
            "next" => {
                let monday = days_until(today, Weekday::Monday);
                monday + i64::from(weekday.to_monday_zero_offset())
            }
            _ => return None,
        };
        return Some((at + 2, in_days(days)?));
    }
    month_and_day(view, at, today)
}

/// From 1 to 7: a weekday's name never means today.
fn days_until(today: Date, weekday: Weekday) -> i64 {
    let days = today.weekday().until(weekday);
    i64::from(if days == 0 { 7 } else { days })
}

/// "the third of May", "May 3rd", "3 May 2027".
fn month_and_day(view: View<'_>, at: usize, today: Date) -> Option<(usize, Date)> {
    let (end, month, day) = if let Some(month) = month(view.text(at)) {
        let from = at + 1 + usize::from(view.text(at + 1) == "the");
        let (end, day) = day(view, from)?;
        (end, month, day)
    } else {
        let from = at + usize::from(view.text(at) == "the");
        let (end, day) = day(view, from)?;
        let end = end + usize::from(view.text(end) == "of");
        (end + 1, month(view.text(end))?, day)
    };
    if let Some((end, year)) = view.integer(end, 2000..=2199) {
        return Some((end, Date::new(i16::try_from(year).ok()?, month, day).ok()?));
    }
    // The 29th of February may be years away.
    (0..=4)
        .filter_map(|years| Date::new(today.year() + years, month, day).ok())
        .find(|date| *date >= today)
        .map(|date| (end, date))
}

fn day(view: View<'_>, at: usize) -> Option<(usize, i8)> {
    const ORDINALS: [&str; 20] = [
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "ninth",
        "tenth",
        "eleventh",
        "twelfth",
        "thirteenth",
        "fourteenth",
        "fifteenth",
        "sixteenth",
        "seventeenth",
        "eighteenth",
        "nineteenth",
        "twentieth",
    ];
    let ordinal = |word: &str| -> Option<i8> {
        let index = ORDINALS.iter().position(|name| *name == word)?;
        i8::try_from(index + 1).ok()
    };
    let word = view.word(at)?;
    if let Kind::Ordinal(day) = word.kind {
        return Some((at + 1, i8::try_from(day).ok()?));
    }
    if let Some(day) = ordinal(&word.text) {
        return Some((at + 1, day));
    }
    let tens = match word.text.as_str() {
        "thirtieth" => return Some((at + 1, 30)),
        "twenty" => 20,
        "thirty" => 30,
        _ => 0,
    };
    if tens > 0
        && let Some(units) = ordinal(view.text(at + 1)).filter(|units| *units < 10)
    {
        return Some((at + 2, tens + units));
    }
    let (end, day) = view.integer(at, 1..=31)?;
    Some((end, i8::try_from(day).ok()?))
}

fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" => Weekday::Monday,
        "tuesday" => Weekday::Tuesday,
        "wednesday" => Weekday::Wednesday,
        "thursday" => Weekday::Thursday,
        "friday" => Weekday::Friday,
        "saturday" => Weekday::Saturday,
        "sunday" => Weekday::Sunday,
        _ => return None,
    })
}

fn month(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let index = MONTHS.iter().position(|name| *name == word)?;
    i8::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::super::utterance::Utterance;
    use super::*;

    fn read(source: &str, reader: fn(View<'_>, usize) -> Vec<(usize, String)>) -> Option<String> {
        let now = jiff::civil::date(2026, 5, 13).at(14, 30, 0, 0); // a Wednesday
        let utterance = Utterance::new(source, now);
        reader(utterance.view(usize::MAX), 0)
            .into_iter()
            .find(|(end, _)| *end == utterance.words.len())
            .map(|(_, value)| value)
    }

    #[test]
    fn appointments_are_resolved() {
        let cases = [
            ("at 5 pm", "2026-05-13T17:00"),
            ("at 5 in the morning", "2026-05-14T05:00"),
            ("quarter to five", "2026-05-13T16:45"),
            ("half past 3", "2026-05-13T15:30"),
            ("at quarter to one", "2026-05-14T12:45"),
            ("17:30", "2026-05-13T17:30"),
            ("at 9:15", "2026-05-13T21:15"),
            ("at noon", "2026-05-14T12:00"),
            ("tomorrow at eight", "2026-05-14T08:00"),
            ("tomorrow at three", "2026-05-14T15:00"),
            ("at eight tomorrow evening", "2026-05-14T20:00"),
            ("tonight at nine", "2026-05-13T21:00"),
            ("next monday", "2026-05-18T09:00"),
            ("next friday at 10 am", "2026-05-22T10:00"),
            ("on friday", "2026-05-15T09:00"),
            ("the third of june at noon", "2026-06-03T12:00"),
            ("on may 3rd", "2027-05-03T09:00"),
            ("in two hours", "2026-05-13T16:30"),
            ("at six thirty", "2026-05-13T18:30"),
            ("at 12 am", "2026-05-14T00:00"),
            ("on the twenty first of december", "2026-12-21T09:00"),
        ];
        for (source, expected) in cases {
            assert_eq!(read(source, read_when).as_deref(), Some(expected), "{source}");
        }
        for source in ["five", "at", "the third", "this", "morning", "at 25", "today", "may"] {
            assert_eq!(read(source, read_when), None, "{source}");
        }
    }

    #[test]
    fn times_and_dates_stand_alone() {
        assert_eq!(read("at 5 pm", read_time).as_deref(), Some("17:00"));
        assert_eq!(read("noon", read_time).as_deref(), Some("12:00"));
        assert_eq!(read("tomorrow", read_time), None);
        assert_eq!(read("tomorrow", read_date).as_deref(), Some("2026-05-14"));
        assert_eq!(read("february 29th", read_date).as_deref(), Some("2028-02-29"));
        assert_eq!(read("february 30th", read_date), None);
    }
}
