//! All templates of the tools on offer, compiled and indexed by the words that they may begin with.
//!
//! A tool is compiled by itself ([`Part`]), so that lists that share tools share what is compiled; a grammar adds the
//! index over its parts.

mod part;
mod partial;

use std::{collections::HashMap, sync::Arc};

use gateway_core::vocab::{Clarity, ToolCall, ToolSpec};
use serde_json::{Map, Value};

use super::{
    courtesy::{Ending, endings, openings},
    hearing,
    matcher::{self, Match},
    template::{self, Op, SlotKind, TemplateError},
    utterance::{Utterance, View},
    words,
};

pub(super) use part::{Key as PartKey, Part};
use part::{Template, Tool};
pub(super) use partial::Partial;

/// Templates of one tool that are compiled; a device that declares more is careless or hostile.
pub const TEMPLATES_MAX: usize = 64;
/// Longest utterance that is taken apart at "and": every "and" multiplies the readings.
const JOINED_WORDS_MAX: usize = 40;
/// Longest utterance that may be a command gone wrong; a longer one is talk.
const NEAR_WORDS_MAX: usize = 20;
/// Sentences that a recogniser is told: each costs it decoding time.
const VOCABULARY_SENTENCES_MAX: usize = 24;

/// What the tools of a request can be asked, in one language.
pub(super) struct Grammar {
    /// One for each tool, in the order of the request.
    parts: Vec<Arc<Part>>,
    /// All templates: the part of each, and its place there.
    templates: Vec<(usize, usize)>,
    /// Templates by a word that they may begin with, in ascending order.
    by_first: HashMap<Arc<str>, Vec<usize>>,
    /// Templates that may begin with a slot.
    by_slot: Vec<usize>,
    /// Templates by any full-weight word in them, for misheard sentences.
    by_word: HashMap<Arc<str>, Vec<usize>>,
    /// What a recogniser is told.
    vocabulary: Arc<[String]>,
}

/// What an utterance was taken for.
pub(super) struct Understood {
    /// One command, or several joined by "and", or none.
    pub intents: Vec<Intent>,
    /// How sure they are: one that was misheard and put right is a guess, and free text could be anything.
    pub clarity: Clarity,
}

/// A tool and its arguments.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Intent {
    pub name: String,
    pub arguments: Value,
    /// Whether an argument is free text, which could be anything.
    pub free_text: bool,
}

impl Intent {
    pub fn into_call(self, id: String) -> ToolCall {
        ToolCall { id, name: self.name, arguments: self.arguments }
    }
}

/// Compiles every template of a tool; the ones that cannot be used, each with its reason.
pub fn check(tool: &ToolSpec) -> Vec<(String, TemplateError)> {
    let templates = tool.phrases.iter().flat_map(|phrases| &phrases.templates);
    templates
        .filter_map(|source| {
            let error = template::compile(source, &tool.input_schema).err()?;
            Some((source.clone(), error))
        })
        .collect()
}

impl Grammar {
    /// Puts together what was compiled.
    pub fn of(parts: Vec<Arc<Part>>) -> Self {
        let (mut templates, mut by_slot) = (Vec::new(), Vec::new());
        let (mut by_first, mut by_word) = (HashMap::<_, Vec<usize>>::new(), HashMap::<_, Vec<usize>>::new());
        for (at, part) in parts.iter().enumerate() {
            for (place, template) in part.templates.iter().enumerate() {
                let index = templates.len();
                templates.push((at, place));
                for word in &template.firsts {
                    by_first.entry(Arc::clone(word)).or_default().push(index);
                }
                for word in &template.words {
                    by_word.entry(Arc::clone(word)).or_default().push(index);
                }
                by_slot.extend(template.slot_first.then_some(index));
            }
        }
        let mut grammar = Self { parts, templates, by_first, by_slot, by_word, vocabulary: Arc::default() };
        grammar.vocabulary = grammar.examples(VOCABULARY_SENTENCES_MAX).into();
        grammar
    }

    fn template(&self, index: usize) -> Option<(&Tool, &Template)> {
        let (part, place) = self.templates.get(index)?;
        let part = self.parts.get(*part)?;
        Some((&part.tool, part.templates.get(*place)?))
    }

    /// All templates, in the order of their tools.
    fn all(&self) -> impl Iterator<Item = (&Tool, &Template)> {
        self.parts.iter().flat_map(|part| part.templates.iter().map(|template| (&part.tool, template)))
    }

