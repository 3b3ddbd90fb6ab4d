//! Readings of each kind of figure and abbreviation; the patterns that find them are in `normalize`.

use super::numbers;
use super::rule::{Match, Words};

/// Names of fractions from the half to the tenth.
const PARTS: [&str; 9] = ["half", "third", "quarter", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

fn small(digits: &str) -> Option<u16> {
    digits.parse().ok()
}

pub(super) fn time(_: &Words, found: &Match<'_>) -> Option<String> {
    let (hour, minute, second, half) = (found.group(1), found.group(2), found.group(3), found.group(4));
    let valid = small(hour)? <= 24 && small(minute)? <= 59 && (second.is_empty() || small(second)? <= 59);
    if !valid {
        return None;
    }
    let mut words = numbers::cardinal(hour);
    match small(minute)? {
        0 if half.is_empty() && second.is_empty() => words.push_str(" o'clock"),
        0 => {}
        1..10 => words.push_str(&format!(" oh {}", numbers::cardinal(minute))),
        _ => words.push_str(&format!(" {}", numbers::cardinal(minute))),
    }
    if !second.is_empty() {
        let unit = if small(second)? == 1 { "second" } else { "seconds" };
        words.push_str(&format!(" and {} {unit}", numbers::cardinal(second)));
    }
    if !half.is_empty() {
        // With dots the lexicon reads the letters.
        let end = if found.rest.starts_with('.') { "" } else { "." };
        words.push_str(&format!(" {}.M{end}", half.to_uppercase()));
    }
    Some(words)
}

pub(super) fn date(words: &Words, year: &str, month: u16, day: u16) -> Option<String> {
    let (_, month) = words.months.0.get(usize::from(month).checked_sub(1)?)?;
    if !(1..=31).contains(&day) {
        return None;
    }
    let year = if year.is_empty() { String::new() } else { format!(", {year}") };
    Some(format!("{month} {}{year}", numbers::ordinal(&day.to_string())))
}

pub(super) fn date_iso(words: &Words, found: &Match<'_>) -> Option<String> {
    date(words, found.group(1), small(found.group(2))?, small(found.group(3))?)
}

/// Month first, unless only the second figure can be a month.
pub(super) fn date_us(words: &Words, found: &Match<'_>) -> Option<String> {
    let (first, second, year) = (small(found.group(1))?, small(found.group(2))?, found.group(3));
    let year = match year.len() {
        2 if small(year)? > 30 => format!("19{year}"),
        2 => format!("20{year}"),
        _ => year.to_owned(),
    };
    let (month, day) = if first <= 12 { (first, second) } else { (second, first) };
    date(words, &year, month, day)
}

pub(super) fn month<'w>(words: &'w Words, written: &str) -> Option<&'w str> {
    let short: String = written.to_lowercase().chars().take(3).collect();
    words.months.0.iter().find_map(|(key, name)| (*key == short).then_some(name.as_str()))
}

fn day(written: &str) -> Option<String> {
    (1..=31).contains(&small(written)?).then(|| numbers::ordinal(written))
}

pub(super) fn month_day(words: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("{} {}{}", month(words, found.group(1))?, day(found.group(2))?, found.group(3)))
}

/// "June 5-9".
pub(super) fn month_days(words: &Words, found: &Match<'_>) -> Option<String> {
    let (first, last) = (day(found.group(2))?, day(found.group(3))?);
    Some(format!("{} {first} to {last}{}", month(words, found.group(1))?, found.group(4)))
}

pub(super) fn day_month(words: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("the {} of {}", day(found.group(1))?, month(words, found.group(2))?))
}

fn plural<'w>(figure: &str, [one, more]: &'w [String; 2]) -> &'w str {
    if matches!(figure.replace(',', "").as_str(), "1" | "1.0" | "-1") { one } else { more }
}

pub(super) fn scale(written: &str) -> &str {
    match written {
        "k" | "K" => "thousand",
        "m" | "M" => "million",
        "b" | "B" => "billion",
        _ => written,
    }
}

pub(super) fn money(words: &Words, found: &Match<'_>) -> Option<String> {
    let (sign, figure, scale) = (found.group(1), found.group(2), scale(found.group(3)));
    let names = words.currency.get(sign.trim_end_matches('.'))?;
    Some(if scale.is_empty() {
        format!("{figure} {}", plural(figure, names))
    } else {
        format!("{figure} {scale} {}", names[1])
    })
}

pub(super) fn cents(words: &Words, found: &Match<'_>) -> Option<String> {
    let figure = found.group(1);
    Some(format!("{figure} {}", plural(figure, words.currency.get(found.group(2))?)))
}

pub(super) fn degrees(_: &Words, found: &Match<'_>) -> Option<String> {
    let figure = found.group(1);
    let scale = match found.group(2) {
        "C" => " Celsius",
        "F" => " Fahrenheit",
        _ => "",
    };
    Some(format!("{figure} {}{scale}", plural(figure, &["degree".to_owned(), "degrees".to_owned()])))
}

pub(super) fn unit(words: &Words, found: &Match<'_>) -> Option<String> {
    let figure = found.group(1);
    Some(format!("{figure} {}", plural(figure, words.units.get(found.group(2))?)))
}

