//! Sentences of tools that lack some of their slots.

use serde_json::{Map, Value};

use super::{Grammar, Intent};
use crate::intents::{
    courtesy::{Ending, endings, openings},
    matcher::{self, Match},
    template::{Op, Slot},
    utterance::Utterance,
};

/// Properties of which any one may be given in the same place.
const ALTERNATIVES_MAX: usize = 4;

/// A sentence of a tool that lacks something.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::intents) struct Partial {
    pub intent: Intent,
    /// What it lacks: of each entry one of these properties.
    pub missing: Vec<Vec<String>>,
    /// What its fixed words say.
    pub evidence: f32,
}

impl Partial {
    /// Another sentence that fits as well: where it lacks something else at the same place, either will do.
    fn widen(&mut self, as_likely: bool, other: &Self) {
        if !as_likely || self.intent != other.intent || self.missing.len() != other.missing.len() {
            return;
        }
        for (known, more) in self.missing.iter_mut().zip(&other.missing) {
            for property in more {
                if !known.contains(property) && known.len() < ALTERNATIVES_MAX {
                    known.push(property.clone());
                }
            }
        }
    }
}

impl Grammar {
    /// What the words begin, where they are a sentence that lacks something: the likeliest, with everything that may
    /// stand in the same place.
    pub fn partial(&self, utterance: &Utterance<'_>) -> Option<Partial> {
        let end = utterance.words.len();
        let mut best: Option<(f32, Partial)> = None;
        for end in endings(utterance, 0, end) {
            let view = utterance.view(end.at);
            for start in openings(view, 0) {
                for index in self.candidates(view, start, false) {
                    let Some((score, partial)) = self.partial_of(index, utterance, (start, end)) else {
                        continue;
                    };
                    match &mut best {
                        Some((top, known)) if score <= *top => known.widen(score == *top, &partial),
                        _ => best = Some((score, partial)),
                    }
                }
            }
        }
        best.map(|(_, partial)| partial)
    }

    fn partial_of(&self, index: usize, utterance: &Utterance<'_>, span: (usize, Ending)) -> Option<(f32, Partial)> {
        let (tool, template) = self.template(index)?;
        let whole = matcher::read(&template.program, utterance, span, false);
        let Match { score, arguments, free_text, evidence, missing } =
            whole.or_else(|| matcher::read_partial(&template.program, utterance, span))?;
        let arguments: Map<String, Value> = arguments.into_iter().collect();
        let mut missing: Vec<Vec<String>> = missing.into_iter().map(|property| vec![property]).collect();
        for required in &tool.required {
            if !arguments.contains_key(required) && !missing.iter().flatten().any(|property| property == required) {
                missing.push(vec![required.clone()]);
            }
        }
        let intent = Intent { name: tool.name.clone(), arguments: Value::Object(arguments), free_text };
        (!missing.is_empty()).then_some((score, Partial { intent, missing, evidence }))
    }

    /// The slots of a tool's own sentences for a property, each once.
    pub fn slots_for(&self, tool: &str, property: &str) -> Vec<&Slot> {
        let mut out: Vec<&Slot> = Vec::new();
        for (_, template) in self.all().filter(|(known, _)| known.name == tool) {
            for op in &template.program {
                if let Op::Slot(slot) = op
                    && slot.property == property
                    && !out.contains(&slot)
                {
                    out.push(slot);
                }
            }
        }
        out
    }
}
