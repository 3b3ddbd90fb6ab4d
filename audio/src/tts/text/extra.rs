//! Units, abbreviations and notations that the voice's own lists lack.

use super::numbers;
use super::rule::{Match, Words};

/// Singular and plural of units.
const UNITS: &[(&str, [&str; 2])] = &[
    ("m", ["meter", "meters"]),
    ("g", ["gram", "grams"]),
    ("l", ["liter", "liters"]),
    ("L", ["liter", "liters"]),
    ("h", ["hour", "hours"]),
    ("hr", ["hour", "hours"]),
    ("hrs", ["hour", "hours"]),
    ("min", ["minute", "minutes"]),
    ("mins", ["minute", "minutes"]),
    ("sec", ["second", "seconds"]),
    ("secs", ["second", "seconds"]),
    ("wk", ["week", "weeks"]),
    ("wks", ["week", "weeks"]),
    ("yr", ["year", "years"]),
    ("yrs", ["year", "years"]),
    ("mi", ["mile", "miles"]),
    ("lb", ["pound", "pounds"]),
    ("lbs", ["pound", "pounds"]),
    ("oz", ["ounce", "ounces"]),
    ("ft", ["foot", "feet"]),
    ("yd", ["yard", "yards"]),
    ("W", ["watt", "watts"]),
    ("V", ["volt", "volts"]),
    ("kcal", ["kilocalorie", "kilocalories"]),
    ("tsp", ["teaspoon", "teaspoons"]),
    ("tbsp", ["tablespoon", "tablespoons"]),
    ("m²", ["square meter", "square meters"]),
    ("km²", ["square kilometer", "square kilometers"]),
    ("cm²", ["square centimeter", "square centimeters"]),
    ("ft²", ["square foot", "square feet"]),
    ("m³", ["cubic meter", "cubic meters"]),
    ("m/s", ["meter per second", "meters per second"]),
];
const ABBREVIATIONS: &[(&str, &str)] = &[
    ("e.g.", "for example"),
    ("i.e.", "that is"),
    ("etc.", "et cetera"),
    ("min.", "minimum"),
    ("max.", "maximum"),
    ("ca.", "circa"),
    ("incl.", "including"),
    ("temp.", "temperature"),
    ("Temp.", "Temperature"),
    ("tel.", "telephone"),
    ("Tel.", "Telephone"),
    ("approx.", "approximately"),
    ("Approx.", "Approximately"),
    ("vs.", "versus"),
    ("avg.", "average"),
    ("Avg.", "Average"),
    ("dept.", "department"),
    ("Dept.", "Department"),
    ("govt.", "government"),
    ("misc.", "miscellaneous"),
    ("cf.", "compare"),
    ("excl.", "excluding"),
];
/// Entries of the voice's list that are also plain words. In front of a figure they have rules of their own.
const PLAIN_WORDS: &[&str] =
    &["no.", "nos.", "fig.", "Fig.", "ch.", "Ch.", "vol.", "Vol.", "pp.", "ed.", "eds.", "Sun."];
/// Days of the week by their first three letters.
const DAYS: [(&str, &str); 7] = [
    ("Mon", "Monday"),
    ("Tue", "Tuesday"),
    ("Wed", "Wednesday"),
    ("Thu", "Thursday"),
    ("Fri", "Friday"),
    ("Sat", "Saturday"),
    ("Sun", "Sunday"),
];
/// Pattern of abbreviated days.
pub(super) const DAY: &str = "(Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)";

/// Adds what the voice lacks, and removes the abbreviations that are also plain words.
pub(super) fn add(words: &mut Words) {
    for (unit, names) in UNITS {
        words.units.entry((*unit).to_owned()).or_insert_with(|| names.map(str::to_owned));
    }
    words.abbreviations.retain(|short, _| !PLAIN_WORDS.contains(&short.as_str()));
    for (short, spoken) in ABBREVIATIONS {
        words.abbreviations.entry((*short).to_owned()).or_insert_with(|| (*spoken).to_owned());
    }
}

/// Whether a word is a day of the week, abbreviated or not.
pub(super) fn is_day(word: &str) -> bool {
    word.len() >= 3 && DAYS.iter().any(|(_, name)| name.starts_with(word))
}

pub(super) fn day(short: &str) -> Option<&'static str> {
    DAYS.iter().find_map(|(first, name)| short.starts_with(first).then_some(*name))
}

/// "Sat" before a date.
pub(super) fn day_of_date(_: &Words, found: &Match<'_>) -> Option<String> {
    day(found.group(1)).map(str::to_owned)
}

/// "Mon–Fri".
pub(super) fn days(_: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("{} to {}", day(found.group(1))?, day(found.group(2))?))
}

/// "9am".
pub(super) fn hour(_: &Words, found: &Match<'_>) -> Option<String> {
    let (hour, half) = (found.group(1), found.group(2));
    if !(1..=12).contains(&hour.parse::<u8>().ok()?) {
        return None;
    }
    Some(format!("{} {}M", numbers::cardinal(hour), half.to_uppercase()))
}

/// The reading up to the second time of "9am–5pm".
pub(super) fn until(_: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("{} to ", found.group(1)))
}

/// "5 s"; without the space it may be a decade, as in "the 90s".
pub(super) fn seconds(_: &Words, found: &Match<'_>) -> Option<String> {
    let figure = found.group(1);
    Some(format!("{figure} {}", if figure == "1" { "second" } else { "seconds" }))
}

/// "1980s".
pub(super) fn decade(_: &Words, found: &Match<'_>) -> Option<String> {
    let tens = numbers::cardinal(&format!("{}0", found.group(2)));
    Some(format!("{} {}ies", numbers::cardinal(found.group(1)), tens.strip_suffix('y')?))
}

/// "20 USD".
pub(super) fn money_behind(words: &Words, found: &Match<'_>) -> Option<String> {
    let (figure, [one, more]) = (found.group(1), words.currency.get(found.group(2))?);
    Some(format!("{figure} {}", if figure == "1" { one } else { more }))
}

/// "6'2"": feet and inches.
pub(super) fn height(_: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("{} foot {}", found.group(1), found.group(2)))
}