pub(super) fn title(words: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("{} ", words.titles.get(found.group(1))?))
}

pub(super) fn abbreviation(words: &Words, found: &Match<'_>) -> Option<String> {
    let written = found.group(1);
    let spoken = words.abbreviations.get(written)?;
    // The last period of a text also ends the sentence.
    let end = if found.rest.is_empty() && written.ends_with('.') { "." } else { "" };
    Some(format!("{spoken}{end}"))
}

/// "No. 5", "nos. 1 and 2".
pub(super) fn numero(_: &Words, found: &Match<'_>) -> Option<String> {
    let said = match found.group(1) {
        "No" => "Number ",
        "Nos" => "Numbers ",
        "no" => "number ",
        _ => "numbers ",
    };
    Some(said.to_owned())
}

fn roman(numeral: &str) -> u16 {
    let value = |c| match c {
        'I' => 1,
        'V' => 5,
        'X' => 10,
        'L' => 50,
        'C' => 100,
        'D' => 500,
        'M' => 1_000,
        _ => 0,
    };
    // A smaller numeral before a larger one is subtracted.
    let mut after = 0;
    let mut total = 0_u16;
    for value in numeral.chars().rev().map(value) {
        total = if value < after { total.saturating_sub(value) } else { total.saturating_add(value) };
        after = value;
    }
    total
}

pub(super) fn roman_cardinal(_: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("{} {}", found.group(1), roman(found.group(2))))
}

pub(super) fn roman_ordinal(_: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("{} the {}", found.group(1), numbers::ordinal(&roman(found.group(2)).to_string())))
}

/// Words that a telephone number follows.
pub(super) const CALLED: &str =
    "(?:[Cc]all|[Dd]ial|[Rr]ing|[Pp]hone|[Tt]ext|[Tt]el|[Nn]umber)\\.?:?(?: (?:is|me|us|him|her|them|at|on))?";

/// "(415) 555-0132": each digit by name, with a pause between the groups. Of two groups alone, such as "500-1000", only a
/// word before them, 555 or a leading zero tells a telephone number from a range.
pub(super) fn telephone(_: &Words, found: &Match<'_>) -> Option<String> {
    let before = found.group(1);
    let number = found.group(0).strip_prefix(before)?;
    if let Some((first, last)) = number.split_once('-')
        && before.is_empty()
        && (first.len(), last.len()) == (3, 4)
        && first != "555"
        && ![first, last].iter().any(|group| group.starts_with('0'))
    {
        return None;
    }
    let groups = number.split(['-', '(', ')', ' ']).filter(|group| !group.is_empty());
    let spaced = groups.map(|group| group.chars().map(String::from).collect::<Vec<_>>().join(" "));
    Some(format!("{before}{}", spaced.collect::<Vec<_>>().join(", ")))
}

/// Words that a date follows.
pub(super) const DATED: &str =
    "(?:[Oo]n|[Bb]y|[Ss]ince|[Uu]ntil|[Bb]efore|[Aa]fter|[Ff]or|[Ff]rom|[Dd]ue|[A-Z][a-z]+day,?)";

/// Words that a rating may follow.
pub(super) const RATED: &str = "(?:[Rr]at(?:ed?|es|ing)|[Ss]cored?)(?: (?:it|this|that|is|was|of|at|an?))?";

/// "Rated 8/10".
pub(super) fn rating(_: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("{}{} out of {}", found.group(1), found.group(2), found.group(3)))
}

/// A fraction up to tenths, else a date, else figures around a slash, behind the word that may be before it.
pub(super) fn fraction(words: &Words, found: &Match<'_>) -> Option<String> {
    let (before, above, below) = (found.group(1), small(found.group(2))?, small(found.group(3))?);
    let said = if 0 < above && above < below && below <= 10 {
        let part = PARTS.get(usize::from(below) - 2)?;
        match (above, *part) {
            (1, "half") => "one half".to_owned(),
            (1, part) => format!("1 {part}"),
            (above, part) => format!("{above} {part}s"),
        }
    } else if (above, below) == (24, 7) {
        "24 7".to_owned()
    } else {
        match date(words, "", above, below) {
            // "10/10" is a rating, unless a word such as "on" makes it a day; other figures have no scale.
            Some(_) if above == below && matches!(above, 5 | 10) && before.is_empty() => {
                format!("{above} out of {below}")
            }
            Some(told) => told,
            None => format!("{above} slash {below}"),
        }
    };
    Some(format!("{before}{said}"))
}

/// The first figure of a difference and its sign. Only a right result tells "12 - 5 is 7" from "9 - 5 is 8 hours".
pub(super) fn difference(_: &Words, found: &Match<'_>) -> Option<String> {
    let value = |n| found.group(n).replace(',', "").parse::<f64>().ok();
    let error = value(1)? - value(2)? - value(3)?;
    (error.abs() < 1e-6).then(|| format!("{} minus ", found.group(1)))
}

pub(super) fn range(_: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("{} to {}", found.group(1), found.group(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roman_numerals_count() {
        for (numeral, value) in [("I", 1), ("IV", 4), ("IX", 9), ("XIV", 14), ("XLII", 42), ("MCMXCIX", 1999)] {
            assert_eq!(roman(numeral), value);
        }
    }
}
