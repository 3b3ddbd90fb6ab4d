//! Prompt hints for model families, recognised by name.

/// A hint for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// In addition to the assistant's style instructions.
    Besides(&'static str),
    /// In place of them: longer instructions confuse a model this small.
    Only(&'static str),
}

/// Substrings of names, each with the family's hint; the first match is used.
const FAMILIES: [(&str, Hint); 8] = [
    ("smollm", Hint::Only("Answer in one short sentence.")),
    ("tinyllama", Hint::Only("Answer in one short sentence.")),
    ("gpt", Hint::Besides("Do not end with a question unless you need the answer.")),
    ("claude", Hint::Besides("Do not restate the question, and do not think aloud.")),
    ("gemini", Hint::Besides("Speak in sentences, never in lists or headings.")),
    ("llama", Hint::Besides("Answer in one or two sentences.")),
    ("qwen", Hint::Besides("Answer in one or two sentences, in the wearer's language only.")),
    ("mistral", Hint::Besides("Answer in one or two sentences.")),
];

/// The hint for the model of this name, ignoring case.
pub fn hint(model: &str) -> Option<Hint> {
    let name = model.to_lowercase();
    FAMILIES.iter().find(|(family, _)| name.contains(family)).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_models_are_told_one_thing_only() {
        let short = Some(Hint::Only("Answer in one short sentence."));
        assert_eq!(hint("SmolLM2-135M-Instruct"), short);
        assert_eq!(hint("TinyLlama-1.1B"), short, "and not as its larger kin");
        assert!(matches!(hint("openai/GPT-5-mini"), Some(Hint::Besides(_))));
        assert_eq!(hint("testling-1"), None);
    }
}
