//! Assembles photos from chunks, and assigns them to the calls that requested them.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use device_protocol::{limits, up::PhotoChunk};
use gateway_core::{
    input::Input,
    limits::IMAGES_PER_TURN_MAX,
    vocab::{Attachment, ErrorCode, ToolResult, Turn, Unkept},
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{
    mailbox::{DeviceMessage, Mailbox},
    runtime::spawn,
};

/// A photo whose next piece does not come for so long over a link that stands is dropped, in microseconds: it takes up to
/// 8 MiB of memory.
const PIECE_US_MAX: u64 = 30_000_000;

/// A photo of which all chunks have come.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Photo {
    /// The tool call that requested it; `None`: the wearer pressed the button.
    pub(super) call: Option<u32>,
    pub(super) bytes: Vec<u8>,
    pub(super) mime: String,
}

/// The tool call that requested a photo, by one of its pieces; `None`: the wearer pressed the button.
fn requested_by(chunk: &PhotoChunk<'_>) -> Option<u32> {
    Some(chunk.call).filter(|call| *call != 0)
}

/// Pictures of one call that go into its result: as many as a model is shown in one turn.
const PER_CALL_MAX: usize = IMAGES_PER_TURN_MAX;

/// Photos of one call that its answer waits for: more than a device may have stored in a minute.
const KEPT_MAX: usize = 32;

/// The answer of a call of whose photos one was dropped.
const INCOMPLETE: &str = "The photo was lost: not all of it came from the glasses, or it was too large.";

/// A call that the glasses have not answered yet.
pub(super) struct Called {
    reply: oneshot::Sender<ToolResult>,
    cancel: CancellationToken,
    turn: Option<Turn>,
    pictures: Vec<Attachment>,
    /// Its photos that are being stored.
    kept: Vec<oneshot::Receiver<Result<(), String>>>,
    /// One of its photos was dropped.
    is_incomplete: bool,
    /// Whether the glasses were informed that it is no longer wanted.
    told: bool,
}

