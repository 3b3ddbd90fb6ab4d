//! The owned form of single messages, read from JSON, and JSON serialisation of borrowed ones.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Deref;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::{Fields, JsonError, Place};
use crate::codec::{Wire, Writer};
use crate::{Error, List};

/// The owned form of one message or record.
pub trait Owned: Sized {
    /// The message or record as it is encoded: texts and lists are borrowed from the owned ones.
    type Borrowed<'a>: Wire<'a> + Copy;
    /// The borrowed form of this value.
    fn to_borrowed(&self) -> Self::Borrowed<'_>;
    /// A copy of a borrowed message.
    ///
    /// # Errors
    /// An item of a list exceeds a maximum; never for a decoded message.
    fn from_borrowed(borrowed: &Self::Borrowed<'_>) -> Result<Self, Error>;
    #[doc(hidden)]
    fn from_json(object: Fields<'_>) -> Result<Self, JsonError>;
}

/// The owned form of a [`List`]: the items, and their wire form to borrow from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOwned<O> {
    items: Vec<O>,
    encoded: Vec<u8>,
}

impl<O: Owned> ListOwned<O> {
    /// A list of these items.
    ///
    /// # Errors
    /// A field of an item exceeds its maximum.
    pub fn new(items: Vec<O>) -> Result<Self, Error> {
        let mut counter = Writer::counter();
        for item in &items {
            counter.record(&item.to_borrowed())?;
        }
        let mut encoded = vec![0; counter.written()];
        let mut writer = Writer::new(&mut encoded);
        for item in &items {
            writer.record(&item.to_borrowed())?;
        }
        Ok(Self { items, encoded })
    }

    pub(crate) fn from_borrowed<'a>(list: &List<'a, O::Borrowed<'a>>) -> Result<Self, Error> {
        Self::new(list.iter().map(|item| O::from_borrowed(&item)).collect::<Result<_, _>>()?)
    }

    /// The list over the wire form that is kept beside the items.
    pub fn to_borrowed(&self) -> List<'_, O::Borrowed<'_>> {
        List::encoded(&self.encoded, self.items.len())
    }
}

impl<O> Deref for ListOwned<O> {
    type Target = [O];

    fn deref(&self) -> &[O] {
        &self.items
    }
}

impl Place<'_> {
    pub(crate) fn record<O: Owned>(self) -> Result<O, JsonError> {
        O::from_json(self.fields()?)
    }

    /// A missing field and `null` are both `None`.
    pub(crate) fn option<O: Owned>(self) -> Result<Option<O>, JsonError> {
        if self.is_absent() { Ok(None) } else { self.record().map(Some) }
    }

    pub(crate) fn list<O: Owned>(self, max: usize) -> Result<ListOwned<O>, JsonError> {
        let items = self.items(max)?.map(Place::record);
        Ok(ListOwned::new(items.collect::<Result<_, _>>()?)?)
    }
}

/// Bytes as base64.
pub(crate) struct Base64<'a>(pub(crate) &'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

/// A borrowed record that can be serialised as a JSON object.
pub(crate) trait PutJson {
    fn put_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
}

/// A nested record as an object.
pub(crate) struct Object<'r, R>(pub(crate) &'r R);

impl<R: PutJson> Serialize for Object<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.0.put_fields(&mut map)?;
        map.end()
    }
}

/// A list of records as an array.
pub(crate) struct Array<'a, R>(pub(crate) List<'a, R>);

impl<'a, R: PutJson + Wire<'a> + Copy> Serialize for Array<'a, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(self.0.len()))?;
        for item in self.0.iter() {
            sequence.serialize_element(&Object(&item))?;
        }
        sequence.end()
    }
}

/// A bit mask as a list: names for known bits, numbers for others.
pub(crate) fn put_bits<S: Serializer>(bits: u32, names: &[(u32, &str)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut sequence = serializer.serialize_seq(None)?;
    for bit in (0..u32::BITS).filter(|bit| bits & (1 << bit) != 0) {
        match names.iter().find(|known| known.0 == bit) {
            Some((_, name)) => sequence.serialize_element(name)?,
            None => sequence.serialize_element(&bit)?,
        }
    }
    sequence.end()
}
