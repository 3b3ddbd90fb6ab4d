//! BM25 over the texts of tool definitions.
//!
//! Source: S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", Foundations and Trends
//! in Information Retrieval 3(4), 2009, section 3.5 (BM25F: several fields, each with its own weight and length
//! normalisation). Everything but the sum is precomputed when the index is built.

use std::{collections::HashMap, sync::Arc};

use gateway_core::vocab::ToolSpec;
use serde_json::Value;

use super::{groups::GROUPS, terms};

/// Term frequency saturation.
const K1: f32 = 1.2;
/// Weight and length normalisation of each field: name, phrases, description, arguments, phrases in other languages than
/// English. In one field with the English ones these would make the tools that have them long, so that English words
/// count less.
const FIELDS: [(f32, f32); FIELDS_LEN] = [(2.5, 0.3), (2.0, 0.3), (1.5, 0.6), (0.5, 0.8), (2.0, 0.3)];
const FIELDS_LEN: usize = 5;
/// Factor for a word that only matches by prefix.
const PREFIX_SHARE: f32 = 0.5;
/// Factor for a synonym of the spoken word.
const GROUP_SHARE: f32 = 0.5;
/// Minimum letters of such a prefix.
const PREFIX_CHARS_MIN: usize = 4;
/// Words of an utterance that are looked up: a long dictation names its tool among them.
const TERMS_MAX: usize = 64;
/// Maximum values that are read from a schema.
const SCHEMA_VALUES_MAX: usize = 512;

/// The tools that contain a term, each with the term's score for it.
type Postings = Vec<(u32, f32)>;

/// The tools by the terms of their definitions.
pub struct Index {
    tools: usize,
    /// Sorted by term, for the search by prefix.
    terms: Vec<(Box<str>, Postings)>,
    /// Groups of synonyms.
    groups: Vec<Vec<String>>,
}

impl Index {
    /// Builds the index of these tools.
    pub fn new(tools: &[Arc<ToolSpec>]) -> Self {
        let mut counts: HashMap<String, Vec<(u32, [f32; FIELDS_LEN])>> = HashMap::new();
        let mut lengths = Vec::with_capacity(tools.len());
        for (at, tool) in (0..).zip(tools) {
            let fields = fields(tool);
            lengths.push(fields.each_ref().map(|terms| terms.len() as f32));
            for (field, terms) in fields.into_iter().enumerate() {
                for term in terms {
                    let postings = counts.entry(term).or_default();
                    if postings.last().is_none_or(|(last, _)| *last != at) {
                        postings.push((at, [0.0; FIELDS_LEN]));
                    }
                    if let Some((_, counts)) = postings.last_mut() {
                        counts[field] += 1.0;
                    }
                }
            }
        }
        let all = tools.len() as f32;
        let means: [f32; FIELDS_LEN] = std::array::from_fn(|field| {
            lengths.iter().map(|lengths: &[f32; FIELDS_LEN]| lengths[field]).sum::<f32>() / all.max(1.0)
        });
        let weigh = |at: u32, counts: [f32; FIELDS_LEN]| -> f32 {
            let share = |(field, (weight, b)): (usize, (f32, f32))| {
                let length = lengths[at as usize][field] / means[field].max(1.0);
                weight * counts[field] / (1.0 - b + b * length)
            };
            FIELDS.into_iter().enumerate().map(share).sum()
        };
        let mut sorted: Vec<_> = counts
            .into_iter()
            .map(|(term, postings)| {
                let with = postings.len() as f32;
                let rarity = (1.0 + (all - with + 0.5) / (with + 0.5)).ln();
                let score = |(at, counts)| {
                    let weight = weigh(at, counts);
                    (at, rarity * weight / (K1 + weight))
                };
                (term.into_boxed_str(), postings.into_iter().map(score).collect())
            })
            .collect();
        sorted.sort_by(|(a, _): &(Box<str>, Postings), (b, _)| a.cmp(b));
        let groups = GROUPS.iter().map(|group| terms::of(group)).collect();
        Self { tools: tools.len(), terms: sorted, groups }
    }

