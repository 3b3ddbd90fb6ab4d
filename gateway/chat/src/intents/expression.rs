//! Sums and conversions in words, as an expression for the calculator.

use super::utterance::View;

/// Longest chain of operations; nobody says more at once.
const OPERATIONS_MAX: usize = 16;

/// The longest expression that starts at `at`. It has at least one operation: a number alone is not a question.
pub(super) fn read(view: View<'_>, at: usize) -> Option<(usize, String)> {
    let converted =
        if view.language().sums.converts { how_many(view, at).or_else(|| conversion(view, at)) } else { None };
    converted.or_else(|| ordered(view, at)).or_else(|| arithmetic(view, at))
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
    let (mut end, mut text, mut operations) = term(view, at)?;
    for _ in 0..OPERATIONS_MAX {
        let Some((after, sign)) = operator(view, end) else {
            break;
        };
        let Some((next, right, _)) = term(view, after) else {
            break;
        };
        text = format!("{text} {sign} {right}");
        end = next;
        operations += 1;
    }
    (operations > 0).then_some((end, text))
}

fn operator(view: View<'_>, at: usize) -> Option<(usize, &'static str)> {
    view.valued(at, view.language().sums.operators)
}

/// One past the last word, the text, and the number of operations.
fn term(view: View<'_>, at: usize) -> Option<(usize, String, usize)> {
    let words = &view.language().sums;
    let at = at + usize::from(words.the.contains(&view.text(at)));
    if let Some((at, function)) = view.valued(at, words.functions) {
        let (end, value) = number(view, at)?;
        return Some((end, format!("{function}({value})"), 1));
    }
    if let Some((at, divisor)) = view.valued(at, words.shares) {
        let (end, value) = number(view, at)?;
        return Some((end, format!("{value} / {divisor}"), 1));
    }
    let (end, value) = number(view, at)?;
    if let Some(end) = view.any_phrase(end, words.percent) {
        let off = words.off.iter().filter_map(|off| view.phrase(end, off)).max();
        if let Some((end, whole)) = off.and_then(|at| number(view, at)) {
            return Some((end, format!("{whole} - {value}%"), 1));
        }
        return Some(match view.any_phrase(end, words.of).map(|at| number(view, at)) {
            Some(Some((end, whole))) => (end, format!("{value}% of {whole}"), 1),
            _ => (end, format!("{value}%"), 0),
        });
    }
    if let Some((end, power)) = view.valued(end, words.powers) {
        return Some((end, format!("{value}^{power}"), 1));
    }
    if let Some(at) = view.any_phrase(end, words.power)
        && let Some((end, power)) = number(view, at)
    {
        return Some((end, format!("{value}^{power}"), 1));
    }
    Some((end, value, 0))
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
