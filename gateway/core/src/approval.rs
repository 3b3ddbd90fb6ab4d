//! Questions for consent: who may answer, what counts as an answer, and for how long.
//!
//! A question is bound to its turn and to the hash of the arguments that it is about. No answer means no. A yes that
//! began before the question was put does not answer it; neither does a press or typed text in the first moment, when
//! it cannot have been read yet. What is shown reaches nobody while the link is lost or stalled. Nobody acknowledges it, so
//! that a yes that comes late, or that the glasses may have kept, counts only if the question had been heard before.
//!
//! A call from outside of any turn has no place in an answer: its question waits until nobody speaks, and is the only
//! one while it is open.

use alloc::{collections::VecDeque, vec::Vec};

use crate::{
    context::Context,
    floor::commands,
    limits::{QUESTION_READ_MS_MIN, QUESTIONS_MAX},
    output::Output,
    reply,
    timers::Timer,
    vocab::{AnsweredBy, Approval, ApprovalChoice, ApprovalOutcome, Content, Priority},
};

/// How long after a lost link what is typed may be older than its return: glasses send at once what they have kept.
const KEPT_TEXT_MS: u32 = 4_000;
/// How long behind its end a question stays open for what was said before it and has no text yet, in microseconds, and how often
/// that is looked at, in milliseconds.
const DECODED_US_MAX: u64 = 30_000_000;
const LOOK_MS: u32 = 200;

/// Questions that wait for a yes or no. The first is the one being asked.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    questions: VecDeque<Question>,
    /// Questions from outside that wait until nobody speaks. The requester decides how long they wait.
    outside: VecDeque<Approval>,
    /// Until then, what is typed may have been kept while the link was lost.
    kept_until_us: u64,
}

#[derive(Debug)]
struct Question {
    approval: Approval,
    /// Since when the wearer can know of it; `None`: not yet.
    put_us: Option<u64>,
    /// Since when it is certain that the wearer does: the glasses have played some of it.
    heard_us: Option<u64>,
    /// Its state while it is open.
    stands: Option<Standing>,
}

/// The state of an open question.
#[derive(Debug)]
struct Standing {
    /// Since when the glasses can show it; `None`: not yet.
    shown_us: Option<u64>,
    until_us: u64,
    /// The question in pages that fit the display.
    cards: Vec<Content>,
    /// Index of the page that is shown.
    card: usize,
}

impl Question {
    fn new(approval: Approval) -> Self {
        Self { approval, put_us: None, heard_us: None, stands: None }
    }

    /// It is on its way to the glasses: with a display it is seen at once, without one it is heard when its turn in the
    /// answer comes. One from outside is unexpected and counts once it was heard: a yes of that moment may be meant for
    /// somebody else.
    fn note_put(&mut self, cx: &Context) {
        let is_seen = cx.display.is_some() && !self.approval.is_from_outside();
        let is_put = cx.linked && (is_seen || !cx.speaker);
        self.put_us = is_put.then(|| cx.now_us());
    }

    /// Whether it cannot have been read yet: a press or typed text now was begun before it was shown.
    fn is_unread(&self, cx: &Context) -> bool {
        let shown_us = self.stands.as_ref().and_then(|standing| standing.shown_us).unwrap_or(u64::MAX);
        cx.now_us() < shown_us.saturating_add(u64::from(QUESTION_READ_MS_MIN) * 1_000)
    }
}

/// What somebody said or typed while a question was open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    /// The whole text.
    pub(crate) text: &'a str,
    /// When it began to be spoken, or was typed.
    pub(crate) began_us: u64,
    /// When it was whole, monotonic: its voice was over.
    pub(crate) ended_us: u64,
    /// Whether it was heard much later than it was spoken.
    pub(crate) late: bool,
    /// Whether it may be the assistant's own voice, and thus the words of a tool.
    pub(crate) echo: bool,
    /// Whether it was said or typed.
    pub(crate) by: AnsweredBy,
}

impl Approvals {
    /// The question that the wearer is being asked; others wait until it is settled.
    pub(crate) fn standing(&self) -> Option<&Approval> {
        self.questions.front().map(|question| &question.approval)
    }

    /// Accepts a question; returns whether it is to be put now.
    pub(crate) fn handle_asked(&mut self, cx: &mut Context, approval: Approval) -> bool {
        // An id in use for other arguments would make the answer ambiguous.
        if self.knows(approval.id) || self.questions.len() >= QUESTIONS_MAX {
            settle(cx, &approval, ApprovalOutcome::Denied, AnsweredBy::Nobody);
            return false;
        }
        self.questions.push_back(Question::new(approval));
        let first = self.questions.len() == 1;
        if first {
            self.put(cx);
        }
        first
    }