    /// The tools that match the words, best first: positions in the indexed list, with scores.
    pub fn rank(&self, words: &str) -> Vec<(usize, f32)> {
        let mut wanted = terms::of(words);
        wanted.truncate(TERMS_MAX);
        wanted.sort_unstable();
        wanted.dedup();
        let mut scores = vec![0.0; self.tools];
        for term in &wanted {
            let (postings, share) = self.postings(term);
            for (at, score) in postings {
                scores[*at as usize] += score * share;
            }
        }
        self.add_groups(&wanted, &mut scores);
        sorted(scores)
    }

    /// Of each group that contains the word, the best of its other words counts.
    fn add_groups(&self, wanted: &[String], scores: &mut [f32]) {
        for group in &self.groups {
            if !group.iter().any(|word| wanted.contains(word)) {
                continue;
            }
            let mut best: HashMap<u32, f32> = HashMap::new();
            for word in group.iter().filter(|word| !wanted.contains(word)) {
                for (at, score) in self.known(word).unwrap_or_default() {
                    let best = best.entry(*at).or_default();
                    *best = best.max(*score);
                }
            }
            for (at, score) in best {
                scores[at as usize] += score * GROUP_SHARE;
            }
        }
    }

    fn known(&self, term: &str) -> Option<&[(u32, f32)]> {
        let place = self.terms.binary_search_by(|(known, _)| (**known).cmp(term)).ok()?;
        Some(&self.terms.get(place)?.1)
    }

    /// The tools that contain a term; if there are none, those of the nearest term with the same prefix.
    fn postings(&self, term: &str) -> (&[(u32, f32)], f32) {
        if let Some(postings) = self.known(term) {
            return (postings, 1.0);
        }
        let place = self.terms.partition_point(|(known, _)| **known < *term);
        let alike = |(known, _): &&(Box<str>, _)| {
            let common = known.chars().zip(term.chars()).take_while(|(a, b)| a == b).count();
            common >= PREFIX_CHARS_MIN && (common == known.chars().count() || common == term.chars().count())
        };
        let neighbours = [place.checked_sub(1), Some(place)].into_iter().flatten();
        match neighbours.filter_map(|at| self.terms.get(at)).find(alike) {
            Some((_, postings)) => (postings, PREFIX_SHARE),
            None => (&[], 0.0),
        }
    }
}

/// Best first; equal scores in the order of the list.
pub(super) fn sorted(scores: Vec<f32>) -> Vec<(usize, f32)> {
    let mut ranked: Vec<_> = scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked
}

fn fields(tool: &ToolSpec) -> [Vec<String>; FIELDS_LEN] {
    let (mut phrases, mut others) = (Vec::new(), Vec::new());
    for of_language in &tool.phrases {
        let known = if of_language.language.starts_with("en") { &mut phrases } else { &mut others };
        for template in &of_language.templates {
            // A word counts once, even if several templates begin with it.
            for term in terms::of(&without_slots(template)) {
                if !known.contains(&term) {
                    known.push(term);
                }
            }
        }
    }
    let mut arguments = Vec::new();
    let mut left = SCHEMA_VALUES_MAX;
    read_schema(&tool.input_schema["properties"], true, &mut left, &mut arguments);
    [terms::of(&tool.name), phrases, terms::of(&tool.description), arguments, others]
}

/// The words of a template; of a slot only the value that it sets.
fn without_slots(template: &str) -> String {
    let mut out = String::with_capacity(template.len());
    let mut slot = None;
    for letter in template.chars() {
        match (letter, &mut slot) {
            ('{', _) => slot = Some(false),
            ('}', _) => {
                slot = None;
                out.push(' ');
            }
            ('=', Some(value)) => *value = true,
            (_, Some(false)) => {}
            _ => out.push(letter),
        }
    }
    out
}

/// Names of properties, their descriptions and their enumerated values.
fn read_schema(value: &Value, names: bool, left: &mut usize, out: &mut Vec<String>) {
    let Some(object) = value.as_object() else { return };
    for (key, value) in object {
        let Some(rest) = left.checked_sub(1) else { return };
        *left = rest;
        if names {
            out.extend(terms::of(key));
            read_schema(value, false, left, out);
            continue;
        }
        match (key.as_str(), value) {
            ("description" | "title", Value::String(text)) => out.extend(terms::of(text)),
            ("enum", Value::Array(values)) => {
                for text in values.iter().filter_map(Value::as_str).take(*left) {
                    out.extend(terms::of(text));
                }
            }
            ("properties", value) => read_schema(value, true, left, out),
            ("items", value) => read_schema(value, false, left, out),
            _ => {}
        }
    }
}
