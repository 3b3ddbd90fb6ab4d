//! Free text in a template.

use super::{Captured, Evidence, Mode, Run};
use crate::intents::{
    clock, duration, repetition,
    template::{Op, Slot, SlotKind},
    utterance::View,
};

/// Longest free text that is followed by more words: "the {door code} note".
const INNER_TEXT_WORDS_MAX: usize = 5;
/// Longest end of a text that is looked at for a time that is not meant.
const OTHER_TIME_WORDS_MAX: usize = 6;
/// Evidence of a colon in front of what is dictated: "note: the car is on level 3".
const INTRODUCED: f32 = 0.5;
/// Longest free text that may open a sentence.
const LEADING_TEXT_WORDS_MAX: usize = 2;

impl<'a> Run<'a> {
    pub(super) fn text(&mut self, op: usize, slot: &'a Slot, at: usize, evidence: Evidence) {
        let view = self.view;
        let kinds = &view.language().kinds;
        // Before all fixed words, free text is a name at most: "green tea timer", but not "he set the egg timer".
        let leading = evidence.found == 0.0;
        let inner = self.only_words_follow(op);
        let longest = if leading {
            (at + LEADING_TEXT_WORDS_MAX).min(view.end)
        } else if inner {
            (at + INNER_TEXT_WORDS_MAX).min(view.end)
        } else {
            view.end
        };
        // A name between fixed words does not begin with "of", which is a misrecognised article.
        if (inner || longest < view.end) && kinds.before_names.contains(&view.text(at)) {
            return;
        }
        if !self.may_begin(op, slot, at) {
            return;
        }
        let introduced = slot.kind == (SlotKind::Text { dictated: true }) && view.utterance.is_introduced(at);
        for end in at + 1..=self.latest_end(slot, at, longest) {
            // Free text could be anything, the whole command too.
            if self.is_at_pause(end) || (self.mode == Mode::Broken && end == view.end) {
                return;
            }
            let words = &view.utterance.words[at..end];
            // A text of only small words is a fragment of a sentence.
            let small = words.iter().filter(|word| self.weight(&word.text) < 1.0);
            let small = small.count();
            let torn = small > 0 || self.view.language().is_skippable(view.text(end));
            // "it" replaces a name and begins none: "set it past a timer" is a misrecognised pasta timer.
            let named = end < view.end && self.weight(view.text(skip_articles(view, end))) >= 1.0;
            let no_name = named && kinds.pronouns.contains(&view.text(at));
            if small == words.len() || (leading && torn) || no_name || self.is_refused(slot, at, end, leading) {
                continue;
            }
            let found = evidence.found + if introduced { INTRODUCED } else { 0.0 };
            let evidence = Evidence { found, text_words: evidence.text_words + (end - at), ..evidence };
            self.captured.push((&slot.property, Captured::Text(at, end)));
            self.step(op + 1, end, evidence);
            self.captured.pop();
        }
    }

    /// Whether a text may begin here. A name does not begin behind an "and" that is none of the template's: "cancel the timer
    /// and call Anna" is two commands. What is dictated right behind a time does not begin with a number, which would be
    /// part of the time: "at nine seventy-five".
    fn may_begin(&self, op: usize, slot: &Slot, at: usize) -> bool {
        let view = self.view;
        let language = view.language();
        let before = op.checked_sub(1).and_then(|before| self.program.get(before));
        if slot.kind == (SlotKind::Text { dictated: true }) {
            let slots = self.program.iter().take(op).rev();
            let last = slots.filter_map(|op| if let Op::Slot(slot) = op { Some(&slot.kind) } else { None }).next();
            let is_behind_time = matches!(last, Some(SlotKind::When | SlotKind::Wake | SlotKind::Time));
            let first = (at..view.end).find(|at| !language.kinds.joins.contains(&view.text(*at)));
            return !is_behind_time || first.is_none_or(|first| view.number(first).is_none());
        }
        let joins = |word: &str| language.kinds.joins.contains(&word);
        let is_own = matches!(before, Some(Op::Word(word)) if joins(word));
        let is_joined = joins(view.text(at)) || at.checked_sub(1).is_some_and(|before| joins(view.text(before)));
        // "The timer is (the) best" is a statement.
        let is_stated = |at: usize| language.kinds.copulas.contains(&view.text(at));
        let small = at.checked_sub(1).filter(|before| language.is_small(view.text(*before)));
        let stated = [Some(at), at.checked_sub(1), small.and_then(|small| small.checked_sub(1))];
        (is_own || !is_joined) && !stated.into_iter().flatten().any(is_stated)
    }

