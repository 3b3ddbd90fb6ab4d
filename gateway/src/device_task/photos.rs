//! Photos in pieces.

use std::collections::BTreeMap;

use device_protocol::{limits, up::PhotoChunk};

/// Photos that may be under way at once.
const OPEN_MAX: usize = 2;

/// A complete photo.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Photo {
    pub(super) bytes: Vec<u8>,
    pub(super) mime: String,
}

/// Photos under way.
#[derive(Default)]
pub(super) struct Photos(BTreeMap<u32, (u16, Vec<u8>)>);

impl Photos {
    /// Takes a piece; the photo when it was the last one.
    ///
    /// # Errors
    /// A piece is missing, or the photo is too large; it is dropped.
    pub(super) fn push(&mut self, chunk: &PhotoChunk<'_>) -> Result<Option<Photo>, String> {
        if chunk.index == 0 {
            if self.0.len() >= OPEN_MAX {
                self.0.pop_first();
            }
            self.0.insert(chunk.photo, (0, Vec::new()));
        }
        let Some((next, bytes)) = self.0.get_mut(&chunk.photo) else {
            return Err(format!("photo {} has no beginning", chunk.photo));
        };
        if chunk.index != *next || bytes.len() + chunk.payload.len() > limits::PHOTO_BYTES_MAX {
            self.0.remove(&chunk.photo);
            return Err(format!("photo {} lacks a piece or is too large", chunk.photo));
        }
        bytes.extend_from_slice(chunk.payload);
        *next = next.saturating_add(1);
        if !chunk.last {
            return Ok(None);
        }
        let (_, bytes) = self.0.remove(&chunk.photo).unwrap_or_default();
        Ok(Some(Photo { bytes, mime: chunk.mime.to_owned() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(photo: u32, index: u16, last: bool, payload: &[u8]) -> PhotoChunk<'_> {
        PhotoChunk { photo, call: 0, index, last, mime: "image/jpeg", payload }
    }

    #[test]
    fn pieces_in_order_make_a_photo_and_a_gap_drops_it() {
        let mut photos = Photos::default();
        assert_eq!(photos.push(&chunk(1, 0, false, b"ab")), Ok(None));
        let photo = photos.push(&chunk(1, 1, true, b"c")).unwrap().unwrap();
        assert_eq!(photo.bytes, b"abc");
        assert_eq!(photos.push(&chunk(2, 0, false, b"ab")), Ok(None));
        assert!(photos.push(&chunk(2, 2, true, b"c")).is_err());
        assert!(photos.push(&chunk(2, 1, true, b"c")).is_err());
        assert!(photos.push(&chunk(3, 1, true, b"c")).is_err());
    }
}
