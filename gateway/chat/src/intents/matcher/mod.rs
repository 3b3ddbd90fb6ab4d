//! Matches one utterance against one compiled template and weighs the evidence.

mod text;

use serde_json::{Number, Value};

use super::{
    apps, clock,
    courtesy::Ending,
    duration, expression, phonetic,
    template::{Op, Slot, SlotKind},
    utterance::{SlotReader, SlotReading, Utterance, View},
    words,
};

/// Steps before a template is abandoned: one with many optional parts and free texts could otherwise take exponential
/// time.
const STEPS_MAX: u32 = 3_000;
/// Evidence required of a sentence of fixed words and typed slots: one full-weight word.
const EVIDENCE_MIN: f32 = 1.0;
/// Evidence required next to a free text or a misrecognised word, which could be anything.
const EVIDENCE_FREE_MIN: f32 = 1.5;
/// Words that may be misrecognised, lost or inserted in one sentence.
const REPAIRS_MAX: u8 = 2;
/// The same next to a free text, which could be anything by itself.
const REPAIRS_FREE_MAX: u8 = 1;
/// Evidence of an app's name: a little less than of a word, so that "the timer" is read as a timer rather than as an
/// app.
const NAMED: f32 = 0.95;
/// How much of that is lost if the name only sounds similar.
const NAMED_ALIKE: f32 = 0.4;
/// Cost of a length of days where a moment would do.
const DAYS: f32 = 0.2;
/// Most missing slots of a sentence: if more are missing it is easier to repeat it than to ask.
const MISSING_MAX: usize = 3;

/// A reading of the utterance.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Match {
    /// Greater is better; comparable only among readings of one utterance.
    pub score: f32,
    /// The value read for each property.
    pub arguments: Vec<(String, Value)>,
    /// Words read as free text.
    pub text_words: usize,
    /// Evidence of the fixed words, without which a sentence could be anything.
    pub evidence: f32,
    /// The properties of missing slots, in the order of the sentence.
    pub missing: Vec<String>,
}

/// The best reading of the words from `start` to `ending`, if one has enough evidence. With `repair`, words may be
/// replaced by similar-sounding ones.
pub(super) fn read(
    program: &[Op],
    utterance: &Utterance<'_>,
    (start, ending): (usize, Ending),
    repair: bool,
) -> Option<Match> {
    let repairs_max = match repair {
        false => 0,
        true if has_free_text(program) => REPAIRS_FREE_MAX,
        true => REPAIRS_MAX,
    };
    let view = utterance.view(ending.at);
    let mut run = Run::new(program, view, ending.set_apart, repairs_max, Mode::Whole);
    run.step(0, start, Evidence::default());
    run.best
}

/// The best reading of the words from `start` to `ending` as a sentence without some of its slots: "set a timer". Small
/// words before a slot at the end may be missing with it.
pub(super) fn read_partial(
    program: &[Op],
    utterance: &Utterance<'_>,
    (start, ending): (usize, Ending),
) -> Option<Match> {
    let mut run = Run::new(program, utterance.view(ending.at), ending.set_apart, 0, Mode::Partial);
    run.step(0, start, Evidence::default());
    run.best
}

/// Whether a longer sentence with another slot begins with the words from `start` to `ending`, which are a complete
/// command by themselves: "set a timer for ten minutes", and its name. A number, a time or a length of time at the end
/// may itself go on.
pub(super) fn may_go_on(program: &[Op], utterance: &Utterance<'_>, (start, ending): (usize, Ending)) -> bool {
    let mut run = Run::new(program, utterance.view(ending.at), ending.set_apart, 0, Mode::Beginning);
    run.step(0, start, Evidence::default());
    run.goes_on
}

/// Whether the words from `start` to `ending` are the beginning of a longer sentence, and more of it has to follow: "search
/// my notes for". A free text at the end is no beginning: it could be all of another sentence.
pub(super) fn breaks_off(program: &[Op], utterance: &Utterance<'_>, (start, ending): (usize, Ending)) -> bool {
    let mut run = Run::new(program, utterance.view(ending.at), ending.set_apart, 0, Mode::Broken);
    run.step(0, start, Evidence::default());
    run.goes_on
}

/// Which readings a run looks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The whole sentence.
    Whole,
    /// The sentence without some of its slots.
    Partial,
    /// The beginning of a sentence that goes on with a slot.
    Beginning,
    /// The beginning of a sentence that goes on with a word or a slot, whatever ends the words so far.
    Broken,
}

#[derive(Clone, Copy, Default)]
struct Evidence {
    found: f32,
    skipped: f32,
    text_words: usize,
    /// Words of typed slots beyond the first of each.
    typed_words: usize,
    /// One past the last word of the last typed slot; 0: there is none.
    typed_until: usize,
    repairs: u8,
    /// The last words were dictated.
    dictated: bool,
}