    /// Where a text that begins at `at` ends at the latest. One that is dictated for a time: before a repetition with its day. A name:
    /// before a number or its sign, if the template has a length of time, which that would be part of ("ten or fifteen minutes",
    /// "minus five minutes"); before a "no" that stands apart ("cancel the timer, no, leave it running"); and before a time from now,
    /// at which the command would be carried out ("stop the timer in five minutes").
    fn latest_end(&self, slot: &Slot, at: usize, longest: usize) -> usize {
        let view = self.view;
        if slot.kind == (SlotKind::Text { dictated: true }) {
            let mut repeated = (at..longest).filter(|at| repetition::is_dated(view, *at));
            return repeated.next().filter(|_| self.is_timed()).unwrap_or(longest);
        }
        let language = view.language();
        let is_length = |op: &Op| matches!(op, Op::Slot(slot) if matches!(slot.kind, SlotKind::Duration { .. }));
        let has_length = self.program.iter().any(is_length);
        let is_sign = |word: &str| language.sums.operators.iter().any(|(name, sign)| *sign == "-" && *name == word);
        let is_number = |at: usize| view.number(at).is_some() || is_sign(view.text(at));
        let is_no = |at: usize| language.answer.no.contains(&view.text(at));
        let stands_apart = |at: usize| view.utterance.is_set_apart(at) || view.utterance.is_set_apart(at + 1);
        let ahead = |at: usize| view.any_phrase(at, language.length.ahead);
        let is_later = |at: usize| ahead(at).is_some_and(|at| !duration::lengths(view, at).is_empty());
        let is_end = |at: &usize| (has_length && is_number(*at)) || (is_no(*at) && stands_apart(*at)) || is_later(*at);
        (at..longest).find(is_end).unwrap_or(longest)
    }

    /// Whether fixed words and no further slot must follow this instruction.
    fn only_words_follow(&self, op: usize) -> bool {
        let mut words = false;
        for later in self.program.iter().skip(op + 1) {
            match later {
                Op::Slot(_) => return false,
                Op::Word(word) => words |= !self.view.language().is_article(word),
                _ => {}
            }
        }
        words
    }

    /// Whether words at an edge of the text say something of the command. In what is looked for that is a negation of its
    /// verb: "lösche die Notiz über Milch nicht", but not "the reminder to not call Ben". In what is dictated for a time it
    /// is a repetition, as there is a single time only: "take my pills every day"; or a word that makes another time of the one
    /// behind it: "leave before nine".
    fn is_refused(&self, slot: &Slot, at: usize, end: usize, leading: bool) -> bool {
        let view = self.view;
        let kinds = &view.language().kinds;
        if slot.kind == (SlotKind::Text { dictated: true }) {
            let is_other_time = end < view.end && ends_in_other_time(view, at, end);
            return self.is_timed() && (is_other_time || repetition::is_at_edge(view, at, end));
        }
        let counts = |at: &usize| !view.language().is_skippable(view.text(*at));
        let word = |at: Option<usize>| at.map_or("", |at| view.text(at));
        let (before, first) = (word((0..at).rfind(counts)), word((at..end).find(counts)));
        let negating: &[&str] = if leading {
            kinds.negations
        } else if kinds.before_names.contains(&before) {
            &[]
        } else {
            kinds.negations_behind
        };
        negating.contains(&first) || kinds.negations_last.contains(&word((at..end).rfind(counts)))
    }

    /// Whether the template has a time.
    fn is_timed(&self) -> bool {
        let is_time = |kind: &SlotKind| {
            matches!(
                kind,
                SlotKind::When | SlotKind::Wake | SlotKind::Time | SlotKind::Date | SlotKind::Duration { .. }
            )
        };
        self.program.iter().any(|op| matches!(op, Op::Slot(slot) if is_time(&slot.kind)))
    }

    /// "note: by milk", "remind me to by milk": a to-do begins with a verb, which "by" is not. "Note: by Friday" and
    /// "by the door" may be meant as written.
    pub(super) fn is_purchase(&self, start: usize, end: usize) -> bool {
        let view = self.view;
        if !view.language().is_english() {
            return false;
        }
        let to_do = start.checked_sub(1).is_some_and(|before| matches!(view.text(before), "to" | "note"));
        let next = start + 1;
        to_do
            && view.text(start) == "by"
            && next < end
            && view.numbers(next).next().is_none()
            && !matches!(view.text(next), "the" | "then" | "now" | "this" | "that" | "next" | "and")
            && clock::read_when(view, next).is_empty()
            && clock::read_date(view, next).is_empty()
    }
}

fn skip_articles(view: View<'_>, at: usize) -> usize {
    (at..view.end).find(|at| !view.language().is_article(view.text(*at))).unwrap_or(view.end)
}

/// Whether the text from `at` to `end` ends in words of the time behind it, which make another one of it: "up to | Friday", "antes de
/// las | nueve", "last Monday | at nine", "entre las nueve y | las diez".
fn ends_in_other_time(view: View<'_>, at: usize, end: usize) -> bool {
    let language = view.language();
    let is_article = |at: usize| language.is_article(view.text(at));
    let last = end - 1;
    if is_article(last) || language.kinds.before_times.contains(&view.text(last)) {
        return true;
    }
    let time_ends = |at: usize| {
        let times = clock::read_when(view, at).into_iter().map(|(end, _)| end);
        times.chain(view.numbers(at).map(|(end, _)| end)).collect::<Vec<_>>()
    };
    // "on" may belong to the text or to the time: "turn it on | at nine", "tomorrow or on | Friday".
    let is_before_time = |word: &&str| language.clock.at.contains(word) || language.date.on.contains(word);
    let ends = [end, if is_before_time(&view.text(last)) { last } else { end }];
    let first = at.max(end.saturating_sub(OTHER_TIME_WORDS_MAX));
    (first..end).filter_map(|at| view.any_phrase(at, language.kinds.before_other_times)).any(|behind| {
        let time = (behind..end).find(|at| !is_article(*at)).unwrap_or(end);
        let mut times = [behind, time].into_iter().flat_map(time_ends);
        ends.contains(&behind) || times.any(|it| ends.contains(&it))
    })
}
