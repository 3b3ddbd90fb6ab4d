//! What could not be stored, though the wearer has not asked for it in words: no tool's answer tells it.

use super::Conversation;
use crate::{agent::phrases, output::Chime, vocab::Unkept};

/// How long after a photo that was told to be lost others are lost without a word: whoever presses the button again and again
/// knows it.
const PHOTO_AGAIN_US: u64 = 60_000_000;

impl Conversation {
    /// Tells the wearer: of a photo at once by a sound, since the button was just pressed, and in words when nobody has the
    /// floor.
    pub(super) fn not_kept(&mut self, what: Unkept) {
        let text = match what {
            Unkept::Photo => {
                let now_us = self.cx.now_us();
                if self.photo_lost_us.is_some_and(|told_us| now_us.saturating_sub(told_us) < PHOTO_AGAIN_US) {
                    return;
                }
                self.photo_lost_us = Some(now_us);
                self.cx.chime(Chime::Trouble);
                phrases::PHOTO_NOT_KEPT
            }
            Unkept::Messages => phrases::MESSAGES_NOT_KEPT,
        };
        self.tell_when_free(text.into());
    }
}
