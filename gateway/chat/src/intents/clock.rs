//! Times, dates and appointments in words, resolved against the moment of speaking.
//!
//! Without "am" or "pm" an hour means its next occurrence today; on another day, hours from one to six are in the
//! afternoon and the others in the morning or at noon. Who writes a leading zero ("07:00") writes 24 hours. A day without
//! an hour means nine o'clock. "This Friday" on a Friday is today until that time has passed. The hours behind midnight
//! belong to the night before: "tomorrow night at one" is of the day after.

use jiff::{
    RoundMode, Span, ToSpan, Unit, Zoned,
    civil::{Date, DateTime, DateTimeRound, Time},
};

use super::{
    date,
    duration::{self, Length},
    language::{DayPart, DayScope, Half},
    utterance::View,
    words::Kind,
};

/// The hour at which a night is over.
const MORNING: i8 = 6;

/// Readings of a time of day as `HH:MM`, longest first.
pub(super) fn read_time(view: View<'_>, at: usize) -> Vec<(usize, String)> {
    plans(view, at)
        .into_iter()
        .filter(|(_, plan)| plan.clock.is_some() && plan.date.is_none())
        .filter_map(|(end, plan)| Some((end, plan.resolve(view.utterance.now.datetime())?)))
        .map(|(end, when)| (end, when.strftime("%H:%M").to_string()))
        .collect()
}

/// Readings of a date as `YYYY-MM-DD`, longest first.
pub(super) fn read_date(view: View<'_>, at: usize) -> Vec<(usize, String)> {
    date::read(view, at, view.utterance.now.date()).into_iter().map(|(end, date)| (end, date.to_string())).collect()
}

/// Readings of an appointment as `YYYY-MM-DDTHH:MM`, longest first.
pub(super) fn read_when(view: View<'_>, at: usize) -> Vec<(usize, String)> {
    let now = &view.utterance.now;
    if let Some(ahead) = view.any_phrase(at, view.language().length.ahead) {
        let lengths = duration::lengths(view, ahead).into_iter();
        let later: Vec<_> = lengths.filter_map(|(end, length)| Some((end, written(later(now, length)?)))).collect();
        if !later.is_empty() {
            return later;
        }
    }
    resolved(view, plans(view, at))
}

/// Readings of a time at which somebody gets up, in the same form: an hour alone is one of the morning.
pub(super) fn read_wake(view: View<'_>, at: usize) -> Vec<(usize, String)> {
    let plans = plans(view, at).into_iter().map(|(end, plan)| (end, Plan { wakes: true, ..plan }));
    resolved(view, plans.collect())
}

fn resolved(view: View<'_>, plans: Vec<(usize, Plan)>) -> Vec<(usize, String)> {
    let now = view.utterance.now.datetime();
    plans.into_iter().filter_map(|(end, plan)| Some((end, written(plan.resolve(now)?)))).collect()
}

fn written(when: DateTime) -> String {
    when.strftime("%Y-%m-%dT%H:%M").to_string()
}

/// The local time so much later, to the minute and not before it. Days keep the time of day; then hours, even 24 of them, are counted
/// over a clock change.
fn later(now: &Zoned, length: Length) -> Option<DateTime> {
    let span = Span::new().try_days(length.days).ok()?.try_seconds(length.seconds).ok()?;
    let minute = DateTimeRound::new().smallest(Unit::Minute).mode(RoundMode::Ceil);
    now.checked_add(span).ok()?.datetime().round(minute).ok()
}

/// A time on the dial.
#[derive(Clone, Copy, Debug)]
struct Clock {
    hour: i8,
    minute: i8,
    /// Whether the half of the day is known.
    exact: bool,
    /// Whether it has a leading zero, and so is in the morning where no part of the day is named.
    padded: bool,
}

/// A part of the day, and its default hour.
#[derive(Clone, Copy, Debug)]
struct Part {
    half: Half,
    hour: i8,
}

impl Part {
    /// The hour of the day.
    fn hour_of(self, clock: Clock) -> i8 {
        match (self.half, clock.hour) {
            (_, hour) if clock.exact => hour,
            (Half::Morning | Half::Night(_), 12) => 0,
            (Half::Morning, hour) | (_, hour @ 12) | (Half::Midday, hour @ 10..) => hour,
            (Half::Night(early), hour) if hour <= early => hour,
            (_, hour) => hour + 12,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    date: Option<Date>,
    /// Whether the date is a weekday that is today, and once its time has passed the same one of the next week.
    weekly: bool,
    part: Option<Part>,
    clock: Option<Clock>,
    /// Whether an hour alone is one of the morning.
    wakes: bool,
}

impl Plan {
    fn resolve(self, now: DateTime) -> Option<DateTime> {
        let when = self.on_date(now);
        if self.weekly && when.is_none_or(|when| when <= now) {
            let next = now.date().checked_add(1.week()).ok()?;
            return Plan { date: Some(next), weekly: false, ..self }.on_date(now);
        }
        when
    }

    /// The time on its date, which may have passed.
    fn on_date(self, now: DateTime) -> Option<DateTime> {
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
        let hour = self.part.map_or(clock.hour, |part| part.hour_of(clock));
        if let Some(Part { half: Half::Night(_), .. }) = self.part
            && hour < MORNING
        {
            return self.behind_midnight(now, time(hour, clock.minute)?);
        }
        let exact = clock.exact || clock.padded || self.part.is_some() || (self.wakes && hour < 12);
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
                if self.weekly { next } else { next.or_else(tomorrow) }
            }
        }
    }

