//! How the assistant speaks: what the operator has written for a model, else what the house has, with the habit that
//! the model's family needs. Pure: the habit is brought by whoever knows families.

use std::collections::BTreeMap;

use gateway_core::vocab::ModelHabit;

/// The key of the operator's text for all models that no other key fits.
const DEFAULT: &str = "default";

/// How the assistant speaks where nothing else is written.
const PERSONALITY: &str = "Tone: calm, direct, kind, at times dryly funny. The answer comes first, a reason only where it \
    helps to decide. No filler openings, no apologies for show, no offers of further help. When something fails, say \
    what, and the next best step. Never invent facts; say so when you are guessing.";

/// How the assistant speaks, per family of models.
#[derive(Clone, Debug, Default)]
pub struct Personalities(BTreeMap<String, String>);

impl Personalities {
    /// What the operator has written, by parts of models' names; `default` is for all others.
    pub fn new(written: &BTreeMap<String, String>) -> Self {
        Self(written.iter().map(|(family, text)| (family.to_lowercase(), text.trim().to_owned())).collect())
    }

    /// The operator's text whose key is the longest part of the model's name; else the operator's default; else the
    /// house's, as the habit has it.
    pub fn text(&self, model: Option<&str>, habit: Option<ModelHabit>) -> String {
        let name = model.unwrap_or_default().to_lowercase();
        let fitting = self.0.iter().filter(|(family, _)| *family != DEFAULT && name.contains(family.as_str()));
        if let Some((_, text)) = fitting.max_by_key(|(family, _)| family.len()) {
            return text.clone();
        }
        if let Some(text) = self.0.get(DEFAULT) {
            return text.clone();
        }
        match habit {
            Some(ModelHabit::Only(only)) => only.to_owned(),
            Some(ModelHabit::Besides(habit)) => format!("{PERSONALITY} {habit}"),
            None => PERSONALITY.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_particular_personality_counts() {
        let house = Personalities::default();
        assert!(house.text(None, None).starts_with("Tone: calm"));
        let besides = house.text(Some("acme-2"), Some(ModelHabit::Besides("No lists.")));
        assert!(besides.starts_with("Tone: calm") && besides.ends_with(" No lists."));
        assert_eq!(house.text(Some("tiny-1"), Some(ModelHabit::Only("Be short."))), "Be short.");
        let written = [("acme", "A"), ("ACME-5", "B"), ("default", "C")];
        let written = written.map(|(family, text)| (family.to_owned(), text.to_owned()));
        let own = Personalities::new(&BTreeMap::from(written));
        for (model, wanted) in
            [(Some("acme-4.1"), "A"), (Some("house/acme-5-mini"), "B"), (Some("tiny"), "C"), (None, "C")]
        {
            assert_eq!(own.text(model, Some(ModelHabit::Only("Be short."))), wanted, "{model:?}");
        }
    }
}
