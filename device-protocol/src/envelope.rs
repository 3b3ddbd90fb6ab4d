//! The eight-byte header before every body: version, flags, kind, length.

use crate::limits::{BODY_BYTES_MAX, HEADER_BYTES};
use crate::{Error, VERSION};

/// Bit of a kind that is set in messages from the gateway to the device.
pub const DOWN_BIT: u16 = 0x8000;

/// The class of a kind: its bits 12 to 14, so that the class of an unknown kind is known too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Handshake and liveness: sequence 0, never replayed.
    Link,
    /// Messages of the session: sequence from 1, replayed after a lost link.
    Control,
    /// Sound: sequence from 1, separate from that of control.
    Audio,
    /// A class of a later version: skipped, not counted.
    Reserved,
}

impl Class {
    /// The class of any kind, known or not.
    pub const fn of_kind(kind: u16) -> Self {
        match (kind & !DOWN_BIT) >> 12 {
            0 => Self::Link,
            1 => Self::Control,
            2 => Self::Audio,
            _ => Self::Reserved,
        }
    }
}

/// The header of one body. Little endian: version `u8`, flags `u8`, kind `u16`, length `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Bits for later versions: sent as 0, ignored when received.
    pub flags: u8,
    /// Kind of the message in the body.
    pub kind: u16,
    /// Bytes of the body.
    pub length: u32,
}

impl Header {
    /// Bytes of the whole envelope, header included.
    pub const fn frame_bytes(&self) -> usize {
        HEADER_BYTES + self.length as usize
    }

    /// The class of the kind.
    pub const fn class(&self) -> Class {
        Class::of_kind(self.kind)
    }

    /// True in messages from the gateway to the device.
    pub const fn is_down(&self) -> bool {
        self.kind & DOWN_BIT != 0
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [k0, k1] = self.kind.to_le_bytes();
        let [l0, l1, l2, l3] = self.length.to_le_bytes();
        [VERSION, self.flags, k0, k1, l0, l1, l2, l3]
    }
}

/// Parses the header at the start of a stream: `None` while fewer than eight bytes are available.
///
/// A stream reader waits until [`Header::frame_bytes`] bytes are available and passes exactly these to `decode_up` or
/// `decode_down`.
///
/// # Errors
/// [`Error::UnknownVersion`] and [`Error::FrameTooLong`]: the stream cannot go on, since the end of this envelope is
/// unknown or beyond the maximum.
pub fn peek(bytes: &[u8]) -> Result<Option<Header>, Error> {
    // The version is checked from the first byte on, so that a peer with another protocol is answered at once.
    if let Some(&found) = bytes.first()
        && found != VERSION
    {
        return Err(Error::UnknownVersion { found });
    }
    let Some(&[_, flags, k0, k1, l0, l1, l2, l3]) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_le_bytes([l0, l1, l2, l3]);
    if length as usize > BODY_BYTES_MAX {
        return Err(Error::FrameTooLong { length: length as usize, max: BODY_BYTES_MAX });
    }
    Ok(Some(Header { flags, kind: u16::from_le_bytes([k0, k1]), length }))
}

/// The first whole envelope of a stream, or `None` while it is incomplete; the next one starts after it.
///
/// # Errors
/// As [`peek`].
pub fn first_frame(bytes: &[u8]) -> Result<Option<&[u8]>, Error> {
    Ok(peek(bytes)?.and_then(|header| bytes.get(..header.frame_bytes())))
}
