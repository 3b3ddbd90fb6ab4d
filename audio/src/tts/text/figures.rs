//! Figures inside a sentence: years, ordinals, decimals, amounts of money, codes.

use super::lexicon::{Lexicon, add_ed, add_ing, add_s};
use super::numbers;

const ORDINAL_ENDINGS: [&str; 4] = ["st", "nd", "rd", "th"];
/// Endings of figures, longest first where one ends another.
const ENDINGS: [&str; 9] = ["ing", "'d", "ed", "'s", "st", "nd", "rd", "th", "s"];

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// The names of a currency and of its hundredth.
fn currency_names(sign: char) -> Option<[&'static str; 2]> {
    match sign {
        '$' => Some(["dollar", "cent"]),
        '£' => Some(["pound", "pence"]),
        '€' => Some(["euro", "cent"]),
        _ => None,
    }
}

/// The currency sign that `text` is, if that currency is read with its figure.
pub(super) fn is_currency(text: &str) -> Option<char> {
    let mut chars = text.chars();
    let sign = chars.next()?;
    (chars.next().is_none() && currency_names(sign).is_some()).then_some(sign)
}

fn is_figure(word: &str, is_head: bool) -> bool {
    if !word.bytes().any(|b| b.is_ascii_digit()) {
        return false;
    }
    let stem = ENDINGS.iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word);
    let stem = if is_head { stem.strip_prefix('-').unwrap_or(stem) } else { stem };
    stem.bytes().all(|b| b.is_ascii_digit() || b == b',' || b == b'.')
}

impl Lexicon {
    /// The phonemes of a figure; `None` if `word` is none.
    pub(super) fn figure(&self, word: &str, currency: Option<char>, is_head: bool) -> Option<String> {
        if !is_figure(word, is_head) {
            return None;
        }
        let stem_len = word.trim_end_matches(|c: char| c.is_ascii_lowercase() || c == '\'').len();
        let (figure, ending) = word.split_at(stem_len);
        let phonemes = self.read_words(&figure_words(figure, ending, currency, is_head))?;
        match ending {
            "s" | "'s" => add_s(&phonemes),
            "ed" | "'d" => add_ed(&phonemes),
            "ing" => add_ing(&phonemes),
            _ => Some(phonemes),
        }
    }

    /// The plural of the currency of `sign`, for a sign before a word.
    pub(super) fn currency_plural(&self, sign: char) -> Option<String> {
        let [name, _] = currency_names(sign)?;
        self.with_s(&format!("{name}s"), None, None, None)
    }

    fn read_words(&self, words: &[Word]) -> Option<String> {
        let mut phonemes = Vec::new();
        for word in words {
            match word {
                Word::Number(text) => {
                    let parts = text.split(|c: char| !c.is_ascii_lowercase()).filter(|part| !part.is_empty());
                    for part in parts.filter(|part| *part != "and") {
                        let stress = (part == "point").then_some(-2.0);
                        phonemes.extend(self.look_up(part, None, stress, None));
                    }
                }
                Word::Plain(text) => phonemes.extend(self.look_up(text, None, None, None)),
                Word::Oh => phonemes.extend(self.look_up("O", None, Some(-2.0), None)),
                Word::Plural(name) => phonemes.extend(self.with_s(&format!("{name}s"), None, None, None)),
            }
        }
        (!phonemes.is_empty()).then(|| phonemes.join(" "))
    }
}

