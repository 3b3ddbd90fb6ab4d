//! Compares requests with a fixture: every key that it names, with placeholders for values that are not known in
//! advance.

use serde_json::Value;

/// Panics if a value does not match.
pub fn judge(wanted: &Value, got: &Value, place: &str) {
    if let Some(difference) = differs(wanted, got, place) {
        panic!("{difference} of {got:#}");
    }
}

/// The first difference. `"$any"` is anything, `"$uuid"` an id, `"$absent"` nothing; `{"$some": x}` a list that
/// contains it, `{"$within": [..]}` a list that contains these in this order; `"$keys"` all keys of an object.
pub fn differs(wanted: &Value, got: &Value, place: &str) -> Option<String> {
    match wanted {
        Value::String(word) if word == "$any" => got.is_null().then(|| format!("{place} is missing")),
        Value::String(word) if word == "$absent" => (!got.is_null()).then(|| format!("{place} is there: {got}")),
        Value::String(word) if word == "$uuid" => (!is_uuid(got)).then(|| format!("{place} is no id: {got}")),
        Value::Object(all) if all.contains_key("$some") => {
            let found = list(got).iter().any(|one| differs(&all["$some"], one, place).is_none());
            (!found).then(|| format!("{place} holds nothing like {}", all["$some"]))
        }
        Value::Object(all) if all.contains_key("$within") => {
            let run = list(&all["$within"]);
            let fits = |part: &[Value]| part.iter().zip(run).all(|(got, wanted)| differs(wanted, got, place).is_none());
            let found = list(got).windows(run.len().max(1)).any(fits);
            (!found).then(|| format!("{place} does not hold, one behind the other, {}", all["$within"]))
        }
        Value::Object(all) => all.iter().find_map(|(key, wanted)| {
            if key == "$keys" {
                let mut keys: Vec<Value> = got.as_object()?.keys().map(|key| Value::from(key.as_str())).collect();
                keys.sort_by_key(ToString::to_string);
                return (keys != list(wanted)).then(|| format!("{place} has the keys {keys:?}"));
            }
            differs(wanted, &got[key], &format!("{place}.{key}"))
        }),
        Value::Array(all) => {
            let got = list(got);
            if got.len() != all.len() {
                return Some(format!("{place} has {} entries, not {}", got.len(), all.len()));
            }
            (0..)
                .zip(all.iter().zip(got))
                .find_map(|(at, (wanted, got)): (u32, _)| differs(wanted, got, &format!("{place}[{at}]")))
        }
        _ => (wanted != got).then(|| format!("{place} is {got}, not {wanted}")),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn is_uuid(value: &Value) -> bool {
    let lengths: Vec<usize> = value.as_str().unwrap_or_default().split('-').map(str::len).collect();
    let hex = value.as_str().is_some_and(|text| text.chars().all(|c| c == '-' || c.is_ascii_hexdigit()));
    hex && lengths == [8, 4, 4, 4, 12]
}
