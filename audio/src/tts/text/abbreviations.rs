//! Abbreviations with a full stop: their reading, and whether a sentence ends after them.

use super::extra;
use super::readings;
use super::rule::{Match, Words};

/// Expanded in front of a figure or a Roman numeral.
const BEFORE_FIGURES: &[(&str, &str)] = &[
    ("Fig", "Figure"),
    ("fig", "figure"),
    ("Figs", "Figures"),
    ("figs", "figures"),
    ("Vol", "Volume"),
    ("vol", "volume"),
    ("Vols", "Volumes"),
    ("Ch", "Chapter"),
    ("ch", "chapter"),
    ("Chap", "Chapter"),
    ("Sec", "Section"),
    ("Art", "Article"),
    ("Eq", "Equation"),
    ("p", "page"),
    ("pp", "pages"),
    ("ext", "extension"),
    ("Ext", "Extension"),
    ("est", "established"),
    ("Est", "Established"),
    ("Rm", "Room"),
    ("Ste", "Suite"),
    ("Bldg", "Building"),
];
/// Expanded in front of a name.
const BEFORE_NAMES: &[(&str, &str)] = &[
    ("Mt", "Mount"),
    ("Ft", "Fort"),
    ("Gen", "General"),
    ("Maj", "Major"),
    ("Col", "Colonel"),
    ("Capt", "Captain"),
    ("Cmdr", "Commander"),
    ("Adm", "Admiral"),
    ("Lt", "Lieutenant"),
    ("Sgt", "Sergeant"),
    ("Cpl", "Corporal"),
    ("Gov", "Governor"),
    ("Sen", "Senator"),
    ("Rep", "Representative"),
    ("Pres", "President"),
    ("Rev", "Reverend"),
    ("Hon", "Honorable"),
    ("Fr", "Father"),
];
/// A sentence never ends after these.
const GOES_ON: &[&str] = &["approx", "vs", "avg", "dept", "govt", "misc", "cf", "excl", "incl", "ca", "e.g", "i.e"];
/// Abbreviated months, by their first three letters.
pub(super) const MONTH: &str = "(Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)";
/// Words that begin a sentence more often than they follow "Oct.", "U.S." or "St." within one.
const OPENERS: &[&str] = &[
    "The", "A", "An", "It", "He", "She", "We", "They", "You", "I", "This", "That", "These", "Those", "There", "Then",
    "Here", "In", "On", "At", "By", "To", "From", "For", "With", "As", "If", "When", "What", "Who", "How", "Why",
    "Where", "But", "And", "So", "Or", "No", "Yes", "Not", "Please", "Do", "Did", "Is", "Are", "Was", "My", "Your",
    "His", "Her", "Its", "Our", "Their", "Let", "Now", "After", "Before", "Also", "Maybe", "Perhaps", "Today",
    "Tomorrow", "Would", "Shall", "Turn", "Continue", "Keep", "Take", "Go",
];

/// The abbreviations before figures, for a pattern; of those with the same beginning the longer ones first.
pub(super) fn before_figures() -> impl Iterator<Item = String> {
    BEFORE_FIGURES.iter().map(|(short, _)| (*short).to_owned())
}

/// The same for abbreviations before names.
pub(super) fn before_names() -> impl Iterator<Item = String> {
    BEFORE_NAMES.iter().map(|(short, _)| (*short).to_owned())
}

fn spoken(list: &[(&str, &'static str)], short: &str) -> Option<String> {
    list.iter().find_map(|(known, spoken)| (*known == short).then(|| format!("{spoken} ")))
}

/// "Fig. 3".
pub(super) fn figure(_: &Words, found: &Match<'_>) -> Option<String> {
    spoken(BEFORE_FIGURES, found.group(1))
}

/// "Gen. Lee".
pub(super) fn name(_: &Words, found: &Match<'_>) -> Option<String> {
    spoken(BEFORE_NAMES, found.group(1))
}

/// "Oct." without a day.
pub(super) fn month(words: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("{}{}", readings::month(words, found.group(1))?, full_stop(found)))
}

/// "Nov 2026" and "Oct–Dec": the reading of the first month, and what is between.
pub(super) fn month_before(words: &Words, found: &Match<'_>) -> Option<String> {
    let between = if found.group(2).trim().is_empty() { " " } else { " to " };
    Some(format!("{}{between}", readings::month(words, found.group(1))?))
}

/// "Sat." without a date.
pub(super) fn day(_: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("{}{}", extra::day(found.group(1))?, full_stop(found)))
}

