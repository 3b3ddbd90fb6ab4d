//! What a provider takes from the configuration, beside what every model has there: read by `serde`, checked, and turned
//! into addresses, headers and an adapter by the provider's own folder.

use std::{fmt::Display, ops::RangeInclusive, sync::Arc};

use serde::{
    Deserializer,
    de::{DeserializeOwned, Error as _, Visitor, value::Error},
};

use crate::{oauth::HeaderStyle, provider::Provider};

/// Most tokens that an answer may be asked for: far more than can be listened to.
pub(crate) const TOKENS_MAX: u32 = 128_000;
/// Temperatures that providers take.
pub(crate) const TEMPERATURE: RangeInclusive<f64> = 0.0..=2.0;
/// Lengths of an answer.
pub(crate) const TOKENS: RangeInclusive<u32> = 1..=TOKENS_MAX;

/// An option whose value cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Key of the option.
    pub option: &'static str,
    /// What is wrong, and what to do.
    pub what: String,
}

/// What every model has, and its adapter needs.
#[derive(Clone, Copy, Debug)]
pub struct Common<'a> {
    /// The provider's name of the model.
    pub model: &'a str,
    /// Whether it is offered tools.
    pub tools: bool,
    /// Whether it is shown pictures.
    pub images: bool,
}

/// The options of one provider: a struct that refuses unknown fields, and of which every field may be left out.
pub trait Section {
    /// All values that cannot be.
    fn wrong(&self) -> Vec<Wrong>;

    /// Where the provider is asked unless the operator says otherwise; none for what has no one home.
    fn base_url(&self) -> Option<&'static str>;

    /// The option that asks for a backend which takes tokens of accounts only.
    fn wants_login(&self) -> Option<&'static str> {
        None
    }

    /// How a key is sent.
    fn key_style(&self) -> HeaderStyle {
        HeaderStyle::Bearer
    }

    /// The base address with what every request has in its query.
    fn address(&self, base_url: &str) -> String {
        base_url.to_owned()
    }

    /// Further headers of every request.
    ///
    /// # Errors
    /// The system gives no random numbers.
    fn headers(&self) -> Result<Vec<(&'static str, String)>, getrandom::Error> {
        Ok(Vec::new())
    }

    /// The adapter.
    fn provider(&self, common: Common<'_>) -> Arc<dyn Provider>;
}

/// Complains of a value that is not in its range.
pub(crate) fn between<T: PartialOrd + Display>(
    option: &'static str,
    given: Option<T>,
    range: RangeInclusive<T>,
) -> Option<Wrong> {
    let given = given.filter(|given| !range.contains(given))?;
    let what = format!("`{option}` is {given}; it must be between {} and {}", range.start(), range.end());
    Some(Wrong { option, what })
}

/// Complains of an option that only the envelope `flavour` has a place for.
pub(crate) fn only_with(flavour: &str, option: &'static str, is_given: bool) -> Option<Wrong> {
    is_given.then(|| Wrong { option, what: format!("`{option}` belongs to `flavour = \"{flavour}\"`") })
}

/// The keys of a section: the fields of the struct that reads it.
pub fn keys<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut keys: &'static [&'static str] = &[];
    // It is told the fields, and gives nothing to read.
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
