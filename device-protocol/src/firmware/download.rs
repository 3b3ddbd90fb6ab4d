//! The chunks of one image.

use crate::down::FirmwareChunk;
use crate::limits::FIRMWARE_WINDOW_BYTES;
use crate::up::FirmwareProgress;

/// Bytes stored since the last progress after which the next one is sent: the gateway then never waits with a full window.
const PROGRESS_BYTES: u32 = FIRMWARE_WINDOW_BYTES / 2;

/// What to do with a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken<'a> {
    /// Write these bytes at this place, then call [`Download::stored`].
    Write {
        /// Place of the first byte in the image.
        offset: u32,
        /// Bytes of the image from there on.
        payload: &'a [u8],
    },
    /// Nothing: it was taken before, or is of an offer that was withdrawn.
    Nothing,
}

/// Why the device withdraws from a transfer ([`UpdateAnswer::BadChunk`](crate::UpdateAnswer::BadChunk)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// No bytes.
    #[error("a chunk without bytes")]
    Empty,
    /// It does not begin where the one before it ended.
    #[error("a chunk at {offset} where {expected} was due")]
    Gap {
        /// Where it begins.
        offset: u32,
        /// Where it should begin.
        expected: u32,
    },
    /// It goes beyond the end of the image.
    #[error("a chunk beyond the end of the image")]
    BeyondEnd,
    /// It goes beyond what the gateway may send ahead of the progress.
    #[error("a chunk outside of the window")]
    OutsideWindow,
}

/// The transfer of one image: offsets only, the bytes are the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Download {
    update: u32,
    size: u32,
    received: u32,
    stored: u32,
    reported: u32,
}

impl Download {
    /// Begins, or goes on: the device has stored the first `stored` bytes of this image. `None`: that are more than there are.
    pub const fn new(update: u32, size: u32, stored: u32) -> Option<Self> {
        if stored > size {
            return None;
        }
        Some(Self { update, size, received: stored, stored, reported: stored })
    }

    /// Number of the offer.
    pub const fn update(&self) -> u32 {
        self.update
    }

    /// Takes a chunk.
    ///
    /// # Errors
    /// It cannot be: the device withdraws, and keeps what it has stored.
    pub fn take<'a>(&mut self, chunk: &FirmwareChunk<'a>) -> Result<Taken<'a>, ChunkError> {
        let &FirmwareChunk { update, offset, payload } = chunk;
        if update != self.update {
            return Ok(Taken::Nothing);
        }
        let length = u32::try_from(payload.len()).map_err(|_| ChunkError::BeyondEnd)?;
        if length == 0 {
            return Err(ChunkError::Empty);
        }
        let end = offset.checked_add(length).filter(|end| *end <= self.size).ok_or(ChunkError::BeyondEnd)?;
        if end <= self.received {
            return Ok(Taken::Nothing);
        }
        if offset != self.received {
            return Err(ChunkError::Gap { offset, expected: self.received });
        }
        if end - self.reported > FIRMWARE_WINDOW_BYTES {
            return Err(ChunkError::OutsideWindow);
        }
        self.received = end;
        Ok(Taken::Write { offset, payload })
    }

    /// All bytes that were taken are stored so that a loss of power keeps them; returns the progress to send, if it is due.
    pub fn stored(&mut self) -> Option<FirmwareProgress> {
        self.stored = self.received;
        let is_due = self.stored - self.reported >= PROGRESS_BYTES || self.stored == self.size;
        if !is_due || self.stored == self.reported {
            return None;
        }
        self.reported = self.stored;
        Some(FirmwareProgress { update: self.update, offset: self.stored })
    }

    /// Whether the whole image is stored.
    pub const fn is_complete(&self) -> bool {
        self.stored == self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(update: u32, offset: u32, payload: &[u8]) -> FirmwareChunk<'_> {
        FirmwareChunk { update, offset, payload }
    }

    #[test]
    fn chunks_are_taken_in_order_and_once() {
        let mut download = Download::new(1, 2_500, 0).unwrap();
        let bytes = [1; 1_024];
        assert_eq!(download.take(&chunk(1, 0, &bytes)), Ok(Taken::Write { offset: 0, payload: &bytes }));
        assert_eq!(download.stored(), None);
        assert_eq!(download.take(&chunk(1, 0, &bytes)), Ok(Taken::Nothing), "again");
        assert_eq!(download.take(&chunk(2, 9, &bytes)), Ok(Taken::Nothing), "of another offer");
        assert_eq!(download.take(&chunk(1, 1_024, &bytes)), Ok(Taken::Write { offset: 1_024, payload: &bytes }));
        assert_eq!(download.stored(), Some(FirmwareProgress { update: 1, offset: 2_048 }));
        assert!(!download.is_complete());
        assert_eq!(download.take(&chunk(1, 2_048, &bytes[..452])).map(drop), Ok(()));
        assert_eq!(download.stored(), Some(FirmwareProgress { update: 1, offset: 2_500 }));
        assert!(download.is_complete());
    }

    #[test]
    fn a_chunk_that_cannot_be_is_refused() {
        let mut download = Download::new(1, 100_000, 50_000).unwrap();
        let bytes = [1; 1_024];
        assert_eq!(download.take(&chunk(1, 50_000, &[])), Err(ChunkError::Empty));
        assert_eq!(download.take(&chunk(1, 50_001, &bytes)), Err(ChunkError::Gap { offset: 50_001, expected: 50_000 }));
        assert_eq!(download.take(&chunk(1, 49_999, &bytes)), Err(ChunkError::Gap { offset: 49_999, expected: 50_000 }));
        assert_eq!(download.take(&chunk(1, 99_999, &bytes)), Err(ChunkError::BeyondEnd));
        assert_eq!(download.take(&chunk(1, u32::MAX, &bytes)), Err(ChunkError::BeyondEnd));
        for offset in [50_000, 51_024, 52_048, 53_072] {
            assert!(matches!(download.take(&chunk(1, offset, &bytes)), Ok(Taken::Write { .. })), "{offset}");
        }
        // None of it is stored yet.
        assert_eq!(download.take(&chunk(1, 54_096, &bytes)), Err(ChunkError::OutsideWindow));
        assert_eq!(download.stored(), Some(FirmwareProgress { update: 1, offset: 54_096 }));
        assert!(download.take(&chunk(1, 54_096, &bytes)).is_ok());
        assert_eq!(Download::new(1, 10, 11), None);
    }
}
