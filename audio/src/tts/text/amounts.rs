//! Versions, dimensions, ratios, and amounts in front of a noun ("a 50 lb bag").

use super::rule::{Match, Words};
use super::{numbers, readings};

/// Words after which an amount belongs to the noun that follows.
pub(super) const DETERMINER: &str = "([Aa]n?|[Tt]he|[Tt]his|[Tt]hat|[Mm]y|[Yy]our|[Hh]is|[Hh]er|[Ii]ts|[Oo]ur|[Tt]heir|[Ee]ach|[Ee]very|[Oo]ne|[Aa]nother|[Aa]ny|[Nn]o)";
/// Words for a ratio, before and after it.
pub(super) const RATIO_BEFORE: &str =
    "(?:[Rr]atios?|[Ss]cale|[Oo]dds|[Pp]roportions?|[Mm]ix(?:ed|ture)?)(?: (?:of|is|are|at|was|to))?";
pub(super) const RATIO_BEHIND: &str =
    "(?:ratio|scale|odds|aspect|mix|mixture|monitor|screen|display|format|video|picture|dilution)s?";
/// Words after an amount that are no nouns: with them "the 5 km" stands alone.
const NO_NOUNS: &[&str] = &[
    "is",
    "are",
    "was",
    "were",
    "be",
    "has",
    "have",
    "had",
    "do",
    "does",
    "did",
    "will",
    "would",
    "can",
    "could",
    "should",
    "may",
    "might",
    "must",
    "took",
    "take",
    "takes",
    "went",
    "cost",
    "costs",
    "came",
    "made",
    "gave",
    "bought",
    "seem",
    "seemed",
    "felt",
    "of",
    "in",
    "on",
    "at",
    "to",
    "from",
    "for",
    "with",
    "without",
    "by",
    "per",
    "over",
    "under",
    "above",
    "below",
    "between",
    "before",
    "after",
    "behind",
    "into",
    "through",
    "than",
    "and",
    "or",
    "but",
    "nor",
    "as",
    "if",
    "when",
    "while",
    "because",
    "so",
    "that",
    "which",
    "who",
    "i",
    "you",
    "he",
    "she",
    "it",
    "we",
    "they",
    "there",
    "here",
    "not",
    "away",
    "ago",
    "apart",
    "long",
    "tall",
    "high",
    "wide",
    "deep",
    "thick",
    "heavy",
    "old",
    "left",
    "off",
    "out",
    "up",
    "down",
    "more",
    "less",
    "later",
    "earlier",
    "further",
    "farther",
    "ahead",
    "back",
    "each",
    "total",
    "altogether",
    "every",
    "now",
    "today",
    "tomorrow",
    "yesterday",
    "tonight",
    "too",
    "only",
    "also",
    "again",
    "already",
    "still",
    "yet",
    "please",
    "either",
];

fn is_noun_next(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix(' ') else {
        return false;
    };
    let word: String = rest.chars().take_while(|c| c.is_alphabetic()).collect();
    !word.is_empty() && !NO_NOUNS.contains(&word.to_lowercase().as_str())
}

/// "2.10.3": each part as a number, with its zeros. Four parts below 256 are an IP address; a day, a month and a year
/// are a date.
pub(super) fn version(words: &Words, found: &Match<'_>) -> Option<String> {
    let (letter, figure) = (found.group(1), found.group(2));
    let parts: Vec<&str> = figure.split('.').collect();
    let said = |mark: &str| {
        let parts = parts.iter().map(|part| match part.strip_prefix('0') {
            Some(rest) if !rest.is_empty() => numbers::spell(part),
            _ => (*part).to_owned(),
        });
        parts.collect::<Vec<_>>().join(mark)
    };
    if !letter.is_empty() {
        return Some(format!("version {}", said(" point ")));
    }
    match parts[..] {
        [_, _] | [_] => None,
        [day, month, year] if year.len() == 4 && day.len() <= 2 && month.len() <= 2 => {
            readings::date(words, year, month.parse().ok()?, day.parse().ok()?).or_else(|| Some(said(" point ")))
        }
        [_, _, _, _] if parts.iter().all(|part| part.parse::<u8>().is_ok()) => Some(said(" dot ")),
        _ => Some(said(" point ")),
    }
}

/// "2 x 4" read with "by", unless it is a product.
pub(super) fn dimensions(words: &Words, found: &Match<'_>) -> Option<String> {
    let chain = found.group(0);
    let numbers: Vec<&str> = chain.split(['x', '×']).map(str::trim).collect();
    let next = found.rest.trim_start_matches(' ');
    let is_product = ["=", "is ", "are ", "equals ", "makes ", "gives "].iter().any(|sign| next.starts_with(sign));
    let word: String = next.chars().take_while(|c| !c.is_whitespace() && !",.;:!?)".contains(*c)).collect();
    let measured = words.units.contains_key(&word) || words.units.values().flatten().any(|name| *name == word);
    let large = numbers.iter().all(|number| number.len() > 2);
    let by = !is_product && (chain.contains('x') || measured || large);
    Some(numbers.join(if by { " by " } else { " times " }))
}

/// "16:9".
pub(super) fn ratio(_: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("{}{} to {}", found.group(1), found.group(2), found.group(3)))
}

/// The singular of a unit, whose name may be followed by a full stop.
fn one<'w>(words: &'w Words, unit: &str) -> Option<&'w str> {
    words.units.get(unit).map(|[one, _]| one.as_str())
}

/// "a 50 lb bag", "a 5 km or 6 km walk": determiner, perhaps an amount before, the amount.
pub(super) fn attributive(words: &Words, found: &Match<'_>) -> Option<String> {
    if !is_noun_next(found.rest) {
        return None;
    }
    let before = match found.group(2) {
        "" => String::new(),
        figure => format!("{figure} {} {} ", one(words, found.group(3))?, found.group(4)),
    };
    Some(format!("{} {before}{} {}", found.group(1), found.group(5), one(words, found.group(6))?))
}

/// "50-lb": always singular.
pub(super) fn hyphenated(words: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("{} {}", found.group(1), one(words, found.group(2))?))
}

/// "a 30 °C day".
pub(super) fn degrees(_: &Words, found: &Match<'_>) -> Option<String> {
    let scale = match found.group(3) {
        "C" => " Celsius",
        "F" => " Fahrenheit",
        _ => "",
    };
    is_noun_next(found.rest).then(|| format!("{} {} degree{scale}", found.group(1), found.group(2)))
}

/// "a $5 bill", "a $3 million house".
pub(super) fn money(_: &Words, found: &Match<'_>) -> Option<String> {
    let name = match found.group(2) {
        "$" => "dollar",
        "£" => "pound",
        _ => "euro",
    };
    let scale = readings::scale(found.group(4));
    let scale = if scale.is_empty() { String::new() } else { format!(" {scale}") };
    is_noun_next(found.rest).then(|| format!("{} {}{scale} {name}", found.group(1), found.group(3)))
}