    /// The commands of an utterance. What was written is believed first; only when it makes no sense is it taken for
    /// what it sounds like.
    pub fn understand(&self, utterance: &mut Utterance<'_>) -> Understood {
        self.undo_gerund(utterance);
        let written = self.written(utterance);
        if !written.is_empty() {
            let free = written.iter().any(|intent| intent.free_text);
            return Understood { intents: written, clarity: if free { Clarity::Free } else { Clarity::Clear } };
        }
        match self.misheard(utterance) {
            Some(intent) => Understood { intents: vec![intent], clarity: Clarity::Guessed },
            None => Understood { intents: Vec::new(), clarity: Clarity::Unclear },
        }
    }

    fn written(&self, utterance: &Utterance<'_>) -> Vec<Intent> {
        let length = utterance.words.len();
        match self.read(utterance, 0, length, false) {
            Some(intent) => vec![intent],
            None if length <= JOINED_WORDS_MAX => self.read_joined(utterance, 0, length, 2),
            None => Vec::new(),
        }
    }

    fn misheard(&self, utterance: &Utterance<'_>) -> Option<Intent> {
        let length = utterance.words.len();
        if length > NEAR_WORDS_MAX {
            return None;
        }
        let respelled = utterance.respelled();
        let respelled = respelled.as_ref();
        let plain = respelled.and_then(|other| self.read(other, 0, length, false));
        plain.or_else(|| self.read(respelled.unwrap_or(utterance), 0, length, true))
    }

    /// A sentence of each of the first tools, as a wearer would say it.
    pub fn vocabulary(&self) -> Arc<[String]> {
        Arc::clone(&self.vocabulary)
    }

    /// "set a timer for 5 minutes and turn the volume up": every part must be a command.
    fn read_joined(&self, utterance: &Utterance<'_>, start: usize, end: usize, joins: usize) -> Vec<Intent> {
        for at in start + 1..end.saturating_sub(1) {
            if !matches!(utterance.words[at].text.as_str(), "and" | "then") {
                continue;
            }
            let Some(first) = self.read(utterance, start, at, false) else {
                continue;
            };
            let mut all = vec![first];
            match self.read(utterance, at + 1, end, false) {
                Some(second) => all.push(second),
                None if joins > 1 => {
                    all.extend(self.read_joined(utterance, at + 1, end, joins - 1));
                }
                None => {}
            }
            if all.len() > 1 {
                return all;
            }
        }
        Vec::new()
    }

    /// The best reading of some words as one command.
    fn read(&self, utterance: &Utterance<'_>, start: usize, end: usize, repair: bool) -> Option<Intent> {
        let starts = openings(utterance.view(end), start);
        let ends = endings(utterance, start, end);
        let mut best: Option<(f32, Intent)> = None;
        for ending in ends {
            let view = utterance.view(ending.at);
            for start in &starts {
                for index in self.candidates(view, *start, repair) {
                    let Some((score, intent)) = self.try_one(index, utterance, (*start, ending), repair) else {
                        continue;
                    };
                    // Words cut off at the end cost a little, so that a template that knows
                    // them wins.
                    let score = if ending.loose { score - 0.05 } else { score };
                    if best.as_ref().is_none_or(|(top, _)| score > *top) {
                        best = Some((score, intent));
                    }
                }
            }
        }
        best.map(|(_, intent)| intent)
    }

    fn try_one(
        &self,
        index: usize,
        utterance: &Utterance<'_>,
        span: (usize, Ending),
        repair: bool,
    ) -> Option<(f32, Intent)> {
        let (tool, template) = self.template(index)?;
        let Match { score, arguments, free_text, .. } = matcher::read(&template.program, utterance, span, repair)?;
        let arguments: Map<String, Value> = arguments.into_iter().collect();
        let complete = tool.required.iter().all(|name| arguments.contains_key(name));
        complete.then(|| {
            let intent = Intent { name: tool.name.clone(), arguments: Value::Object(arguments), free_text };
            (score, intent)
        })
    }