/// The content of a slot; free text stays a span until the reading is complete.
enum Captured {
    Value(Value),
    Text(usize, usize),
}

struct Run<'a> {
    program: &'a [Op],
    view: View<'a>,
    /// Whether a dictated text may extend to the end.
    set_apart: bool,
    steps: u32,
    repairs_max: u8,
    mode: Mode,
    missing: Vec<&'a str>,
    captured: Vec<(&'a str, Captured)>,
    best: Option<Match>,
    /// Whether the sentence goes on after the words.
    goes_on: bool,
}

impl<'a> Run<'a> {
    fn new(program: &'a [Op], view: View<'a>, set_apart: bool, repairs_max: u8, mode: Mode) -> Self {
        let (missing, captured) = (Vec::new(), Vec::new());
        Self { program, view, set_apart, steps: 0, repairs_max, mode, missing, captured, best: None, goes_on: false }
    }

    fn weight(&self, word: &str) -> f32 {
        self.view.language().weight(word)
    }

    /// Whether these are all words of the beginning of a sentence.
    fn is_at_pause(&self, at: usize) -> bool {
        self.mode == Mode::Beginning && at == self.view.end
    }

    /// Whether the words end here, within the sentence.
    fn is_broken_at(&mut self, at: usize, evidence: Evidence) -> bool {
        let ends = self.mode == Mode::Broken && at == self.view.end;
        // A value alone begins too much: "ten minutes".
        let needed = if self.captured.is_empty() { EVIDENCE_MIN } else { EVIDENCE_FREE_MIN };
        self.goes_on |= ends && evidence.found >= needed;
        ends
    }

    fn step(&mut self, op: usize, at: usize, evidence: Evidence) {
        self.steps += 1;
        if self.steps > STEPS_MAX || self.goes_on {
            return;
        }
        let program = self.program;
        match program.get(op) {
            None => {}
            Some(Op::End) => self.finish(at, evidence),
            Some(Op::Jump(to)) => self.step(*to, at, evidence),
            Some(Op::Split(branches)) => {
                for branch in branches {
                    self.step(*branch, at, evidence);
                }
            }
            Some(Op::Set(property, value)) => {
                self.captured.push((property, Captured::Value(value.clone())));
                self.step(op + 1, at, evidence);
                self.captured.pop();
            }
            Some(Op::Word(word)) => self.word(op, word, at, evidence),
            Some(Op::Slot(slot)) => self.slot(op, slot, at, evidence),
        }
    }

    fn word(&mut self, op: usize, word: &str, at: usize, evidence: Evidence) {
        if self.is_broken_at(at, evidence) {
            return;
        }
        let here = self.view.text(at);
        if here == word {
            let found = evidence.found + self.weight(word);
            self.step(op + 1, at + 1, Evidence { found, dictated: false, ..evidence });
        } else {
            // "The ten minute timer" asks for no new one; "start the ten minute timer" does.
            let is_known = evidence.found == 0.0 && self.view.language().is_other_article(here, word);
            if self.view.language().is_skippable(here) && !is_known {
                let skipped = evidence.skipped + 0.05;
                self.step(op, at + 1, Evidence { skipped, ..evidence });
            }
            if evidence.repairs < self.repairs_max {
                self.repair(op, word, at, evidence);
            }
        }
        // The recogniser drops and inserts articles.
        let cut = (self.mode == Mode::Partial && at == self.view.end && self.view.language().is_small(word))
            || self.is_at_pause(at);
        if (self.view.language().is_article(word) && here != word) || cut {
            self.step(op + 1, at, evidence);
        }
    }

