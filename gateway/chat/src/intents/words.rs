//! Splits an utterance into words, by the rules of its language: lower case, contractions expanded, hesitations
//! dropped. Each word keeps its byte range, so that free text keeps the wearer's original spelling.

use gateway_core::vocab::accents::push_folded;

use super::language::{Cut, Language};

/// The kind of a word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Letters, or an operator sign.
    Plain,
    /// Digits: `12`, `1,200`, `2.5`.
    Number(f64),
    /// Digits with an ending: `3rd`.
    Ordinal(u32),
    /// A clock time in digits: `17:30`. The text keeps a leading zero.
    Clock(u32, u32),
}

/// A normalised word, with the place in the utterance that it was read from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    /// Lower case, apostrophes straight, without accents where the language folds them.
    pub text: String,
    pub kind: Kind,
    /// First byte in the utterance.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// A hesitation was dropped before it.
    pub gap: bool,
}

/// Signs that belong to the adjacent word.
const SIGNS: [char; 9] = ['$', '\u{20ac}', '\u{a3}', '\u{a5}', '#', '@', '\u{b0}', '&', '='];

/// Splits an utterance, or the literal part of a template, into words.
pub(super) fn cut(source: &str, language: &Language) -> Vec<Word> {
    let mut cutter = Cutter { source, rules: &language.cut, at: 0, words: Vec::new(), gap: false };
    while let Some(next) = cutter.peek(0) {
        if next.is_ascii_digit() || share(next).is_some() {
            cutter.push_number();
        } else if next.is_alphabetic() {
            cutter.push_letters();
        } else {
            cutter.push_sign(next);
        }
    }
    cutter.words
}

/// The original text of a span, with the signs at its edges and without what was dropped inside it.
pub(super) fn original(source: &str, words: &[Word]) -> String {
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        return String::new();
    };
    let before = source.get(..first.start).unwrap_or("");
    let mut out = before[before.trim_end_matches(SIGNS).len()..].to_owned();
    let mut last_end = None;
    for word in words {
        if let Some(end) = last_end {
            let between = source.get(end..word.start).unwrap_or(" ");
            out.push_str(if word.gap || is_hesitation(between) { " " } else { between });
        }
        out.push_str(source.get(word.start..word.end).unwrap_or(""));
        last_end = Some(word.end);
    }
    let behind = source.get(last.end..).unwrap_or("");
    let closes = |c| c == ')' && out.contains('(');
    let kept = behind.len() - behind.trim_start_matches(|c| SIGNS.contains(&c) || closes(c)).len();
    out.push_str(&behind[..kept]);
    out
}

/// Whether an ellipsis is all that stands between two words: the recogniser writes it where somebody hesitates.
fn is_hesitation(between: &str) -> bool {
    let dots = between.trim();
    dots.len() >= "...".len() && dots.chars().all(|sign| matches!(sign, '.' | '…'))
}

struct Cutter<'a> {
    source: &'a str,
    rules: &'a Cut,
    at: usize,
    words: Vec<Word>,
    gap: bool,
}

