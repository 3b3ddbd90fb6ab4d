//! Assembles photos from chunks, and assigns them to the calls that requested them.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use device_protocol::{limits, up::PhotoChunk};
use gateway_core::{
    limits::IMAGES_PER_TURN_MAX,
    vocab::{Attachment, ToolResult, Turn},
};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Photos that may be in transfer at once.
const OPEN_MAX: usize = 2;

/// A complete photo.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Photo {
    /// The tool call that requested it; 0: the wearer pressed the button.
    pub(super) call: u32,
    pub(super) bytes: Vec<u8>,
    pub(super) mime: String,
}

/// Pictures of one call that go into its result: as many as a model is shown in one turn.
const PER_CALL_MAX: usize = IMAGES_PER_TURN_MAX;

/// A call that the glasses have not answered yet.
pub(super) struct Called {
    reply: oneshot::Sender<ToolResult>,
    cancel: CancellationToken,
    turn: Option<Turn>,
    keep: bool,
    pictures: Vec<Attachment>,
    /// Whether the glasses were informed that it is no longer wanted.
    told: bool,
}

impl Called {
    /// A call of this turn. With `"keep": false` in its arguments, its photos are looked at but not stored.
    pub(super) fn new(
        reply: oneshot::Sender<ToolResult>,
        cancel: CancellationToken,
        turn: Option<Turn>,
        arguments: &Value,
    ) -> Self {
        let keep = arguments.get("keep") != Some(&Value::Bool(false));
        Self { reply, cancel, turn, keep, pictures: Vec::new(), told: false }
    }

    /// Whether the answer is still awaited.
    pub(super) fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }

    /// The turn of the call.
    pub(super) fn turn(&self) -> Option<Turn> {
        self.turn
    }

    /// Whether it is no longer wanted; `true` only once.
    pub(super) fn take_cancelled(&mut self) -> bool {
        let cancelled = self.cancel.is_cancelled() || !self.is_wanted();
        cancelled && !std::mem::replace(&mut self.told, cancelled)
    }

    /// Adds a photo to this call's result. Returns whether it is to be stored for the wearer.
    pub(super) fn push(&mut self, photo: &Photo) -> bool {
        if self.pictures.len() < PER_CALL_MAX {
            self.pictures.push(Attachment::Image { mime: photo.mime.clone(), data: STANDARD.encode(&photo.bytes) });
        }
        self.keep
    }

    /// Completes the call with the glasses' answer.
    pub(super) fn answer(self, result: ToolResult) {
        drop(self.reply.send(ToolResult { attachments: self.pictures, ..result }));
    }
}

/// Photos in transfer.
#[derive(Default)]
pub(super) struct Photos(BTreeMap<u32, (u16, Vec<u8>)>);

impl Photos {
    /// Takes a chunk; returns the photo after the last one.
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
        Ok(Some(Photo { call: chunk.call, bytes, mime: chunk.mime.to_owned() }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chunk(photo: u32, index: u16, last: bool, payload: &[u8]) -> PhotoChunk<'_> {
        PhotoChunk { photo, call: 7, index, last, mime: "image/jpeg", payload }
    }

    #[test]
    fn pieces_in_order_make_a_photo_and_a_gap_drops_it() {
        let mut photos = Photos::default();
        assert_eq!(photos.push(&chunk(1, 0, false, b"ab")), Ok(None));
        let photo = photos.push(&chunk(1, 1, true, b"c")).unwrap().unwrap();
        assert_eq!((photo.call, photo.bytes.as_slice()), (7, b"abc".as_slice()));
        assert_eq!(photos.push(&chunk(2, 0, false, b"ab")), Ok(None));
        assert!(photos.push(&chunk(2, 2, true, b"c")).is_err());
        assert!(photos.push(&chunk(2, 1, true, b"c")).is_err());
        assert!(photos.push(&chunk(3, 1, true, b"c")).is_err());
    }

    #[test]
    fn photos_of_a_call_are_in_its_result() {
        let photo = |bytes: &[u8]| Photo { call: 7, bytes: bytes.to_vec(), mime: "image/jpeg".into() };
        let called = |arguments: Value| {
            let (reply, answer) = oneshot::channel();
            (Called::new(reply, CancellationToken::new(), None, &arguments), answer)
        };
        let (mut call, mut answer) = called(json!({}));
        assert!(call.is_wanted() && !call.take_cancelled());
        for _ in 0..PER_CALL_MAX {
            assert!(call.push(&photo(b"abc")), "what the wearer takes is kept");
        }
        call.push(&photo(b"one too many"));
        call.answer(ToolResult::said("Taken."));
        let result = answer.try_recv().unwrap();
        assert_eq!((result.content.as_str(), result.attachments.len()), ("Taken.", PER_CALL_MAX));
        assert_eq!(result.attachments[0], Attachment::Image { mime: "image/jpeg".into(), data: "YWJj".into() });
        let (mut looks, answer) = called(json!({"keep": false}));
        assert!(!looks.push(&photo(b"abc")));
        drop(answer);
        assert!(!looks.is_wanted());
        assert_eq!((looks.take_cancelled(), looks.take_cancelled()), (true, false));
    }
}
