//! Sums and conversions in words, as an expression for the calculator.

use super::utterance::View;

/// Longest chain of operations; nobody says more at once.
const OPERATIONS_MAX: usize = 16;

/// The longest expression that starts at `at`. It has at least one operation: a number alone is not a question.
pub(super) fn read(view: View<'_>, at: usize) -> Option<(usize, String)> {
    if let Some(written) = written(view, at) {
        return Some(written);
    }
    let converted =
        if view.language().sums.converts { how_many(view, at).or_else(|| conversion(view, at)) } else { None };
    let read = converted.or_else(|| ordered(view, at)).or_else(|| arithmetic(view, at));
    read.filter(|(end, _)| !has_lost_signs(view, at, *end))
}

/// Signs that are no words, and without which a sum is another one.
const LOST: [char; 6] = ['(', ')', '[', ']', '√', '!'];

/// Whether such a sign is among these words or directly before them. An exclamation mark may end them.
fn has_lost_signs(view: View<'_>, at: usize, end: usize) -> bool {
    let before = at.checked_sub(1).map_or_else(|| view.beginning(), |before| view.between(before));
    let last = end.saturating_sub(1);
    before.trim_end().ends_with(['(', '[', '√'])
        || (at..last).any(|at| view.between(at).contains(LOST))
        || view.between(last).starts_with([')', ']'])
}

/// "(3 + 4) * 2": a sum with brackets or roots in digits and signs, which the calculator reads itself.
fn written(view: View<'_>, at: usize) -> Option<(usize, String)> {
    let is_sum = |sign: char| sign.is_ascii_digit() || " .,+-−*×/÷^()√%".contains(sign);
    let source = view.utterance.source;
    let start = view.word(at)?.start;
    let signs = source
        .get(..start)?
        .chars()
        .rev()
        .take_while(|sign| " (√-−".contains(*sign))
        .map(char::len_utf8)
        .sum::<usize>();
    let text = source.get(start - signs..)?;
    let length = text.find(|sign| !is_sum(sign)).unwrap_or(text.len());
    let text = text.get(..length)?.trim_end_matches([' ', '.', ',']);
    let end = (at..view.end).find(|at| view.utterance.words[*at].end > start - signs + text.len()).unwrap_or(view.end);
    let is_cut = source[start - signs + text.len()..].starts_with(char::is_alphanumeric);
    let text = text.trim();
    // A root alone is no operation.
    let has_operation =
        text.contains(['+', '*', '×', '/', '÷', '^', '√']) || text.trim_start_matches(['-', '−']).contains(['-', '−']);
    let is_clear = !(view.language().cut.decimal_comma && text.contains(['.', ',']));
    (text.contains(['(', '√']) && has_operation && is_clear && !is_cut && is_balanced(text) && end > at)
        .then(|| (end, text.replace('×', "*").replace('÷', "/").replace('−', "-")))
}

fn is_balanced(text: &str) -> bool {
    let depth = text.chars().try_fold(0_u32, |depth, sign| match sign {
        '(' => depth.checked_add(1),
        ')' => depth.checked_sub(1),
        _ => Some(depth),
    });
    depth == Some(0)
}

/// "divide 87 by three", "take ten percent from 90"
fn ordered(view: View<'_>, at: usize) -> Option<(usize, String)> {
    let words = &view.language().sums;
    words.orders.iter().find_map(|(verb, link, sign)| {
        let (at, left) = number(view, view.phrase(at, verb)?)?;
        let percent = view.any_phrase(at, words.percent);
        let (at, left) = percent.map_or((at, left.clone()), |at| (at, format!("{left}%")));
        let (end, right) = number(view, view.phrase(at, link)?)?;
        // What is added or taken comes first in words, and last as an expression.
        let text = match *sign {
            "+" | "-" => format!("{right} {sign} {left}"),
            sign => format!("{left} {sign} {right}"),
        };
        Some((end, text))
    })
}

