//! The JSON form of every message, for browsers and debugging, and the owned types that it needs.
//!
//! Borrowed text cannot be read from JSON (an escape has no bytes to borrow), hence the owned types [`UpOwned`] and
//! [`DownOwned`]: decode to these, then work on `to_borrowed()`. One object per message: `kind` (name), `kind_number`,
//! `sequence`, `turn`, `time_us`, then the fields. Byte strings are base64 (RFC 4648 section 4, padded).

use alloc::string::String;

use serde::Serializer;
use serde::ser::SerializeMap;
use serde_json::Value;

use crate::schema::MessageSchema;
use crate::{DOWN_BIT, Decoded, Down, Frame, Message, Stamp, Up, limits};

mod describe;
mod error;
mod owned;
mod place;

pub use crate::down::DownOwned;
pub use crate::up::UpOwned;
pub use describe::{Description, describe};
pub use error::JsonError;
pub(crate) use owned::{Array, Base64, Object, PutJson, put_bits};
pub use owned::{ListOwned, Owned};
pub use place::{Fields, FromJson, Place};

/// The owned messages of one direction: [`UpOwned`] or [`DownOwned`].
pub trait MessageOwned: Sized {
    /// The messages as they are encoded: texts and lists are borrowed from the owned ones.
    type Borrowed<'a>;
    #[doc(hidden)]
    const SCHEMA: &'static [MessageSchema];
    #[doc(hidden)]
    fn from_json(kind: u16, object: Fields<'_>) -> Result<Option<Self>, JsonError>;
}

/// A message with a JSON form: [`Up`] or [`Down`].
pub trait ToJson {
    #[doc(hidden)]
    fn put_json<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error>;
    #[doc(hidden)]
    fn json_name(&self) -> &'static str;
}

/// One frame as a JSON object.
struct Text<'f, M>(&'f Frame<M>);

impl<'a, M: Message<'a> + ToJson> serde::Serialize for Text<'_, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Frame { stamp, message } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", message.json_name())?;
        map.serialize_entry("kind_number", &message.kind())?;
        map.serialize_entry("sequence", &stamp.sequence)?;
        map.serialize_entry("turn", &stamp.turn)?;
        map.serialize_entry("time_us", &stamp.time_us)?;
        message.put_json(&mut map)?;
        map.end()
    }
}

/// The JSON form of a frame, on one line.
///
/// # Errors
/// No message causes one; the signature follows the serialiser.
pub fn encode<'a, M: Message<'a> + ToJson>(frame: &Frame<M>) -> Result<String, JsonError> {
    serde_json::to_string(&Text(frame)).map_err(|error| JsonError::syntax(&error))
}

/// As [`encode`], indented over several lines.
///
/// # Errors
/// As [`encode`].
pub fn encode_pretty<'a, M: Message<'a> + ToJson>(frame: &Frame<M>) -> Result<String, JsonError> {
    serde_json::to_string_pretty(&Text(frame)).map_err(|error| JsonError::syntax(&error))
}

/// Decodes one text message from the device.
///
/// # Errors
/// Any invalid syntax or field; see [`JsonError`].
pub fn decode_up(text: &str) -> Result<Decoded<UpOwned>, JsonError> {
    decode(text, <Up<'_> as Message<'_>>::DOWN)
}

/// Decodes one text message from the gateway.
///
/// # Errors
/// Any invalid syntax or field; see [`JsonError`].
pub fn decode_down(text: &str) -> Result<Decoded<DownOwned>, JsonError> {
    decode(text, <Down<'_> as Message<'_>>::DOWN)
}

fn decode<M: MessageOwned>(text: &str, down: bool) -> Result<Decoded<M>, JsonError> {
    if text.len() > limits::JSON_BYTES_MAX {
        return Err(JsonError::MessageTooLong { length: text.len(), max: limits::JSON_BYTES_MAX });
    }
    let value: Value = serde_json::from_str(text).map_err(|error| JsonError::syntax(&error))?;
    let object = Fields::new(&value)?;
    let stamp = Stamp {
        sequence: FromJson::from_json(object.field("sequence"))?,
        turn: FromJson::from_json(object.field("turn"))?,
        time_us: FromJson::from_json(object.field("time_us"))?,
    };
    let name = object.field("kind").string("the name of a kind")?;
    let kind = match M::SCHEMA.iter().find(|message| message.name == name) {
        Some(message) => message.kind,
        // A name of a later version, or of the other direction: `kind_number` decides.
        None if object.has("kind_number") => u16::from_json(object.field("kind_number"))?,
        None if down => DOWN_BIT,
        None => 0,
    };
    if (kind & DOWN_BIT != 0) != down {
        return Err(JsonError::Wire(crate::Error::WrongDirection { kind }));
    }
    Ok(match M::from_json(kind, object)? {
        Some(message) => Decoded::Frame(Frame { stamp, message }),
        None => Decoded::Skipped { kind, stamp },
    })
}

impl Frame<UpOwned> {
    /// The same frame, borrowed from this one: what [`encode`](crate::encode) takes.
    pub fn to_borrowed(&self) -> Frame<Up<'_>> {
        Frame::new(self.stamp, self.message.to_borrowed())
    }
}

impl Frame<DownOwned> {
    /// The same frame, borrowed from this one: what [`encode`](crate::encode) takes.
    pub fn to_borrowed(&self) -> Frame<Down<'_>> {
        Frame::new(self.stamp, self.message.to_borrowed())
    }
}