impl Called {
    /// A call of this turn.
    pub(super) fn new(reply: oneshot::Sender<ToolResult>, cancel: CancellationToken, turn: Option<Turn>) -> Self {
        Self { reply, cancel, turn, pictures: Vec::new(), kept: Vec::new(), is_incomplete: false, told: false }
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

    /// Adds a photo to this call's result.
    pub(super) fn push(&mut self, photo: &Photo) {
        if self.pictures.len() < PER_CALL_MAX {
            self.pictures.push(Attachment::Image { mime: photo.mime.clone(), data: STANDARD.encode(&photo.bytes) });
        }
    }

    /// A photo of this call is being stored.
    pub(super) fn keeps(&mut self, kept: oneshot::Receiver<Result<(), String>>) {
        if self.kept.len() < KEPT_MAX {
            self.kept.push(kept);
        }
    }

    /// A photo of this call was dropped: the glasses, which do not know that, answer as if it had come.
    pub(super) fn lacks_photo(&mut self) {
        self.is_incomplete = true;
    }

    /// Completes the call with the glasses' answer, as soon as its photos are stored: the wearer is not told of a photo
    /// that a power cut may take back. One that was dropped or could not be stored is told in its place.
    pub(super) fn answer(self, result: ToolResult) {
        let Self { reply, pictures, kept, is_incomplete, .. } = self;
        if is_incomplete && result.error.is_none() {
            drop(reply.send(ToolResult::failed(ErrorCode::ExecutionError, INCOMPLETE, false)));
            return;
        }
        let result = ToolResult { attachments: pictures, ..result };
        if kept.is_empty() {
            drop(reply.send(result));
            return;
        }
        spawn("photos-stored", async move {
            for kept in kept {
                let why = match kept.await {
                    Ok(Ok(())) => continue,
                    Ok(Err(why)) => why,
                    Err(_) => "too much is being stored".to_owned(),
                };
                let text = format!("The photo could not be stored: {why}.");
                drop(reply.send(ToolResult::failed(ErrorCode::ExecutionError, text, false)));
                return;
            }
            drop(reply.send(result));
        });
    }
}

/// Has the wearer told if a photo is not stored on whose storing no answer of a call waits: one that was taken by the button, or
/// that came behind the answer.
pub(super) fn tell_if_lost(kept: oneshot::Receiver<Result<(), String>>, mailbox: Mailbox) {
    spawn("photo-stored", async move {
        // No outcome: too much is being stored.
        if !matches!(kept.await, Ok(Ok(()))) {
            // A session that is over tells nobody.
            drop(mailbox.send(DeviceMessage::from(Input::NotKept(Unkept::Photo))).await);
        }
    });
}

/// Photos in transfer.
#[derive(Default)]
pub(super) struct Photos {
    halves: BTreeMap<u32, Half>,
    /// As [`Photo::call`] of each photo that was dropped and not told yet.
    lost: Vec<Option<u32>>,
    /// The link is lost: the next pieces come when the session goes on.
    is_waiting: bool,
}

/// A part of a photo.
struct Half {
    /// As [`Photo::call`].
    call: Option<u32>,
    next: u16,
    bytes: Vec<u8>,
    /// When its last piece came, in microseconds.
    at_us: u64,
}

impl Photos {
    /// Takes a chunk; returns the photo after the last one.
    ///
    /// # Errors
    /// A piece is missing, or the photo is too large; it is dropped.
    pub(super) fn push(&mut self, chunk: &PhotoChunk<'_>, now_us: u64) -> Result<Option<Photo>, String> {
        self.tick(now_us);
        if chunk.index == 0 {
            // One that begins again is not lost.
            self.halves.remove(&chunk.photo);
            if self.halves.len() >= limits::PHOTOS_OPEN_MAX {
                self.drop_one();
            }
            let half = Half { call: requested_by(chunk), next: 0, bytes: Vec::new(), at_us: now_us };
            self.halves.insert(chunk.photo, half);
        }
        let Some(half) = self.halves.get_mut(&chunk.photo) else {
            self.lost.push(requested_by(chunk));
            return Err(format!("photo {} has no beginning", chunk.photo));
        };
        if chunk.index != half.next || half.bytes.len() + chunk.payload.len() > limits::PHOTO_BYTES_MAX {
            self.lost.push(half.call);
            self.halves.remove(&chunk.photo);
            return Err(format!("photo {} lacks a piece or is too large", chunk.photo));
        }
        half.bytes.extend_from_slice(chunk.payload);
        half.next = half.next.saturating_add(1);
        half.at_us = now_us;
        if !chunk.last {
            return Ok(None);
        }
        let bytes = self.halves.remove(&chunk.photo).map(|half| half.bytes).unwrap_or_default();
        Ok(Some(Photo { call: requested_by(chunk), bytes, mime: chunk.mime.to_owned() }))
    }

    /// Makes room for another one: the oldest that no call has requested is dropped, or else the oldest.
    fn drop_one(&mut self) {
        let oldest = self.halves.iter().min_by_key(|(photo, half)| (half.call.is_some(), **photo));
        if let Some(photo) = oldest.map(|(photo, _)| *photo) {
            self.lost.extend(self.halves.remove(&photo).map(|half| half.call));
        }
    }

    /// The link is lost. Parts of photos are kept as long as the session waits for its device.
    pub(super) fn wait(&mut self) {
        self.is_waiting = true;
    }

    /// The session goes on over another link: the device has as much time for the next piece of each photo as at first.
    pub(super) fn resume(&mut self, now_us: u64) {
        self.is_waiting = false;
        self.halves.values_mut().for_each(|half| half.at_us = now_us);
    }

    /// Drops the parts of photos that do not go on, while the link stands.
    pub(super) fn tick(&mut self, now_us: u64) {
        if self.is_waiting {
            return;
        }
        let lost = &mut self.lost;
        self.halves.retain(|_, half| {
            let goes_on = now_us.saturating_sub(half.at_us) < PIECE_US_MAX;
            if !goes_on {
                lost.push(half.call);
            }
            goes_on
        });
    }

