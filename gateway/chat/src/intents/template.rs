//! Sentence templates of tools: parsed strictly, compiled to a small program.
//!
//! Templates may come from a device or a mini-app: size and depth are bounded.

use serde_json::{Number, Value};
use thiserror::Error;

use super::{language::Language, words};

/// Longest template in bytes: far longer than any spoken command.
pub const TEMPLATE_BYTES_MAX: usize = 512;
/// Deepest nesting of brackets: more is unreadable, and the parser is recursive.
const DEPTH_MAX: usize = 8;

/// Why a template is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// It is longer than allowed.
    #[error("the template has {0} bytes; at most {TEMPLATE_BYTES_MAX} are allowed")]
    TooLong(usize),
    /// Brackets are nested too deeply.
    #[error("brackets are nested deeper than {DEPTH_MAX}; split the template")]
    TooDeep,
    /// A bracket is missing.
    #[error("'{0}' at byte {1} has no partner")]
    Unbalanced(char, usize),
    /// `|` outside brackets.
    #[error("'|' at byte {0} stands outside of ( )")]
    StrayBar(usize),
    /// The property of a slot is not in the input schema.
    #[error("the input schema has no property '{0}'")]
    UnknownProperty(String),
    /// The type of a slot is unknown.
    #[error(
        "'{0}' is no slot type: use text, name, number, duration, time, date, when, wake, choice, expression or app"
    )]
    UnknownType(String),
    /// A choice without an enum, or a fixed value that its property does not allow.
    #[error("the property '{0}' does not take what the template gives it")]
    WrongValue(String),
    /// It has no words, or only a slot that matches any sentence.
    #[error("the template has no words of its own")]
    NoWords,
}

/// The content of a slot.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SlotKind {
    /// Free words. Dictated text is kept word for word; in search text, courtesy at the end is removed.
    Text {
        dictated: bool,
    },
    Number {
        integer: bool,
        minimum: f64,
        maximum: f64,
    },
    Duration {
        minimum: f64,
        maximum: f64,
    },
    Time,
    Date,
    When,
    /// A moment at which somebody gets up.
    Wake,
    /// Spoken words and the values they denote.
    Choice(Vec<(Vec<String>, Value)>),
    Expression,
    /// The name of an installed mini-app.
    App,
}

impl SlotKind {
    /// Whether it is free text.
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Text { .. })
    }
}

/// A slot bound to a property.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slot {
    pub property: String,
    pub kind: SlotKind,
}

/// One instruction of a compiled template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Op {
    /// This word must match.
    Word(String),
    /// This slot is read.
    Slot(Slot),
    /// Matches nothing and sets a property.
    Set(String, Value),
    /// Continue at any of these.
    Split(Vec<usize>),
    /// Continue there.
    Jump(usize),
    /// The template is complete.
    End,
}

enum Node {
    Word(String),
    Slot(Slot),
    Set(String, Value),
    /// Alternatives; `optional` adds the empty one.
    Group {
        branches: Vec<Vec<Node>>,
        optional: bool,
    },
}

/// Compiles one template against the schema of its tool.
pub(super) fn compile(template: &str, schema: &Value, language: &Language) -> Result<Vec<Op>, TemplateError> {
    if template.len() > TEMPLATE_BYTES_MAX {
        return Err(TemplateError::TooLong(template.len()));
    }
    let mut parser = Parser { template, at: 0, schema, language };
    let mut branches = parser.branches(0)?;
    let nodes = match branches.pop() {
        Some(nodes) if branches.is_empty() => nodes,
        _ => return Err(TemplateError::StrayBar(template.find('|').unwrap_or(0))),
    };
    let mut program = Vec::new();
    emit(nodes, &mut program);
    program.push(Op::End);
    let worded = program.iter().any(|op| matches!(op, Op::Word(_)) || is_expression(op));
    if worded { Ok(program) } else { Err(TemplateError::NoWords) }
}

/// An expression needs no further words: "seven times eight".
fn is_expression(op: &Op) -> bool {
    matches!(op, Op::Slot(slot) if slot.kind == SlotKind::Expression)
}