    /// The time in the night that follows the day, or in the one that goes on.
    fn behind_midnight(self, now: DateTime, time: Time) -> Option<DateTime> {
        let today = now.date();
        let date = self.date.unwrap_or(today);
        let goes_on = date == today && now.hour() < MORNING && today.to_datetime(time) > now;
        let date = if goes_on { date } else { date.checked_add(1.day()).ok()? };
        Some(date.to_datetime(time))
    }
}

/// Every way to read date, part of the day and time, in any order, from `at`; longest first.
fn plans(view: View<'_>, at: usize) -> Vec<(usize, Plan)> {
    let mut out = Vec::new();
    let before = at.checked_sub(1).map_or("", |before| view.utterance.words[before].text.as_str());
    let preposition = view.language().clock.at_last.contains(&before);
    extend(view, at, Plan::default(), preposition, &mut out);
    out.sort_by_key(|(end, _)| std::cmp::Reverse(*end));
    out.dedup_by_key(|(end, _)| *end);
    out
}

fn extend(view: View<'_>, at: usize, plan: Plan, bare: bool, out: &mut Vec<(usize, Plan)>) {
    let today = view.utterance.now.date();
    if plan.clock.is_none() {
        let preposition = view.any_phrase(at, view.language().clock.at);
        for (end, clock, strong) in clocks(view, preposition.unwrap_or(at)) {
            if strong || bare || preposition.is_some() || plan.date.is_some() {
                let plan = Plan { clock: Some(clock), ..plan };
                out.push((end, plan));
                extend(view, end, plan, true, out);
            }
        }
    }
    if plan.date.is_none() {
        if let Some((end, date)) = date::read(view, at, today) {
            let weekly = date == today && date::weekday(view, end - 1).is_some();
            let plan = Plan { date: Some(date), weekly, ..plan };
            out.push((end, plan));
            extend(view, end, plan, true, out);
        } else if let Some((end, date)) = date::read_bare(view, at, today) {
            let told = plan.clock.is_some();
            let plan = Plan { date: Some(date), ..plan };
            // "the third" alone could be anything.
            out.extend(told.then_some((end, plan)));
            extend(view, end, plan, true, out);
        }
    }
    if plan.part.is_none()
        && let Some((end, part, is_today)) = part(view, at, plan)
    {
        let plan = Plan { part: Some(part), date: plan.date.or(is_today.then_some(today)), ..plan };
        out.push((end, plan));
        extend(view, end, plan, true, out);
    }
}

/// Part of the day, and whether it means today.
fn part(view: View<'_>, at: usize, plan: Plan) -> Option<(usize, Part, bool)> {
    let parts = view.language().clock.parts.iter();
    let fits = |part: &&DayPart| part.when != DayScope::BehindDate || plan.date.is_some();
    let found = parts.filter(fits).filter_map(|part| Some((view.phrase(at, part.words)?, part)));
    let (end, DayPart { half, hour, when, .. }) = found.max_by_key(|(end, _)| *end)?;
    Some((end, Part { half: *half, hour: *hour }, *when == DayScope::Today))
}

/// A time without its end: one past its last word, hour, minute, whether the half of the day is known, and whether it
/// is valid without a preposition.
type Dial = (usize, i64, i64, bool, bool);

/// One past the last word, the time, and whether it is valid without a preposition.
fn clocks(view: View<'_>, at: usize) -> Vec<(usize, Clock, bool)> {
    let mut out = Vec::new();
    let mut push = |(end, hour, minute, exact, strong): Dial, padded: bool| {
        let (Ok(hour), Ok(minute)) = (i8::try_from(hour), i8::try_from(minute)) else { return };
        if let Some((after, hour)) = meridiem(view, end, hour) {
            out.push((after, Clock { hour, minute, exact: true, padded }, true));
        }
        let clock = Clock { hour, minute, exact: exact || hour > 12 || hour == 0, padded };
        out.push((end, clock, strong));
    };
    let words = &view.language().clock;
    let padded = view.text(at).starts_with('0');
    if let Some((end, hour)) = view.valued(at, words.named) {
        // Where minutes are told behind the hour: "midi vingt".
        let least = if words.behind.is_empty() { None } else { Some(10) };
        let exact = |(end, hour, minute, ..): Dial| (end, hour, minute, true, true);
        with_minutes(view, end, hour, least).into_iter().map(exact).for_each(|dial| push(dial, false));
        push((end, hour, 0, true, true), false);
    }
    if let Some(Kind::Clock(hour, minute)) = view.word(at).map(|word| word.kind) {
        // "18:30 Uhr"
        let end = view.any_phrase(at + 1, words.hour).unwrap_or(at + 1);
        push((end, hour.into(), minute.into(), false, true), padded);
    }
    relative(view, at).into_iter().for_each(|dial| push(dial, false));
    if let Some((end, hour)) = view.integer(at, 0..=23) {
        of_hour(view, end, hour).into_iter().for_each(|dial| push(dial, padded));
    }
    out
}

