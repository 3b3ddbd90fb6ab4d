//! Sentences of tools as a wearer would say them: for help, and to suggest what was probably meant.

use gateway_core::vocab::first_sentence;

use super::{Grammar, NEAR_WORDS_MAX, Template};
use crate::intents::{
    language::Language,
    template::{Op, SlotKind},
    utterance::Utterance,
    words,
};

impl Grammar {
    /// The tool sentence closest to the utterance, if one is close.
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
            words.filter(|word| self.language.weight(&word.text) >= 1.0).count() as f32 - sum
        };
        let (most, _) = shared.iter().copied().max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        if strangers(most) > 2.0 {
            return None;
        }
        // Of those that share equally many words, the one that begins like the utterance: the action ("set …") says
        // more than its object.
        let closest = shared.into_iter().filter(|(sum, _)| *sum >= most);
        let mut sentences = closest.map(|(_, template)| example(template, self.language));
        let begin = &utterance.words.first()?.text;
        let begins = |sentence: &String| {
            let cut = words::cut(sentence, self.language);
            cut.first().is_some_and(|word| word.text == *begin)
        };
        let first = sentences.next()?;
        if begins(&first) {
            return Some(first);
        }
        sentences.find(begins).or(Some(first))
    }

    /// One sentence for each of the first `count` tools; tools that are always offered come first.
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
                out.push(example(template, self.language));
            }
            if out.len() == count {
                break;
            }
        }
        out
    }
}

/// A sentence that matches the template, with sample values.
fn example(template: &Template, language: &Language) -> String {
    let slot = |inner: &str| {
        let property = inner.split(':').next()?.trim();
        template.program.iter().find_map(|op| match op {
            Op::Slot(slot) if slot.property == property => Some(sample(&slot.kind, language)),
            _ => None,
        })
    };
    first_sentence(&template.source, slot).unwrap_or_default()
}

/// A sample value of this kind, as spoken.
pub(in crate::intents) fn sample(kind: &SlotKind, language: &Language) -> String {
    let samples = &language.samples;
    match kind {
        SlotKind::Text { .. } => "\u{2026}".to_owned(),
        SlotKind::Number { minimum, maximum, .. } => {
            let value = 20.0_f64.clamp(minimum.ceil(), maximum.floor().max(minimum.ceil()));
            format!("{value}")
        }
        SlotKind::Duration { .. } => samples.length.to_owned(),
        SlotKind::Time => samples.time.to_owned(),
        SlotKind::Date => samples.date.to_owned(),
        SlotKind::When | SlotKind::Wake => samples.when.to_owned(),
        SlotKind::Choice(choices) => choices.first().map_or(String::new(), |(words, _)| words.join(" ")),
        SlotKind::Expression => samples.sum.to_owned(),
        SlotKind::App => "\u{2026}".to_owned(),
    }
}