/// "how many feet are in 3 metres"
fn how_many(view: View<'_>, at: usize) -> Option<(usize, String)> {
    let at = view.any_phrase(at, &["how many", "how much"])?;
    let (at, to) = unit(view, at)?;
    const LINKS: [&str; 8] = ["are there in", "are in", "is in", "fit in", "are", "is", "in", "make"];
    let at = view.any_phrase(at, &LINKS)?;
    let (end, count, from) = quantity(view, at)?;
    Some((end, format!("{count} {from} to {to}")))
}

/// "72 fahrenheit to celsius"
fn conversion(view: View<'_>, at: usize) -> Option<(usize, String)> {
    let (end, count, from) = quantity(view, at)?;
    let end = view.any_phrase(end, &["in", "to", "into", "as"])?;
    let (end, to) = unit(view, end)?;
    Some((end, format!("{count} {from} to {to}")))
}

fn arithmetic(view: View<'_>, at: usize) -> Option<(usize, String)> {
    let first = term(view, at)?;
    let (mut end, mut text, mut operations) = (first.end, first.text.clone(), u32::from(first.kind != Kind::Value));
    for count in 0..OPERATIONS_MAX {
        let Some((after, sign)) = operator(view, end) else {
            break;
        };
        let Some(right) = term(view, after) else {
            break;
        };
        if count == 0 && first.kind == Kind::Difference {
            text = format!("({text})");
        }
        let is_apart = right.kind == Kind::Difference || (right.kind == Kind::Share && sign == "/");
        let right_text = if is_apart { format!("({})", right.text) } else { right.text };
        text = format!("{text} {sign} {right_text}");
        end = right.end;
        operations += 1;
    }
    (operations > 0).then_some((end, text))
}

/// What an operand of a sum is by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Value,
    /// A function or a power, which bind tighter than any operator.
    Function,
    /// "half of 4", "20 percent of 10": another division would split it.
    Share,
    /// "20 percent off 80": any operator would.
    Difference,
}

struct Term {
    /// One past its last word.
    end: usize,
    text: String,
    kind: Kind,
}

fn operator(view: View<'_>, at: usize) -> Option<(usize, &'static str)> {
    view.valued(at, view.language().sums.operators)
}

fn term(view: View<'_>, at: usize) -> Option<Term> {
    let of_kind = |kind: Kind, (end, text): (usize, String)| Some(Term { end, text, kind });
    let words = &view.language().sums;
    let at = at + usize::from(words.the.contains(&view.text(at)));
    if let Some((at, function)) = view.valued(at, words.functions) {
        let (end, value) = number(view, at)?;
        return of_kind(Kind::Function, (end, format!("{function}({value})")));
    }
    if let Some((at, divisor)) = view.valued(at, words.shares) {
        let (end, value) = number(view, at)?;
        return of_kind(Kind::Share, (end, format!("{value} / {divisor}")));
    }
    let (end, value) = number(view, at)?;
    if let Some(end) = view.any_phrase(end, words.percent) {
        let off = words.off.iter().filter_map(|off| view.phrase(end, off)).max();
        if let Some((end, whole)) = off.and_then(|at| number(view, at)) {
            return of_kind(Kind::Difference, (end, format!("{whole} - {value}%")));
        }
        return match view.any_phrase(end, words.of).map(|at| number(view, at)) {
            Some(Some((end, whole))) => of_kind(Kind::Share, (end, format!("{value}% of {whole}"))),
            _ => of_kind(Kind::Value, (end, format!("{value}%"))),
        };
    }
    if let Some((end, power)) = view.valued(end, words.powers) {
        return of_kind(Kind::Function, (end, format!("{value}^{power}")));
    }
    if let Some(at) = view.any_phrase(end, words.power)
        && let Some((end, power)) = number(view, at)
    {
        return of_kind(Kind::Function, (end, format!("{value}^{power}")));
    }
    of_kind(Kind::Value, (end, value))
}

fn number(view: View<'_>, at: usize) -> Option<(usize, String)> {
    let negative = view.language().sums.negative.contains(&view.text(at));
    let (end, value) = view.number(at + usize::from(negative))?;
    let sign = if negative { "-" } else { "" };
    Some((end, format!("{sign}{value}")))
}