    /// The session is over: no further piece comes.
    pub(super) fn give_up(&mut self) {
        self.lost.extend(std::mem::take(&mut self.halves).into_values().map(|half| half.call));
    }

    /// The calls that had requested the photos that were dropped since this was last asked; `None`: the wearer pressed the
    /// button.
    pub(super) fn take_lost(&mut self) -> Vec<Option<u32>> {
        std::mem::take(&mut self.lost)
    }

    /// When the next part is to be dropped, in microseconds; `None`: there is none, or the link is lost.
    pub(super) fn next_wake_us(&self) -> Option<u64> {
        let parts = self.halves.values().filter(|_| !self.is_waiting);
        parts.map(|half| half.at_us.saturating_add(PIECE_US_MAX)).min()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    fn chunk(photo: u32, index: u16, last: bool, payload: &[u8]) -> PhotoChunk<'_> {
        PhotoChunk { photo, call: 7, index, last, mime: "image/jpeg", payload }
    }

    #[test]
    fn pieces_in_order_make_a_photo_and_a_gap_drops_it() {
        let mut photos = Photos::default();
        assert_eq!(photos.push(&chunk(1, 0, false, b"ab"), 0), Ok(None));
        let photo = photos.push(&chunk(1, 1, true, b"c"), 0).unwrap().unwrap();
        assert_eq!((photo.call, photo.bytes.as_slice()), (Some(7), b"abc".as_slice()));
        assert_eq!(photos.push(&chunk(2, 0, false, b"ab"), 0), Ok(None));
        assert!(photos.push(&chunk(2, 2, true, b"c"), 0).is_err());
        assert!(photos.push(&chunk(2, 1, true, b"c"), 0).is_err());
        assert!(photos.push(&chunk(3, 1, true, b"c"), 0).is_err());
    }

    #[test]
    fn half_a_photo_is_dropped_when_nothing_more_comes() {
        let mut photos = Photos::default();
        assert_eq!(photos.push(&chunk(1, 0, false, b"ab"), 0), Ok(None));
        assert_eq!(photos.push(&chunk(2, 0, false, b"ab"), 5), Ok(None));
        // Each piece gives it more time.
        assert_eq!(photos.push(&chunk(1, 1, false, b"c"), 10), Ok(None));
        assert_eq!(photos.next_wake_us(), Some(PIECE_US_MAX + 5));
        photos.tick(PIECE_US_MAX + 5);
        assert_eq!((photos.halves.len(), photos.next_wake_us()), (1, Some(PIECE_US_MAX + 10)));
        assert!(photos.push(&chunk(2, 1, true, b"c"), PIECE_US_MAX + 6).is_err());
        let photo = photos.push(&chunk(1, 2, true, b"d"), PIECE_US_MAX + 9).unwrap().unwrap();
        assert_eq!((photo.bytes.as_slice(), photos.next_wake_us()), (&b"abcd"[..], None));
    }

    #[test]
    fn half_a_photo_is_kept_while_its_session_waits_for_the_link_and_goes_on_with_it() {
        let back_us = 4 * PIECE_US_MAX;
        let mut photos = Photos::default();
        assert_eq!(photos.push(&chunk(1, 0, false, b"ab"), 0), Ok(None));
        photos.wait();
        assert_eq!(photos.next_wake_us(), None, "nothing wakes the session for it");
        photos.tick(back_us);
        photos.resume(back_us);
        assert_eq!(photos.next_wake_us(), Some(back_us + PIECE_US_MAX));
        photos.tick(back_us + PIECE_US_MAX - 1);
        let photo = photos.push(&chunk(1, 1, true, b"c"), back_us + PIECE_US_MAX - 1).unwrap().unwrap();
        assert_eq!(photo.bytes, b"abc");
        // One whose rest does not come then either is dropped.
        assert_eq!(photos.push(&chunk(2, 0, false, b"ab"), back_us), Ok(None));
        photos.wait();
        photos.resume(back_us);
        photos.tick(back_us + PIECE_US_MAX);
        assert!(photos.push(&chunk(2, 1, true, b"c"), back_us + PIECE_US_MAX).is_err());
    }