    fn candidates(&self, view: View<'_>, start: usize, repair: bool) -> Vec<usize> {
        let mut out = Vec::new();
        let mut add = |list: &[usize]| out.extend_from_slice(list);
        if repair {
            for at in start..view.end {
                if let Some(list) = self.by_word.get(view.text(at)) {
                    add(list);
                    continue;
                }
                // Beside a single word that counts, this one may be all there is: "reminds me to".
                let meant = self.by_word.iter().filter(|(word, _)| hearing::cost(word, view.text(at), true).is_some());
                meant.for_each(|(_, list)| add(list));
            }
        } else {
            // An article in front may be skipped by the matcher.
            for at in [start, start + 1] {
                if let Some(list) = self.by_first.get(view.text(at)) {
                    add(list);
                }
                if !matches!(view.text(at), "a" | "an" | "the") {
                    break;
                }
            }
            add(&self.by_slot);
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// "would you mind setting" becomes "set", as the templates write it.
    fn undo_gerund(&self, utterance: &mut Utterance<'_>) {
        let words = &mut utterance.words;
        for at in 2..words.len() {
            if words[at - 1].text != "mind" || words[at - 2].text != "you" {
                continue;
            }
            let Some(stem) = words[at].text.strip_suffix("ing").map(str::to_owned) else {
                continue;
            };
            let mut shorter = stem.clone();
            shorter.pop();
            for base in [stem.clone(), format!("{stem}e"), shorter] {
                if self.by_first.contains_key(base.as_str()) {
                    words[at].text = base;
                    break;
                }
            }
        }
    }

    /// A sentence of the tool that the utterance comes closest to, if it comes close at all.
    pub fn near_miss(&self, utterance: &Utterance<'_>) -> Option<String> {
        const SHARED_MIN: f32 = 2.0;
        if utterance.words.len() > NEAR_WORDS_MAX {
            return None;
        }
        let mut shared: Vec<(f32, &Template)> = Vec::new();
        for (_, template) in self.all() {
            let known = |word: &&words::Word| template.words.iter().any(|known| **known == *word.text);
            let sum = utterance.words.iter().filter(known).count() as f32;
            if sum >= SHARED_MIN {
                shared.push((sum, template));
            }
        }
        let strangers = |sum: f32| {
            let words = utterance.words.iter();
            words.filter(|word| matcher::weight(&word.text) >= 1.0).count() as f32 - sum
        };
        let (most, _) = shared.iter().copied().max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        if strangers(most) > 2.0 {
            return None;
        }
        // Of those that share as many words, the one that begins like the utterance: what is wanted
        // ("set …") says more than what it is about.
        let closest = shared.into_iter().filter(|(sum, _)| *sum >= most);
        let mut sentences = closest.map(|(_, template)| example(&template.program));
        let begin = &utterance.words.first()?.text;
        let first = sentences.next()?;
        if first.split(' ').next() == Some(begin) {
            return Some(first);
        }
        sentences.find(|sentence| sentence.split(' ').next() == Some(begin)).or(Some(first))
    }

    /// One sentence for each of the first `count` tools; those that every house uses come first.
    pub fn examples(&self, count: usize) -> Vec<String> {
        let mut out = Vec::new();
        let parts = |always: bool| self.parts.iter().filter(move |part| part.tool.always == always);
        for part in parts(true).chain(parts(false)) {
            let own = || part.templates.iter();
            let free = |template: &&Template| {
                let slots = template.program.iter();
                !slots.clone().any(|op| matches!(op, Op::Slot(slot) if slot.kind.is_text()))
            };
            if let Some(template) = own().find(free).or_else(|| own().next()) {
                out.push(example(&template.program));
            }
            if out.len() == count {
                break;
            }
        }
        out
    }

    /// How many templates are in use.
    pub fn len(&self) -> usize {
        self.templates.len()
    }

    /// The templates as they were written, for diagnostics.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.all().map(|(_, template)| template.source.as_str())
    }
}

/// A sentence that the template takes: optional words left out, first alternatives, sample values.
fn example(program: &[Op]) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut op = 0;
    while let Some(current) = program.get(op) {
        match current {
            Op::Word(word) => out.push(word.clone()),
            Op::Slot(slot) => out.push(sample(&slot.kind)),
            Op::Set(..) => {}
            Op::Jump(to) => {
                op = *to;
                continue;
            }
            Op::Split(branches) => {
                // The empty branch of an optional group is the last one and leads behind it.
                let optional = branches.last().and_then(|last| program.get(last.wrapping_sub(1)));
                let empty = matches!(optional, Some(Op::Jump(to)) if branches.last() == Some(to));
                let next = if empty { branches.last() } else { branches.first() };
                let Some(next) = next else { break };
                op = *next;
                continue;
            }
            Op::End => break,
        }
        op += 1;
    }
    out.join(" ")
}

fn sample(kind: &SlotKind) -> String {
    match kind {
        SlotKind::Text { .. } => "\u{2026}".to_owned(),
        SlotKind::Number { minimum, maximum, .. } => {
            let value = 20.0_f64.clamp(minimum.ceil(), maximum.floor().max(minimum.ceil()));
            format!("{value}")
        }
        SlotKind::Duration { .. } => "ten minutes".to_owned(),
        SlotKind::Time => "five o'clock".to_owned(),
        SlotKind::Date => "tomorrow".to_owned(),
        SlotKind::When => "tomorrow at eight".to_owned(),
        SlotKind::Choice(choices) => choices.first().map_or(String::new(), |(words, _)| words.join(" ")),
        SlotKind::Expression => "twelve times seven".to_owned(),
        SlotKind::App => "\u{2026}".to_owned(),
    }
}

/// Whether there is anything to match in a text.
pub(super) fn has_words(text: &str) -> bool {
    !words::cut(text).is_empty()
}
