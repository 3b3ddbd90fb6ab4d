//! One utterance with all the numbers that can be read in it, and the moment it was said.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use gateway_core::vocab::Timestamp;
use jiff::civil::DateTime;
use serde_json::Value;
use text2num::{Language, text2digits};

use super::words::{self, Kind, Word};

/// Longest number in words: "nine hundred and ninety nine thousand nine hundred and ninety nine".
const NUMBER_WORDS_MAX: usize = 11;
/// Longest run of single digits that is read as one number.
const DIGITS_MAX: usize = 12;

/// A number read at some word: one past its last word, and its value.
type Reading = (usize, f64);

pub(super) struct Utterance<'a> {
    pub source: &'a str,
    pub words: Vec<Word>,
    /// Readings that start at each word, longest first.
    numbers: Vec<Vec<Reading>>,
    /// Local date and time when it was said.
    pub now: DateTime,
    /// Slots that were read before: many templates ask for the same slot at the same word.
    slots: RefCell<HashMap<SlotKey, Rc<[SlotReading]>>>,
}

/// The reader, the first word, and the end of the view.
type SlotKey = (SlotReader, usize, usize);

/// One past the last word of a slot, and its value.
pub(super) type SlotReading = (usize, Value);

/// Which of the costly slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SlotReader {
    Duration,
    Time,
    Date,
    When,
    Expression,
}

/// The words before `end`: what is behind them does not exist for a slot.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub utterance: &'a Utterance<'a>,
    pub end: usize,
}

impl<'a> Utterance<'a> {
    pub fn new(source: &'a str, now: DateTime) -> Self {
        let words = words::cut(source);
        let english = Language::english();
        let numbers = (0..words.len()).map(|at| readings(&words, at, &english)).collect();
        Self { source, words, numbers, now, slots: RefCell::default() }
    }

    pub fn view(&'a self, end: usize) -> View<'a> {
        View { utterance: self, end: end.min(self.words.len()) }
    }
}

impl<'a> View<'a> {
    pub fn word(&self, at: usize) -> Option<&'a Word> {
        self.utterance.words.get(at).filter(|_| at < self.end)
    }

    /// The letters at `at`; empty past the end.
    pub fn text(&self, at: usize) -> &'a str {
        self.word(at).map_or("", |word| word.text.as_str())
    }

    /// Every number that starts at `at`, longest first.
    pub fn numbers(&self, at: usize) -> impl Iterator<Item = Reading> + '_ {
        let list = self.utterance.numbers.get(at).filter(|_| at < self.end);
        list.into_iter().flatten().copied().filter(|(end, _)| *end <= self.end)
    }

    /// A slot at `at`: read once by `read`, remembered after that.
    pub fn slot(&self, reader: SlotReader, at: usize, read: impl FnOnce() -> Vec<SlotReading>) -> Rc<[SlotReading]> {
        let key = (reader, at, self.end);
        if let Some(known) = self.utterance.slots.borrow().get(&key) {
            return known.clone();
        }
        let readings: Rc<[SlotReading]> = read().into();
        let mut slots = self.utterance.slots.borrow_mut();
        slots.insert(key, readings.clone());
        readings
    }

    /// The longest number at `at`.
    pub fn number(&self, at: usize) -> Option<Reading> {
        self.numbers(at).next()
    }

    /// The longest whole number at `at` within a range.
    pub fn integer(&self, at: usize, range: std::ops::RangeInclusive<i64>) -> Option<(usize, i64)> {
        self.numbers(at).find_map(|(end, value)| {
            (value.fract() == 0.0 && value.abs() < 1e15)
                .then_some((end, value as i64))
                .filter(|(_, value)| range.contains(value))
        })
    }

    /// Whether these words stand at `at`; one past them.
    pub fn phrase(&self, at: usize, phrase: &str) -> Option<usize> {
        let mut here = at;
        for word in phrase.split(' ') {
            if self.text(here) != word {
                return None;
            }
            here += 1;
        }
        Some(here)
    }

    /// The first of several phrases that stands at `at`.
    pub fn any_phrase(&self, at: usize, phrases: &[&str]) -> Option<usize> {
        phrases.iter().find_map(|phrase| self.phrase(at, phrase))
    }
}

/// Local date and time of a moment; the epoch where it lies outside the calendar.
pub(super) fn local(now: Timestamp) -> DateTime {
    let offset = jiff::tz::Offset::from_seconds(now.offset_s).unwrap_or(jiff::tz::Offset::UTC);
    jiff::Timestamp::from_millisecond(now.wall_ms).unwrap_or_default().to_zoned(offset.to_time_zone()).datetime()
}

