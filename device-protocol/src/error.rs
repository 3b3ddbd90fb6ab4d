//! Errors of a frame: the field, the byte offset and the maximum exceeded.

/// Why a frame could not be encoded or decoded. `offset` counts bytes from the first byte of the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The buffer given to `encode` is too small for the frame.
    #[error("buffer of {size} bytes is too small for the frame, give it {needed} bytes")]
    BufferTooSmall {
        /// Bytes of the buffer.
        size: usize,
        /// Bytes that the frame needs.
        needed: usize,
    },
    /// The peer uses another version of the envelope.
    #[error("envelope version {found} is unknown, this side speaks version {}", crate::VERSION)]
    UnknownVersion {
        /// Version byte of the envelope.
        found: u8,
    },
    /// The envelope announces more bytes than a frame may have.
    #[error("envelope body of {length} bytes is longer than the maximum of {max}")]
    FrameTooLong {
        /// Announced or needed bytes of the body.
        length: usize,
        /// Most bytes that a body may have.
        max: usize,
    },
    /// The bytes end before the envelope does.
    #[error("frame ends after {found} bytes, its envelope needs {needed}")]
    FrameTruncated {
        /// Bytes available.
        found: usize,
        /// Bytes that the envelope needs (at least).
        needed: usize,
    },
    /// More bytes follow the envelope where exactly one envelope is expected.
    #[error("{count} bytes follow the envelope, one message must hold exactly one")]
    TrailingBytes {
        /// Bytes after the envelope.
        count: usize,
    },
    /// A frame of the other direction: the peer acts in the wrong role.
    #[error("kind {kind:#06x} belongs to the other direction")]
    WrongDirection {
        /// Kind of the envelope.
        kind: u16,
    },
    /// The body ends within a field that every version has.
    #[error("body ends inside field `{field}` that starts at byte {offset}")]
    Truncated {
        /// Name of the field.
        field: &'static str,
        /// Where the field starts.
        offset: usize,
    },
    /// A text, byte string or list is longer than its maximum.
    #[error("field `{field}` at byte {offset} has {length}, the maximum is {max}")]
    TooLong {
        /// Name of the field.
        field: &'static str,
        /// Where the field starts.
        offset: usize,
        /// Bytes (or items of a list) found.
        length: usize,
        /// Most bytes (or items) that the field may have.
        max: usize,
    },
    /// A text is not UTF-8.
    #[error("field `{field}` at byte {offset} is not UTF-8")]
    NotText {
        /// Name of the field.
        field: &'static str,
        /// Where the field starts.
        offset: usize,
    },
    /// A value that is invalid for its type: a boolean of 2, an integer beyond its width.
    #[error("field `{field}` at byte {offset} has a value that its type does not have")]
    Malformed {
        /// Name of the field.
        field: &'static str,
        /// Where the field starts.
        offset: usize,
    },
}

impl Error {
    /// True if the sender uses a version that this side does not know: answer `Reject` with
    /// [`RejectCode::UnsupportedVersion`](crate::RejectCode::UnsupportedVersion).
    pub fn is_version(&self) -> bool {
        matches!(self, Self::UnknownVersion { .. })
    }
}