/// A part of a spoken figure.
#[derive(Debug, PartialEq)]
enum Word {
    /// Number words, separated by anything but letters; "and" is not spoken.
    Number(String),
    Plain(&'static str),
    /// The zero of "three oh five".
    Oh,
    /// The plural of a unit of currency.
    Plural(&'static str),
}

fn figure_words(figure: &str, ending: &str, currency: Option<char>, is_head: bool) -> Vec<Word> {
    let mut words = Vec::new();
    let number = |text: String| Word::Number(text);
    let (figure, negative) = figure.strip_prefix('-').map_or((figure, false), |rest| (rest, true));
    if negative {
        words.push(Word::Plain("minus"));
    }
    let plain = figure.replace(',', "");
    let names = currency.and_then(currency_names);
    let dots = figure.matches('.').count();
    if all_digits(figure) && ORDINAL_ENDINGS.contains(&ending) {
        words.push(number(numbers::ordinal(figure)));
    } else if names.is_none() && dots == 0 && plain.len() > 1 && plain.starts_with('0') {
        // No amount is written so: it is a code or a part of a telephone number.
        words.push(number(numbers::spell(&plain)));
    } else if !negative && figure.len() == 4 && names.is_none() && all_digits(figure) {
        words.push(number(figure.parse().map(numbers::year).unwrap_or_default()));
    } else if !is_head && dots == 0 {
        code_words(&plain, &mut words);
    } else if dots > 1 || !is_head {
        for part in plain.split('.').filter(|part| !part.is_empty()) {
            let zeros = part.get(1..).is_some_and(|rest| rest.bytes().all(|b| b == b'0'));
            let by_digit = part.starts_with('0') || (part.len() != 2 && !zeros);
            words.push(number(if by_digit { numbers::spell(part) } else { numbers::cardinal(part) }));
        }
    } else if let Some(names) = names.filter(|_| has_cents(figure)) {
        money_words(&plain, names, &mut words);
    } else if dots == 0 {
        let ordinal = ORDINAL_ENDINGS.contains(&ending) && !all_digits(figure);
        words.push(number(if ordinal { numbers::ordinal(&plain) } else { numbers::cardinal(&plain) }));
    } else {
        words.push(number(match plain.strip_prefix('.') {
            Some(fraction) => format!("point {}", numbers::spell(fraction)),
            None => numbers::decimal(&plain),
        }));
        // More than two decimals are a part of the unit, not cents.
        words.extend(names.map(|[unit, _]| Word::Plural(unit)));
    }
    words
}

/// Digits inside a word ("B12", "A305"): as a number, in two parts, or one by one.
fn code_words(digits: &str, words: &mut Vec<Word>) {
    match digits.as_bytes() {
        [] => {}
        [_, _, _, _, ..] => words.push(Word::Number(numbers::spell(digits))),
        [_, tens, ones] if (*tens, *ones) != (b'0', b'0') => {
            words.push(Word::Number(numbers::cardinal(&digits[..1])));
            if *tens == b'0' {
                words.push(Word::Oh);
                words.push(Word::Number(numbers::cardinal(&digits[2..])));
            } else {
                words.push(Word::Number(numbers::cardinal(&digits[1..])));
            }
        }
        _ => words.push(Word::Number(numbers::cardinal(digits))),
    }
}

fn has_cents(figure: &str) -> bool {
    figure.split_once('.').is_none_or(|(_, cents)| cents.len() < 3)
}

fn money_words(figure: &str, [unit, hundredth]: [&'static str; 2], words: &mut Vec<Word>) {
    let zero = |digits: &str| digits.bytes().all(|b| b == b'0');
    let (whole, cents) = figure.split_once('.').unwrap_or((figure, ""));
    // A single digit counts tens of cents.
    let cents = format!("{cents:0<2}");
    let both = [(whole, unit), (cents.as_str(), hundredth)];
    let parts = match (zero(whole), zero(&cents)) {
        (_, true) => &both[..1],
        (true, false) => &both[1..],
        (false, false) => &both[..],
    };
    for (at, &(digits, name)) in parts.iter().enumerate() {
        if at > 0 {
            words.push(Word::Plain("and"));
        }
        words.push(Word::Number(numbers::cardinal(digits)));
        let one = digits.trim_start_matches('0') == "1";
        words.push(if one || name == "pence" { Word::Plain(name) } else { Word::Plural(name) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken(figure: &str, ending: &str, currency: Option<char>, is_head: bool) -> String {
        let words = figure_words(figure, ending, currency, is_head);
        let words = words.into_iter().map(|word| match word {
            Word::Number(text) => text,
            Word::Plain(text) => text.to_owned(),
            Word::Oh => "oh".to_owned(),
            Word::Plural(name) => format!("{name}s"),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn figures_are_read_as_people_do() {
        for (figure, ending, currency, is_head, words) in [
            ("1998", "", None, true, "nineteen ninety-eight"),
            ("23", "rd", None, true, "twenty-third"),
            ("-5", "", None, true, "minus five"),
            ("1,234", "", None, true, "one thousand, two hundred and thirty-four"),
            ("4.99", "", Some('$'), true, "four dollars and ninety-nine cents"),
            ("0.50", "", Some('£'), true, "fifty pence"),
            ("1.00", "", Some('€'), true, "one euro"),
            ("0.5", "", Some('$'), true, "fifty cents"),
            ("1.5", "", Some('€'), true, "one euro and fifty cents"),
            ("0.05", "", Some('$'), true, "five cents"),
            ("3.499", "", Some('$'), true, "three point four nine nine dollars"),
            (".001", "", Some('£'), true, "point zero zero one pounds"),
            ("2.4.1", "", None, true, "two four one"),
            (".5", "", None, true, "point five"),
            ("305", "", None, false, "three oh five"),
            ("284", "", None, false, "two eighty-four"),
            ("007", "", None, false, "zero zero seven"),
            ("0", "", None, false, "zero"),
            ("0", "", None, true, "zero"),
            ("0000", "", None, true, "zero zero zero zero"),
            ("0042", "", None, true, "zero zero four two"),
            ("048213", "", None, true, "zero four eight two one three"),
            ("020", "", None, true, "zero two zero"),
            ("0123", "", None, false, "zero one two three"),
            ("05", "", Some('$'), true, "five dollars"),
            ("05", "th", None, true, "fifth"),
        ] {
            assert_eq!(spoken(figure, ending, currency, is_head), words, "{figure}");
        }
    }

    #[test]
    fn what_a_figure_is() {
        assert!(is_figure("1990s", true) && is_figure("-5", true) && is_figure("3rd", false));
        assert!(!is_figure("-5", false) && !is_figure("B12", true) && !is_figure(",", true));
    }
}
