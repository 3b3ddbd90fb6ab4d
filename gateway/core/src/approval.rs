//! Questions for consent: who may answer, what counts as an answer, and for how long.
//!
//! A question is bound to its turn and to the hash of the arguments that were asked about. Silence
//! is a no. A yes that was begun before the question was put is not an answer to it.

use alloc::collections::VecDeque;

use crate::{
    conversation::{Context, Timer},
    floor::commands,
    limits::QUESTIONS_MAX,
    output::Output,
    vocab::{Approval, ApprovalChoice, ApprovalOutcome, Content, Priority},
};

/// The machine of this module. The first question is the one that stands.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    questions: VecDeque<Question>,
}

#[derive(Debug)]
struct Question {
    approval: Approval,
    /// Since when the wearer can know of it; `None`: not yet.
    put_us: Option<u64>,
}

/// What somebody said or typed while a question stood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    /// All of it.
    pub(crate) text: &'a str,
    /// When it was begun.
    pub(crate) started_us: u64,
    /// Whether it may be the assistant's own voice, and so the words of a tool.
    pub(crate) echo: bool,
}

impl Approvals {
    /// The question that stands.
    pub(crate) fn standing(&self) -> Option<&Approval> {
        self.questions.front().map(|question| &question.approval)
    }

    /// Takes a question; returns whether it is to be put now.
    pub(crate) fn handle_asked(&mut self, cx: &mut Context, approval: Approval) -> bool {
        let known = self.questions.iter().any(|question| question.approval.id == approval.id);
        // An id that stands for other arguments already would make the answer ambiguous.
        if known || self.questions.len() >= QUESTIONS_MAX {
            settle(cx, &approval, ApprovalOutcome::Denied);
            return false;
        }
        self.questions.push_back(Question { approval, put_us: None });
        let first = self.questions.len() == 1;
        if first {
            self.put(cx);
        }
        first
    }

    /// Whether the question that stands has not reached the wearer.
    pub(crate) fn is_unheard(&self) -> bool {
        self.questions.front().is_some_and(|question| question.put_us.is_none())
    }

    /// The wearer hears the question that stands.
    pub(crate) fn handle_heard(&mut self, cx: &Context) {
        if let Some(question) = self.questions.front_mut() {
            question.put_us.get_or_insert(cx.now_us());
        }
    }

    /// What the wearer said while a question stood. Returns the settled question.
    pub(crate) fn handle_said(&mut self, cx: &mut Context, answer: Answer<'_>) -> Option<Approval> {
        let put_us = self.questions.front()?.put_us?;
        if answer.started_us < put_us {
            return None;
        }
        let outcome = match commands::yes_or_no(answer.text)? {
            // The loudspeaker may have said it, be it with a wake word: the wearer can say it again.
            true if answer.echo => return None,
            true => ApprovalOutcome::Approved,
            false => ApprovalOutcome::Denied,
        };
        self.settle_first(cx, outcome)
    }

    /// Answered by tap or by an operator.
    pub(crate) fn handle_answered(&mut self, cx: &mut Context, id: u64, choice: ApprovalChoice) -> Option<Approval> {
        let index = self.questions.iter().position(|question| question.approval.id == id)?;
        // Only what was put to the wearer can be answered.
        if index != 0 {
            return None;
        }
        let outcome = match choice {
            ApprovalChoice::Yes => ApprovalOutcome::Approved,
            ApprovalChoice::No => ApprovalOutcome::Denied,
        };
        self.settle_first(cx, outcome)
    }

    pub(crate) fn handle_expired(&mut self, cx: &mut Context) -> Option<Approval> {
        self.settle_first(cx, ApprovalOutcome::Expired)
    }

    /// The turn has ended: nothing of it may be consented to any more.
    pub(crate) fn cancel_all(&mut self, cx: &mut Context) {
        for question in self.questions.drain(..) {
            settle(cx, &question.approval, ApprovalOutcome::Cancelled);
        }
        cx.release(Priority::Approval);
        cx.disarm(Timer::ApprovalExpired);
    }

    /// Puts the first question to the wearer; its time begins now.
    fn put(&mut self, cx: &mut Context) {
        if let Some(question) = self.questions.front_mut() {
            // Who has a display sees it at once. Who has none, hears it in its turn.
            question.put_us = (cx.display.is_some() || !cx.speaker).then(|| cx.now_us());
            let Approval { tool, question: text, expires_ms, .. } = &question.approval;
            cx.arm(Timer::ApprovalExpired, *expires_ms);
            let card = Content::Card { title: tool.clone(), text: text.clone() };
            cx.claim(Priority::Approval, card, Some(*expires_ms));
            cx.push(Output::AskApproval(question.approval.clone()));
        }
    }

    fn settle_first(&mut self, cx: &mut Context, outcome: ApprovalOutcome) -> Option<Approval> {
        let question = self.questions.pop_front()?;
        cx.disarm(Timer::ApprovalExpired);
        cx.release(Priority::Approval);
        settle(cx, &question.approval, outcome);
        self.put(cx);
        Some(question.approval)
    }
}

/// Tells the executor how a question ended.
pub(crate) fn settle(cx: &mut Context, approval: &Approval, outcome: ApprovalOutcome) {
    cx.push(Output::ApprovalSettled { id: approval.id, outcome, arguments_hash: approval.arguments_hash });
}
