//! JSON Schemas of tools: compiled once at registration, used for every call.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::limits::{DEPTH_MAX, MESSAGE_BYTES_MAX, PATTERN_BYTES_MAX, PROPERTIES_MAX, SCHEMA_BYTES_MAX};
use crate::reply::cut;

/// A violation in a schema or in arguments, and its location.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("at '{pointer}': {reason}")]
pub struct SchemaViolation {
    /// JSON Pointer (RFC 6901); empty for the whole document.
    pub pointer: String,
    /// Description; never contains the offending value, which may be private or huge.
    pub reason: String,
}

impl SchemaViolation {
    fn new(pointer: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { pointer: cut(&pointer.into(), MESSAGE_BYTES_MAX), reason: cut(&reason.into(), MESSAGE_BYTES_MAX) }
    }
}

/// A compiled schema of type object.
#[derive(Clone, Debug)]
pub struct Schema {
    validator: Arc<Validator>,
}

impl Schema {
    /// Compiles a schema. It must be of type object, self-contained and within the limits.
    pub fn compile(schema: &Value) -> Result<Self, SchemaViolation> {
        let Some(object) = schema.as_object() else {
            return Err(SchemaViolation::new("", "the schema must be a JSON object"));
        };
        if object.get("type").and_then(Value::as_str) != Some("object") {
            return Err(SchemaViolation::new("/type", "must be \"object\""));
        }
        check_depth(schema)?;
        match object.get("properties") {
            None => {}
            Some(Value::Object(properties)) if properties.len() > PROPERTIES_MAX => {
                let reason = format!("more than {PROPERTIES_MAX} properties");
                return Err(SchemaViolation::new("/properties", reason));
            }
            Some(Value::Object(_)) => {}
            Some(_) => return Err(SchemaViolation::new("/properties", "must be an object")),
        }
        Self::compile_any(schema)
    }

    /// As [`compile`](Self::compile) for a schema of any type, such as that of a result.
    pub fn compile_any(schema: &Value) -> Result<Self, SchemaViolation> {
        check_depth(schema)?;
        let text = schema.to_string();
        let bytes = text.len();
        if bytes > SCHEMA_BYTES_MAX {
            let reason = format!("{bytes} bytes; at most {SCHEMA_BYTES_MAX} are accepted");
            return Err(SchemaViolation::new("", reason));
        }
        let key = Sha256::digest(&text).into();
        if let Some(validator) = shared().get(&key).and_then(Weak::upgrade) {
            return Ok(Self { validator });
        }
        // The default regex engine backtracks, and a schema may be hostile: this one runs in linear time.
        let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX);
        let built = jsonschema::options().with_pattern_options(patterns).offline().build(schema);
        let validator = Arc::new(built.map_err(|error| {
            let pointer = error.instance_path().to_string();
            SchemaViolation::new(pointer, error.masked().to_string())
        })?);
        keep(key, &validator);
        Ok(Self { validator })
    }

    /// Checks arguments; returns the first violation.
    pub fn check(&self, arguments: &Value) -> Result<(), SchemaViolation> {
        if !arguments.is_object() {
            return Err(SchemaViolation::new("", "the arguments must be a JSON object"));
        }
        self.check_any(arguments)
    }

    /// As [`check`](Self::check) for a value of any type.
    pub fn check_any(&self, value: &Value) -> Result<(), SchemaViolation> {
        check_depth(value)?;
        self.validator.validate(value).map_err(|error| {
            let pointer = error.instance_path().to_string();
            SchemaViolation::new(pointer, error.masked().to_string())
        })
    }
}

/// Compiled schemas that are in use, by the SHA-256 of their text: glasses of one kind offer the same tools, each in a session
/// of its own.
type Shared = BTreeMap<[u8; 32], Weak<Validator>>;

fn shared() -> MutexGuard<'static, Shared> {
    static SHARED: Mutex<Shared> = Mutex::new(BTreeMap::new());
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shares a compiled schema for as long as somebody has it.
fn keep(key: [u8; 32], validator: &Arc<Validator>) {
    let mut shared = shared();
    if shared.len().is_power_of_two() {
        shared.retain(|_, kept| kept.strong_count() > 0);
    }
    shared.insert(key, Arc::downgrade(validator));
}

/// Rejects values that are nested too deeply for recursive code.
pub fn check_depth(value: &Value) -> Result<(), SchemaViolation> {
    check_depth_within(value, DEPTH_MAX)
}

/// As [`check_depth`], with a given limit.
pub fn check_depth_within(value: &Value, depth_max: usize) -> Result<(), SchemaViolation> {
    let mut open = vec![(value, 1_usize)];
    while let Some((value, depth)) = open.pop() {
        if depth > depth_max {
            let reason = format!("nested more than {depth_max} levels deep");
            return Err(SchemaViolation::new("", reason));
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_schemas_are_compiled_once_and_kept_while_somebody_has_them() {
        let schema =
            |most: u8| json!({"type": "object", "properties": {"shared": {"type": "integer", "maximum": most}}});
        let compile = |most: u8| Schema::compile(&schema(most)).unwrap();
        let (one, same, other) = (compile(3), compile(3), compile(4));
        assert!(Arc::ptr_eq(&one.validator, &same.validator));
        assert!(one.check(&json!({"shared": 4})).is_err() && other.check(&json!({"shared": 4})).is_ok());
        let key: [u8; 32] = Sha256::digest(schema(3).to_string()).into();
        drop(one);
        assert!(shared().get(&key).and_then(Weak::upgrade).is_some());
        drop(same);
        assert!(shared().get(&key).and_then(Weak::upgrade).is_none());
    }
}