fn emit(nodes: Vec<Node>, program: &mut Vec<Op>) {
    for node in nodes {
        match node {
            Node::Word(word) => program.push(Op::Word(word)),
            Node::Slot(slot) => program.push(Op::Slot(slot)),
            Node::Set(property, value) => program.push(Op::Set(property, value)),
            Node::Group { branches, optional } => {
                let split = program.len();
                program.push(Op::Split(Vec::new()));
                let mut starts = Vec::new();
                let mut jumps = Vec::new();
                for branch in branches {
                    starts.push(program.len());
                    emit(branch, program);
                    jumps.push(program.len());
                    program.push(Op::Jump(0));
                }
                let end = program.len();
                if optional {
                    starts.push(end);
                }
                program[split] = Op::Split(starts);
                for jump in jumps {
                    program[jump] = Op::Jump(end);
                }
            }
        }
    }
}

struct Parser<'a> {
    template: &'a str,
    at: usize,
    schema: &'a Value,
    language: &'a Language,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.template[self.at..]
    }

    /// Alternatives up to a closing bracket or the end.
    fn branches(&mut self, depth: usize) -> Result<Vec<Vec<Node>>, TemplateError> {
        if depth > DEPTH_MAX {
            return Err(TemplateError::TooDeep);
        }
        let mut branches = vec![Vec::new()];
        loop {
            let start = self.at;
            let Some(next) = self.rest().chars().next() else {
                return Ok(branches);
            };
            let mut nodes = Vec::new();
            match next {
                '[' | '(' => {
                    self.at += 1;
                    let inner = self.branches(depth + 1)?;
                    let closing = if next == '[' { ']' } else { ')' };
                    if !self.rest().starts_with(closing) {
                        return Err(TemplateError::Unbalanced(next, start));
                    }
                    self.at += 1;
                    nodes.push(Node::Group { branches: inner, optional: next == '[' });
                }
                ']' | ')' if depth == 0 => return Err(TemplateError::Unbalanced(next, start)),
                ']' | ')' => return Ok(branches),
                '|' if depth == 0 => return Err(TemplateError::StrayBar(start)),
                '|' => {
                    self.at += 1;
                    branches.push(Vec::new());
                }
                '{' => {
                    let length = self.rest().find('}');
                    let length = length.ok_or(TemplateError::Unbalanced('{', start))?;
                    let inner = self.template[start + 1..start + length].to_owned();
                    self.at += length + 1;
                    nodes.push(self.slot(&inner)?);
                }
                '}' => return Err(TemplateError::Unbalanced('}', start)),
                _ => {
                    let length = self.rest().find(['[', ']', '(', ')', '{', '}', '|']);
                    let text = &self.rest()[..length.unwrap_or(self.rest().len())];
                    let (text, length) = (text.to_owned(), text.len());
                    self.at += length;
                    let words = words::cut(&text, self.language).into_iter();
                    nodes.extend(words.map(|word| Node::Word(word.text)));
                }
            }
            if let Some(branch) = branches.last_mut() {
                branch.extend(nodes);
            }
        }
    }

    fn slot(&self, inner: &str) -> Result<Node, TemplateError> {
        if let Some((name, value)) = inner.split_once('=') {
            let (name, value) = (name.trim(), value.trim());
            let value =
                fixed_value(self.property(name)?, value).ok_or_else(|| TemplateError::WrongValue(name.to_owned()))?;
            return Ok(Node::Set(name.to_owned(), value));
        }
        let (name, kind) = match inner.split_once(':') {
            Some((name, kind)) => (name.trim(), Some(kind.trim())),
            None => (inner.trim(), None),
        };
        let property = self.property(name)?;
        let kind = kind.unwrap_or_else(|| default_kind(property));
        let bound = |key: &str, default: f64| {
            let value = property.get(key).and_then(Value::as_f64);
            value.unwrap_or(default)
        };
        let (minimum, maximum) = (bound("minimum", f64::MIN), bound("maximum", f64::MAX));
        let kind = match kind {
            "text" => SlotKind::Text { dictated: true },
            "name" => SlotKind::Text { dictated: false },
            "number" => SlotKind::Number {
                integer: property.get("type").and_then(Value::as_str) == Some("integer"),
                minimum,
                maximum,
            },
            "duration" => SlotKind::Duration { minimum, maximum },
            "time" => SlotKind::Time,
            "date" => SlotKind::Date,
            "when" => SlotKind::When,
            "wake" => SlotKind::Wake,
            "expression" => SlotKind::Expression,
            "app" => SlotKind::App,
            "choice" => SlotKind::Choice(
                choices(property, self.language).ok_or_else(|| TemplateError::WrongValue(name.to_owned()))?,
            ),
            other => return Err(TemplateError::UnknownType(other.to_owned())),
        };
        Ok(Node::Slot(Slot { property: name.to_owned(), kind }))
    }

    fn property(&self, name: &str) -> Result<&Value, TemplateError> {
        let property = self.schema.get("properties").and_then(|all| all.get(name));
        property.ok_or_else(|| TemplateError::UnknownProperty(name.to_owned()))
    }
}

