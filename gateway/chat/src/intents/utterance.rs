//! One utterance with its numbers and the moment at which it was spoken.

use std::{
    cell::{OnceCell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use gateway_core::vocab::{SceneApp, Timestamp, sound::Name};
use jiff::{
    Zoned,
    tz::{Offset, TimeZone},
};
use serde_json::Value;
use text2num::text2digits;

use super::{
    language::Language,
    words::{self, Kind, Word},
};

/// Longest number in words: "nine hundred and ninety nine thousand nine hundred and ninety nine".
const NUMBER_WORDS_MAX: usize = 11;
/// Longest run of single digits read as one number.
const DIGITS_MAX: usize = 12;

/// A number read at some word: one past its last word, and its value.
type Reading = (usize, f64);

pub(super) struct Utterance<'a> {
    pub source: &'a str,
    pub language: &'static Language,
    pub words: Vec<Word>,
    /// Readings that start at each word, longest first.
    numbers: Vec<Vec<Reading>>,
    /// Local date and time at which it was spoken.
    pub now: Zoned,
    /// Slots read before: many templates read the same slot at the same word.
    slots: RefCell<HashMap<SlotKey, Rc<[SlotReading]>>>,
    /// Mini-apps that may be named in it.
    apps: &'a [SceneApp],
    names: OnceCell<Vec<Name>>,
}

/// The reader, the first word, and the end of the view.
type SlotKey = (SlotReader, usize, usize);

/// One past the last word of a slot, and its value.
pub(super) type SlotReading = (usize, Value);

/// The kinds of slot that are costly to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SlotReader {
    Duration,
    Time,
    Date,
    When,
    Wake,
    Expression,
    App,
    AppAlike,
}

/// The words before `end`; a slot cannot see beyond it.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub utterance: &'a Utterance<'a>,
    pub end: usize,
}

impl<'a> Utterance<'a> {
    pub fn new(source: &'a str, now: Zoned, language: &'static Language) -> Self {
        Self::of_words(source, words::cut(source, language), now, language)
    }

    fn of_words(source: &'a str, words: Vec<Word>, now: Zoned, language: &'static Language) -> Self {
        let numbers = (0..words.len()).map(|at| readings(source, &words, at, language)).collect();
        Self { source, language, words, numbers, now, slots: RefCell::default(), apps: &[], names: OnceCell::new() }
    }

    /// The same, with these apps.
    pub fn with_apps(self, apps: &'a [SceneApp]) -> Self {
        Self { apps, names: OnceCell::new(), ..self }
    }

    /// The apps that may be named, each with the sound of its name.
    pub fn apps(&self) -> impl Iterator<Item = (&Name, &SceneApp)> + Clone {
        let names = self.names.get_or_init(|| self.apps.iter().map(|app| Name::new(&app.name)).collect());
        names.iter().zip(self.apps)
    }

    /// The same with small words respelled where only one spelling makes sense: "for minutes" is "four minutes", "half
    /// our" is "half an hour". Free text keeps the original. English only.
    pub fn respelled(&self) -> Option<Self> {
        if !self.language.is_english() {
            return None;
        }
        let mut words = self.words.clone();
        for at in 0..words.len() {
            respell(&mut words, at, self.language);
        }
        let now = self.now.clone();
        (words != self.words).then(|| Self::of_words(self.source, words, now, self.language).with_apps(self.apps))
    }

    /// Whether a comma or the end of a sentence precedes the word at `at`.
    pub fn is_set_apart(&self, at: usize) -> bool {
        let (Some(before), Some(word)) = (at.checked_sub(1).and_then(|at| self.words.get(at)), self.words.get(at))
        else {
            return false;
        };
        self.source.get(before.end..word.start).is_some_and(|between| between.contains([',', '.', ';', '!', '?', ':']))
    }

    /// Whether a colon precedes the word at `at`.
    pub fn is_introduced(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| Some(self.words.get(before)?.end));
        let between = before.zip(self.words.get(at)).and_then(|(end, word)| self.source.get(end..word.start));
        between.is_some_and(|between| between.trim() == ":")
    }

    pub fn view(&'a self, end: usize) -> View<'a> {
        View { utterance: self, end: end.min(self.words.len()) }
    }
}