    #[test]
    fn photos_that_are_dropped_are_told_with_their_calls() {
        let by_button = |photo| PhotoChunk { call: 0, ..chunk(photo, 0, false, b"ab") };
        let mut photos = Photos::default();
        assert_eq!(photos.push(&by_button(1), 0), Ok(None));
        assert_eq!(photos.push(&chunk(2, 0, false, b"ab"), 0), Ok(None));
        photos.tick(PIECE_US_MAX - 1);
        assert!(photos.take_lost().is_empty());
        photos.tick(PIECE_US_MAX);
        assert_eq!(photos.take_lost(), [None, Some(7_u32)]);
        assert!(photos.take_lost().is_empty(), "told once");
        // A piece of another one may come before the tick.
        assert_eq!(photos.push(&by_button(3), 0), Ok(None));
        assert_eq!(photos.push(&by_button(4), PIECE_US_MAX), Ok(None));
        assert_eq!(photos.take_lost(), [None::<u32>]);
        // What is complete is not lost.
        let whole = photos.push(&PhotoChunk { index: 1, last: true, ..by_button(4) }, PIECE_US_MAX).unwrap().unwrap();
        assert_eq!((whole.call, photos.take_lost()), (None, Vec::new()));
        // One that lacks a piece is; so is one that is too large.
        assert_eq!(photos.push(&by_button(5), PIECE_US_MAX), Ok(None));
        assert!(photos.push(&PhotoChunk { index: 2, ..by_button(5) }, PIECE_US_MAX).is_err());
        assert!(photos.push(&chunk(6, 0, false, &vec![0; limits::PHOTO_BYTES_MAX + 1]), PIECE_US_MAX).is_err());
        assert!(photos.push(&chunk(6, 1, true, b"c"), PIECE_US_MAX).is_err());
        assert_eq!(photos.take_lost(), [None, Some(7_u32), Some(7)]);
        // The session is over.
        assert_eq!(photos.push(&chunk(7, 0, false, b"ab"), PIECE_US_MAX), Ok(None));
        photos.give_up();
        assert_eq!((photos.next_wake_us(), photos.take_lost()), (None, vec![Some(7)]));
    }

    #[test]
    fn one_photo_too_many_pushes_out_one_of_the_button_before_one_of_a_call() {
        let by_button = |photo| PhotoChunk { call: 0, ..chunk(photo, 0, false, b"ab") };
        let mut photos = Photos::default();
        assert_eq!(photos.push(&chunk(1, 0, false, b"ab"), 0), Ok(None));
        assert_eq!(photos.push(&by_button(2), 0), Ok(None));
        // One that begins again pushes out none.
        assert_eq!(photos.push(&by_button(2), 0), Ok(None));
        assert_eq!((photos.halves.len(), photos.take_lost()), (limits::PHOTOS_OPEN_MAX, Vec::new()));
        assert_eq!(photos.push(&by_button(3), 0), Ok(None));
        assert_eq!((photos.halves.len(), photos.take_lost()), (limits::PHOTOS_OPEN_MAX, vec![None]));
        assert_eq!(photos.push(&chunk(4, 0, false, b"ab"), 0), Ok(None));
        assert_eq!(photos.take_lost(), [None::<u32>]);
        let whole = photos.push(&chunk(1, 1, true, b"c"), 0).unwrap().unwrap();
        assert_eq!(whole.bytes, b"abc");
        // Where calls have requested all, the oldest goes.
        assert_eq!(photos.push(&chunk(5, 0, false, b"ab"), 0), Ok(None));
        assert_eq!(photos.push(&by_button(6), 0), Ok(None));
        assert_eq!(photos.take_lost(), [Some(7_u32)]);
        assert!(photos.push(&chunk(4, 1, true, b"c"), 0).is_err());
    }