fn default_kind(property: &Value) -> &'static str {
    if property.get("enum").is_some() {
        return "choice";
    }
    match property.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => "number",
        _ => "text",
    }
}

fn choices(property: &Value, language: &Language) -> Option<Vec<(Vec<String>, Value)>> {
    let values = property.get("enum")?.as_array()?;
    let spoken = |value: &Value| {
        let text = match value {
            Value::String(text) => text.replace(['_', '-'], " "),
            other => other.to_string(),
        };
        let words: Vec<String> = words::cut(&text, language).into_iter().map(|word| word.text).collect();
        (!words.is_empty()).then(|| (words, value.clone()))
    };
    let choices: Vec<_> = values.iter().filter_map(spoken).collect();
    (!choices.is_empty()).then_some(choices)
}

fn fixed_value(property: &Value, text: &str) -> Option<Value> {
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        let same = |value: &&Value| match value {
            Value::String(value) => value == text,
            value => serde_json::from_str::<Value>(text).is_ok_and(|text| text == **value),
        };
        return values.iter().find(same).cloned();
    }
    match property.get("type").and_then(Value::as_str) {
        Some("boolean") => text.parse().ok().map(Value::Bool),
        Some("integer") => text.parse::<i64>().ok().map(Value::from),
        Some("number") => Number::from_f64(text.parse().ok()?).map(Value::Number),
        _ => Some(Value::String(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "seconds": {"type": "integer", "minimum": 1},
            "name": {"type": "string"},
            "change": {"type": "string", "enum": ["up", "down"]},
            "all": {"type": "boolean"}
        }})
    }

    #[test]
    fn mistakes_are_named() {
        use TemplateError::*;
        let cases = [
            ("set [a timer", Unbalanced('[', 4)),
            ("set a timer]", Unbalanced(']', 11)),
            ("set {seconds", Unbalanced('{', 4)),
            ("set seconds}", Unbalanced('}', 11)),
            ("a | b", StrayBar(2)),
            ("set {minutes}", UnknownProperty("minutes".into())),
            ("set {seconds:minutes}", UnknownType("minutes".into())),
            ("go {change=sideways}", WrongValue("change".into())),
            ("go {all=maybe}", WrongValue("all".into())),
            ("go {name:choice}", WrongValue("name".into())),
            ("{name}", NoWords),
            ("", NoWords),
        ];
        for (template, expected) in cases {
            assert_eq!(compile(template, &schema(), Language::english()), Err(expected), "{template}");
        }
        let deep = format!("{}x{}", "(".repeat(20), ")".repeat(20));
        assert_eq!(compile(&deep, &schema(), Language::english()), Err(TooDeep));
        assert_eq!(compile(&"x".repeat(600), &schema(), Language::english()), Err(TooLong(600)));
    }

    #[test]
    fn good_templates_compile() {
        for template in [
            "set [a|the] timer for {seconds:duration}",
            "(turn|make) it {change}",
            "cancel {all=true} all timers",
            "what's that",
        ] {
            assert!(compile(template, &schema(), Language::english()).is_ok(), "{template}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_template_panics(template in "[a-z\\[\\](){}|:= ]{0,60}") {
            let _ = compile(&template, &schema(), Language::english());
        }
    }
}