impl<'a> View<'a> {
    pub fn word(&self, at: usize) -> Option<&'a Word> {
        self.utterance.words.get(at).filter(|_| at < self.end)
    }

    /// The language of the words.
    pub fn language(&self) -> &'static Language {
        self.utterance.language
    }

    /// The text of the word at `at`; empty past the end.
    pub fn text(&self, at: usize) -> &'a str {
        self.word(at).map_or("", |word| word.text.as_str())
    }

    /// Every number that starts at `at`, longest first.
    pub fn numbers(&self, at: usize) -> impl Iterator<Item = Reading> + '_ {
        let list = self.utterance.numbers.get(at).filter(|_| at < self.end);
        list.into_iter().flatten().copied().filter(|(end, _)| *end <= self.end)
    }

    /// A slot at `at`: read once by `read`, then cached.
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

    /// What is written before the first word.
    pub fn beginning(&self) -> &'a str {
        let start = self.utterance.words.first().map_or(0, |word| word.start);
        self.utterance.source.get(..start).unwrap_or("")
    }

    /// What is written between the word at `at` and the next one, which may be the end of the text.
    pub fn between(&self, at: usize) -> &'a str {
        let source = self.utterance.source;
        let end = self.utterance.words.get(at + 1).map_or(source.len(), |next| next.start);
        self.utterance.words.get(at).and_then(|word| source.get(word.end..end)).unwrap_or("")
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

    /// Whether these words are at `at`; returns one past them.
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

    /// The longest of several phrases found at `at`, with its value.
    pub fn valued<T: Copy>(&self, at: usize, phrases: &[(&str, T)]) -> Option<(usize, T)> {
        let found = phrases.iter().filter_map(|(phrase, value)| Some((self.phrase(at, phrase)?, *value)));
        found.max_by_key(|(end, _)| *end)
    }

    /// The first of several phrases found at `at`.
    pub fn any_phrase(&self, at: usize, phrases: &[&str]) -> Option<usize> {
        phrases.iter().find_map(|phrase| self.phrase(at, phrase))
    }
}

fn respell(words: &mut [Word], at: usize, language: &Language) {
    let text = |at: Option<usize>| at.and_then(|at| words.get(at)).map_or("", |word| word.text.as_str());
    let (before, here, behind) = (text(at.checked_sub(1)), text(Some(at)), text(Some(at + 1)));
    let number_before =
        at > 0 && matches!(words[at - 1].kind, Kind::Number(_)) || language.number.starts.contains(&before);
    let operator = matches!(before, "times" | "plus" | "minus" | "*" | "+" | "-" | "x");
    let counted = matches!(behind, "minutes" | "hours" | "seconds" | "days" | "weeks");
    let new = match here {
        "for" | "fore" if counted || operator => "4",
        "to" | "too" | "do" if counted || operator => "2",
        "won" if counted || operator => "1",
        "ate" if counted || operator => "8",
        "our" if number_before || matches!(before, "half" | "an" | "a") => "hour",
        "ours" if number_before => "hours",
        "on" if before == "percent" => "of",
        _ => "",
    };
    let clock = match words[at].kind {
        // "at 1730"
        Kind::Number(value) if before == "at" && here.len() == 4 => Some(value as u32),
        _ => None,
    };
    if let Some((hour, minute)) = clock.map(|digits| (digits / 100, digits % 100)).filter(|(h, m)| *h < 24 && *m < 60) {
        words[at].kind = Kind::Clock(hour, minute);
    } else if !new.is_empty() {
        words[at].kind = new.parse().map_or(Kind::Plain, Kind::Number);
        words[at].text = new.to_owned();
    }
}

/// Local date and time of a moment, in its own offset if no time zone is known; the epoch if it is outside the calendar.
pub(super) fn local(now: Timestamp, zone: Option<&TimeZone>) -> Zoned {
    let fixed = || Offset::from_seconds(now.offset_s).unwrap_or(Offset::UTC).to_time_zone();
    jiff::Timestamp::from_millisecond(now.wall_ms).unwrap_or_default().to_zoned(zone.cloned().unwrap_or_else(fixed))
}

fn readings(source: &str, words: &[Word], at: usize, language: &Language) -> Vec<Reading> {
    let mut out = Vec::new();
    match words[at].kind {
        Kind::Number(value) => {
            // A recogniser writes "five five", and sometimes "fifty five", as "5 5". Where a sign is between them, it has a meaning.
            let mut joined = digit(&words[at]).map_or(0.0, f64::from);
            let mut end = at + 1;
            while let (Some(_), Some(next)) = (digit(&words[at]), words.get(end)) {
                let is_joined = end - at < DIGITS_MAX && is_space(source, &words[end - 1], next);
                let Some(digit) = digit(next).filter(|_| is_joined) else {
                    break;
                };
                joined = joined * 10.0 + f64::from(digit);
                end += 1;
                out.push((end, joined));
            }
            out.reverse();
            out.push((at + 1, value));
            // "2 hundred", "5 thousand".
            if let Some(scale) = words.get(at + 1).and_then(|word| scale(word, language)) {
                out.insert(0, (at + 2, value * scale));
            }
        }
        Kind::Plain => {
            if language.number.one.contains(&words[at].text.as_str())
                && let Some(scale) = words.get(at + 1).and_then(|word| scale(word, language))
            {
                // "a hundred and five"
                let one = if language.is_english() { "one".to_owned() } else { spelled(source, &words[at]) };
                out = in_words((source, words), (at + 1, &one), language);
                out.push((at + 2, scale));
                out.dedup_by_key(|(end, _)| *end);
                return out;
            }
            if !starts_number(source, &words[at], language) {
                return out;
            }
            out = in_words((source, words), (at, ""), language);
            if let Some((end, value)) = out.first().copied() {
                out.extend(with_decimals((source, words), end, value, language));
                out.sort_by_key(|(end, _)| std::cmp::Reverse(*end));
            }
        }
        Kind::Ordinal(_) | Kind::Clock(..) => {}
    }
    out
}

