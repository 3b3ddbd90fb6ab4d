//! One frame: stamp and message in an envelope, encoded into a borrowed buffer and decoded in place.

use crate::codec::{Reader, Wire, Writer};
use crate::envelope::{DOWN_BIT, Header, peek};
use crate::limits::{BODY_BYTES_MAX, HEADER_BYTES};
use crate::{Down, Error, Up};

/// The first fields of every body. These three fields never change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Counts the frames of one class and direction from 1; 0 in frames of class link. Never wraps: a side that runs
    /// out sends Goodbye and opens a new session.
    pub sequence: u32,
    /// Turn of the conversation that the frame belongs to; 0: none.
    pub turn: u32,
    /// Capture or playout time of sound, else the time of sending, in microseconds of the sender's session clock.
    pub time_us: u64,
}

impl Stamp {
    /// The stamp of a link frame: no sequence, no turn.
    pub const fn link(time_us: u64) -> Self {
        Self { sequence: 0, turn: 0, time_us }
    }
}

impl<'a> Wire<'a> for Stamp {
    fn put(&self, writer: &mut Writer<'_>) -> Result<(), Error> {
        writer.write_value((self.sequence, self.turn, self.time_us))
    }

    fn get(reader: &mut Reader<'a>) -> Result<Self, Error> {
        reader.enter("sequence");
        let sequence = reader.read()?;
        reader.enter("turn");
        let turn = reader.read()?;
        reader.enter("time_us");
        let time_us = reader.read()?;
        Ok(Self { sequence, turn, time_us })
    }
}

/// A stamped message: `M` is [`Up`] or [`Down`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<M> {
    /// Sequence, turn and time.
    pub stamp: Stamp,
    /// Content of the envelope.
    pub message: M,
}

impl<M> Frame<M> {
    /// Combines a stamp and a message.
    pub const fn new(stamp: Stamp, message: M) -> Self {
        Self { stamp, message }
    }
}

/// Content of one envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // borrowed and short-lived: boxing would need an allocator
pub enum Decoded<M> {
    /// A message that this version knows.
    Frame(Frame<M>),
    /// A message of a later version: skip it, but count its sequence in the class given by
    /// [`Class::of_kind`](crate::Class::of_kind).
    Skipped {
        /// Kind of the envelope.
        kind: u16,
        /// Sequence, turn and time, which count all the same.
        stamp: Stamp,
    },
}

/// One direction of messages: [`Up`] or [`Down`].
pub trait Message<'a>: Sized {
    /// True for messages from the gateway to the device.
    const DOWN: bool;
    /// Kind in the envelope.
    fn kind(&self) -> u16;
    #[doc(hidden)]
    fn put_fields(&self, writer: &mut Writer<'_>) -> Result<(), Error>;
    #[doc(hidden)]
    fn get_fields(kind: u16, reader: &mut Reader<'a>) -> Result<Option<Self>, Error>;

    /// The class whose sequence counts the message.
    fn class(&self) -> crate::Class {
        crate::Class::of_kind(self.kind())
    }
}

/// Writes one envelope into `buffer` and returns its length in bytes.
///
/// # Errors
/// A field beyond its maximum, a body beyond [`BODY_BYTES_MAX`], or a buffer that is too small (the error states the
/// needed size).
pub fn encode<'a, M: Message<'a>>(frame: &Frame<M>, buffer: &mut [u8]) -> Result<usize, Error> {
    let size = buffer.len();
    let (header, body) = buffer.split_at_mut_checked(HEADER_BYTES).unwrap_or((&mut [], &mut []));
    let mut writer = Writer::new(body);
    frame.stamp.put(&mut writer)?;
    frame.message.put_fields(&mut writer)?;
    let length = writer.written();
    if length > BODY_BYTES_MAX {
        return Err(Error::FrameTooLong { length, max: BODY_BYTES_MAX });
    }
    let needed = HEADER_BYTES + length;
    if needed > size {
        return Err(Error::BufferTooSmall { size, needed });
    }
    header.copy_from_slice(&Header { flags: 0, kind: frame.message.kind(), length: length as u32 }.to_bytes());
    Ok(needed)
}

/// Decodes exactly one envelope from the device.
///
/// # Errors
/// Any invalid envelope or body; see [`Error`].
pub fn decode_up(bytes: &[u8]) -> Result<Decoded<Up<'_>>, Error> {
    decode(bytes)
}

/// Decodes exactly one envelope from the gateway.
///
/// # Errors
/// Any invalid envelope or body; see [`Error`].
pub fn decode_down(bytes: &[u8]) -> Result<Decoded<Down<'_>>, Error> {
    decode(bytes)
}

fn decode<'a, M: Message<'a>>(bytes: &'a [u8]) -> Result<Decoded<M>, Error> {
    let found = bytes.len();
    let header = peek(bytes)?.ok_or(Error::FrameTruncated { found, needed: HEADER_BYTES })?;
    let needed = header.frame_bytes();
    if found > needed {
        return Err(Error::TrailingBytes { count: found - needed });
    }
    let body = match bytes.get(HEADER_BYTES..) {
        Some(body) if found == needed => body,
        _ => return Err(Error::FrameTruncated { found, needed }),
    };
    let kind = header.kind;
    if (kind & DOWN_BIT != 0) != M::DOWN {
        return Err(Error::WrongDirection { kind });
    }
    let mut reader = Reader::new(body, HEADER_BYTES);
    let stamp = Stamp::get(&mut reader)?;
    Ok(match M::get_fields(kind, &mut reader)? {
        Some(message) => Decoded::Frame(Frame { stamp, message }),
        None => Decoded::Skipped { kind, stamp },
    })
}
