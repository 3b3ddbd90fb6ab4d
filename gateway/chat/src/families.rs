//! Prompt hints for model families, recognised by name.

use gateway_core::vocab::PromptHint;

/// Substrings of names, each with the family's hint; the first match is used.
const FAMILIES: [(&str, PromptHint); 8] = [
    ("smollm", PromptHint::Only("Answer in one short sentence.")),
    ("tinyllama", PromptHint::Only("Answer in one short sentence.")),
    ("gpt", PromptHint::Besides("Do not end with a question unless you need the answer.")),
    ("claude", PromptHint::Besides("Do not restate the question, and do not think aloud.")),
    ("gemini", PromptHint::Besides("Speak in sentences, never in lists or headings.")),
    ("llama", PromptHint::Besides("Answer in one or two sentences.")),
    ("qwen", PromptHint::Besides("Answer in one or two sentences, in the wearer's language only.")),
    ("mistral", PromptHint::Besides("Answer in one or two sentences.")),
];

/// The hint for the model of this name, ignoring case.
pub fn hint(model: &str) -> Option<PromptHint> {
    let name = model.to_lowercase();
    FAMILIES.iter().find(|(family, _)| name.contains(family)).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_models_are_told_one_thing_only() {
        let short = Some(PromptHint::Only("Answer in one short sentence."));
        assert_eq!(hint("SmolLM2-135M-Instruct"), short);
        assert_eq!(hint("TinyLlama-1.1B"), short, "and not as its larger kin");
        assert!(matches!(hint("openai/GPT-5-mini"), Some(PromptHint::Besides(_))));
        assert_eq!(hint("testling-1"), None);
    }
}