    /// Accepts a question from outside, which waits for [`Self::put_outside`].
    pub(crate) fn handle_outside(&mut self, cx: &mut Context, approval: Approval) {
        if self.knows(approval.id) || self.outside.len() >= QUESTIONS_MAX {
            return settle(cx, &approval, ApprovalOutcome::Denied, AnsweredBy::Nobody);
        }
        self.outside.push_back(approval);
    }

    /// Nobody speaks: puts the next question from outside, if there is one and none is open.
    pub(crate) fn put_outside(&mut self, cx: &mut Context) -> Option<&Approval> {
        if !self.questions.is_empty() {
            return None;
        }
        let approval = self.outside.pop_front()?;
        self.questions.push_back(Question::new(approval));
        self.put(cx);
        self.standing()
    }

    fn knows(&self, id: u64) -> bool {
        let mut asked = self.questions.iter().map(|question| &question.approval).chain(&self.outside);
        asked.any(|approval| approval.id == id)
    }

    /// Whether the open question has not reached the wearer.
    pub(crate) fn is_unheard(&self) -> bool {
        self.questions.front().is_some_and(|question| question.put_us.is_none())
    }

    /// The wearer knows the open question; `played`: the glasses have played some of it. Where it cannot be read, its time begins with
    /// that.
    pub(crate) fn handle_heard(&mut self, cx: &mut Context, played: bool) {
        let Some(question) = self.questions.front_mut() else {
            return;
        };
        question.put_us.get_or_insert(cx.now_us());
        if !played || question.heard_us.is_some() {
            return;
        }
        question.heard_us = Some(cx.now_us());
        if let Some(standing) = question.stands.as_mut().filter(|_| cx.display.is_none()) {
            standing.until_us = cx.after_ms(question.approval.expires_ms);
            cx.arm_at(Timer::ApprovalExpired, standing.until_us);
        }
    }

    /// Until when the open question may be answered, monotonic.
    pub(crate) fn until_us(&self) -> Option<u64> {
        let standing = self.questions.front()?.stands.as_ref()?;
        Some(standing.until_us)
    }

    /// The time of the open question is over, and what was said before that has no text yet. Returns whether it is waited for.
    pub(crate) fn wait_for_text(&mut self, cx: &mut Context) -> bool {
        let until_us = self.until_us().filter(|_| !self.is_unheard());
        let waits = until_us.is_some_and(|until_us| cx.now_us() < until_us.saturating_add(DECODED_US_MAX));
        if waits {
            cx.arm(Timer::ApprovalExpired, LOOK_MS);
        }
        waits
    }

    /// The link is back. A question of which nothing was heard may have been sent in vain: it is put now.
    pub(crate) fn handle_resumed(&mut self, cx: &Context) {
        self.kept_until_us = cx.after_ms(KEPT_TEXT_MS);
        if let Some(question) = self.questions.front_mut().filter(|question| question.heard_us.is_none()) {
            question.note_put(cx);
            if let Some(standing) = &mut question.stands {
                standing.shown_us.get_or_insert(cx.now_us());
            }
        }
    }

    /// Whether this yes or no was typed before the open question can have been read: it is meant for something earlier.
    pub(crate) fn is_premature(&self, cx: &Context, text: &str) -> bool {
        let may_be_kept = cx.now_us() < self.kept_until_us;
        let is_premature = |question: &Question| question.is_unread(cx) || may_be_kept && question.heard_us.is_none();
        self.questions.front().is_some_and(is_premature) && commands::yes_or_no(text).is_some()
    }

    /// Handles what the wearer said while a question was open. Returns the settled question.
    pub(crate) fn handle_said(&mut self, cx: &mut Context, answer: Answer<'_>) -> Option<Approval> {
        let question = self.questions.front()?;
        let known_us = if answer.late { question.heard_us } else { question.put_us };
        let is_too_late = self.until_us().is_some_and(|until_us| answer.ended_us > until_us);
        if answer.began_us < known_us? || is_too_late {
            return None;
        }
        let outcome = match commands::yes_or_no(answer.text)? {
            // It may be the loudspeaker's echo, even with a wake phrase: the wearer can say it again.
            true if answer.echo => return None,
            true => ApprovalOutcome::Approved,
            false => ApprovalOutcome::Denied,
        };
        self.settle_first(cx, outcome, answer.by)
    }

    /// Handles an answer by tap or by an operator.
    pub(crate) fn handle_answered(
        &mut self,
        cx: &mut Context,
        id: u64,
        choice: ApprovalChoice,
        by: AnsweredBy,
    ) -> Option<Approval> {
        // Only a question that was put to the wearer can be answered. An operator answers by the question's id.
        let question = self.questions.front().filter(|question| question.approval.id == id)?;
        let is_over = question.stands.as_ref().is_some_and(|standing| cx.now_us() > standing.until_us);
        if by == AnsweredBy::Tap && (is_over || question.is_unread(cx)) {
            return None;
        }
        self.settle_first(cx, choice.into(), by)
    }

