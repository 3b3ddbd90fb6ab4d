//! How long a text is when it is spoken, without a voice: what a clause's playback position means in words.
//!
//! The unit is the time of a letter. Figures, symbols and spelled names take longer than they look: "$1,250.50" is
//! "one thousand two hundred fifty dollars and fifty cents", 53 letters in nine characters.

use crate::script;

/// A figure: letters and spaces of number words, by digit, are 4 ("2026") to 6 ("4,096").
const FIGURE: u32 = 5;
/// A separator of thousands: "thousand".
const THOUSAND: u32 = 9;
/// A decimal separator: "point".
const POINT: u32 = 6;
/// A symbol that is read as a word: "percent", "dollars", "degrees".
const SYMBOL: u32 = 8;
/// A capital letter beside another one, as in "BBC": its name.
const SPELLED: u32 = 3;
/// A Chinese character or a Japanese syllable.
const SYLLABLE: u32 = 3;
/// A comma or the like, in the middle: a short pause.
const PAUSE: u32 = 4;

/// The length of a text, in letters.
pub fn of(text: &str) -> u32 {
    lengths(text).fold(0, |sum, (_, _, length)| sum.saturating_add(length))
}

/// The whole words that have been spoken when `part` (0 to 1) of the text's time is over, a prefix of `text`. Where no spaces set
/// words apart, it ends at a character.
pub fn words_spoken(text: &str, part: f32) -> &str {
    // Lengths of a clause are far below the limit up to which an f32 counts exactly.
    let (all, mut spoken) = (of(text) as f32, 0.0);
    let reached = if part.is_nan() { 0.0 } else { all * part };
    if reached >= all {
        return text;
    }
    let (mut end, mut is_behind_unspaced) = (0, false);
    for (at, char, length) in lengths(text) {
        if spoken > reached {
            break;
        }
        let is_unspaced = script::is_unspaced(char);
        if char.is_whitespace() || is_unspaced || is_behind_unspaced {
            end = at;
        }
        is_behind_unspaced = is_unspaced;
        spoken += length as f32;
    }
    text.get(..end).unwrap_or_default()
}

/// Each character with its place in bytes and its length.
pub(crate) fn lengths(text: &str) -> impl Iterator<Item = (usize, char, u32)> + '_ {
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    core::iter::from_fn(move || {
        let (at, char) = chars.next()?;
        let after = chars.peek().map(|(_, char)| *char);
        let length = length(before, char, after);
        before = Some(char);
        Some((at, char, length))
    })
}

fn length(before: Option<char>, char: char, after: Option<char>) -> u32 {
    let is = |neighbour: Option<char>, test: fn(char) -> bool| neighbour.is_some_and(test);
    let is_inside_number = is(before, char::is_numeric) && is(after, char::is_numeric);
    match char {
        ',' if is_inside_number => THOUSAND,
        '.' if is_inside_number => POINT,
        '%' | '°' | '&' | '+' | '=' | '@' | '#' | '/' => SYMBOL,
        '\u{20a0}'..='\u{20cf}' | '$' | '£' | '¥' => SYMBOL,
        ',' | ';' | ':' | '—' | '–' if after.is_some() => PAUSE,
        _ if script::PAUSES.contains(&char) && after.is_some() => PAUSE,
        _ if script::is_unspaced(char) => SYLLABLE,
        _ if char.is_numeric() => FIGURE,
        _ if char.is_uppercase() && (is(before, char::is_uppercase) || is(after, char::is_uppercase)) => SPELLED,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_clause_ends_at_a_word() {
        let text = "The capital of France is Paris";
        for (part, expected) in [
            (0.0, ""),
            (0.05, ""),
            (0.1, "The"),
            (0.12, "The"),
            (0.5, "The capital of"),
            (0.99, "The capital of France is"),
            (1.0, text),
            (f32::NAN, ""),
        ] {
            assert_eq!(words_spoken(text, part), expected, "{part}");
        }
    }

    #[test]
    fn where_no_spaces_set_words_apart_a_cut_clause_ends_at_a_character() {
        for (text, part, expected) in [
            ("今天天气很好", 0.0, ""),
            ("今天天气很好", 0.4, "今天"),
            ("今天天气很好", 0.9, "今天天气很"),
            ("今天天气很好", 1.0, "今天天气很好"),
            ("ソフトはLinuxです", 0.55, "ソフトは"),
            ("ソフトはLinuxです", 0.8, "ソフトはLinux"),
        ] {
            assert_eq!(words_spoken(text, part), expected, "{text} {part}");
        }
        assert!(of("今天") > of("text") && of("今天，好") > of("今天好"));
    }

    #[test]
    fn figures_take_longer_than_they_look() {
        let text = "1,234,567 is the population of the city.";
        assert_eq!(words_spoken(text, 0.5), "", "half of the time is the number's");
        assert_eq!(words_spoken("25% of them said yes", 0.4), "");
        assert_eq!(words_spoken("It costs $1,250.50 in all", 0.7), "It costs");
        assert!(of("NASA") > of("Rome") && of("") == 0);
    }
}