impl Cutter<'_> {
    fn rest(&self) -> &str {
        self.source.get(self.at..).unwrap_or("")
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest().chars().nth(ahead)
    }

    fn push(&mut self, text: &str, kind: Kind, start: usize, end: usize) {
        let gap = std::mem::take(&mut self.gap);
        self.words.push(Word { text: text.into(), kind, start, end, gap });
    }

    fn digits(&self, from: usize) -> &str {
        let rest = self.source.get(from..).unwrap_or("");
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        &rest[..length]
    }

    fn push_number(&mut self) {
        let start = self.at;
        let mut number = self.digits(start).to_owned();
        let mut end = start + number.len();
        if let Some((after, share)) = self.share_at(end) {
            let value = number.parse().unwrap_or(0.0) + share;
            self.at = after;
            self.push(&value.to_string(), Kind::Number(value), start, after);
            return;
        }
        // The one sign only between thousands ("1,200", not "1,2"), the other one before a fraction.
        let (thousands, fraction) = if self.rules.decimal_comma { ('.', ',') } else { (',', '.') };
        while self.source[end..].starts_with(thousands) && self.digits(end + 1).len() == 3 {
            number.push_str(&self.source[end + 1..end + 4]);
            end += 4;
        }
        if self.source[end..].starts_with(':') && self.digits(end + 1).len() == 2 {
            let minute = self.digits(end + 1).to_owned();
            end += 3;
            self.at = end;
            let kind = match (number.parse(), minute.parse()) {
                (Ok(hour), Ok(minute)) if hour < 24 && minute < 60 => Kind::Clock(hour, minute),
                _ => Kind::Plain,
            };
            self.push(&format!("{number}:{minute}"), kind, start, end);
            return;
        }
        if let Some(after) = self.hour_at(end) {
            let minutes = self.digits(end + 1).to_owned();
            if let (Ok(hour @ 0..24), Ok(minute @ 0..60)) = (number.parse(), minutes.parse()) {
                self.at = after;
                self.push(&format!("{number}:{minutes}"), Kind::Clock(hour, minute), start, after);
                return;
            }
        }
        let is_fraction = self.source[end..].starts_with(fraction) && !self.digits(end + 1).is_empty();
        if is_fraction || self.is_point(start, end) {
            let fraction = self.digits(end + 1).to_owned();
            end += 1 + fraction.len();
            number = format!("{number}.{fraction}");
        }
        let ending: String = self.source[end..]
            .chars()
            .take_while(|letter| letter.is_alphabetic())
            .flat_map(char::to_lowercase)
            .collect();
        let mut kind = number.parse().map_or(Kind::Plain, Kind::Number);
        let folded = gateway_core::vocab::accents::folded(&ending);
        if self.rules.ordinals.contains(&folded.as_str())
            && let Ok(value) = number.parse()
        {
            kind = Kind::Ordinal(value);
            end += self.source[end..].find(|letter: char| !letter.is_alphabetic()).unwrap_or(self.source.len() - end);
        }
        self.at = end;
        self.push(&number, kind, start, end);
    }

    /// Whether a point at `end` of the digits from `start` on is one before a fraction also where a comma usually is: "1.5". It is none
    /// in a date ("1.5.") and between hours and minutes ("9.30").
    fn is_point(&self, start: usize, end: usize) -> bool {
        let digits = self.source[end..].strip_prefix('.').map_or(0, |_| self.digits(end + 1).len());
        let before =
            self.source[..start].strip_suffix('.').is_some_and(|text| text.ends_with(|c: char| c.is_ascii_digit()));
        let behind = self.source.get(end + 1 + digits..).is_some_and(|text| text.starts_with('.'));
        self.rules.decimal_comma && (digits == 1 || digits > 3) && !before && !behind
    }

    /// One past "½" at `from`, and its value; there may be spaces before it.
    fn share_at(&self, from: usize) -> Option<(usize, f64)> {
        let rest = self.source.get(from..)?;
        let sign = rest.trim_start().chars().next()?;
        Some((self.source.len() - rest.trim_start().len() + sign.len_utf8(), share(sign)?))
    }

    /// One past "h30" at `from`, which makes a time of the hour before it.
    fn hour_at(&self, from: usize) -> Option<usize> {
        let is_sign = self.rules.hour_sign && self.source[from..].starts_with(['h', 'H']);
        let end = from + 1 + if is_sign { self.digits(from + 1).len() } else { 0 };
        let behind = self.source.get(end..).and_then(|rest| rest.chars().next());
        (is_sign && end == from + 3 && !behind.is_some_and(char::is_alphanumeric)).then_some(end)
    }

    fn push_letters(&mut self) {
        let start = self.at;
        let lower = |c: Option<char>| c.map(|c| c.to_ascii_lowercase());
        // "p.m." and "a. m." are one word each.
        if matches!(lower(self.peek(0)), Some('a' | 'p')) && self.peek(1) == Some('.') {
            let space = usize::from(self.peek(2) == Some(' '));
            let after = self.peek(3 + space);
            if lower(self.peek(2 + space)) == Some('m') && !after.is_some_and(char::is_alphanumeric) {
                let text = if lower(self.peek(0)) == Some('a') { "am" } else { "pm" };
                let end = start + 3 + space + usize::from(after == Some('.'));
                self.at = end;
                self.push(text, Kind::Plain, start, end);
                return;
            }
        }
        let mut text = String::new();
        let mut end = start;
        for letter in self.rest().chars() {
            match letter {
                '\'' | '\u{2019}' if self.rules.elides => {
                    end += letter.len_utf8();
                    break;
                }
                '\'' | '\u{2019}' => text.push('\''),
                _ if self.rules.folds && (letter.is_alphanumeric() || is_accent(letter)) => {
                    letter.to_lowercase().for_each(|letter| push_folded(&mut text, letter));
                }
                _ if letter.is_alphanumeric() => text.extend(letter.to_lowercase()),
                _ => break,
            }
            end += letter.len_utf8();
        }
        self.at = end;
        let trimmed = text.trim_end_matches('\'');
        if self.rules.hesitations.contains(&trimmed) && !self.means_something(start, end) {
            self.gap = true;
            return;
        }
        match open_contraction(trimmed).filter(|_| self.rules.contracts) {
            Some((first, second)) => {
                self.push(first, Kind::Plain, start, end);
                self.push(second, Kind::Plain, end, end);
            }
            None => self.push(trimmed, Kind::Plain, start, end),
        }
    }

    /// Whether an apparent hesitation is a word: "the ER", "5 mm".
    fn means_something(&self, start: usize, end: usize) -> bool {
        let letters = self.source.get(start..end).unwrap_or("");
        let counted = || matches!(self.words.last(), Some(Word { kind: Kind::Number(_), .. }));
        letters.chars().all(char::is_uppercase) || (letters == "mm" && !self.gap && counted())
    }

    fn push_sign(&mut self, sign: char) {
        let start = self.at;
        let end = start + sign.len_utf8();
        self.at = end;
        let text = match sign {
            '%' => "percent",
            '+' => "+",
            '*' | '\u{d7}' => "*",
            '/' | '\u{f7}' => "/",
            '^' => "^",
            // A dash is an operator only where a number follows and no word runs into it.
            '-' | '\u{2212}' if self.minus_at(start, end) => "-",
            // "⅓" is a word that nothing matches: without it, it would be another number.
            _ if sign.is_numeric() => &sign.to_string(),
            _ => return,
        };
        self.push(text, Kind::Plain, start, end);
    }

    fn minus_at(&self, start: usize, end: usize) -> bool {
        let before = self.source[..start].chars().next_back();
        let number_follows = self.source[end..].trim_start().starts_with(|c: char| c.is_ascii_digit());
        number_follows && before.is_none_or(|c| c.is_ascii_digit() || c.is_whitespace())
    }
}

