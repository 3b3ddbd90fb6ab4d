//! `"required": true` inside a property, as in drafts of JSON Schema before 2013: moved to the list that it stands for.

use serde_json::{Map, Value};

/// Keywords with a schema.
const ONE: [&str; 11] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords with a list of schemas.
const LISTS: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];
/// Keywords with schemas by name.
const MAPS: [&str; 5] = ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Lifts every boolean `required` of a property into the object's list; others say nothing and are removed. The depth
/// must have been checked: this recurses.
pub(super) fn required(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    let names = object.get_mut("properties").and_then(Value::as_object_mut).map(take).unwrap_or_default();
    if object.get("required").is_some_and(Value::is_boolean) {
        object.remove("required");
    }
    if !names.is_empty() {
        let list = object.entry("required").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            let new: Vec<Value> = names.into_iter().map(Value::from).filter(|name| !list.contains(name)).collect();
            list.extend(new);
        }
    }
    for key in ONE {
        object.get_mut(key).into_iter().for_each(required);
    }
    for key in LISTS {
        object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().for_each(required);
    }
    for key in MAPS {
        object.get_mut(key).and_then(Value::as_object_mut).into_iter().flatten().for_each(|(_, schema)| {
            required(schema);
        });
    }
}

/// Takes the flag from each property; the names of those that it was true for.
fn take(properties: &mut Map<String, Value>) -> Vec<String> {
    let mut names = Vec::new();
    for (name, property) in properties {
        if let Some(object) = property.as_object_mut()
            && let Some(flag) = object.get("required").and_then(Value::as_bool)
        {
            object.remove("required");
            if flag {
                names.push(name.clone());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flags_become_the_list_that_they_stand_for() {
        for (written, meant) in [
            (
                json!({"properties": {"id": {"type": "string", "required": true}}, "required": ["id"]}),
                json!({"properties": {"id": {"type": "string"}}, "required": ["id"]}),
            ),
            (
                json!({"properties": {"a": {"required": true}, "b": {"required": false}, "c": {}}, "required": ["c"]}),
                json!({"properties": {"a": {}, "b": {}, "c": {}}, "required": ["c", "a"]}),
            ),
            // Nested, in lists, in definitions; a flag on the whole says nothing.
            (
                json!({"required": true, "items": {"properties": {"a": {"required": true}}}}),
                json!({"items": {"properties": {"a": {}}, "required": ["a"]}}),
            ),
            (
                json!({"$defs": {"x": {"anyOf": [{"properties": {"a": {"required": true}}}]}}}),
                json!({"$defs": {"x": {"anyOf": [{"properties": {"a": {}}, "required": ["a"]}]}}}),
            ),
            // A property that is called so, and values that look so, stay.
            (
                json!({"properties": {"required": {"type": "boolean"}}, "default": {"properties": {"a": {"required": true}}}}),
                json!({"properties": {"required": {"type": "boolean"}}, "default": {"properties": {"a": {"required": true}}}}),
            ),
            (
                json!({"required": ["a"], "properties": {"a": true}}),
                json!({"required": ["a"], "properties": {"a": true}}),
            ),
            (json!(true), json!(true)),
        ] {
            let mut schema = written.clone();
            required(&mut schema);
            assert_eq!(schema, meant, "{written}");
        }
    }
}
