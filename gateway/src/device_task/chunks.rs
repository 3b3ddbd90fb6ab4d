//! The chunks of a firmware image on their way: offsets and times only.

use std::{ops::Range, sync::Arc};

use device_protocol::limits::{FIRMWARE_CHUNK_BYTES_MAX, FIRMWARE_WINDOW_BYTES, IMAGE_BYTES_MAX};

/// How long a device may store nothing of what it was sent, before its place is given to another one.
pub(super) const STALLED_US_MAX: u64 = 120_000_000;

/// The transfer of one image.
pub(super) struct Sending {
    /// Number of the offer.
    pub(super) number: u32,
    /// The whole image.
    pub(super) bytes: Arc<Vec<u8>>,
    /// Bytes up to which it was sent.
    pub(super) sent: u32,
    /// Bytes that the device has stored.
    pub(super) stored: u32,
    /// When the next chunk may be sent.
    pub(super) next_us: u64,
    /// When the device last stored something, or was sent the first chunk behind it.
    pub(super) progress_us: u64,
}

impl Sending {
    /// The device has stored so many bytes before; `false`: those are more than there are, and nothing begins.
    pub(super) fn begin(&mut self, offset: u32, now_us: u64) -> bool {
        let can_be = offset <= self.size();
        if can_be {
            (self.sent, self.stored, self.next_us, self.progress_us) = (offset, offset, now_us, now_us);
        }
        can_be
    }

    /// Bytes of the image.
    pub(super) fn size(&self) -> u32 {
        u32::try_from(self.bytes.len()).unwrap_or(IMAGE_BYTES_MAX)
    }

    fn chunk_bytes(&self) -> u32 {
        (self.size() - self.sent).min(FIRMWARE_CHUNK_BYTES_MAX as u32)
    }

    /// Whether the window has room for a further chunk, and there is one.
    pub(super) fn may_send(&self) -> bool {
        let chunk = self.chunk_bytes();
        chunk > 0 && self.sent + chunk - self.stored <= FIRMWARE_WINDOW_BYTES
    }

    /// The chunk that is due now, at this rate.
    pub(super) fn next_chunk(&mut self, now_us: u64, rate_bytes_s: u32) -> Option<(u32, Range<usize>)> {
        if !self.may_send() || now_us < self.next_us {
            return None;
        }
        let (offset, length) = (self.sent, self.chunk_bytes());
        if self.sent == self.stored {
            self.progress_us = now_us;
        }
        self.sent += length;
        // After a pause it does not catch up.
        self.next_us = now_us + u64::from(length) * 1_000_000 / u64::from(rate_bytes_s.max(1));
        Some((offset, offset as usize..(offset + length) as usize))
    }

    /// The device has stored the image up to there; `false`: that cannot be.
    pub(super) fn progress(&mut self, offset: u32, now_us: u64) -> bool {
        let can_be = (self.stored..=self.sent).contains(&offset);
        if can_be && offset > self.stored {
            (self.stored, self.progress_us) = (offset, now_us);
        }
        can_be
    }

    /// Whether the device has stored nothing for too long.
    pub(super) fn is_stalled(&self, now_us: u64) -> bool {
        self.sent > self.stored && now_us >= self.progress_us + STALLED_US_MAX
    }
}

#[cfg(test)]
#[path = "chunks_tests.rs"]
mod tests;
