//! Frames as bytes.

use std::cell::Cell;

use bytes::Bytes;
use device_protocol::{Frame, Message, Stamp, encode, limits};

use super::LinkError;

thread_local! {
    /// Room for the largest frame, of which most use little: one for all links of a thread.
    static ROOM: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Encodes a frame.
///
/// # Errors
/// A field is beyond its maximum.
pub(crate) fn envelope<'a, M: Message<'a>>(stamp: Stamp, message: M) -> Result<Bytes, LinkError> {
    let mut room = ROOM.take();
    room.resize(limits::FRAME_BYTES_MAX, 0);
    let length = encode(&Frame::new(stamp, message), &mut room);
    let bytes = length.map(|length| Bytes::copy_from_slice(room.get(..length).unwrap_or_default()));
    ROOM.set(room);
    bytes.map_err(|error| LinkError::Malformed(error.to_string()))
}
