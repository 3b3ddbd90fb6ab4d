//! A provider's configuration options, besides those common to all models: read by `serde`, checked, and turned into
//! addresses, headers and an adapter by the provider's folder.

use std::{fmt::Display, ops::RangeInclusive, sync::Arc};

use serde::{
    Deserializer,
    de::{DeserializeOwned, Error as _, Visitor, value::Error},
};

use crate::{oauth::HeaderStyle, provider::Provider};

/// Most tokens of an answer that may be requested: far more than can be listened to.
pub(crate) const TOKENS_MAX: u32 = 128_000;
/// Temperatures that providers accept.
pub(crate) const TEMPERATURE: RangeInclusive<f64> = 0.0..=2.0;
/// Lengths of an answer.
pub(crate) const TOKENS: RangeInclusive<u32> = 1..=TOKENS_MAX;

/// An option with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Key of the option.
    pub option: &'static str,
    /// The problem and its remedy.
    pub what: String,
}

/// Options common to all models, as needed by its adapter.
#[derive(Clone, Copy, Debug)]
pub struct Common<'a> {
    /// The provider's model name.
    pub model: &'a str,
    /// Whether it is offered tools.
    pub tools: bool,
    /// Whether it is sent pictures.
    pub images: bool,
}

/// The options of one provider: a struct that rejects unknown fields and whose fields are all optional.
pub trait Section {
    /// All invalid values.
    fn wrong(&self) -> Vec<Wrong>;

    /// The default base address; `None` if there is no single one.
    fn base_url(&self) -> Option<&'static str>;

    /// The option that selects a backend which accepts only tokens of accounts.
    fn wants_login(&self) -> Option<&'static str> {
        None
    }

    /// The header for a key.
    fn key_style(&self) -> HeaderStyle {
        HeaderStyle::Bearer
    }

    /// The base address with the query common to all requests.
    fn address(&self, base_url: &str) -> String {
        base_url.to_owned()
    }

    /// Further headers of every request.
    ///
    /// # Errors
    /// The system provides no random numbers.
    fn headers(&self) -> Result<Vec<(&'static str, String)>, getrandom::Error> {
        Ok(Vec::new())
    }

    /// Makes the adapter of these options; `common`: those that every model has.
    fn provider(&self, common: Common<'_>) -> Arc<dyn Provider>;
}

/// Reports a value that is out of its range.
pub(crate) fn between<T: PartialOrd + Display>(
    option: &'static str,
    given: Option<T>,
    range: RangeInclusive<T>,
) -> Option<Wrong> {
    let given = given.filter(|given| !range.contains(given))?;
    let what = format!("`{option}` is {given}; it must be between {} and {}", range.start(), range.end());
    Some(Wrong { option, what })
}

/// Reports an option that is valid only with the envelope `flavour`.
pub(crate) fn only_with(flavour: &str, option: &'static str, is_given: bool) -> Option<Wrong> {
    is_given.then(|| Wrong { option, what: format!("`{option}` belongs to `flavour = \"{flavour}\"`") })
}

/// The keys of a section: the fields of the struct that reads it.
pub fn keys<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut keys: &'static [&'static str] = &[];
    // Receives the field names, and provides no data.
    drop(T::deserialize(Fields(&mut keys)));
    keys
}

struct Fields<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("there is nothing to read"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::custom("only a struct has fields"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