    /// Tries other forms that the recogniser may have written for a word.
    fn repair(&mut self, op: usize, word: &str, at: usize, evidence: Evidence) {
        let (here, next) = (self.view.text(at), self.view.text(at + 1));
        if here.is_empty() {
            return;
        }
        let language = self.view.language();
        let repaired = |gain: f32| Evidence {
            found: evidence.found + gain,
            repairs: evidence.repairs + 1,
            dictated: false,
            ..evidence
        };
        if let Some(cost) = phonetic::split_cost(word, here, next, &language.kinds) {
            self.step(op + 1, at + 2, repaired(self.weight(word) - cost));
        }
        // "do set a timer" is an emphasis.
        if here == "do" && next == word && !language.is_small(word) {
            self.step(op, at + 1, repaired(0.0));
        }
        if language.is_telling(here) {
            // "Quel heure" sounds like "quelle heure".
            let is_same = language.kinds.homophones.iter().any(|group| group.contains(&word) && group.contains(&here));
            if is_same && let Some(cost) = phonetic::cost(word, here, true, &language.kinds) {
                self.step(op + 1, at + 1, repaired(self.weight(word) - cost));
            }
            return;
        }
        let small = phonetic::small_cost();
        // The first word of a command counts as it is, however small: "para el temporizador", but not "es el temporizador".
        let begun = evidence.found > 0.0;
        if !language.is_telling(word) {
            let strict = self.repairs_max <= REPAIRS_FREE_MAX;
            if let Some(cost) = phonetic::cost(word, here, strict, &language.kinds) {
                self.step(op + 1, at + 1, repaired(self.weight(word) - cost));
            } else if begun && !self.leads_to_narrow_slot(op + 1) && language.is_small(word) && language.is_small(here)
            {
                self.step(op + 1, at + 1, repaired(self.weight(word) - small));
            }
            // An article skipped before a missing word belongs to the text after it.
            let before_text = matches!(self.program.get(op + 1), Some(Op::Slot(slot)) if slot.kind.is_text());
            let skipped = at.checked_sub(1).is_some_and(|before| language.is_skippable(self.view.text(before)));
            if begun && language.is_small(word) && !(before_text && skipped) {
                self.step(op + 1, at, repaired(-small));
            }
        }
        // "in five minutes" is later, "for five minutes" is for how long.
        let is_later = language.length.ahead.contains(&here) && self.view.number(at + 1).is_some();
        // "ten minutes to the timer" is no timer of ten minutes.
        let links = at > 0 && at == evidence.typed_until && language.kinds.before_names.contains(&here);
        if (language.is_small(here) && !is_later && !links) || matches!(here, "they" | "their") {
            self.step(op, at + 1, repaired(-small));
        }
    }

    /// Whether a name or a length of time may be read here: "for ten minutes" and "in ten minutes" are different things.
    fn leads_to_narrow_slot(&self, op: usize) -> bool {
        match self.program.get(op) {
            Some(Op::Jump(to)) => self.leads_to_narrow_slot(*to),
            Some(Op::Set(..)) => self.leads_to_narrow_slot(op + 1),
            Some(Op::Split(branches)) => branches.iter().any(|branch| self.leads_to_narrow_slot(*branch)),
            Some(Op::Slot(slot)) => matches!(slot.kind, SlotKind::Text { dictated: false } | SlotKind::Duration { .. }),
            _ => false,
        }
    }

    fn slot(&mut self, op: usize, slot: &'a Slot, at: usize, evidence: Evidence) {
        if self.is_broken_at(at, evidence) {
            return;
        }
        let view = self.view;
        if self.is_at_pause(at) {
            self.goes_on |= evidence.found >= EVIDENCE_MIN;
            return;
        }
        if self.mode == Mode::Partial && self.missing.len() < MISSING_MAX {
            self.missing.push(&slot.property);
            self.step(op + 1, at, evidence);
            self.missing.pop();
        }
        let counts = match slot.kind {
            SlotKind::Choice(_) => false,
            // "Five miles in kilometers" ends in a unit.
            SlotKind::Expression => view.numbers(view.end.saturating_sub(1)).next().is_some(),
            _ => true,
        };
        let mut read = |end: usize, value: Value, cost: f32| {
            if self.is_at_pause(end) && counts {
                self.goes_on = true;
                return;
            }
            let evidence = Evidence {
                found: evidence.found + 1.0,
                skipped: evidence.skipped + cost,
                // "a quarter of an hour" is one length of time, not a name and an hour.
                typed_words: evidence.typed_words + end.saturating_sub(at + 1),
                typed_until: end,
                dictated: false,
                ..evidence
            };
            self.captured.push((&slot.property, Captured::Value(value)));
            self.step(op + 1, end, evidence);
            self.captured.pop();
        };
        let mut typed = |end, value| read(end, value, 0.0);
        match &slot.kind {
            SlotKind::Text { dictated } => self.text(op, slot, at, Evidence { dictated: *dictated, ..evidence }),
            SlotKind::Number { integer, minimum, maximum } => {
                for (end, value) in view.numbers(at) {
                    if (*minimum..=*maximum).contains(&value)
                        && let Some(value) = number(value, *integer)
                    {
                        typed(end, value);
                    }
                }
            }
            SlotKind::Duration { minimum, maximum } => {
                let lengths = || each(duration::read(view, at));
                for (end, seconds) in view.slot(SlotReader::Duration, at, lengths).iter() {
                    let value = seconds.as_f64().unwrap_or(f64::NAN);
                    // "In two days" is rather a moment: the same time of day, even if a clock change lies between.
                    let cost = if value < duration::DAY_S { 0.0 } else { DAYS };
                    if (*minimum..=*maximum).contains(&value) {
                        read(*end, seconds.clone(), cost);
                    }
                }
            }
            SlotKind::Time => all(&view.slot(SlotReader::Time, at, || each(clock::read_time(view, at))), typed),
            SlotKind::Date => all(&view.slot(SlotReader::Date, at, || each(clock::read_date(view, at))), typed),
            SlotKind::When => all(&view.slot(SlotReader::When, at, || each(clock::read_when(view, at))), typed),
            SlotKind::Wake => all(&view.slot(SlotReader::Wake, at, || each(clock::read_wake(view, at))), typed),
            SlotKind::Expression => {
                let read = || each(expression::read(view, at));
                all(&view.slot(SlotReader::Expression, at, read), typed);
            }
            SlotKind::App => self.app(op, slot, at, evidence),
            SlotKind::Choice(choices) => {
                for (spoken, value) in choices {
                    let same = spoken.iter().enumerate().all(|(index, word)| view.text(at + index) == word);
                    if same {
                        typed(at + spoken.len(), value.clone());
                    }
                }
            }
        }
    }