/// Times told from another one: "ten past five", "five to noon", "halb acht", "fünf vor halb acht".
fn relative(view: View<'_>, at: usize) -> Vec<Dial> {
    let words = &view.language().clock;
    let not_full = |at: usize| {
        let (end, less) = view.valued(at, words.not_full)?;
        let (end, hour) = view.integer(end, 1..=12)?;
        Some((end, hour * 60 - less))
    };
    let full = |at: usize| view.integer(at, 1..=12).map(|(end, hour)| (end, hour * 60));
    let dial = |(end, minutes): (usize, i64)| {
        let minutes = (minutes + 12 * 60 - 60) % (12 * 60) + 60;
        (end, minutes / 60, minutes % 60, false, true)
    };
    let mut out: Vec<Dial> = not_full(at).map(dial).into_iter().collect();
    if let Some((end, minutes)) = minutes(view, at) {
        let sign = match view.text(end) {
            direction if words.past.contains(&direction) => 1,
            direction if words.to.contains(&direction) => -1,
            _ => return out,
        };
        let from = not_full(end + 1).or_else(|| full(end + 1));
        out.extend(from.map(|(end, hour)| dial((end, hour + sign * minutes))));
        out.extend(view.valued(end + 1, words.named).map(|(end, hour)| {
            let minutes = (hour * 60 + sign * minutes).rem_euclid(24 * 60);
            (end, minutes / 60, minutes % 60, true, true)
        }));
    }
    out
}

/// Times that begin with an hour, which ends at `end`.
fn of_hour(view: View<'_>, end: usize, hour: i64) -> Vec<Dial> {
    let told = view.any_phrase(end, view.language().clock.hour);
    let behind = told.unwrap_or(end);
    let least = if told.is_some() { 1 } else { 10 };
    let mut out = with_minutes(view, behind, hour, Some(least));
    out.push((behind, hour, 0, false, told.is_some()));
    out
}

/// Times with the minutes behind the hour, which ends at `behind`. A bare number of them is at least `least`; `None`: it
/// is none.
fn with_minutes(view: View<'_>, behind: usize, hour: i64, least: Option<i64>) -> Vec<Dial> {
    let words = &view.language().clock;
    let mut out = Vec::new();
    let moved = |more: i64| {
        let minutes = (hour * 60 + more).rem_euclid(24 * 60);
        // An hour to which minutes are missing stays an hour of a dial.
        let hour = if more < 0 && minutes / 60 == 0 && hour == 1 { 12 } else { minutes / 60 };
        (hour, minutes % 60)
    };
    if let Some((end, more)) = view.valued(behind, words.behind) {
        let (hour, minute) = moved(more);
        out.push((end, hour, minute, false, true));
    }
    for (signs, sign) in [(words.less, -1), (words.more, 1)] {
        if signs.contains(&view.text(behind))
            && let Some((end, minutes)) = view.integer(behind + 1, 1..=59)
        {
            let (hour, minute) = moved(sign * minutes);
            out.push((end, hour, minute, false, true));
        }
    }
    if let Some((end, minute)) = least.and_then(|least| view.integer(behind, least..=59)) {
        // "9.30 Uhr"
        let end = view.any_phrase(end, words.hour).unwrap_or(end);
        out.push((end, hour, minute, false, true));
    }
    out
}

fn minutes(view: View<'_>, at: usize) -> Option<(usize, i64)> {
    let words = &view.language().clock;
    if let Some(named) = view.valued(at, words.minutes) {
        return Some(named);
    }
    let (end, minutes) = view.integer(at, 1..=59)?;
    Some((end + usize::from(words.minute.contains(&view.text(end))), minutes))
}

/// One past "am" or "pm" behind an hour from one to twelve, and the hour of the day.
fn meridiem(view: View<'_>, at: usize, hour: i8) -> Option<(usize, i8)> {
    let words = &view.language().clock;
    if !(1..=12).contains(&hour) {
        return None;
    }
    if let Some((end, twelve)) = view.valued(at, words.am) {
        return Some((end, if hour == 12 { i8::try_from(twelve).ok()? } else { hour }));
    }
    view.any_phrase(at, words.pm).map(|end| (end, hour % 12 + 12))
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
