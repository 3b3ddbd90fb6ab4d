//! Style instructions of the assistant: the operator's text for a model, otherwise the built-in one with the hint for
//! the model's family. Pure functions: the hint is an argument, since this crate does not know model families.

use std::collections::BTreeMap;

use gateway_core::vocab::PromptHint;

/// Key of the operator's text for all models that match no other key.
const DEFAULT: &str = "default";

/// Style instructions if the operator has written none.
const PERSONALITY: &str = "Tone: calm, direct, kind, at times dryly funny. The answer comes first, a reason only where it \
    helps to decide. No filler openings, no apologies for show, no offers of further help. When something fails, say \
    what, and the next best step. Never invent facts; say so when you are guessing.";

/// The operator's style instructions, by family of models.
#[derive(Clone, Debug, Default)]
pub struct Personalities(BTreeMap<String, String>);

impl Personalities {
    /// The operator's texts, keyed by parts of models' names; `default` is for all others.
    pub fn new(written: &BTreeMap<String, String>) -> Self {
        Self(written.iter().map(|(family, text)| (family.to_lowercase(), text.trim().to_owned())).collect())
    }

    /// The operator's text whose key is the longest match in the model's name; otherwise the operator's default;
    /// otherwise the built-in text, extended or replaced by `hint`.
    pub fn text(&self, model: Option<&str>, hint: Option<PromptHint>) -> String {
        let name = model.unwrap_or_default().to_lowercase();
        let fitting = self.0.iter().filter(|(family, _)| *family != DEFAULT && name.contains(family.as_str()));
        if let Some((_, text)) = fitting.max_by_key(|(family, _)| family.len()) {
            return text.clone();
        }
        if let Some(text) = self.0.get(DEFAULT) {
            return text.clone();
        }
        match hint {
            Some(PromptHint::Only(only)) => only.to_owned(),
            Some(PromptHint::Besides(hint)) => format!("{PERSONALITY} {hint}"),
            None => PERSONALITY.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_particular_personality_counts() {
        let personalities = Personalities::default();
        assert!(personalities.text(None, None).starts_with("Tone: calm"));
        let besides = personalities.text(Some("acme-2"), Some(PromptHint::Besides("No lists.")));
        assert!(besides.starts_with("Tone: calm") && besides.ends_with(" No lists."));
        assert_eq!(personalities.text(Some("tiny-1"), Some(PromptHint::Only("Be short."))), "Be short.");
        let written = [("acme", "A"), ("ACME-5", "B"), ("default", "C")];
        let written = written.map(|(family, text)| (family.to_owned(), text.to_owned()));
        let own = Personalities::new(&BTreeMap::from(written));
        for (model, wanted) in
            [(Some("acme-4.1"), "A"), (Some("house/acme-5-mini"), "B"), (Some("tiny"), "C"), (None, "C")]
        {
            assert_eq!(own.text(model, Some(PromptHint::Only("Be short."))), wanted, "{model:?}");
        }
    }
}
