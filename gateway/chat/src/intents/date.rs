//! Dates in words.

use jiff::{
    ToSpan,
    civil::{Date, Weekday},
};

use super::{utterance::View, words::Kind};

/// The date that begins at this word, and the word behind it.
pub(super) fn read(view: View<'_>, at: usize, today: Date) -> Option<(usize, Date)> {
    let words = &view.language().date;
    let first = at;
    let at = view.any_phrase(at, words.on).unwrap_or(at);
    let in_days = |days: i64| today.checked_add(days.days()).ok();
    if let Some((end, days)) = view.valued(at, words.relative) {
        return Some((end, in_days(days)?));
    }
    if let Some(weekday) = weekday(view, at) {
        let end = view.any_phrase(at + 1, words.coming_behind).unwrap_or(at + 1);
        return Some((end, in_days(days_until(today, weekday))?));
    }
    if let Some(weekday) = weekday(view, at + 1) {
        let days = match view.text(at) {
            before if words.this.contains(&before) => i64::from(today.weekday().until(weekday)),
            before if words.coming.contains(&before) => days_until(today, weekday),
            // "next" is in the week that begins on the coming Monday.
            before if words.next.contains(&before) => {
                let monday = days_until(today, Weekday::Monday);
                monday + i64::from(weekday.to_monday_zero_offset())
            }
            _ => return None,
        };
        return Some((at + 2, in_days(days)?));
    }
    month_and_day(view, at, today).or_else(|| day_alone(view, first, view.language().date.days, today))
}

/// "the third", which is a date next to a time only.
pub(super) fn read_bare(view: View<'_>, at: usize, today: Date) -> Option<(usize, Date)> {
    day_alone(view, at, view.language().date.days_bare, today)
}

/// A day behind one of these words, without its month: the next such day from today on.
fn day_alone(view: View<'_>, at: usize, before: &[&str], today: Date) -> Option<(usize, Date)> {
    let start = view.any_phrase(at, before)?;
    let (end, day) = match view.language().date.counts_days {
        true => day(view, start),
        false => ordinal_day(view, start),
    }?;
    let is_small = |at: &usize| view.language().is_small(view.text(*at));
    let behind = (end..view.end).find(|at| !is_small(at)).unwrap_or(view.end);
    // "on the first one", "on the thirty-first of June", "le 14/13"
    if view.number(end).is_some() || month(view, behind).is_some() || view.text(end) == "/" {
        return None;
    }
    let first = today.first_of_month();
    // Of two months in a row one at least has the day.
    let months = (0..=2).filter_map(|months| first.checked_add(months.months()).ok());
    let mut days = months.filter_map(|month| month.with().day(day).build().ok());
    days.find(|date| *date >= today).map(|date| (end, date))
}

/// From 1 to 7: without "this" a weekday's name never means today.
fn days_until(today: Date, weekday: Weekday) -> i64 {
    let days = today.weekday().until(weekday);
    i64::from(if days == 0 { 7 } else { days })
}

/// "the third of May", "May 3rd", "3 May 2027".
fn month_and_day(view: View<'_>, at: usize, today: Date) -> Option<(usize, Date)> {
    let words = &view.language().date;
    if let Some(numeric) = numeric(view, at, today) {
        return numeric;
    }
    let after_the = |at: usize| at + usize::from(words.the.contains(&view.text(at)));
    let (end, month, day) = match month(view, at).filter(|_| words.month_first) {
        Some(month) => {
            let (end, day) = day(view, after_the(at + 1))?;
            (end, month, day)
        }
        None => {
            let (end, day) = day(view, after_the(at))?;
            let end = end + usize::from(words.of.contains(&view.text(end)));
            (end + 1, month(view, end)?, day)
        }
    };
    let year_at = end + usize::from(!words.month_first && words.of.contains(&view.text(end)));
    if let Some((end, year)) = view.integer(year_at, 2000..=2199) {
        return Some((end, Date::new(i16::try_from(year).ok()?, month, day).ok()?));
    }
    coming(today, month, day).map(|date| (end, date))
}

/// The next such day from today on. The 29th of February may be years away.
fn coming(today: Date, month: i8, day: i8) -> Option<Date> {
    (0..=4).filter_map(|years| Date::new(today.year() + years, month, day).ok()).find(|date| *date >= today)
}

/// "1.5.", "24.12.2026", "14/07", where the day is first: `None` if there are no such numbers, and otherwise the date, if there is one.
fn numeric(view: View<'_>, at: usize, today: Date) -> Option<Option<(usize, Date)>> {
    let (sign, is_word) = view.language().date.numeric?;
    // One past the next number, which directly follows the sign behind the word before `at`.
    let next = |at: usize, digits: usize| {
        let signed = match is_word {
            true => view.text(at) == sign && view.between(at - 1).is_empty() && view.between(at).is_empty(),
            false => view.between(at - 1) == sign,
        };
        let number_at = at + usize::from(is_word);
        let text = Some(view.text(number_at)).filter(|text| signed && (1..=digits).contains(&text.len()))?;
        Some((number_at + 1, text.parse::<i16>().ok()?))
    };
    let day = view.text(at).parse::<i8>().ok()?;
    let (end, month) = next(at + 1, 2)?;
    let month = i8::try_from(month).ok()?;
    let Some((end, year)) = next(end, 4) else {
        // Of "1.5." the last point makes it a date.
        let is_date = is_word || view.between(end - 1).starts_with(sign);
        return is_date.then(|| coming(today, month, day).map(|date| (end, date)));
    };
    let year = if year < 100 { 2000 + year } else { year };
    Some(Date::new(year, month, day).ok().map(|date| (end, date)))
}

fn day(view: View<'_>, at: usize) -> Option<(usize, i8)> {
    ordinal_day(view, at).or_else(|| {
        let (end, day) = view.integer(at, 1..=31)?;
        Some((end, i8::try_from(day).ok()?))
    })
}

pub(super) fn ordinal_day(view: View<'_>, at: usize) -> Option<(usize, i8)> {
    let words = &view.language().date;
    let ordinal = |word: &str| -> Option<i8> {
        let is = |name: &&str| *name == word || word.strip_suffix(words.ordinal_endings) == Some(*name);
        let index = words.ordinals.iter().position(is)?;
        i8::try_from(index + 1).ok()
    };
    let word = view.word(at)?;
    if let Kind::Ordinal(day) = word.kind {
        return Some((at + 1, i8::try_from(day).ok()?));
    }
    if let Some(day) = ordinal(&word.text) {
        return Some((at + 1, day));
    }
    if let Some(other) = view.valued(at, words.other_ordinals) {
        return Some(other);
    }
    if let Some((end, tens)) = view.valued(at, words.ordinal_tens)
        && let Some(units) = ordinal(view.text(end)).filter(|units| *units < 10)
    {
        return Some((end + 1, tens + units));
    }
    None
}

pub(super) fn weekday(view: View<'_>, at: usize) -> Option<Weekday> {
    let (words, word) = (&view.language().date, view.text(at));
    let known = words.weekdays.iter().position(|name| *name == word).and_then(|index| i8::try_from(index).ok());
    let other = || words.other_weekdays.iter().find(|(name, _)| *name == word).map(|(_, days)| *days);
    Weekday::from_monday_zero_offset(known.or_else(other)?).ok()
}

fn month(view: View<'_>, at: usize) -> Option<i8> {
    let index = view.language().date.months.iter().position(|name| *name == view.text(at))?;
    i8::try_from(index + 1).ok()
}
