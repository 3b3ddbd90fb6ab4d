//! Questions for an argument: in the tool's own words if it has any.
//!
//! A property in a tool's schema may have its question (`"question": "For how long?"`), or is never asked for
//! (`"question": false`). Otherwise its title or description is used, else its name.

use gateway_core::vocab::ToolSpec;
use serde_json::Value;

use super::{
    language::Language,
    template::{self, Op, Slot, SlotKind},
};

/// Longest question from a tool, in characters: two lines of a display.
const QUESTION_CHARS_MAX: usize = 80;
/// Longest description that is used as a question.
const DESCRIPTION_CHARS_MAX: usize = 60;
/// Most values of an argument that are listed; more cannot be remembered.
const LISTED_MAX: usize = 4;
/// Characters of that list.
const LIST_CHARS_MAX: usize = 60;

/// The question for one of these properties.
pub(super) fn of(tool: &ToolSpec, one_of: &[String]) -> String {
    let properties = || one_of.iter().filter_map(|name| Some((name, property(tool, name)?)));
    if let Some(own) =
        properties().find_map(|(_, property)| line(property.get("question")?.as_str()?, QUESTION_CHARS_MAX))
    {
        return own;
    }
    let Some((name, property)) = properties().next() else {
        return "What exactly?".to_owned();
    };
    let text = |key: &str| property.get(key).and_then(Value::as_str);
    let named = text("title").unwrap_or(name).replace(['_', '-', '.'], " ").to_lowercase();
    let named = line(&named, DESCRIPTION_CHARS_MAX).unwrap_or_else(|| "one".to_owned());
    if let Some(list) = listed(property) {
        return format!("Which {named}: {list}?");
    }
    if property.get("type").and_then(Value::as_str) == Some("boolean") {
        return format!("{}, yes or no?", capitalised(&named));
    }
    let described = text("description").and_then(|text| line(first_sentence(text), DESCRIPTION_CHARS_MAX));
    described.map_or_else(|| format!("Which {named}?"), |text| format!("{}?", capitalised(&text)))
}

/// Whether the wearer may be asked for this property.
pub(super) fn may_ask(tool: &ToolSpec, name: &str) -> bool {
    property(tool, name).is_none_or(|property| property.get("question") != Some(&Value::Bool(false)))
}

/// The question which of these is meant.
pub(super) fn which<'a>(labels: impl Iterator<Item = &'a str>) -> String {
    let labels: Vec<String> = labels.map(str::to_owned).collect();
    format!("Which one: {}?", or(&labels))
}

/// The question which side is meant.
pub(super) fn with<'a>(labels: impl Iterator<Item = &'a str>) -> String {
    let labels: Vec<String> = labels.map(|label| format!("with {label}")).collect();
    format!("{}?", capitalised(&or(&labels)))
}

/// The slot for a property, derived from its schema; `None` if a few words cannot express its value.
pub(super) fn slot(tool: &ToolSpec, name: &str, language: &Language) -> Option<Slot> {
    let property = property(tool, name)?;
    let one = |kind: &str| {
        let program = template::compile(&format!("x {{{name}:{kind}}}"), &tool.input_schema, language).ok()?;
        program.into_iter().find_map(|op| if let Op::Slot(slot) = op { Some(slot) } else { None })
    };
    if property.get("enum").is_some() {
        return one("choice");
    }
    match (property.get("type")?.as_str()?, property.get("format").and_then(Value::as_str)) {
        ("integer" | "number", _) => one("number"),
        ("string", Some("date")) => one("date"),
        ("string", Some("time")) => one("time"),
        ("string", Some("date-time")) => one("when"),
        ("string", _) => one("text"),
        ("boolean", _) => {
            let says = |words: &[&str], value: bool| {
                words.iter().map(|word| (vec![(*word).to_owned()], Value::Bool(value))).collect::<Vec<_>>()
            };
            let choices = [says(language.answer.yes, true), says(language.answer.no, false)].concat();
            Some(Slot { property: name.to_owned(), kind: SlotKind::Choice(choices) })
        }
        _ => None,
    }
}

fn property<'a>(tool: &'a ToolSpec, name: &str) -> Option<&'a Value> {
    tool.input_schema.get("properties")?.get(name)
}

/// Its allowed values, if they are few and short.
fn listed(property: &Value) -> Option<String> {
    let values = property.get("enum")?.as_array()?;
    let texts: Vec<String> = values
        .iter()
        .map(|value| value.as_str().map_or_else(|| value.to_string(), |text| text.replace(['_', '-'], " ")))
        .collect();
    let list = or(&texts);
    let short =
        texts.len() <= LISTED_MAX && list.chars().count() <= LIST_CHARS_MAX && !list.chars().any(char::is_control);
    (short && !texts.is_empty()).then_some(list)
}

fn or(texts: &[String]) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

fn first_sentence(text: &str) -> &str {
    let text = text.trim();
    let end = text.find(['.', ',', ';', ':', '(', '\n']).unwrap_or(text.len());
    &text[..end]
}

/// A text as one line of at most this length; `None` if it is not a short text.
fn line(text: &str, chars_max: usize) -> Option<String> {
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = text.join(" ");
    let fits = !text.is_empty() && text.chars().count() <= chars_max && !text.chars().any(char::is_control);
    fits.then_some(text)
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(property: Value) -> String {
        let input_schema = json!({"type": "object", "properties": {"plant_name": property}});
        of(&ToolSpec { input_schema, ..ToolSpec::default() }, &["plant_name".to_owned()])
    }

    #[test]
    fn a_question_is_made_of_what_the_tool_says() {
        for (property, expected) in [
            (json!({"type": "string", "question": "Which plant shall I water?"}), "Which plant shall I water?"),
            (json!({"type": "string", "description": "the plant to water. Any one."}), "The plant to water?"),
            (json!({"type": "string", "title": "Plant"}), "Which plant?"),
            (json!({"type": "string"}), "Which plant name?"),
            (json!({"enum": ["fern", "moss", "oak_tree"]}), "Which plant name: fern, moss or oak tree?"),
            (json!({"enum": ["a", "b", "c", "d", "e"]}), "Which plant name?"),
            (json!({"type": "boolean", "title": "Feed it"}), "Feed it, yes or no?"),
            (json!({"type": "string", "description": "x".repeat(200)}), "Which plant name?"),
            (json!({"type": "string", "question": "a\u{7}b"}), "Which plant name?"),
            (json!({"type": "string", "question": 7}), "Which plant name?"),
            (json!(true), "Which plant name?"),
        ] {
            assert_eq!(asked(property.clone()), expected, "{property}");
        }
        assert_eq!(of(&ToolSpec::default(), &["x".to_owned()]), "What exactly?");
        assert_eq!(which(["the tea app", "the timer"].into_iter()), "Which one: the tea app or the timer?");
        assert_eq!(with(["Lists", "Todo"].into_iter()), "With Lists or with Todo?");
    }
}