/// Whether nothing but space is between two words.
fn is_space(source: &str, before: &Word, behind: &Word) -> bool {
    source.get(before.end..behind.start).is_some_and(|between| between.trim().is_empty())
}

/// Numbers in words from `at` on, behind a word that is not said so, longest first.
fn in_words((source, words): (&str, &[Word]), (at, before): (usize, &str), language: &Language) -> Vec<Reading> {
    let (mut out, mut phrase) = (Vec::new(), before.to_owned());
    for (end, word) in (at + 1..).zip(words[at..].iter().take(NUMBER_WORDS_MAX)) {
        let joins = language.number.joins.contains(&word.text.as_str());
        if word.kind != Kind::Plain || !(joins || starts_number(source, word, language)) {
            break;
        }
        if !phrase.is_empty() {
            phrase.push(' ');
        }
        phrase.push_str(&spelled(source, word));
        if !language.number.and.contains(&word.text.as_str())
            && let Some(value) = value(&phrase, language)
        {
            out.insert(0, (end, value));
        }
    }
    out
}

/// A word with its accents, as the number reader expects it.
fn spelled(source: &str, word: &Word) -> String {
    let written = source.get(word.start..word.end).unwrap_or("").to_lowercase();
    // A word that was respelled or opened has other letters.
    if gateway_core::vocab::accents::folded(&written) == word.text { written } else { word.text.clone() }
}

/// The value of number words.
fn value(phrase: &str, language: &Language) -> Option<f64> {
    text2digits(phrase, &**language.numbers).ok()?.parse().ok()
}

/// "three point one four".
fn with_decimals((source, words): (&str, &[Word]), at: usize, value: f64, language: &Language) -> Option<Reading> {
    if !language.number.point.contains(&words.get(at)?.text.as_str()) {
        return None;
    }
    let mut fraction = String::new();
    let mut end = at + 1;
    while let Some(digit) = words.get(end).and_then(|word| spoken_digit(source, word, language)) {
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

fn spoken_digit(source: &str, word: &Word, language: &Language) -> Option<char> {
    let spoken = || value(&spelled(source, word), language).filter(|value| *value < 10.0).map(|value| value as u32);
    char::from_digit(digit(word).or_else(spoken)?, 10)
}

fn scale(word: &Word, language: &Language) -> Option<f64> {
    language.number.scales.iter().find(|(name, _)| *name == word.text).map(|(_, scale)| *scale)
}

/// Whether a word may begin a number.
fn starts_number(source: &str, word: &Word, language: &Language) -> bool {
    match language.number.starts {
        [] => value(&spelled(source, word), language).is_some(),
        starts => starts.contains(&word.text.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_words_are_put_right_where_one_spelling_makes_sense() {
        for (heard, meant) in [
            ("new timer for minutes", "new timer 4 minutes"),
            ("a timer for for minutes", "a timer for 4 minutes"),
            ("start a half our timer", "start a half hour timer"),
            ("2 ours", "2 hours"),
            ("3.5 times do", "3.5 times 2"),
            ("15% on 80", "15 percent of 80"),
            ("two of our friends", "two of our friends"),
            ("what to do for hours", "what to do 4 hours"),
            ("look at the time", "look at the time"),
        ] {
            let utterance = Utterance::new(heard, Zoned::default(), Language::english());
            let respelled = utterance.respelled();
            let words = &respelled.as_ref().unwrap_or(&utterance).words;
            let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            assert_eq!(words.join(" "), meant);
        }
        let pills = Utterance::new("my pills at 1730", Zoned::default(), Language::english()).respelled().unwrap();
        assert_eq!(pills.words[3].kind, Kind::Clock(17, 30));
    }

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
            let utterance = Utterance::new(source, Zoned::default(), Language::english());
            let read = utterance.view(usize::MAX).number(0);
            assert_eq!(read.map(|(_, value)| value), expected, "{source}");
        }
    }
}
