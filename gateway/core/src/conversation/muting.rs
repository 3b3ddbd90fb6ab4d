//! The microphone off and on.

use super::{Conversation, stopping::Stop};
use crate::{agent::phrases, output::Output};

impl Conversation {
    /// Switches the microphone off or on. `by_gateway`: the device does not do it by itself.
    pub(super) fn mute(&mut self, muted: bool, by_gateway: bool) {
        let stays = muted && by_gateway;
        if (self.muted, self.mute_stays) == (muted, stays) {
            return;
        }
        if muted && !self.muted {
            self.held = None;
            self.floor.discard(&mut self.cx);
        }
        (self.muted, self.mute_stays) = (muted, stays);
        self.cx.push(Output::SetMuted { muted, stays });
    }

    /// The wearer asks for the microphone to be on. No word switches it on, since whoever has muted the glasses relies on it:
    /// only what is done to the glasses themselves does. Who types may have other glasses, which are muted.
    pub(super) fn tell_of_unmuting(&mut self, was_heard: bool) {
        self.stop(Stop::Replaced);
        self.aside(if was_heard && !self.muted { phrases::NOT_MUTED } else { phrases::HOW_TO_UNMUTE });
        self.floor.answer_heard(&mut self.cx, false);
    }
}
