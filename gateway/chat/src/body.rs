//! The body of a request: JSON, large parts of which are already serialised.

use bytes::Bytes;
use serde_json::{Map, Value};

/// Serialised JSON. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body(Bytes);

impl Body {
    /// An object of these fields and of one that is already serialised. The latter wins if both have its key.
    pub fn object(mut fields: Map<String, Value>, written: Option<(&str, &[u8])>) -> Self {
        let Some((key, json)) = written else {
            return Self(Value::Object(fields).to_string().into());
        };
        fields.remove(key);
        let is_empty = fields.is_empty();
        let mut out = Value::Object(fields).to_string().into_bytes();
        // The closing bracket.
        out.pop();
        out.reserve(json.len() + key.len() + 8);
        if !is_empty {
            out.push(b',');
        }
        out.extend_from_slice(Value::from(key).to_string().as_bytes());
        out.push(b':');
        out.extend_from_slice(json);
        out.push(b'}');
        Self(out.into())
    }

    /// The bytes to send.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Parses the body.
    ///
    /// # Errors
    /// It is nested deeper than the parser allows: arguments in a conversation may have any depth.
    pub fn to_value(&self) -> serde_json::Result<Value> {
        serde_json::from_slice(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_written_field_joins_the_others() {
        for (fields, written, expected) in [
            (json!({"a": 1, "c": 2}), Some(("b\"", "[3]")), json!({"a": 1, "b\"": [3], "c": 2})),
            (json!({"a": 1}), Some(("a", "2")), json!({"a": 2})),
            (json!({}), Some(("a", "2")), json!({"a": 2})),
            (json!({"a": 1}), None, json!({"a": 1})),
            (json!({}), None, json!({})),
        ] {
            let Value::Object(map) = fields else { panic!("no object") };
            let body = Body::object(map, written.map(|(key, json)| (key, json.as_bytes())));
            assert_eq!(body.to_value().expect("JSON"), expected);
        }
    }
}
