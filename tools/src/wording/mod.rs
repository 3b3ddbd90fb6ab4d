//! JSON in words: how arguments, and results without a text of their own, are spoken or displayed to a wearer.
//!
//! Spoken text is short: lists are counted and only their first items named, nested values are cut. Text displayed
//! before an approval is complete; where something long is cut, it states how much. Values come from outside: nothing
//! in them may be invisible, reverse the reading direction, or be mistaken for the gateway's own words.

mod doing;
mod tree;

use serde_json::Value;

pub use self::doing::doing;
use self::tree::Tree;
use crate::{
    limits::{
        READ_VALUE_CHARS_MAX, SAID_CHARS_MAX, SAID_ITEMS_MAX, SAID_PAIRS_MAX, SAID_TEXT_CHARS_MAX, SAID_WORD_CHARS_MAX,
    },
    spoken,
};

/// Maximum nesting of objects and lists that is spoken.
const SAID_DEPTH_MAX: usize = 3;
/// Properties that name the object they belong to, in order of preference.
const NAMES: [&str; 6] = ["name", "title", "label", "subject", "summary", "text"];
/// Properties in which some servers wrap a result that is not an object.
const WRAPPERS: [&str; 2] = ["result", "value"];

/// An identifier as words: "delete_item" and "deleteItem" become "delete item".
pub fn words(name: &str) -> String {
    let mut out = String::new();
    let mut small_before = false;
    for letter in name.chars().filter(|letter| !is_hidden(*letter)) {
        if letter.is_whitespace() || matches!(letter, '_' | '-' | '.' | '/') {
            out.push(' ');
        } else if letter.is_uppercase() && small_before {
            out.push(' ');
            out.extend(letter.to_lowercase());
        } else {
            out.push(letter);
        }
        small_before = letter.is_lowercase() || letter.is_numeric();
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A value in spoken form; short.
pub fn said(value: &Value) -> String {
    shortened(&say(&Tree::from(value), 0, false), SAID_CHARS_MAX)
}

/// A result without a text of its own, in spoken form: its content, with structured data as [`said`] words it.
pub fn result(content: &str, data: Option<&Value>) -> String {
    let content = content.trim();
    let mut tree: Option<Tree> = content.starts_with(['{', '[']).then(|| serde_json::from_str(content).ok()).flatten();
    if content.is_empty() {
        tree = data.map(Tree::from);
    }
    match &tree {
        Some(tree) => shortened(&say(unwrapped(tree), 0, false), SAID_CHARS_MAX),
        None => shortened(content, SAID_CHARS_MAX),
    }
}

/// The only value in a wrapper.
fn unwrapped(tree: &Tree) -> &Tree {
    match tree {
        Tree::Object(properties) => match properties.as_slice() {
            [(name, inner)] if WRAPPERS.contains(&name.as_str()) => inner,
            _ => tree,
        },
        _ => tree,
    }
}

/// One argument in spoken form: "item "rice"", "everything else too".
pub fn argument(name: &str, value: &Value) -> String {
    let name = words(name);
    match value {
        Value::Bool(true) => name,
        Value::Bool(false) => format!("{name}: no"),
        value => format!("{name} {}", say(&Tree::from(value), 1, true)),
    }
}

/// One argument as displayed: complete, or with the amount that is left out.
pub fn line(name: &str, value: &Value) -> String {
    let text = match value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null => "nothing".to_owned(),
        Value::String(text) => quoted(&visible(text), READ_VALUE_CHARS_MAX),
        Value::Number(number) => number.to_string(),
        Value::Array(_) | Value::Object(_) => cut(&visible(&value.to_string()), READ_VALUE_CHARS_MAX),
    };
    format!("{}: {text}", words(&visible(name)))
}

fn say(tree: &Tree, depth: usize, quotes: bool) -> String {
    match tree {
        Tree::Null => "nothing".to_owned(),
        Tree::Bool(true) => "yes".to_owned(),
        Tree::Bool(false) => "no".to_owned(),
        Tree::Number(number) => number.to_string(),
        Tree::Text(text) if quotes => format!("\"{}\"", say_text(text).replace('"', "'")),
        Tree::Text(text) => say_text(text),
        Tree::List(items) if depth >= SAID_DEPTH_MAX => spoken::count(items.len(), "item"),
        Tree::List(items) => say_list(items, depth, quotes),
        Tree::Object(properties) if depth >= SAID_DEPTH_MAX => spoken::count(properties.len(), "thing"),
        Tree::Object(properties) => say_object(properties, depth, quotes),
    }
}

fn say_text(text: &str) -> String {
    let text = plain(text);
    if text.is_empty() { "nothing".to_owned() } else { shortened(&text, SAID_TEXT_CHARS_MAX) }
}

fn say_list(items: &[Tree], depth: usize, quotes: bool) -> String {
    if items.is_empty() {
        return "none".to_owned();
    }
    let mut told: Vec<String> = items.iter().take(SAID_ITEMS_MAX).map(|item| say_item(item, depth, quotes)).collect();
    if items.len() <= SAID_ITEMS_MAX {
        return spoken::list(&told);
    }
    told.push(format!("{} more", items.len() - SAID_ITEMS_MAX));
    format!("{}: {}", spoken::count(items.len(), "item"), spoken::list(&told))
}

/// An item of a list: an object by its name, if it has one.
fn say_item(item: &Tree, depth: usize, quotes: bool) -> String {
    let named =
        |name: &&str| item.get(name).filter(|value| matches!(value, Tree::Text(text) if !text.trim().is_empty()));
    say(NAMES.iter().find_map(named).unwrap_or(item), depth + 1, quotes)
}

fn say_object(properties: &[(String, Tree)], depth: usize, quotes: bool) -> String {
    if properties.is_empty() {
        return "nothing".to_owned();
    }
    let pair = |(name, value): &(String, Tree)| format!("{} {}", words(name), say(value, depth + 1, quotes));
    let mut told: Vec<String> = properties.iter().take(SAID_PAIRS_MAX).map(pair).collect();
    if properties.len() > SAID_PAIRS_MAX {
        told.push(format!("{} more", properties.len() - SAID_PAIRS_MAX));
    }
    told.join(", ")
}

/// One line without invisible characters: for speech, and for the gateway's own sentences with a value in them.
pub fn plain(text: &str) -> String {
    let shown: String = text.chars().filter(|c| c.is_whitespace() || !is_hidden(*c)).collect();
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One line with invisible characters made visible: `<U+202E>` stands for a character that would reverse the text.
pub fn visible(text: &str) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        for letter in word.chars() {
            if is_hidden(letter) {
                out.push_str(&format!("<U+{:04X}>", u32::from(letter)));
            } else {
                out.push(letter);
            }
        }
    }
    out
}

