//! Questions for consent among everything else that is said.

use super::{Conversation, coordination::NO_TURN};
use crate::{
    approval,
    output::{Chime, Output},
    reply::Purpose,
    vocab::Approval,
};

impl Conversation {
    pub(super) fn approval_asked(&mut self, asked: Approval) {
        if asked.is_from_outside() {
            // It is put by `settle`, once nobody speaks.
            let wearer_is_there = self.link.is_up() && (self.cx.display.is_some() || self.cx.speaker);
            return match wearer_is_there {
                true => self.approvals.handle_outside(&mut self.cx, asked),
                false => approval::refuse(&mut self.cx, &asked),
            };
        }
        if self.agent.turn() != Some(asked.turn) || !self.agent.is_thinking() {
            return approval::refuse(&mut self.cx, &asked);
        }
        let (id, question) = (asked.id, asked.question.said.clone());
        if self.approvals.handle_asked(&mut self.cx, asked) {
            self.agent.pause(&mut self.cx);
            self.reply.push_question(&mut self.cx, id, &question);
        }
    }

    /// Sound was played: a question may have been heard with it.
    pub(super) fn question_played(&mut self) {
        if self.approvals.is_unheard()
            && let Some(asked) = self.approvals.standing()
            && self.reply.heard_question(asked.id)
        {
            self.approvals.handle_heard(&self.cx);
        }
    }

    /// A question that was cut off before the wearer heard any of it is said after all.
    pub(super) fn put_again(&mut self) {
        if self.approvals.is_unheard()
            && let Some(asked) = self.approvals.standing()
            && !self.reply.is_speaking()
        {
            let (id, question) = (asked.id, asked.question.said.clone());
            self.reply.push_question(&mut self.cx, id, &question);
        }
    }

    pub(super) fn approval_settled(&mut self, settled: Option<Approval>) {
        let Some(settled) = settled else {
            return;
        };
        let ended = self.reply.drop_question(&mut self.cx, settled.id);
        self.ended(ended);
        match self.approvals.standing() {
            Some(next) => {
                let (id, question) = (next.id, next.question.said.clone());
                self.reply.push_question(&mut self.cx, id, &question);
            }
            None if self.reply.purpose() == Some(&Purpose::Question) => {
                // Its speech was left open for what might have to be said again.
                let ended = self.reply.stop(&mut self.cx);
                self.ended(ended);
            }
            None => self.agent.resume(&mut self.cx),
        }
    }

    /// Puts a question from outside, where nobody else has the floor. It has it until it is settled.
    pub(super) fn ask_next(&mut self) {
        let free = !self.floor.is_hearing() && !self.floor.is_called(self.cx.now_us());
        if !self.link.is_up() || self.is_busy() || !free {
            return;
        }
        if let Some(asked) = self.approvals.put_outside(&mut self.cx) {
            let (id, question) = (asked.id, asked.question.said.clone());
            self.cx.push(Output::Chime(Chime::Notice));
            self.reply.begin(&mut self.cx, Purpose::Question, NO_TURN);
            self.reply.push_question(&mut self.cx, id, &question);
        }
    }
}