fn readings(words: &[Word], at: usize, english: &Language) -> Vec<Reading> {
    let mut out = Vec::new();
    match words[at].kind {
        Kind::Number(value) => {
            // "5 5" is how a recogniser writes "five five", "fifty five" now and then.
            let mut joined = digit(&words[at]).map_or(0.0, f64::from);
            let mut end = at + 1;
            while let (Some(_), Some(next)) = (digit(&words[at]), words.get(end)) {
                let Some(digit) = digit(next).filter(|_| end - at < DIGITS_MAX) else {
                    break;
                };
                joined = joined * 10.0 + f64::from(digit);
                end += 1;
                out.push((end, joined));
            }
            out.reverse();
            out.push((at + 1, value));
            // "2 hundred", "5 thousand".
            if let Some(scale) = words.get(at + 1).and_then(|word| scale(&word.text)) {
                out.insert(0, (at + 2, value * scale));
            }
        }
        Kind::Plain => {
            let first = words[at].text.as_str();
            if matches!(first, "a" | "an")
                && let Some(scale) = words.get(at + 1).and_then(|word| scale(&word.text))
            {
                out.push((at + 2, scale));
                return out;
            }
            if !starts_number(first) {
                return out;
            }
            let mut phrase = String::new();
            for (length, word) in words[at..].iter().take(NUMBER_WORDS_MAX).enumerate() {
                if word.kind != Kind::Plain || !(starts_number(&word.text) || joins(&word.text)) {
                    break;
                }
                if length > 0 {
                    phrase.push(' ');
                }
                phrase.push_str(&word.text);
                if word.text != "and"
                    && let Ok(digits) = text2digits(&phrase, english)
                    && let Ok(value) = digits.parse()
                {
                    out.insert(0, (at + length + 1, value));
                }
            }
            if let Some((end, value)) = out.first().copied() {
                out.extend(with_decimals(words, end, value));
                out.sort_by_key(|(end, _)| std::cmp::Reverse(*end));
            }
        }
        Kind::Ordinal(_) | Kind::Clock(..) => {}
    }
    out
}

/// "three point one four".
fn with_decimals(words: &[Word], at: usize, value: f64) -> Option<Reading> {
    if words.get(at)?.text != "point" {
        return None;
    }
    let mut fraction = String::new();
    let mut end = at + 1;
    while let Some(digit) = words.get(end).and_then(spoken_digit) {
        fraction.push(digit);
        end += 1;
    }
    let value = format!("{value}.{fraction}").parse().ok()?;
    (!fraction.is_empty()).then_some((end, value))
}

fn digit(word: &Word) -> Option<u32> {
    let mut letters = word.text.chars();
    let digit = letters.next()?.to_digit(10)?;
    letters.next().is_none().then_some(digit)
}

fn spoken_digit(word: &Word) -> Option<char> {
    const DIGITS: [&str; 10] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let spoken = DIGITS.iter().position(|name| *name == word.text);
    let value = digit(word).or(spoken.and_then(|at| u32::try_from(at).ok()))?;
    char::from_digit(value, 10)
}

fn scale(word: &str) -> Option<f64> {
    match word {
        "hundred" => Some(100.0),
        "thousand" => Some(1_000.0),
        "million" => Some(1_000_000.0),
        "dozen" => Some(12.0),
        _ => None,
    }
}

fn joins(word: &str) -> bool {
    matches!(word, "and" | "hundred" | "thousand" | "million")
}

/// Words that may open a number, so that the number reader is not asked about every word.
fn starts_number(word: &str) -> bool {
    const STARTS: [&str; 28] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
        "thirty",
        "forty",
        "fifty",
        "sixty",
        "seventy",
        "eighty",
        "ninety",
    ];
    STARTS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_however_they_are_written() {
        let cases = [
            ("12", Some(12.0)),
            ("twelve", Some(12.0)),
            ("forty-five", Some(45.0)),
            ("two hundred and twenty five", Some(225.0)),
            ("three point one five", Some(3.15)),
            ("1,200", Some(1200.0)),
            ("5 5", Some(55.0)),
            ("a hundred", Some(100.0)),
            ("one thousand", Some(1000.0)),
            ("3 hundred", Some(300.0)),
            ("six thirty", Some(6.0)),
            ("one and", Some(1.0)),
            ("house", None),
            ("a", None),
        ];
        for (source, expected) in cases {
            let utterance = Utterance::new(source, DateTime::MIN);
            let read = utterance.view(usize::MAX).number(0);
            assert_eq!(read.map(|(_, value)| value), expected, "{source}");
        }
    }
}