/// Control characters, and those that have no width or change the reading direction (Unicode's default ignorable and
/// bidirectional controls, including tags). This includes the zero-width joiner within an emoji.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// In quotation marks that nothing inside can close.
pub fn quoted(text: &str, chars_max: usize) -> String {
    format!("\"{}\"", cut(&text.replace(['"', '“', '”'], "'"), chars_max))
}

/// At most this many characters, with a note of how many are left out.
fn cut(text: &str, chars_max: usize) -> String {
    let chars = text.chars().count();
    if chars <= chars_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars_max).collect();
    format!("{kept}… ({} more characters)", chars - chars_max)
}

/// At most this many characters, cut after a sentence or a word; an overlong word is cut, too.
pub fn shortened(text: &str, chars_max: usize) -> String {
    let words = text.split(' ').map(|word| {
        let long = word.chars().count() > SAID_WORD_CHARS_MAX;
        if long { word.chars().take(SAID_WORD_CHARS_MAX / 2).chain(['…']).collect() } else { word.to_owned() }
    });
    let text = words.collect::<Vec<_>>().join(" ");
    if text.chars().count() <= chars_max {
        return text;
    }
    let kept: String = text.chars().take(chars_max).collect();
    let sentence = kept.rfind(['.', '!', '?']).map(|at| at + 1).filter(|end| *end > kept.len() / 2);
    match sentence {
        Some(end) => kept.get(..end).unwrap_or_default().to_owned(),
        None => {
            let end = kept.rfind(char::is_whitespace).unwrap_or(kept.len());
            format!("{}…", kept.get(..end).unwrap_or_default().trim_end_matches([',', ';', ':']))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_for_programs_become_words() {
        for (name, expected) in [
            ("delete_item", "delete item"),
            ("deleteItem", "delete item"),
            ("everything-else.too", "everything else too"),
            ("olive oil", "olive oil"),
            ("__x__", "x"),
            ("HTTPStatus", "HTTPStatus"),
            ("a\u{202e}b", "ab"),
            ("", ""),
        ] {
            assert_eq!(words(name), expected);
        }
    }

    #[test]
    fn structure_is_said_in_words() {
        let long = "word ".repeat(100);
        for (value, expected) in [
            (json!({"rice": 2, "olive oil": 1}), "olive oil 1, rice 2".to_owned()),
            (json!({}), "nothing".into()),
            (json!([]), "none".into()),
            (json!(["milk"]), "milk".into()),
            (json!(["milk", "eggs", "tea"]), "milk, eggs and tea".into()),
            (json!([1, 2, 3, 4, 5, 6, 7, 8]), "8 items: 1, 2, 3, 4, 5 and 3 more".into()),
            (json!([{"id": 1, "name": "Milk"}, {"id": 2, "name": "Tea"}]), "Milk and Tea".into()),
            (json!({"open": true, "items": ["a", "b"], "left": null}), "items a and b, left nothing, open yes".into()),
            (json!({"a": {"b": {"c": {"d": 1}}}}), "a b c 1 thing".into()),
            (
                json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8}),
                "a 1, b 2, c 3, d 4, e 5, f 6, 2 more".into(),
            ),
            (json!(true), "yes".into()),
            (json!("two\nlines\u{200b}"), "two lines".into()),
            (json!({"hash": "a".repeat(64)}), format!("hash {}…", "a".repeat(20))),
        ] {
            assert_eq!(said(&value), expected, "{value}");
        }
        let told = said(&json!({"text": long, "more": long, "and": long, "on": long}));
        assert!(told.chars().count() <= SAID_CHARS_MAX + 1 && told.ends_with('…'), "{told}");
    }

    #[test]
    fn a_result_without_words_gets_some() {
        for (content, data, expected) in [
            (r#"{"rice":2,"olive oil":1}"#, None, "rice 2, olive oil 1"),
            ("It is 20 degrees.", Some(json!({"temperature": 20})), "It is 20 degrees."),
            ("", Some(json!({"temperature": 20})), "temperature 20"),
            (r#"{"result":["milk","tea"]}"#, Some(json!({"result": ["milk", "tea"]})), "milk and tea"),
            ("[done] {but} no JSON", None, "[done] {but} no JSON"),
            ("{not json", Some(json!({"a": 1})), "{not json"),
        ] {
            assert_eq!(result(content, data.as_ref()), expected, "{content}");
        }
        let long = result(&"One sentence. ".repeat(60), None);
        assert!(long.ends_with("sentence.") && long.chars().count() <= SAID_CHARS_MAX, "{long}");
    }

    #[test]
    fn arguments_are_told_and_shown() {
        for (name, value, told, shown) in [
            ("item", json!("rice"), "item \"rice\"", "item: \"rice\""),
            ("everything_else_too", json!(true), "everything else too", "everything else too: yes"),
            ("dryRun", json!(false), "dry run: no", "dry run: no"),
            ("amount", json!(12.5), "amount 12.5", "amount: 12.5"),
            ("to", json!(["ann", "bob"]), "to \"ann\" and \"bob\"", "to: [\"ann\",\"bob\"]"),
            ("note", json!(null), "note nothing", "note: nothing"),
            ("text", json!("say \"yes\" now"), "text \"say 'yes' now\"", "text: \"say 'yes' now\""),
            (
                "file",
                json!("a\u{202e}gpj.exe\u{1b}[2J"),
                "file \"agpj.exe[2J\"",
                "file: \"a<U+202E>gpj.exe<U+001B>[2J\"",
            ),
        ] {
            assert_eq!(argument(name, &value), told);
            assert_eq!(line(name, &value), shown);
        }
        let long = line("text", &json!("x".repeat(READ_VALUE_CHARS_MAX + 1_234)));
        assert!(long.ends_with("x… (1234 more characters)\""), "{long}");
    }
}