/// "2nd ed.".
pub(super) fn edition(_: &Words, found: &Match<'_>) -> Option<String> {
    Some(format!("edition{}", full_stop(found)))
}

/// The full stop of an abbreviation, where it also ends the sentence.
fn full_stop(found: &Match<'_>) -> &'static str {
    if found.rest.is_empty() { "." } else { "" }
}

/// Whether a sentence ends at the full stop between `word` and `next`, which begins with no small letter; `None`: the
/// word does not decide it.
pub(super) fn ends_sentence(word: &str, next: &str) -> Option<bool> {
    let first = first_word(next);
    let figure = first.starts_with(|c: char| c.is_ascii_digit());
    // A fig is also a fruit, after which "I" is the speaker.
    let speaker = first == "I" && matches!(word, "fig" | "figs");
    let numeral = !speaker && !first.is_empty() && first.chars().all(|c| "IVXLC".contains(c));
    let lower = word.to_lowercase();
    if GOES_ON.contains(&lower.as_str()) || BEFORE_NAMES.iter().any(|(short, _)| *short == word) {
        return Some(false);
    }
    if BEFORE_FIGURES.iter().any(|(short, _)| *short == word) {
        return Some(!figure && !numeral);
    }
    let is_opener = OPENERS.contains(&first);
    let dated = extra::is_day(first) || is_month(first);
    if matches!(lower.as_str(), "a.m" | "p.m") {
        return Some(!dated);
    }
    let initials = word.len() > 2 && word.split('.').all(|letter| letter.len() == 1 && ("A"..="Z").contains(&letter));
    (initials || is_short_month(word) || extra::is_day(word)).then_some(is_opener && !figure)
}

/// Whether the full stop between `word` and `next` ends a sentence behind a street, as in "12 Elm St. It closes": "St" is
/// one behind a name or a figure, in front of a word that begins a sentence. Elsewhere it is a saint.
pub(super) fn is_street(before: &str, word: &str, next: &str) -> bool {
    let name = before.rsplit(' ').next().unwrap_or_default().trim_start_matches(|c: char| !c.is_alphanumeric());
    let named = name.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
    word == "St" && named && OPENERS.contains(&first_word(next))
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
}

fn is_short_month(word: &str) -> bool {
    (3..=4).contains(&word.len()) && is_month(word)
}

/// Whether a word is a month, abbreviated or not.
fn is_month(word: &str) -> bool {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    word.len() >= 3 && MONTHS.iter().any(|month| month.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_stop_ends_what_it_ends() {
        for (word, next, ends) in [
            ("approx", "Ten came", Some(false)),
            ("vs", "Italy", Some(false)),
            ("Fig", "3", Some(false)),
            ("Vol", "IV is", Some(false)),
            ("p", "Then", Some(true)),
            ("fig", "I liked it", Some(true)),
            ("Fig", "I shows it", Some(false)),
            ("Gen", "Lee", Some(false)),
            ("Oct", "Paris", Some(false)),
            ("Oct", "5", Some(false)),
            ("Oct", "It's late", Some(true)),
            ("Sat", "Nov", Some(false)),
            ("p.m", "Friday", Some(false)),
            ("p.m", "Bring milk", Some(true)),
            ("U.S", "Senate", Some(false)),
            ("U.S", "The rest", Some(true)),
            ("house", "The", None),
            ("", "", None),
        ] {
            assert_eq!(ends_sentence(word, next), ends, "{word}. {next}");
        }
    }

    #[test]
    fn a_street_is_no_saint() {
        for (before, next, street) in [
            ("12 Elm", "It closes at five", true),
            ("It is on 42nd", "The next", true),
            ("the shop (Elm", "Turn left", true),
            ("Mount", "Helens is", false),
            ("near", "Pancras", false),
            ("It is near", "It", false),
            ("", "Mary's", false),
            ("", "", false),
        ] {
            assert_eq!(is_street(before, "St", next), street, "{before} St. {next}");
        }
        assert!(!is_street("12 Elm", "Dr", "It closes at five"));
    }
}
