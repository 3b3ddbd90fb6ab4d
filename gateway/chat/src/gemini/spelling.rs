//! Converts a schema to Google's spelling: `Type` is an upper-case enumeration, and 64-bit counts are text, as protocol
//! buffers write them in JSON. The service is lenient; its SDK's types are not.

use serde_json::{Map, Value};

/// Fields with 64-bit counts.
const COUNTS: [&str; 6] = ["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"];

/// Converts a schema and everything within it. The recursion depth is limited by `schema::DEPTH_MAX`.
pub(super) fn spelled(schema: Value) -> Value {
    let Value::Object(fields) = schema else {
        return schema;
    };
    let spell = |(key, value): (String, Value)| {
        let value = match (key.as_str(), value) {
            ("type", Value::String(kind)) => kind.to_ascii_uppercase().into(),
            // Property names are the tool's own and stay.
            ("properties", Value::Object(all)) => {
                Value::Object(all.into_iter().map(|(name, inner)| (name, spelled(inner))).collect())
            }
            ("items", inner) => spelled(inner),
            ("anyOf", Value::Array(all)) => all.into_iter().map(spelled).collect(),
            (name, Value::Number(count)) if COUNTS.contains(&name) => count.to_string().into(),
            (_, value) => value,
        };
        (key, value)
    };
    Value::Object(fields.into_iter().map(spell).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_and_values_stay_as_they_are() {
        let schema = json!({
            "type": "object",
            "properties": {"type": {"type": "string", "enum": ["string"], "minLength": 3},
                "list": {"type": "array", "items": {"anyOf": [{"type": "number", "minimum": 1}]}, "maxItems": 4}},
            "required": ["type"],
        });
        let expected = json!({
            "type": "OBJECT",
            "properties": {"type": {"type": "STRING", "enum": ["string"], "minLength": "3"},
                "list": {"type": "ARRAY", "items": {"anyOf": [{"type": "NUMBER", "minimum": 1}]}, "maxItems": "4"}},
            "required": ["type"],
        });
        assert_eq!(spelled(schema), expected);
    }
}
