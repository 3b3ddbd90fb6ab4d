//! All templates of the offered tools, compiled and indexed by the words that they may begin with.
//!
//! Each tool is compiled separately ([`Part`]), so that lists with common tools share the compiled parts; a grammar
//! adds the index over its parts.

mod examples;
mod part;
mod partial;

use std::{collections::HashMap, sync::Arc};

use gateway_core::vocab::{CommandMatch, Phrases, Side, ToolSpec};
use serde_json::{Map, Value};

use super::{
    courtesy::{Ending, endings, openings},
    found::{Found, Intent},
    language::Language,
    matcher::{self, Match},
    phonetic,
    sides::{Settled, Sides},
    template::{self, Op, TemplateError},
    utterance::{Utterance, View},
    words,
};

pub(super) use examples::sample;
use part::Template;
pub(super) use part::{Key as PartKey, Part, Tool};

/// Most templates compiled for one tool; a device that declares more is careless or malicious.
pub const TEMPLATES_MAX: usize = 64;
/// Longest utterance that is split at "and": every "and" multiplies the readings.
const JOINED_WORDS_MAX: usize = 40;
/// Longest utterance that may be a misrecognised command; a longer one is conversation.
const NEAR_WORDS_MAX: usize = 20;
/// Most sentences given to a recogniser: each costs decoding time.
const VOCABULARY_SENTENCES_MAX: usize = 24;

/// The commands that the tools of a request accept, in one language.
pub(super) struct Grammar {
    pub language: &'static Language,
    /// One per tool, in the order of the request.
    parts: Vec<Arc<Part>>,
    /// All templates: index of the part, and index within it.
    templates: Vec<(usize, usize)>,
    /// Templates by a word that they may begin with, in ascending order.
    by_first: HashMap<Arc<str>, Vec<usize>>,
    /// Templates that may begin with a slot.
    by_slot: Vec<usize>,
    /// The sides that provide the tools, except the built-in one.
    sides: Vec<Side>,
    /// Templates by any full-weight word in them, for misrecognised sentences.
    by_word: HashMap<Arc<str>, Vec<usize>>,
    /// Sentences for the recogniser.
    vocabulary: Arc<[String]>,
}

/// Result of reading an utterance.
pub(super) struct Understood {
    /// One command: the best reading of each side that understands it, the best first.
    pub found: Vec<Found>,
    /// Several commands joined by "and".
    pub joined: Vec<Intent>,
    /// Certainty: a repaired reading is a guess, and free text could be anything.
    pub matched: CommandMatch,
}

impl Tool {
    /// A reading with one of its templates.
    fn found(&self, template: usize, read: Match) -> Found {
        let Match { score, arguments, text_words, evidence, missing } = read;
        let arguments: Map<String, Value> = arguments.into_iter().collect();
        let mut missing: Vec<Vec<String>> = missing.into_iter().map(|property| vec![property]).collect();
        for required in &self.required {
            if !arguments.contains_key(required) && !missing.iter().flatten().any(|property| property == required) {
                missing.push(vec![required.clone()]);
            }
        }
        // If required properties are missing, others do not matter; and all sentences of a tool must ask in the same
        // order.
        missing.sort_by_key(|one_of| !one_of.iter().any(|property| self.required.contains(property)));
        let name = self.name.clone();
        let intent = Intent { name, arguments: Value::Object(arguments), free_text: text_words > 0 };
        Found { intent, side: self.side.clone(), score, evidence, text_words, missing, template }
    }
}

/// Compiles every template of a tool; returns the invalid ones, each with its reason.
pub fn check(tool: &ToolSpec) -> Vec<(String, TemplateError)> {
    let each = |phrases: &'_ Phrases| {
        let language = Language::of(&phrases.language);
        phrases.templates.iter().map(move |source| (source.clone(), language)).collect::<Vec<_>>()
    };
    let templates = tool.phrases.iter().flat_map(each);
    templates
        .filter_map(|(source, language)| {
            let error = template::compile(&source, &tool.input_schema, language).err()?;
            Some((source, error))
        })
        .collect()
}

