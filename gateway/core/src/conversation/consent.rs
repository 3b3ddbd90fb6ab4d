//! Questions for consent among everything else that is said.

use alloc::{format, string::String, vec::Vec};

use super::Conversation;
use crate::{
    agent::phrases,
    approval::{self, Answer},
    floor::{AskedAgain, Utterance, commands},
    output::Chime,
    reply::Purpose,
    timers::Timer,
    vocab::{AnsweredBy, Approval, ApprovalChoice, OpenQuestion, ToolCall},
};

/// How long after a restart the wearer is not asked again, at least. By then glasses have replayed what was said before, 10 s
/// at four times their speed: a yes among it is no answer to a question that was not put yet. Those that have kept more say so.
const ASK_AGAIN_MS: u32 = 4_000;

/// While sound is replayed at its highest speed, the backlog shrinks so many times as fast as time passes: what is captured
/// meanwhile comes behind it.
const BACKLOG_SPEED: u32 = 3;

/// What recognition may take of the last words of a replay to be begun with: from then on their utterance is waited for.
const REPEATED_MS: u32 = 700;

/// After this time a question is not put again: nobody knows any more what it was about.
const ASK_AGAIN_MS_MAX: i64 = 5 * 60 * 1_000;

/// Calls that waited for consent when the process died: nothing of them was done.
#[derive(Debug)]
pub(super) struct Unanswered {
    request: String,
    calls: Vec<ToolCall>,
    /// When the wearer may be asked again.
    from_us: u64,
}

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
        if self.agent.turn() != asked.turn || !self.agent.is_thinking() {
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
        if let Some(asked) = self.approvals.standing()
            && self.reply.heard_question(asked.id)
        {
            let is_played = self.reply.played_question(asked.id);
            self.approvals.handle_heard(&mut self.cx, is_played);
        }
    }

    /// No answer means no, unless one was said in time whose text is still awaited.
    pub(super) fn approval_expired(&mut self) {
        let until_us = self.approvals.until_us().unwrap_or_default();
        if self.floor.has_heard_until(until_us) && self.approvals.wait_for_text(&mut self.cx) {
            return;
        }
        let settled = self.approvals.handle_expired(&mut self.cx);
        self.approval_settled(settled);
    }

    /// A question that was cut off before the wearer heard any of it is said after all.
    pub(super) fn put_again(&mut self) {
        if self.approvals.is_unheard() {
            self.say_question_again();
        }
    }

    /// What is set aside goes on, and has the question in it.
    fn say_question_again(&mut self) {
        if let Some(asked) = self.approvals.standing()
            && !self.is_speaking()
        {
            let (id, question) = (asked.id, asked.question.said.clone());
            self.reply.push_question(&mut self.cx, id, &question);
        }
    }

    /// Once nobody speaks any more, a question that a voice has cut off is said after all: a cough is no answer. Who can
    /// read it needs no more than its beginning.
    pub(super) fn settle_question(&mut self) {
        let is_due = self.link.is_up() && !self.floor.is_hearing() && core::mem::take(&mut self.cut_question);
        let is_begun = || self.approvals.standing().is_some_and(|asked| self.reply.heard_question(asked.id));
        if is_due && (self.cx.display.is_none() || !is_begun()) {
            self.say_question_again();
        }
    }

    /// What was said may answer the open question, unless it is the rest of a sentence whose beginning is missing, or was said
    /// before a restart.
    pub(super) fn answered_by_voice(&mut self, said: &Utterance) -> Option<Approval> {
        if said.rest && !said.woken || self.is_from_before(said.started_us) {
            return None;
        }
        let text = said.request.as_deref().unwrap_or(&said.text);
        let &Utterance { spoken_us: began_us, decided_us, waited_us, late, echo, .. } = said;
        let ended_us = decided_us.saturating_sub(waited_us);
        self.approvals.handle_said(&mut self.cx, Answer { text, began_us, ended_us, late, echo, by: AnsweredBy::Voice })
    }

    pub(super) fn approval_answered(&mut self, id: u64, choice: ApprovalChoice, by: AnsweredBy) {
        let settled = self.approvals.handle_answered(&mut self.cx, id, choice, by);
        self.approval_settled(settled);
    }

    pub(super) fn approval_withdrawn(&mut self, id: u64) {
        let settled = self.approvals.handle_withdrawn(&mut self.cx, id);
        self.approval_settled(settled);
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

    /// After a restart: the wearer is asked again soon, in a turn that makes these calls.
    pub(super) fn expect_asking_again(&mut self, request: String, calls: Vec<ToolCall>) {
        self.unanswered = Some(Unanswered { request, calls, from_us: self.cx.after_ms(ASK_AGAIN_MS) });
        self.cx.arm(Timer::AskAgain, ASK_AGAIN_MS);
    }

    /// After a restart: the glasses repeat sound. Before its end nothing is asked again, and no typed request is interrupted.
    pub(super) fn sound_repeated(&mut self, backlog_ms: u32) {
        let from_us = self.cx.after_ms(backlog_ms / BACKLOG_SPEED + REPEATED_MS);
        self.note_repeated(from_us);
        let asked = self.unanswered.as_mut().map(|open| {
            open.from_us = open.from_us.max(from_us);
            open.from_us
        });
        let question = self.floor.delay_again(&mut self.cx, from_us);
        if let Some(at_us) = asked.max(question) {
            self.cx.arm_at(Timer::AskAgain, at_us);
        }
    }

    /// Whether what began at this time is an answer to a question that died with the process, and is asked again: nothing newer
    /// is asked.
    pub(super) fn is_answer_to_be_repeated(&self, text: &str, began_us: u64) -> bool {
        let is_asked = self.approvals.standing().is_some() || self.floor.is_asked(began_us);
        self.unanswered.is_some() && !is_asked && commands::yes_or_no(text).is_some()
    }

    /// Whether a question that the process before this one has put is still of interest.
    pub(super) fn is_to_be_asked_again(&self, question: &OpenQuestion) -> bool {
        self.cx.now.wall_ms.saturating_sub(question.until_wall_ms) <= ASK_AGAIN_MS_MAX
    }

    /// After a restart: the wearer is asked this again soon, unless the glasses replay an answer or another request.
    pub(super) fn expect_question_again(&mut self, question: OpenQuestion, told: bool) {
        let from_us = self.cx.after_ms(ASK_AGAIN_MS);
        self.floor.restore_question(&mut self.cx, question, AskedAgain { from_us, told });
        self.cx.arm(Timer::AskAgain, ASK_AGAIN_MS);
    }

    /// Asks again, where nobody else has the floor.
    pub(super) fn ask_again(&mut self) {
        let now_us = self.cx.now_us();
        if !self.link.is_up() || self.is_busy() || self.floor.is_hearing() {
            return;
        }
        if let Some((text, told)) = self.floor.take_again(&mut self.cx) {
            let text = if told { text } else { format!("{} {text}", phrases::RESTARTED_IN_QUESTION) };
            return self.aside(&text);
        }
        if self.floor.is_called(now_us) {
            return;
        }
        if let Some(Unanswered { request, calls, .. }) = self.unanswered.take_if(|open| open.from_us <= now_us) {
            self.agent.take_up(&mut self.cx, request, calls);
            let turn = self.agent.turn();
            self.note_asked_again(turn);
            self.reply.begin(&mut self.cx, Purpose::Answer, turn);
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
            self.cx.chime(Chime::Attention);
            self.reply.begin(&mut self.cx, Purpose::Question, None);
            self.reply.push_question(&mut self.cx, id, &question);
        }
    }
}