    fn app(&mut self, op: usize, slot: &'a Slot, at: usize, evidence: Evidence) {
        let view = self.view;
        for (reader, alike) in [(SlotReader::App, false), (SlotReader::AppAlike, true)] {
            if alike && evidence.repairs >= self.repairs_max {
                return;
            }
            let readings = view.slot(reader, at, || each(apps::read(view, at, alike)));
            for (end, name) in readings.iter() {
                let evidence = Evidence {
                    found: evidence.found + if alike { NAMED - NAMED_ALIKE } else { NAMED },
                    typed_words: evidence.typed_words + end.saturating_sub(at + 1),
                    repairs: evidence.repairs + u8::from(alike),
                    dictated: false,
                    ..evidence
                };
                self.captured.push((&slot.property, Captured::Value(name.clone())));
                self.step(op + 1, *end, evidence);
                self.captured.pop();
            }
        }
    }

    fn value(&self, captured: &Captured) -> Value {
        let utterance = self.view.utterance;
        match captured {
            Captured::Value(value) => value.clone(),
            Captured::Text(start, end) => {
                let words = utterance.words.get(*start..*end).unwrap_or(&[]);
                let text = words::original(utterance.source, words);
                let by = words.first().filter(|_| self.is_purchase(*start, *end));
                // A sign may stand before the word.
                let bought = by.and_then(|by| text.strip_prefix(utterance.source.get(by.start..by.end)?));
                Value::String(bought.map(|rest| format!("buy{rest}")).unwrap_or(text))
            }
        }
    }

    fn finish(&mut self, at: usize, evidence: Evidence) {
        let free = evidence.text_words > 0 || evidence.repairs > 0;
        let needed = if free { EVIDENCE_FREE_MIN } else { EVIDENCE_MIN };
        let cut = evidence.dictated && !self.set_apart;
        if at != self.view.end || evidence.found < needed || cut {
            return;
        }
        if (self.mode == Mode::Partial) == self.missing.is_empty()
            || matches!(self.mode, Mode::Beginning | Mode::Broken)
        {
            return;
        }
        let score = evidence.found + 0.5 * evidence.typed_words as f32
            - evidence.skipped
            - 0.3 * evidence.text_words as f32
            - 0.1 * self.missing.len() as f32;
        if self.best.as_ref().is_none_or(|best| score > best.score) {
            let captured = self.captured.iter();
            self.best = Some(Match {
                score,
                arguments: captured
                    .map(|(property, captured)| ((*property).to_owned(), self.value(captured)))
                    .collect(),
                text_words: evidence.text_words,
                evidence: evidence.found,
                missing: self.missing.iter().map(|property| (*property).to_owned()).collect(),
            });
        }
    }
}

fn each<T: Into<Value>>(readings: impl IntoIterator<Item = (usize, T)>) -> Vec<SlotReading> {
    let readings = readings.into_iter();
    readings.map(|(end, value)| (end, value.into())).collect()
}

fn all(readings: &[SlotReading], mut found: impl FnMut(usize, Value)) {
    for (end, value) in readings {
        found(*end, value.clone());
    }
}

fn number(value: f64, integer: bool) -> Option<Value> {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Some(Value::from(value as i64));
    }
    if integer {
        return None;
    }
    Number::from_f64(value).map(Value::Number)
}

/// Whether a template has free text.
pub(super) fn has_free_text(program: &[Op]) -> bool {
    program.iter().any(|op| matches!(op, Op::Slot(slot) if slot.kind.is_text()))
}