impl Grammar {
    /// Combines compiled parts.
    pub fn of(parts: Vec<Arc<Part>>, language: &'static Language) -> Self {
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
        let mut sides: Vec<Side> = Vec::new();
        for part in &parts {
            if !part.tool.side.is_with(&Side::default()) && !sides.contains(&part.tool.side) {
                sides.push(part.tool.side.clone());
            }
        }
        let vocabulary = Arc::default();
        let mut grammar = Self { language, parts, templates, by_first, by_slot, sides, by_word, vocabulary };
        grammar.vocabulary = grammar.examples(VOCABULARY_SENTENCES_MAX).into();
        grammar
    }

    /// Compiles a list for a single use.
    pub fn compile(tools: &[Arc<ToolSpec>], tag: &str) -> Self {
        Self::of(tools.iter().map(|tool| Arc::new(Part::compile(tool, tag))).collect(), Language::of(tag))
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

    /// The commands of an utterance. It is read as written first; only if that has no match, words are replaced by
    /// similar-sounding ones.
    pub fn understand(&self, utterance: &mut Utterance<'_>, sides: Sides<'_>) -> Understood {
        self.undo_gerund(utterance);
        let length = utterance.words.len();
        let found = self.read(utterance, 0, length, false, sides);
        let joined = match found.is_empty() && length <= JOINED_WORDS_MAX {
            true => self.read_joined(utterance, 0, length, 2, sides),
            false => Vec::new(),
        };
        if !found.is_empty() || !joined.is_empty() {
            let free = found.iter().map(|found| &found.intent).chain(&joined).any(|intent| intent.free_text);
            let matched = if free { CommandMatch::FreeText } else { CommandMatch::Exact };
            return Understood { found, joined, matched };
        }
        let found = self.misheard(utterance, sides);
        let matched = if found.is_empty() { CommandMatch::None } else { CommandMatch::Misheard };
        Understood { found, joined, matched }
    }

    /// The sides that provide tools, except the built-in one.
    pub fn sides(&self) -> &[Side] {
        &self.sides
    }

    fn misheard(&self, utterance: &Utterance<'_>, sides: Sides<'_>) -> Vec<Found> {
        let length = utterance.words.len();
        if length > NEAR_WORDS_MAX {
            return Vec::new();
        }
        let respelled = utterance.respelled();
        let respelled = respelled.as_ref();
        let plain = respelled.map(|other| self.read(other, 0, length, false, sides)).filter(|found| !found.is_empty());
        let mut found = plain.unwrap_or_else(|| self.read(respelled.unwrap_or(utterance), 0, length, true, sides));
        // A less similar reading is no rival.
        let most = found.first().map_or(0.0, |first| first.score);
        found.retain(|found| found.score >= most);
        found
    }

    /// One sentence for each of the first tools, as a wearer would say it.
    pub fn vocabulary(&self) -> Arc<[String]> {
        Arc::clone(&self.vocabulary)
    }

    /// "set a timer for 5 minutes and turn the volume up": every part must be a command.
    fn read_joined(
        &self,
        utterance: &Utterance<'_>,
        start: usize,
        end: usize,
        joins: usize,
        sides: Sides<'_>,
    ) -> Vec<Intent> {
        let read = |start, end| match sides.settle(self.read(utterance, start, end, false, sides)) {
            Settled::One(found, _) => Some(found.intent),
            // There is no question about half a request.
            Settled::Doubt(found) => found.into_iter().max_by(|a, b| a.score.total_cmp(&b.score)).map(|it| it.intent),
            Settled::Nobody => None,
        };
        for at in start + 1..end.saturating_sub(1) {
            if !self.language.kinds.joins.contains(&utterance.words[at].text.as_str()) {
                continue;
            }
            let Some(first) = read(start, at) else {
                continue;
            };
            let mut all = vec![first];
            match read(at + 1, end) {
                Some(second) => all.push(second),
                None if joins > 1 => {
                    all.extend(self.read_joined(utterance, at + 1, end, joins - 1, sides));
                }
                None => {}
            }
            if all.len() > 1 {
                return all;
            }
        }
        Vec::new()
    }

    /// The best reading of each side for the words as one command, the best first.
    fn read(&self, utterance: &Utterance<'_>, start: usize, end: usize, repair: bool, sides: Sides<'_>) -> Vec<Found> {
        let mut starts = openings(utterance.view(end), start);
        // "si", which may be "yes", is no "if" before words as written only.
        starts.retain(|at| !repair || *at == start || !self.language.is_telling(&utterance.words[*at - 1].text));
        let ends = endings(utterance, start, end);
        let mut best: Vec<Found> = Vec::new();
        for ending in ends {
            let view = utterance.view(ending.at);
            for start in &starts {
                for index in self.candidates(view, *start, repair) {
                    let Some(mut found) = self.try_one(index, utterance, (*start, ending), (repair, sides)) else {
                        continue;
                    };
                    // Removed words at the end reduce the score a little, so that a template that contains them wins.
                    found.score -= if ending.loose { 0.05 } else { 0.0 };
                    match best.iter_mut().find(|known| known.side.is_with(&found.side)) {
                        Some(known) if found.score > known.score => *known = found,
                        Some(_) => {}
                        None => best.push(found),
                    }
                }
            }
        }
        best.sort_by(|a, b| b.score.total_cmp(&a.score));
        best
    }

    fn try_one(
        &self,
        index: usize,
        utterance: &Utterance<'_>,
        span: (usize, Ending),
        (repair, sides): (bool, Sides<'_>),
    ) -> Option<Found> {
        let (tool, template) = self.template(index).filter(|(tool, _)| sides.admits(&tool.side))?;
        let found = tool.found(index, matcher::read(&template.program, utterance, span, repair)?);
        found.missing.is_empty().then_some(found)
    }

    /// Whether a sentence of the tools begins with these words, which are a complete command, and goes on with a slot.
    pub fn may_go_on(&self, utterance: &mut Utterance<'_>, sides: Sides<'_>) -> bool {
        self.undo_gerund(utterance);
        endings(utterance, 0, utterance.words.len()).into_iter().any(|ending| {
            let view = utterance.view(ending.at);
            openings(view, 0).into_iter().any(|start| {
                self.candidates(view, start, false).into_iter().filter_map(|index| self.template(index)).any(
                    |(tool, template)| {
                        sides.admits(&tool.side) && matcher::may_go_on(&template.program, utterance, (start, ending))
                    },
                )
            })
        })
    }

    /// Whether a sentence of the tools begins with all of these words and has to go on. A whole command may begin a longer
    /// one as well: that is to be ruled out before.
    pub fn breaks_off(&self, utterance: &mut Utterance<'_>, sides: Sides<'_>) -> bool {
        self.undo_gerund(utterance);
        let ending = Ending { at: utterance.words.len(), set_apart: true, loose: false };
        let view = utterance.view(ending.at);
        openings(view, 0).into_iter().any(|start| {
            self.candidates(view, start, false).into_iter().filter_map(|index| self.template(index)).any(
                |(tool, template)| {
                    sides.admits(&tool.side) && matcher::breaks_off(&template.program, utterance, (start, ending))
                },
            )
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
                // Besides a single full-weight word, this one may be the only other: "reminds me to".
                let meant = self
                    .by_word
                    .iter()
                    .filter(|(word, _)| phonetic::cost(word, view.text(at), true, &self.language.kinds).is_some());
                meant.for_each(|(_, list)| add(list));
            }
        } else {
            // The matcher may skip a leading article.
            for at in [start, start + 1] {
                if let Some(list) = self.by_first.get(view.text(at)) {
                    add(list);
                }
                if !self.language.is_article(view.text(at)) {
                    break;
                }
            }
            add(&self.by_slot);
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Rewrites "would you mind setting" as "set", the form in templates.
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

    /// Number of templates.
    pub fn len(&self) -> usize {
        self.templates.len()
    }

    /// A template as written.
    pub fn source(&self, template: usize) -> Option<&str> {
        self.template(template).map(|(_, template)| template.source.as_str())
    }

    /// All templates: the tool, the source text, and the compiled program.
    pub fn templates(&self) -> impl Iterator<Item = (&Tool, &str, &[Op])> {
        self.all().map(|(tool, template)| (tool, template.source.as_str(), template.program.as_slice()))
    }

    /// The source texts of the templates, for diagnostics.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.all().map(|(_, template)| template.source.as_str())
    }
}

/// Whether a text contains any words.
pub(super) fn has_words(text: &str, language: &Language) -> bool {
    !words::cut(text, language).is_empty()
}
