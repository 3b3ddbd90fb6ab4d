//! The compiled form of one tool, independent of the list it is in.

use std::sync::Arc;

use gateway_core::vocab::{Side, ToolSpec};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::TEMPLATES_MAX;
use crate::intents::{
    language::{FALLBACK, Language, primary},
    template::{self, Op},
};

/// SHA-256 of the compiled input.
pub(in crate::intents) type Key = [u8; 32];

/// One tool in one language, compiled.
pub(in crate::intents) struct Part {
    /// Information for its calls.
    pub(super) tool: Tool,
    /// In the order in which they were written.
    pub(super) templates: Vec<Template>,
}

/// What the engine needs of a tool.
pub(in crate::intents) struct Tool {
    pub name: String,
    pub side: Side,
    pub always: bool,
    pub required: Vec<String>,
}

/// A template as a program, with the words by which it is found.
pub(super) struct Template {
    pub source: String,
    pub program: Vec<Op>,
    /// Words that it may begin with.
    pub firsts: Vec<Arc<str>>,
    /// Whether it may begin with a slot.
    pub slot_first: bool,
    /// Its words of full weight.
    pub words: Vec<Arc<str>>,
}

impl Part {
    /// Compiles its templates for the language of a BCP 47 tag.
    pub fn compile(tool: &ToolSpec, tag: &str) -> Self {
        let language = Language::of(tag);
        let mut templates = Vec::new();
        for source in spoken(tool, tag).into_iter().take(TEMPLATES_MAX) {
            match template::compile(source, &tool.input_schema, language) {
                Ok(program) => templates.push(Template::new(source, program, language)),
                Err(error) => {
                    tracing::warn!(tool = tool.name, template = source, %error, "template left out");
                }
            }
        }
        let required = tool.input_schema.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(|name| Some(name.as_str()?.to_owned())).collect();
        let (name, side) = (tool.name.clone(), tool.side.clone());
        Self { tool: Tool { always: tool.flags.always, name, side, required }, templates }
    }

    /// Key of what [`compile`](Self::compile) reads of a tool: equal keys give equal parts, whatever the tools'
    /// addresses.
    pub fn key(tool: &ToolSpec, language: &str) -> Key {
        let mut hash = Sha256::new();
        let mut add = |bytes: &[u8]| {
            // With its length, so that different lists of texts have different input.
            hash.update(bytes.len().to_le_bytes());
            hash.update(bytes);
        };
        add(Language::of(language).code.as_bytes());
        add(tool.name.as_bytes());
        add(format!("{:?}", tool.side).as_bytes());
        add(&[u8::from(tool.flags.always)]);
        let templates = spoken(tool, language);
        // Without templates only the required properties of the schema are used.
        let schema = if templates.is_empty() { &tool.input_schema["required"] } else { &tool.input_schema };
        add(schema.to_string().as_bytes());
        templates.into_iter().for_each(|template| add(template.as_bytes()));
        hash.finalize().into()
    }
}

impl Template {
    fn new(source: &str, program: Vec<Op>, language: &Language) -> Self {
        let (mut firsts, mut words) = (Vec::new(), Vec::new());
        let mut slot_first = false;
        let mut seen = vec![false; program.len()];
        first_words((&program, language), 0, &mut seen, &mut firsts, &mut slot_first);
        for op in &program {
            if let Op::Word(word) = op
                && language.weight(word) >= 1.0
            {
                push_once(&mut words, word);
            }
        }
        Self { source: source.to_owned(), program, firsts, slot_first, words }
    }
}

/// The templates for a language, or for the fallback if the tool has none for it.
fn spoken<'a>(tool: &'a ToolSpec, language: &str) -> Vec<&'a str> {
    let of = |language: &str| -> Vec<&'a str> {
        let wanted = primary(language);
        let phrases = tool.phrases.iter();
        phrases
            .filter(|phrases| primary(&phrases.language) == wanted)
            .flat_map(|phrases| phrases.templates.iter().map(String::as_str))
            .collect()
    };
    let own = of(language);
    if own.is_empty() { of(FALLBACK) } else { own }
}

fn push_once(list: &mut Vec<Arc<str>>, word: &str) {
    if list.iter().all(|known| **known != *word) {
        list.push(word.into());
    }
}

fn first_words(
    (program, language): (&[Op], &Language),
    op: usize,
    seen: &mut [bool],
    words: &mut Vec<Arc<str>>,
    slot: &mut bool,
) {
    if seen.get(op).copied() != Some(false) {
        return;
    }
    seen[op] = true;
    match &program[op] {
        Op::Word(word) => {
            push_once(words, word);
            if language.is_article(word) {
                first_words((program, language), op + 1, seen, words, slot);
            }
        }
        Op::Slot(_) => *slot = true,
        Op::Set(..) => first_words((program, language), op + 1, seen, words, slot),
        Op::Jump(to) => first_words((program, language), *to, seen, words, slot),
        Op::Split(branches) => {
            for branch in branches {
                first_words((program, language), *branch, seen, words, slot);
            }
        }
        Op::End => {}
    }
}