    #[test]
    fn a_call_of_whose_photos_one_was_dropped_fails_though_the_glasses_say_it_was_taken() {
        let answered = |result: ToolResult| {
            let (reply, mut answer) = oneshot::channel();
            let mut call = Called::new(reply, CancellationToken::new(), None);
            call.lacks_photo();
            call.answer(result);
            answer.try_recv().unwrap()
        };
        let result = answered(ToolResult::said("A photo was taken."));
        assert_eq!(result.error.map(|error| error.code), Some(ErrorCode::ExecutionError));
        assert_eq!(result.content, INCOMPLETE);
        let failed = answered(ToolResult::failed(ErrorCode::ExecutionError, "the camera is covered", false));
        assert_eq!(failed.content, "the camera is covered", "the glasses know more");
    }

    #[tokio::test]
    async fn a_call_is_answered_when_its_photos_are_stored() {
        let called = || {
            let (reply, answer) = oneshot::channel();
            (Called::new(reply, CancellationToken::new(), None), answer)
        };
        let stored = || oneshot::channel::<Result<(), String>>();
        let ((mut call, mut answer), (one, first), (other, second)) = (called(), stored(), stored());
        call.keeps(first);
        call.keeps(second);
        call.answer(ToolResult::said("Taken."));
        one.send(Ok(())).unwrap();
        tokio::task::yield_now().await;
        assert!(answer.try_recv().is_err(), "the other one may still be lost");
        other.send(Ok(())).unwrap();
        assert_eq!(answer.await.unwrap().content, "Taken.");
        let ((mut call, answer), (failed, kept)) = (called(), stored());
        call.keeps(kept);
        call.answer(ToolResult::said("Taken."));
        failed.send(Err("the disk is full".to_owned())).unwrap();
        let result = answer.await.unwrap();
        assert!(result.error.is_some() && result.content.contains("the disk is full"), "{result:?}");
        let ((mut call, answer), (refused, kept)) = (called(), stored());
        call.keeps(kept);
        drop(refused);
        call.answer(ToolResult::said("Taken."));
        assert!(answer.await.unwrap().error.is_some());
    }

    #[tokio::test]
    async fn a_photo_for_which_no_call_waits_is_told_only_if_it_is_lost() {
        let (mailbox, mut messages) = mpsc::channel(4);
        let stored = || oneshot::channel::<Result<(), String>>();
        let ((kept, one), (full, other), (refused, third)) = (stored(), stored(), stored());
        tell_if_lost(one, mailbox.clone());
        tell_if_lost(other, mailbox.clone());
        tell_if_lost(third, mailbox);
        kept.send(Ok(())).unwrap();
        full.send(Err("the disk is full".to_owned())).unwrap();
        drop(refused);
        for _ in 0..2 {
            let told = messages.recv().await;
            assert!(matches!(told.and_then(DeviceMessage::input), Some(Input::NotKept(Unkept::Photo))));
        }
        assert!(messages.recv().await.is_none(), "nothing of the one that is stored");
    }

    #[test]
    fn photos_of_a_call_are_in_its_result() {
        let photo = |bytes: &[u8]| Photo { call: Some(7), bytes: bytes.to_vec(), mime: "image/jpeg".into() };
        let called = || {
            let (reply, answer) = oneshot::channel();
            (Called::new(reply, CancellationToken::new(), None), answer)
        };
        let (mut call, mut answer) = called();
        assert!(call.is_wanted() && !call.take_cancelled());
        for _ in 0..PER_CALL_MAX {
            call.push(&photo(b"abc"));
        }
        call.push(&photo(b"one too many"));
        call.answer(ToolResult::said("Taken."));
        let result = answer.try_recv().unwrap();
        assert_eq!((result.content.as_str(), result.attachments.len()), ("Taken.", PER_CALL_MAX));
        assert_eq!(result.attachments[0], Attachment::Image { mime: "image/jpeg".into(), data: "YWJj".into() });
        let (mut call, answer) = called();
        drop(answer);
        assert!(!call.is_wanted());
        assert_eq!((call.take_cancelled(), call.take_cancelled()), (true, false));
    }
}
