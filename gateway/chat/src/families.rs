//! Habits of families of models, known by their names.

use gateway_core::vocab::ModelHabit;

/// By what names contain, each against a habit of that family; the first counts.
const FAMILIES: [(&str, ModelHabit); 8] = [
    ("smollm", ModelHabit::Only("Answer in one short sentence.")),
    ("tinyllama", ModelHabit::Only("Answer in one short sentence.")),
    ("gpt", ModelHabit::Besides("Do not end with a question unless you need the answer.")),
    ("claude", ModelHabit::Besides("Do not restate the question, and do not think aloud.")),
    ("gemini", ModelHabit::Besides("Speak in sentences, never in lists or headings.")),
    ("llama", ModelHabit::Besides("Answer in one or two sentences.")),
    ("qwen", ModelHabit::Besides("Answer in one or two sentences, in the wearer's language only.")),
    ("mistral", ModelHabit::Besides("Answer in one or two sentences.")),
];

/// What is said to the model of this name, in whatever case.
pub fn habit(model: &str) -> Option<ModelHabit> {
    let name = model.to_lowercase();
    FAMILIES.iter().find(|(family, _)| name.contains(family)).map(|(_, habit)| *habit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_models_are_told_one_thing_only() {
        let short = Some(ModelHabit::Only("Answer in one short sentence."));
        assert_eq!(habit("SmolLM2-135M-Instruct"), short);
        assert_eq!(habit("TinyLlama-1.1B"), short, "and not as its larger kin");
        assert!(matches!(habit("openai/GPT-5-mini"), Some(ModelHabit::Besides(_))));
        assert_eq!(habit("testling-1"), None);
    }
}
