//! English words for durations, times, days and lists, in forms that a voice reads well.

use jiff::{
    Timestamp as Instant, ToSpan, Zoned,
    civil::{Date, Time},
    tz::TimeZone,
};

use crate::ports::{Clock, Hours};

pub use gateway_core::vocab::countdown;

/// Current local time of the wearer.
pub fn now(clock: &dyn Clock) -> Zoned {
    local(clock.now().wall_ms, clock.zone())
}

/// Local time at a wall clock reading. Readings outside the calendar's range are clamped to it.
pub fn local(wall_ms: i64, zone: TimeZone) -> Zoned {
    let end = if wall_ms < 0 { Instant::MIN } else { Instant::MAX };
    Instant::from_millisecond(wall_ms).unwrap_or(end).to_zoned(zone)
}

/// Small numbers as words, others as digits.
pub fn number(n: u64) -> String {
    const WORDS: [&str; 13] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    usize::try_from(n).ok().and_then(|n| WORDS.get(n)).map_or_else(|| n.to_string(), ToString::to_string)
}

/// "1 reminder", "2 reminders".
pub fn count(n: usize, one: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {one}{s}")
}

/// Splits seconds into days, hours, minutes and seconds, without those of which there are none.
fn units(seconds: u64) -> Vec<(u64, &'static str)> {
    [(seconds / 86_400, "day"), (seconds / 3_600 % 24, "hour"), (seconds / 60 % 60, "minute"), (seconds % 60, "second")]
        .into_iter()
        .filter(|(n, _)| *n > 0)
        .collect()
}

/// "ten minutes", "3 minutes and 10 seconds", "half an hour" is "30 minutes". From an hour on without seconds, from a day
/// on without minutes.
pub fn duration(seconds: u64) -> String {
    exact_duration(match seconds {
        0..3_600 => seconds,
        3_600..86_400 => (seconds + 30) / 60 * 60,
        _ => seconds.saturating_add(1_800) / 3_600 * 3_600,
    })
}

/// The same to the second, for a length that is confirmed: the wearer hears whether it was understood.
pub fn exact_duration(seconds: u64) -> String {
    let plural = |n: u64| if n == 1 { "" } else { "s" };
    match units(seconds).as_slice() {
        [] => "zero seconds".to_owned(),
        [(n, unit)] => format!("{} {unit}{}", number(*n), plural(*n)),
        several => {
            let parts = several.iter().map(|(n, unit)| format!("{n} {unit}{}", plural(*n)));
            list(&parts.collect::<Vec<_>>())
        }
    }
}

/// As an adjective, to the second: "ten minute", "1 hour 30 minute".
pub fn duration_adjective(seconds: u64) -> String {
    match units(seconds).as_slice() {
        [] => "zero second".to_owned(),
        [(n, unit)] => format!("{} {unit}", number(*n)),
        several => several.iter().map(|(n, unit)| format!("{n} {unit}")).collect::<Vec<_>>().join(" "),
    }
}

/// "5:20 PM", "5 PM", "noon", "midnight"; "17:20".
pub fn time(time: Time, hours: Hours) -> String {
    match (hours, time.hour(), time.minute()) {
        (Hours::TwentyFour, hour, minute) => format!("{hour}:{minute:02}"),
        (Hours::Twelve, 0, 0) => "midnight".to_owned(),
        (Hours::Twelve, 12, 0) => "noon".to_owned(),
        (Hours::Twelve, hour, minute) => {
            let half = if hour < 12 { "AM" } else { "PM" };
            let hour = match hour % 12 {
                0 => 12,
                hour => hour,
            };
            if minute == 0 { format!("{hour} {half}") } else { format!("{hour}:{minute:02} {half}") }
        }
    }
}

/// "5:20 PM", "12:00 AM"; "17:20": for displays, and where the word "noon" would be odd.
pub fn time_digits(time: Time, hours: Hours) -> String {
    match hours {
        Hours::TwentyFour => time.strftime("%H:%M").to_string(),
        Hours::Twelve => time.strftime("%-I:%M %p").to_string(),
    }
}

/// "today", "tomorrow", "on Friday", "on March 3", "on March 3, 2028".
pub fn day(date: Date, today: Date) -> String {
    if date == today {
        return "today".to_owned();
    }
    if today.checked_add(1.day()).is_ok_and(|next| next == date) {
        return "tomorrow".to_owned();
    }
    if today.checked_sub(1.day()).is_ok_and(|last| last == date) {
        return "yesterday".to_owned();
    }
    let soon = date > today && today.checked_add(6.days()).is_ok_and(|end| date <= end);
    if soon {
        return date.strftime("on %A").to_string();
    }
    if date.year() == today.year() {
        return date.strftime("on %B %-d").to_string();
    }
    date.strftime("on %B %-d, %Y").to_string()
}

