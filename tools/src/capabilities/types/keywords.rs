//! What the keywords of a schema say of an object.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Keywords that change which values an object with properties stands for.
const COMBINATORS: [&str; 7] = ["$ref", "$dynamicRef", "allOf", "anyOf", "const", "enum", "oneOf"];

/// Whether it is an object with properties and nothing else, which can be an interface.
pub(super) fn is_plain(object: &Map<String, Value>) -> bool {
    let kind = object.get("type");
    kind.is_none_or(|kind| kind == "object") && !is_bare(object) && !is_combined(object)
}

/// Whether no property is named.
pub(super) fn is_bare(object: &Map<String, Value>) -> bool {
    object.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty)
}

pub(super) fn is_combined(object: &Map<String, Value>) -> bool {
    COMBINATORS.iter().any(|key| object.contains_key(*key)) || object.get("nullable") == Some(&Value::Bool(true))
}

/// The names of required properties, each once.
pub(super) fn required(object: &Map<String, Value>) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let names = object.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    names.filter(|name| seen.insert(*name)).collect()
}

/// The schema of properties that are not named, if some are explicitly allowed.
pub(super) fn open_keys(object: &Map<String, Value>) -> Option<Option<&Value>> {
    let patterns = object.get("patternProperties").and_then(Value::as_object).filter(|all| !all.is_empty());
    match (object.get("additionalProperties"), patterns) {
        (Some(Value::Bool(false)) | None, None) => None,
        (Some(Value::Bool(false)) | None, Some(patterns)) if patterns.len() == 1 => Some(patterns.values().next()),
        (Some(values @ Value::Object(_)), None) => Some(Some(values)),
        _ => Some(None),
    }
}