    /// Nobody waits for the answer any more. Returns the question if it was open.
    pub(crate) fn handle_withdrawn(&mut self, cx: &mut Context, id: u64) -> Option<Approval> {
        if self.standing().is_some_and(|approval| approval.id == id) {
            return self.settle_first(cx, ApprovalOutcome::Cancelled, AnsweredBy::Nobody);
        }
        if let Some(index) = self.questions.iter().position(|question| question.approval.id == id)
            && let Some(question) = self.questions.remove(index)
        {
            settle(cx, &question.approval, ApprovalOutcome::Cancelled, AnsweredBy::Nobody);
        }
        if let Some(index) = self.outside.iter().position(|approval| approval.id == id)
            && let Some(approval) = self.outside.remove(index)
        {
            settle(cx, &approval, ApprovalOutcome::Cancelled, AnsweredBy::Nobody);
        }
        None
    }

    /// Shows the next page of a question with several, in rotation.
    pub(crate) fn handle_page_due(&mut self, cx: &mut Context) {
        if let Some(standing) = self.questions.front_mut().and_then(|question| question.stands.as_mut()) {
            standing.card = (standing.card + 1) % standing.cards.len().max(1);
            standing.show(cx);
        }
    }

    pub(crate) fn handle_expired(&mut self, cx: &mut Context) -> Option<Approval> {
        self.settle_first(cx, ApprovalOutcome::Expired, AnsweredBy::Nobody)
    }

    /// The turn has ended, or the wearer turned to something else: open questions can no longer be consented to.
    pub(crate) fn cancel_all(&mut self, cx: &mut Context) {
        self.end_all(cx, ApprovalOutcome::Cancelled);
    }

    /// The wearer is gone: questions from outside remain unanswered.
    pub(crate) fn give_up(&mut self, cx: &mut Context) {
        self.end_all(cx, ApprovalOutcome::Expired);
        for approval in self.outside.drain(..) {
            settle(cx, &approval, ApprovalOutcome::Expired, AnsweredBy::Nobody);
        }
    }

    fn end_all(&mut self, cx: &mut Context, from_outside: ApprovalOutcome) {
        for Question { approval, .. } in self.questions.drain(..) {
            let outcome = if approval.is_from_outside() { from_outside } else { ApprovalOutcome::Cancelled };
            settle(cx, &approval, outcome, AnsweredBy::Nobody);
        }
        cx.release(Priority::Approval);
        cx.disarm(Timer::ApprovalExpired);
        cx.disarm(Timer::QuestionPageDue);
    }

    /// Puts the first question to the wearer; its time begins now.
    fn put(&mut self, cx: &mut Context) {
        if let Some(question) = self.questions.front_mut() {
            question.note_put(cx);
            let Approval { question: asked, expires_ms, .. } = &question.approval;
            cx.arm(Timer::ApprovalExpired, *expires_ms);
            let cards = reply::cards(&asked.title, &asked.shown, cx.display);
            let until_us = cx.after_ms(*expires_ms);
            let shown_us = cx.linked.then(|| cx.now_us());
            question.stands.insert(Standing { shown_us, until_us, cards, card: 0 }).show(cx);
            cx.push(Output::AskApproval(question.approval.clone()));
        }
    }

    fn settle_first(&mut self, cx: &mut Context, outcome: ApprovalOutcome, by: AnsweredBy) -> Option<Approval> {
        let question = self.questions.pop_front()?;
        cx.disarm(Timer::ApprovalExpired);
        cx.disarm(Timer::QuestionPageDue);
        cx.release(Priority::Approval);
        settle(cx, &question.approval, outcome, by);
        self.put(cx);
        Some(question.approval)
    }
}

impl Standing {
    /// Shows its page, until it is settled or expires.
    fn show(&self, cx: &mut Context) {
        let Some(card) = self.cards.get(self.card) else {
            return;
        };
        let left_ms = u32::try_from(self.until_us.saturating_sub(cx.now_us()) / 1_000).unwrap_or(u32::MAX);
        cx.claim(Priority::Approval, card.clone(), Some(left_ms));
        if self.cards.len() > 1 {
            cx.arm(Timer::QuestionPageDue, reply::reading_ms(card));
        }
    }
}

/// Reports to the executor how a question ended.
pub(crate) fn settle(cx: &mut Context, approval: &Approval, outcome: ApprovalOutcome, by: AnsweredBy) {
    cx.push(Output::ApprovalSettled(approval.settled(outcome, by)));
}

/// Settles a question that reached nobody.
pub(crate) fn refuse(cx: &mut Context, approval: &Approval) {
    let outcome = if approval.is_from_outside() { ApprovalOutcome::Unasked } else { ApprovalOutcome::Cancelled };
    settle(cx, approval, outcome, AnsweredBy::Nobody);
}
