//! Short sounds in place of words: while an answer takes long, and at the end of one that is only shown.

use super::{Conversation, Earcons, Timer};
use crate::{output::Chime, vocab::ListeningState};

/// Silence of a turn before the first sound, in milliseconds: most answers begin earlier.
const WORKING_MS: u32 = 2_000;
/// Time between two of these sounds.
const WORKING_AGAIN_MS: u32 = 4_000;

impl Conversation {
    /// The state as shown to the wearer has changed.
    pub(super) fn watch_silence(&mut self, state: ListeningState) {
        if state == ListeningState::Thinking {
            self.cx.arm(Timer::WorkingDue, WORKING_MS);
        } else {
            self.cx.disarm(Timer::WorkingDue);
        }
    }

    /// A turn ends without a word. Where the request was confirmed by this sound, no other one follows.
    pub(super) fn confirm(&mut self) {
        let is_confirmed = self.cx.config.earcons == Earcons::All && !self.agent.is_typed();
        if !is_confirmed {
            self.cx.chime(Chime::Done);
        }
    }

    pub(super) fn working_due(&mut self) {
        self.cx.chime(Chime::Working);
        self.cx.arm(Timer::WorkingDue, WORKING_AGAIN_MS);
    }
}