/// "3 metres", "a pound": one past the last word, count and unit.
fn quantity(view: View<'_>, at: usize) -> Option<(usize, String, String)> {
    let (end, count) =
        number(view, at).or_else(|| matches!(view.text(at), "a" | "an").then(|| (at + 1, "1".to_owned())))?;
    let (end, unit) = unit(view, end)?;
    Some((end, count, unit))
}

fn unit(view: View<'_>, at: usize) -> Option<(usize, String)> {
    let at = view.any_phrase(at, &["degrees", "degree"]).unwrap_or(at);
    // The calculator does not know the short form.
    let name = match view.text(at) {
        "kilo" | "kilos" => "kilograms",
        name => name,
    };
    if !UNITS.contains(&name) {
        return None;
    }
    let per = view.text(at + 2);
    if matches!(view.text(at + 1), "per" | "an" | "a") && UNITS.contains(&per) {
        return Some((at + 3, format!("{name} per {per}")));
    }
    Some((at + 1, name.to_owned()))
}

/// Units in common use; the calculator knows each by this name.
const UNITS: [&str; 71] = [
    "millimetre",
    "millimetres",
    "millimeter",
    "millimeters",
    "mm",
    "centimetre",
    "centimetres",
    "centimeter",
    "centimeters",
    "cm",
    "metre",
    "metres",
    "meter",
    "meters",
    "kilometre",
    "kilometres",
    "kilometer",
    "kilometers",
    "km",
    "inch",
    "inches",
    "foot",
    "feet",
    "yard",
    "yards",
    "mile",
    "miles",
    "gram",
    "grams",
    "kilogram",
    "kilograms",
    "kg",
    "tonne",
    "tonnes",
    "ounce",
    "ounces",
    "pound",
    "pounds",
    "stone",
    "litre",
    "litres",
    "liter",
    "liters",
    "ml",
    "pint",
    "pints",
    "gallon",
    "gallons",
    "cup",
    "cups",
    "tablespoon",
    "tablespoons",
    "teaspoon",
    "teaspoons",
    "second",
    "seconds",
    "minute",
    "minutes",
    "hour",
    "hours",
    "day",
    "days",
    "week",
    "weeks",
    "year",
    "years",
    "celsius",
    "fahrenheit",
    "kelvin",
    "acre",
    "acres",
];

#[cfg(test)]
mod tests {
    use super::super::{language::Language, utterance::Utterance};
    use super::*;

    fn read_all(source: &str) -> Option<String> {
        let utterance = Utterance::new(source, jiff::Zoned::default(), Language::english());
        let (end, text) = read(utterance.view(usize::MAX), 0)?;
        (end == utterance.words.len()).then_some(text)
    }

    #[test]
    fn the_calculator_knows_every_unit_and_function() {
        let temperature = ["celsius", "fahrenheit", "kelvin"];
        let mut unknown = Vec::new();
        for unit in UNITS {
            let source = if temperature.contains(&unit) {
                format!("3 {unit} to kelvin")
            } else {
                format!("3 {unit} to 1 {unit}")
            };
            let mut context = fend_core::Context::new();
            let result = fend_core::evaluate(&source, &mut context);
            if result.is_err() {
                unknown.push(unit);
            }
        }
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn sums_come_out_right() {
        let cases = [
            ("twelve times seven", "84"),
            ("15 percent of 80", "12"),
            ("the square root of 81", "9"),
            ("2 to the power of 10", "1024"),
            ("half of 90", "45"),
            ("minus 5 plus 3", "-2"),
            ("3 times 4 plus 5", "17"),
            ("how many seconds are in a day", "86400 seconds"),
            ("20 degrees celsius in kelvin", "293.15 kelvin"),
            ("cube root of 27", "3"),
        ];
        for (source, expected) in cases {
            let expression = read_all(source).unwrap_or_default();
            let mut context = fend_core::Context::new();
            let result = fend_core::evaluate(&expression, &mut context);
            let value = result.as_ref().map(fend_core::FendResult::get_main_result);
            assert_eq!(value, Ok(expected), "{source}: {expression}");
        }
        for source in ["twelve", "five times I told him", "plus 3", "feet in metres", "percent"] {
            assert_eq!(read_all(source), None, "{source}");
        }
    }
}
