//! What happens again and again: "every day", "each Monday morning", "twice a week".

use super::{clock, date, utterance::View};

/// Longest one before the end of a text.
const WORDS_MAX: usize = 5;
/// Words up to the day behind one, with that: "monthly on the first".
const SMALL_MAX: usize = 4;

/// Whether the text from `at` to `end` begins or ends with a repetition, apart from small words: "every day at | nine". One
/// at the end may go on behind the text, in what is read as a date there: "every | Monday".
pub(super) fn is_at_edge(view: View<'_>, at: usize, end: usize) -> bool {
    let mut telling = (at..end).filter(|at| view.language().weight(view.text(*at)) >= 1.0);
    let Some(first) = telling.next() else { return false };
    let last = telling.next_back().unwrap_or(first);
    let begins = is_adverb(view, at) || (at..=first).any(|start| read_clear(view, start).is_some());
    let mut starts = at.max(last.saturating_sub(WORDS_MAX))..end;
    begins || starts.any(|start| read(view, start).is_some_and(|it| it > last))
}

/// Whether a repetition with its day is here: "monthly on the first", "weekly on Monday".
pub(super) fn is_dated(view: View<'_>, at: usize) -> bool {
    let language = view.language();
    let is_word = |at: &usize| !language.is_small(view.text(*at)) && !language.is_article(view.text(*at));
    let day = read(view, at).and_then(|end| (end..view.end).take(SMALL_MAX).find(is_word));
    day.is_some_and(|at| date::ordinal_day(view, at).is_some() || date::weekday(view, at).is_some())
}

/// Whether a word such as "daily" is here and describes no other word: "daily at nine", but not "weekly meetings".
fn is_adverb(view: View<'_>, at: usize) -> bool {
    let language = view.language();
    view.any_phrase(at, language.repetition.attached)
        .is_some_and(|end| language.is_small(view.text(end)) || !clock::read_when(view, end).is_empty())
}

/// One past its last word.
fn read(view: View<'_>, at: usize) -> Option<usize> {
    view.any_phrase(at, view.language().repetition.attached).or_else(|| read_clear(view, at))
}

/// The same, without words that may describe another.
fn read_clear(view: View<'_>, at: usize) -> Option<usize> {
    let words = &view.language().repetition;
    if let Some(end) = view.any_phrase(at, words.alone) {
        return Some(end);
    }
    if is_plural_weekday(view, at) {
        return Some(at + 1);
    }
    let unit = view.any_phrase(at, words.every)?;
    // "every third day", "every two weeks", "every fifteenth"
    let order = date::ordinal_day(view, unit).map(|(end, _)| end);
    let count = view.integer(unit, 1..=99).map(|(end, _)| end);
    let first = order.or(count).unwrap_or(unit);
    // "every Monday morning"
    let length = (first..view.end).take_while(|at| is_unit(view, *at)).count();
    (length > 0 || order.is_some()).then_some(first + length)
}

fn is_unit(view: View<'_>, at: usize) -> bool {
    let language = view.language();
    let word = view.text(at);
    language.repetition.units.contains(&word)
        || language.length.units.iter().any(|(name, _)| *name == word)
        || date::weekday(view, at).is_some()
        || is_plural_weekday(view, at)
}

/// "Mondays", "montags", "lundis", "domingos".
fn is_plural_weekday(view: View<'_>, at: usize) -> bool {
    let name = view.text(at).strip_suffix('s');
    name.is_some_and(|name| view.language().date.weekdays.contains(&name))
}
