//! The stored and sent form of an absent value: an empty string, or the number 0.
//!
//! For fields that had this form before they were optional: `#[serde(with = "absent")]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes `None` as the type's default value.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T: Default + Serialize, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => value.serialize(serializer),
        None => T::default().serialize(serializer),
    }
}

/// Reads the type's default value as `None`.
///
/// # Errors
/// Those of the deserializer.
pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Default + PartialEq + Deserialize<'de>,
    D: Deserializer<'de>,
{
    let value = T::deserialize(deserializer)?;
    Ok((value != T::default()).then_some(value))
}
