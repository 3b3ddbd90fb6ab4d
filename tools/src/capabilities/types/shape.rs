//! Types as text, and how they are put together.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::capabilities::text::quoted;

/// How tightly a type holds together, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tightness {
    Union,
    Intersection,
    One,
}

/// A type as text.
pub(super) struct Type {
    pub(super) text: String,
    tightness: Tightness,
}

impl Type {
    pub(super) fn one(text: impl Into<String>) -> Self {
        Self { text: text.into(), tightness: Tightness::One }
    }

    pub(super) fn unknown() -> Self {
        Self::one("unknown")
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.text == "unknown"
    }

    /// In parentheses if it holds together less tightly.
    pub(super) fn within(&self, least: Tightness) -> String {
        if self.tightness < least { format!("({})", self.text) } else { self.text.clone() }
    }
}

/// An object of unknown content.
pub(super) fn any_object() -> String {
    "{ [key: string]: unknown }".to_owned()
}

pub(super) fn literal(value: &Value, exact: bool) -> String {
    match value {
        Value::String(text) if exact => quoted(text),
        Value::Bool(_) | Value::Number(_) if exact => value.to_string(),
        Value::String(_) => "string".to_owned(),
        Value::Bool(_) => "boolean".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::Null => "null".to_owned(),
        Value::Array(_) => "unknown[]".to_owned(),
        Value::Object(_) => any_object(),
    }
}

pub(super) fn union(choices: Vec<Type>) -> Type {
    if choices.iter().any(Type::is_unknown) {
        return Type::unknown();
    }
    join(choices.into_iter().filter(|choice| choice.text != "never").collect(), Tightness::Union)
        .unwrap_or_else(|| Type::one("never"))
}

pub(super) fn intersection(parts: Vec<Type>) -> Type {
    let parts = parts.into_iter().filter(|part| !part.is_unknown()).collect();
    join(parts, Tightness::Intersection).unwrap_or_else(Type::unknown)
}

/// The types by `|` or `&`, each once; `None` if there are none.
pub(super) fn join(parts: Vec<Type>, by: Tightness) -> Option<Type> {
    let mut seen = BTreeSet::new();
    let mut parts: Vec<Type> = parts.into_iter().filter(|part| seen.insert(part.text.clone())).collect();
    if parts.len() < 2 {
        return parts.pop();
    }
    let sign = if by == Tightness::Union { " | " } else { " & " };
    let text = parts.iter().map(|part| part.within(by)).collect::<Vec<_>>().join(sign);
    Some(Type { text, tightness: by })
}
