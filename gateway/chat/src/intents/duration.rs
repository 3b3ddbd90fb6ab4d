//! Lengths of time in words: "half an hour", "an hour and a half", "1 hour 20".

use super::utterance::View;

/// Seconds of a day without a clock change.
pub(super) const DAY_S: f64 = 86_400.0;

/// A length of time as it was said: "two days" end at the same time of day, "48 hours" may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Length {
    /// Whole days of what was said in days and weeks.
    pub days: i64,
    /// Seconds of the rest.
    pub seconds: i64,
}

/// One past the last word, and whole seconds, for every reading that starts at `at`, including the shorter ones, since
/// the following words may belong to something else.
pub(super) fn read(view: View<'_>, at: usize) -> Vec<(usize, i64)> {
    let all = |length: Length| length.days * DAY_S as i64 + length.seconds;
    lengths(view, at).into_iter().map(|(end, length)| (end, all(length))).collect()
}

/// The same with the days apart.
pub(super) fn lengths(view: View<'_>, at: usize) -> Vec<(usize, Length)> {
    let words = &view.language().length;
    let mut out = Vec::new();
    let Some((mut end, mut seconds, mut unit)) = part(view, at) else {
        return out;
    };
    let of_days = |more: f64, unit: f64| if unit >= DAY_S { more } else { 0.0 };
    let mut dated = of_days(seconds, unit);
    push(&mut out, end, seconds, dated);
    loop {
        let after_and = end + usize::from(words.and.contains(&view.text(end)));
        // "an hour and a half"
        if let Some((next, share)) = view.valued(after_and, words.parts)
            && unit_seconds(view, next).is_none()
            && after_and > end
        {
            (end, seconds, dated) = (next, seconds + unit * share, dated + of_days(unit * share, unit));
            push(&mut out, end, seconds, dated);
            break;
        }
        if let Some((next, more, smaller)) = part(view, after_and)
            && smaller < unit
        {
            (end, seconds, unit, dated) = (next, seconds + more, smaller, dated + of_days(more, smaller));
            push(&mut out, end, seconds, dated);
            continue;
        }
        // "1 hour 20": a bare number counts the next smaller unit.
        let smaller = match unit as i64 {
            3600 => 60.0,
            60 => 1.0,
            _ => break,
        };
        if let Some((next, count)) = view.integer(after_and, 1..=59) {
            push(&mut out, next, seconds + count as f64 * smaller, dated);
        }
        break;
    }
    out.reverse();
    out
}

/// A reading of so many seconds, of which those in `dated` were said in days and weeks.
fn push(out: &mut Vec<(usize, Length)>, end: usize, seconds: f64, dated: f64) {
    // A year is far beyond any timer and far below any overflow.
    if (0.5..=3.2e7).contains(&seconds) {
        let days = (dated / DAY_S).floor();
        out.push((end, Length { days: days as i64, seconds: (seconds - days * DAY_S).round() as i64 }));
    }
}

/// Count and unit: one past the last word, seconds, seconds of one unit.
fn part(view: View<'_>, at: usize) -> Option<(usize, f64, f64)> {
    let (end, count) = count(view, at)?;
    let end = end + usize::from(view.language().length.more.contains(&view.text(end)));
    let unit = unit_seconds(view, end)?;
    Some((end + 1, count * unit, unit))
}

fn count(view: View<'_>, at: usize) -> Option<(usize, f64)> {
    let words = &view.language().length;
    if let Some(found) = view.valued(at, words.counts) {
        return Some(found);
    }
    if let Some((end, value)) = view.number(at) {
        return Some(match view.valued(end, words.parts_between) {
            Some((after, share)) if unit_seconds(view, after).is_some() => (after, value + share),
            _ => (end, value),
        });
    }
    if words.one.contains(&view.text(at)) {
        return Some((at + 1, 1.0));
    }
    // The recogniser drops articles: "for hour and a half". After a number the hour belongs to that number.
    let (hour, before) = words.bare_hour;
    let bare = view.text(at) == hour && at.checked_sub(1).is_some_and(|at| before.contains(&view.text(at)));
    bare.then_some((at, 1.0))
}

fn unit_seconds(view: View<'_>, at: usize) -> Option<f64> {
    let units = view.language().length.units;
    units.iter().find(|(name, _)| *name == view.text(at)).map(|(_, seconds)| *seconds)
}

#[cfg(test)]
mod tests {
    use super::super::{language::Language, utterance::Utterance};
    use super::*;

    #[test]
    fn lengths_of_time_are_read() {
        let cases = [
            ("ten minutes", 600),
            ("half an hour", 1800),
            ("half hour", 1800),
            ("an hour and a half", 5400),
            ("one hour and a half", 5400),
            ("two and a half minutes", 150),
            ("90 seconds", 90),
            ("1 hour 20", 4800),
            ("one minute thirty seconds", 90),
            ("1 hour, 15 minutes and 5 seconds", 4505),
            ("three quarters of an hour", 2700),
            ("2.5 hours", 9000),
            ("a couple of minutes", 120),
            ("5 5 minutes", 3300),
            ("two more minutes", 120),
            ("a week", 604_800),
            ("1½ hours", 5_400),
            ("1 ½ hours", 5_400),
            ("½ hour", 1_800),
            ("½ an hour", 1_800),
            ("2¼ hours", 8_100),
            ("¾ hour", 2_700),
            ("1½ minutes", 90),
        ];
        for (source, expected) in cases {
            let utterance = Utterance::new(source, jiff::Zoned::default(), Language::english());
            let read = read(utterance.view(usize::MAX), 0);
            assert_eq!(read.first(), Some(&(utterance.words.len(), expected)), "{source}");
        }
        for (source, days, seconds) in [
            ("24 hours", 0, 86_400),
            ("two days", 2, 0),
            ("half a day", 0, 43_200),
            ("a week and a half", 10, 43_200),
            ("one week, two days and three hours", 9, 10_800),
            ("1 hour 20", 0, 4_800),
        ] {
            let utterance = Utterance::new(source, jiff::Zoned::default(), Language::english());
            let read = lengths(utterance.view(usize::MAX), 0);
            assert_eq!(read.first(), Some(&(utterance.words.len(), Length { days, seconds })), "{source}");
        }
        for source in ["minutes", "ten", "half", "½", "1⅓ hours", "⅔ hour", "0 minutes", "9999999 weeks", ""] {
            let utterance = Utterance::new(source, jiff::Zoned::default(), Language::english());
            assert!(read(utterance.view(usize::MAX), 0).is_empty(), "{source}");
        }
    }
}
