//! Readings of tool sentences with missing slots.

use super::Grammar;
use crate::intents::{
    courtesy::{Ending, endings, openings},
    found::Found,
    matcher,
    sides::Sides,
    template::{Op, Slot},
    utterance::Utterance,
};

/// Most alternative properties in the same place.
const ALTERNATIVES_MAX: usize = 4;

/// Adds another sentence that fits as well: if it lacks another property in the same place, either will do.
fn widen(known: &mut Found, as_likely: bool, other: &Found) {
    if !as_likely || known.intent != other.intent || known.missing.len() != other.missing.len() {
        return;
    }
    for (known, more) in known.missing.iter_mut().zip(&other.missing) {
        for property in more {
            if !known.contains(property) && known.len() < ALTERNATIVES_MAX {
                known.push(property.clone());
            }
        }
    }
}

impl Grammar {
    /// Reads the words as sentences with missing slots: the most likely of each side, with all alternatives for the
    /// same place; the most likely side first.
    pub fn partials(&self, utterance: &Utterance<'_>, sides: Sides<'_>) -> Vec<Found> {
        let end = utterance.words.len();
        let mut best: Vec<Found> = Vec::new();
        for end in endings(utterance, 0, end) {
            let view = utterance.view(end.at);
            for start in openings(view, 0) {
                for index in self.candidates(view, start, false) {
                    let Some(found) = self.partial_of(index, utterance, (start, end), sides) else {
                        continue;
                    };
                    match best.iter_mut().find(|known| known.side.is_with(&found.side)) {
                        Some(known) if found.score > known.score => *known = found,
                        Some(known) => widen(known, found.score == known.score, &found),
                        None => best.push(found),
                    }
                }
            }
        }
        best.sort_by(|a, b| b.score.total_cmp(&a.score));
        best
    }

    fn partial_of(
        &self,
        index: usize,
        utterance: &Utterance<'_>,
        span: (usize, Ending),
        sides: Sides<'_>,
    ) -> Option<Found> {
        let (tool, template) = self.template(index).filter(|(tool, _)| sides.admits(&tool.side))?;
        let whole = matcher::read(&template.program, utterance, span, false);
        let read = whole.or_else(|| matcher::read_partial(&template.program, utterance, span))?;
        let found = tool.found(index, read);
        (!found.missing.is_empty()).then_some(found)
    }

    /// The slots for a property in a tool's own sentences, each once.
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
