//! A voice over what is said, or right behind a request: what is held until its words are known.

use super::{
    Conversation,
    stopping::{NOTICE_HEARD_PART, Stop},
};
use crate::{agent::Spoken, floor::request_form, reply::Purpose};

impl Conversation {
    /// A voice over the assistant: what is said waits for its words, be it an answer, a reminder or an app's sound. A cough or an
    /// "okay" is no reason to end it. A question for consent that is cut off is said again instead.
    pub(super) fn voice_over(&mut self) {
        if self.approvals.standing().is_some() {
            self.interrupted();
        } else {
            self.reply.set_aside(&mut self.cx);
        }
    }

    /// The wearer speaks over the assistant. While a question stands the turn lives on: what is
    /// being said may be the answer to it. What the question still waits behind is only set aside, and goes on before it.
    pub(super) fn interrupted(&mut self) {
        if let Some(asked) = self.approvals.standing() {
            if self.reply.heard_question(asked.id) {
                self.reply.pause(&mut self.cx);
                self.cut_question = true;
            } else {
                self.reply.set_aside(&mut self.cx);
            }
        } else if let Some(Purpose::Notice { id }) = self.reply.purpose() {
            self.cut_notice = Some(*id);
            let ended = self.reply.stop(&mut self.cx);
            if ended.is_some_and(|ended| ended.part >= NOTICE_HEARD_PART) {
                self.settle_notice(true);
            }
        } else {
            self.stop(Stop::Replaced);
        }
    }

    /// What was said right after a request belongs to it, if nothing of it was done.
    pub(super) fn reopen_turn(&mut self, words: &str, spoken: Spoken) -> bool {
        let Some(request) = self.agent.reopen(&mut self.cx, words, request_form::is_request(words), spoken) else {
            return false;
        };
        self.floor.take_request(&mut self.cx, &request, Some((spoken.started_us, spoken.decided_us)));
        self.reply.begin_anew(&mut self.cx);
        true
    }

    /// While the wearer may be going on with the request, or interrupting the answer, nothing more of it is done.
    pub(super) fn watch_hold(&mut self) {
        if self.reply.is_set_aside() && !self.floor.may_interrupt() {
            let ended = self.reply.resume(&mut self.cx);
            self.ended(ended);
        }
        let may_go_on = self.agent.may_go_on();
        let goes_on = may_go_on.is_some_and(|(after_us, within_us)| self.floor.is_going_on(after_us, within_us));
        if goes_on || self.reply.is_set_aside() {
            let was_held = self.agent.is_held();
            self.agent.hold();
            if goes_on && !was_held {
                let activity = self.activity();
                self.floor.note_held(&mut self.cx, &activity);
            }
        } else if self.agent.is_held() {
            let events = self.agent.release(&mut self.cx);
            self.answer(events);
        }
    }
}