/// The value of "½".
fn share(sign: char) -> Option<f64> {
    match sign {
        '½' => Some(0.5),
        '¼' => Some(0.25),
        '¾' => Some(0.75),
        _ => None,
    }
}

/// Whether it is an accent of the letter before it.
fn is_accent(letter: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&letter)
}

fn open_contraction(word: &str) -> Option<(&str, &'static str)> {
    let (head, tail) = word.split_once('\'')?;
    let second = match (head, tail) {
        (
            "what" | "how" | "where" | "when" | "who" | "that" | "it" | "there" | "here" | "which" | "time" | "he"
            | "she",
            "s",
        ) => "is",
        ("let", "s") => "us",
        ("i" | "you" | "we", "d") => "would",
        ("i" | "you" | "we", "ll") => "will",
        ("i", "m") => "am",
        ("you" | "we" | "they", "re") => "are",
        ("i" | "you" | "we", "ve") => "have",
        _ => return None,
    };
    Some((head, second))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<String> {
        cut(source, Language::english()).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn cuts_what_a_recogniser_writes() {
        let cases: [(&str, &[&str]); 13] = [
            ("10-minute timer, please.", &["10", "minute", "timer", "please"]),
            ("What's 7 x 8?", &["what", "is", "7", "x", "8"]),
            ("5 p.m. and 6 a.m", &["5", "pm", "and", "6", "am"]),
            ("5pm at 17:30", &["5", "pm", "at", "17:30"]),
            ("Um, set, uh, it", &["set", "it"]),
            ("1,200 and 2.5", &["1200", "and", "2.5"]),
            ("4. Minutes", &["4", "minutes"]),
            ("15% of 80", &["15", "percent", "of", "80"]),
            ("9 - 4 forty-five", &["9", "-", "4", "forty", "five"]),
            ("I\u{2019}d like B12", &["i", "would", "like", "b12"]),
            ("June 3rd", &["june", "3"]),
            ("1½ and ¼, 3⅓", &["1.5", "and", "0.25", "3", "⅓"]),
            ("... !? \u{1f600} 'tis", &["tis"]),
        ];
        for (source, expected) in cases {
            assert_eq!(texts(source), expected, "{source}");
        }
    }

    #[test]
    fn free_text_keeps_the_wearers_spelling() {
        for (source, expected) in [
            ("note two eggs... and flour...", "two eggs and flour"),
            ("note two eggs. And flour", "two eggs. And flour"),
            ("Note: two eggs, um, Flour (and) sugar.", "two eggs Flour (and) sugar"),
            ("Note \u{20ac}5 for 3 mm of milk (fresh).", "\u{20ac}5 for 3 mm of milk (fresh)"),
            ("note, the ER is at 30\u{b0}!", "the ER is at 30\u{b0}"),
            ("note 1½ cups of milk", "1½ cups of milk"),
            ("note ⅓ of 5²", "⅓ of 5²"),
            ("(note milk)", "milk"),
            ("note", ""),
        ] {
            assert_eq!(original(source, &cut(source, Language::english())[1..]), expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_cut_into_words_within_it(source in "\\PC{0,80}") {
            let words = cut(&source, Language::of(["en", "de", "es", "fr"][source.len() % 4]));
            for word in &words {
                proptest::prop_assert!(source.get(word.start..word.end).is_some());
            }
            original(&source, &words);
        }

        #[test]
        fn digits_and_signs_in_any_order_are_cut(source in "[0-9apmhe.:,%'’ \\-+x]{0,40}") {
            for tag in ["en", "de", "es", "fr"] {
                original(&source, &cut(&source, Language::of(tag)));
            }
        }
    }
}
