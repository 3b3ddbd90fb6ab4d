//! Converts activation phrases and sentence templates into the vocabulary's phrases.

use std::collections::BTreeMap;

use gateway_core::vocab::Phrases;
use serde_json::Value;

use super::{DefinitionError, Report, fields::At};
use crate::{
    limits::{LANGUAGE_BYTES_MAX, LANGUAGES_MAX, TEMPLATE_BYTES_MAX, TEMPLATES_MAX},
    phrases,
};

/// The language of phrases that declare none.
const LANGUAGE: &str = "en";
/// Maximum items read from a list of phrases: those over the limit of templates are reported.
const GIVEN_MAX: usize = 256;

/// Templates first, since they mark the positions of arguments; then those derived from activation phrases.
pub(super) fn phrases(
    written: Option<&At<'_>>,
    spoken: Option<&At<'_>>,
    schema: &Value,
    report: &mut Report,
) -> Result<Vec<Phrases>, DefinitionError> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (language, item) in written.map(by_language).transpose()?.unwrap_or_default() {
        let template = item.text_within(TEMPLATE_BYTES_MAX)?;
        phrases::check(&template, schema).map_err(|reason| item.error(reason))?;
        push(&mut all, language, template, &item, report);
    }
    let slot = slot(schema);
    for (language, item) in spoken.map(by_language).transpose()?.unwrap_or_default() {
        let words = plain(&item.text()?);
        if !words.chars().any(char::is_alphanumeric) {
            report.note(&item.pointer, "has no words to match");
            continue;
        }
        let (template, unbound) = match &slot {
            Slot::Required(property) => (format!("{words}{} {{{property}}}", link(&language)), false),
            Slot::Optional(property) => (format!("{words}[{} {{{property}}}]", link(&language)), false),
            Slot::None => (words, false),
            Slot::Several => (words, true),
        };
        if template.len() > TEMPLATE_BYTES_MAX || phrases::check(&template, schema).is_err() {
            report.note(&item.pointer, "is too long to be a command");
            continue;
        }
        if unbound {
            report.note(&item.pointer, "says nothing of where the arguments stand; add sentence templates");
        }
        push(&mut all, language, template, &item, report);
    }
    if all.len() > LANGUAGES_MAX {
        report.note("", format!("phrases in more than {LANGUAGES_MAX} languages; the others were left out"));
    }
    let phrases = all.into_iter().take(LANGUAGES_MAX);
    Ok(phrases.map(|(language, templates)| Phrases { language, templates }).collect())
}

fn push(all: &mut BTreeMap<String, Vec<String>>, language: String, template: String, at: &At<'_>, report: &mut Report) {
    let templates = all.entry(language).or_default();
    if templates.contains(&template) {
        return;
    }
    if templates.len() < TEMPLATES_MAX {
        templates.push(template);
    } else {
        report.note(&at.pointer, format!("more than {TEMPLATES_MAX} phrases"));
    }
}

/// `[...]` in the default language, or `{language: [...]}`.
fn by_language<'a>(at: &At<'a>) -> Result<Vec<(String, At<'a>)>, DefinitionError> {
    if at.value.is_array() {
        return Ok(at.list(GIVEN_MAX)?.into_iter().map(|item| (LANGUAGE.to_owned(), item)).collect());
    }
    let mut out = Vec::new();
    for (language, list) in at.entries()? {
        if language.is_empty() || language.len() > LANGUAGE_BYTES_MAX {
            return Err(list.error("must be under a language tag such as \"en\""));
        }
        out.extend(list.list(GIVEN_MAX)?.into_iter().map(|item| (language.to_owned(), item)));
    }
    Ok(out)
}

/// The words without any character that is syntax in a template.
fn plain(phrase: &str) -> String {
    let syntax = |c: char| matches!(c, '[' | ']' | '(' | ')' | '{' | '}' | '|') || c.is_control();
    let words: String = phrase.chars().map(|c| if syntax(c) { ' ' } else { c }).collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Words that may be between a phrase and its argument.
fn link(language: &str) -> &'static str {
    if language == "en" || language.starts_with("en-") { " [to|for|about|that|of|called]" } else { "" }
}

/// The argument that follows an activation phrase.
enum Slot<'a> {
    /// The only required one.
    Required(&'a str),
    /// None is required, and there is only one text.
    Optional(&'a str),
    /// There are none.
    None,
    /// There are several, which a phrase cannot distinguish.
    Several,
}

fn slot(schema: &Value) -> Slot<'_> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty()) else {
        return Slot::None;
    };
    // A slot's name must not be read as its type or value.
    let nameable = |name: &&str| !name.is_empty() && !name.contains([':', '=', '{', '}', '|', '[', ']', '(', ')']);
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let speakable = |name: &str| {
        let kind = properties.get(name).and_then(|property| property.get("type")).and_then(Value::as_str);
        matches!(kind, Some("string" | "number" | "integer"))
    };
    match required.as_slice() {
        [one] if speakable(one) && nameable(one) => Slot::Required(one),
        [_, ..] => Slot::Several,
        [] => {
            let texts: Vec<&str> = properties.keys().map(String::as_str).filter(|name| speakable(name)).collect();
            match texts.as_slice() {
                [one] if nameable(one) => Slot::Optional(one),
                _ => Slot::None,
            }
        }
    }
}
