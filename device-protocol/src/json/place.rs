//! Strict reading of JSON fields; each `Place` holds its field's name for exact errors.

use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::JsonError;

/// The fields of one JSON object.
#[derive(Clone, Copy)]
pub struct Fields<'j>(&'j Map<String, Value>);

impl<'j> Fields<'j> {
    pub(crate) fn new(value: &'j Value) -> Result<Self, JsonError> {
        value.as_object().map(Self).ok_or(JsonError::NotAnObject { field: "message" })
    }

    pub(crate) fn has(self, field: &'static str) -> bool {
        self.0.contains_key(field)
    }

    pub(crate) fn field(self, field: &'static str) -> Place<'j> {
        Place { field, value: self.0.get(field) }
    }
}

/// One field, which may be missing.
#[derive(Clone, Copy)]
pub struct Place<'j> {
    field: &'static str,
    value: Option<&'j Value>,
}

impl<'j> Place<'j> {
    fn value(self) -> Result<&'j Value, JsonError> {
        self.value.ok_or(JsonError::Missing { field: self.field })
    }

    fn wrong(self, expected: &'static str) -> JsonError {
        match self.value {
            None => JsonError::Missing { field: self.field },
            Some(_) => JsonError::WrongType { field: self.field, expected },
        }
    }

    fn check(self, length: usize, max: usize) -> Result<(), JsonError> {
        if length > max {
            return Err(JsonError::TooLong { field: self.field, length, max });
        }
        Ok(())
    }

    pub(crate) fn as_str(self) -> Option<&'j str> {
        self.value.and_then(Value::as_str)
    }

    pub(crate) fn string(self, expected: &'static str) -> Result<&'j str, JsonError> {
        self.as_str().ok_or_else(|| self.wrong(expected))
    }

    pub(crate) fn text(self, max: usize) -> Result<String, JsonError> {
        let text = self.string("a text")?;
        self.check(text.len(), max)?;
        Ok(text.into())
    }

    pub(crate) fn bytes(self, max: usize) -> Result<Vec<u8>, JsonError> {
        const EXPECTED: &str = "bytes in base64";
        let text = self.string(EXPECTED)?;
        // Checked before decoding, so that nothing larger is allocated.
        self.check(base64::decoded_len_estimate(text.len()).saturating_sub(2), max)?;
        let bytes = STANDARD.decode(text).map_err(|_| self.wrong(EXPECTED))?;
        self.check(bytes.len(), max)?;
        Ok(bytes)
    }

    pub(crate) fn array<const N: usize>(self) -> Result<[u8; N], JsonError> {
        let expected = if N == 32 { "32 bytes in base64" } else { "64 bytes in base64" };
        self.bytes(N)?.try_into().map_err(|_| self.wrong(expected))
    }

    pub(super) fn fields(self) -> Result<Fields<'j>, JsonError> {
        let field = self.field;
        self.value()?.as_object().map(Fields).ok_or(JsonError::NotAnObject { field })
    }

    /// Whether it is missing or `null`.
    pub(super) fn is_absent(self) -> bool {
        matches!(self.value, None | Some(Value::Null))
    }

    /// The items of a list, at most `max`.
    pub(super) fn items(self, max: usize) -> Result<impl Iterator<Item = Place<'j>>, JsonError> {
        let values = self.value()?.as_array().ok_or_else(|| self.wrong("a list"))?;
        self.check(values.len(), max)?;
        Ok(values.iter().map(move |value| Place { field: self.field, value: Some(value) }))
    }

    pub(crate) fn integer<T: TryFrom<i128>>(self, expected: &'static str) -> Result<T, JsonError> {
        let number = match self.value {
            Some(Value::Number(number)) => number.as_i128(),
            _ => None,
        };
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| self.wrong(expected))
    }

    /// A list of names, and numbers for bits without a name. Names of later versions have no bit here.
    pub(crate) fn bits(self, names: &[(u32, &str)], width: u32) -> Result<u32, JsonError> {
        const EXPECTED: &str = "a list of names and bit numbers";
        let values = self.value()?.as_array().ok_or_else(|| self.wrong(EXPECTED))?;
        let mut bits = 0u32;
        for value in values {
            let place = Place { field: self.field, value: Some(value) };
            let bit = match value.as_str() {
                Some(name) => names.iter().find(|known| known.1 == name).map(|known| known.0),
                None => Some(place.integer::<u32>(EXPECTED)?),
            };
            match bit {
                Some(bit) if bit < width => bits |= 1 << bit,
                Some(_) => return Err(self.wrong("a list of bit numbers within its width")),
                None => {}
            }
        }
        Ok(bits)
    }
}

/// A single value with a JSON form.
pub trait FromJson: Sized {
    #[doc(hidden)]
    fn from_json(place: Place<'_>) -> Result<Self, JsonError>;
}

macro_rules! integer {
    ($($type:ty => $expected:literal),* $(,)?) => {$(
        impl FromJson for $type {
            fn from_json(place: Place<'_>) -> Result<Self, JsonError> {
                place.integer($expected)
            }
        }
    )*};
}

integer! {
    u8 => "an integer from 0 to 255",
    u16 => "an integer of 16 bits",
    u32 => "an integer of 32 bits",
    u64 => "an integer of 64 bits",
    i16 => "a signed integer of 16 bits",
    i32 => "a signed integer of 32 bits",
}

impl FromJson for bool {
    fn from_json(place: Place<'_>) -> Result<Self, JsonError> {
        place.value()?.as_bool().ok_or_else(|| place.wrong("true or false"))
    }
}