/// "at 5:20 PM" today, else "tomorrow at 5 PM", "on Friday at noon".
pub fn moment(at: &Zoned, now: &Zoned, hours: Hours) -> String {
    let time = time(at.time(), hours);
    if at.date() == now.date() { format!("at {time}") } else { format!("{} at {time}", day(at.date(), now.date())) }
}

/// "a", "a and b", "a, b and c".
pub fn list<S: AsRef<str>>(items: &[S]) -> String {
    list_with(items, "and")
}

/// "a", "a or b", "a, b or c".
pub fn list_or<S: AsRef<str>>(items: &[S]) -> String {
    list_with(items, "or")
}

fn list_with<S: AsRef<str>>(items: &[S], word: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(AsRef::as_ref).collect();
            format!("{} {word} {}", first.join(", "), last.as_ref())
        }
    }
}

/// With an upper-case first letter.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// With a full stop, unless it already ends with punctuation.
pub fn sentence(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?', '…']) { text.to_owned() } else { format!("{text}.") }
}

/// Without punctuation at its end, so that a sentence can continue after it.
pub fn clause(text: &str) -> &str {
    text.trim_end_matches(['.', ';', ':', ',', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::{date, time as at};

    #[test]
    fn ends_of_sentences_and_of_clauses() {
        for (text, whole, part) in [
            ("It does not answer", "It does not answer.", "It does not answer"),
            ("It does not answer. ", "It does not answer.", "It does not answer"),
            ("Which one?", "Which one?", "Which one?"),
            ("", ".", ""),
        ] {
            assert_eq!((sentence(text).as_str(), clause(text)), (whole, part));
        }
    }

    #[test]
    fn durations() {
        for (seconds, spoken, shown) in [
            (0, "zero seconds", "0:00"),
            (1, "one second", "0:01"),
            (60, "one minute", "1:00"),
            (600, "ten minutes", "10:00"),
            (190, "3 minutes and 10 seconds", "3:10"),
            (1_800, "30 minutes", "30:00"),
            (3_600, "one hour", "1:00:00"),
            (3_661, "1 hour and 1 minute", "1:01:01"),
            (3_599, "59 minutes and 59 seconds", "59:59"),
            (7_199, "two hours", "1:59:59"),
            (86_399, "one day", "23:59:59"),
            (90_000, "1 day and 1 hour", "25:00:00"),
        ] {
            assert_eq!(duration(seconds), spoken);
            assert_eq!(countdown(seconds), shown);
        }
        assert_eq!(duration_adjective(600), "ten minute");
        assert_eq!(duration_adjective(5_400), "1 hour 30 minute");
        assert_eq!(duration_adjective(3_630), "1 hour 30 second");
        assert_eq!(exact_duration(3_630), "1 hour and 30 seconds");
        assert_eq!(exact_duration(90_061), "1 day, 1 hour, 1 minute and 1 second");
        assert!(duration(u64::MAX).ends_with("hours"));
    }

    #[test]
    fn times() {
        for (hour, minute, twelve, twenty_four, digits) in [
            (0, 0, "midnight", "0:00", "12:00 AM"),
            (0, 5, "12:05 AM", "0:05", "12:05 AM"),
            (9, 0, "9 AM", "9:00", "9:00 AM"),
            (12, 0, "noon", "12:00", "12:00 PM"),
            (12, 30, "12:30 PM", "12:30", "12:30 PM"),
            (17, 20, "5:20 PM", "17:20", "5:20 PM"),
        ] {
            let t = at(hour, minute, 0, 0);
            assert_eq!(time(t, Hours::Twelve), twelve);
            assert_eq!(time(t, Hours::TwentyFour), twenty_four);
            assert_eq!(time_digits(t, Hours::Twelve), digits);
        }
        assert_eq!(time_digits(at(5, 7, 0, 0), Hours::TwentyFour), "05:07");
    }

    #[test]
    fn days() {
        let today = date(2026, 12, 30);
        for (day_of, spoken) in [
            (date(2026, 12, 30), "today"),
            (date(2026, 12, 31), "tomorrow"),
            (date(2026, 12, 29), "yesterday"),
            (date(2027, 1, 1), "on Friday"),
            (date(2027, 1, 5), "on Tuesday"),
            (date(2027, 1, 6), "on January 6, 2027"),
            (date(2026, 3, 3), "on March 3"),
        ] {
            assert_eq!(day(day_of, today), spoken);
        }
        assert_eq!(day(Date::MAX, Date::MAX), "today");
    }

    #[test]
    fn lists() {
        assert_eq!(list::<&str>(&[]), "");
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b"]), "a and b");
        assert_eq!(list_or(&["a", "b", "c"]), "a, b or c");
        assert_eq!(capitalised("ümlaut"), "Ümlaut");
        assert_eq!(sentence("Call mom!"), "Call mom!");
        assert_eq!(sentence("call mom"), "call mom.");
    }
}
