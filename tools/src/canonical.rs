//! Hashes that identify a call by its contents.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Binds a consent to a tool and exactly these arguments: the first eight bytes of SHA-256 over
/// the name, a zero byte, and the arguments with sorted keys.
pub fn arguments_hash(tool: &str, arguments: &Value) -> u64 {
    let mut canonical = String::new();
    write_canonical(arguments, &mut canonical);
    let digest = Sha256::new().chain_update(tool).chain_update([0]).chain_update(canonical).finalize();
    digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

/// The first sixteen bytes of SHA-256 over a value with sorted keys, in hexadecimal digits.
pub(crate) fn digest(value: &Value) -> String {
    let mut canonical = String::new();
    write_canonical(value, &mut canonical);
    Sha256::digest(canonical).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Sorts keys regardless of the map type behind `Value`. The recursion is bounded: the depth was checked before.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (key, item) in sorted {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(item, out);
                out.push(',');
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}
