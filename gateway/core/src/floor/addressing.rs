//! Addressing: whether an utterance is meant for the assistant. Decided by the wake phrase, by the state when it began
//! and, if that leaves a doubt, by its content.
//!
//! There is no doubt about a wake phrase, an answer to a question, speech after a press or a bare wake phrase, or
//! speech after an answer. But if a foreground app listens, speech after an answer may be meant for that app; and if
//! everything is listened to, it may be meant for anybody. Then only words that match a sentence of a tool count.

use alloc::string::String;

use super::{
    Activity, Ear, Floor, commands,
    origin::{Grounds, Origin},
    request_form,
};
use crate::{
    config::Config,
    context::Context,
    output::Output,
    timers::Timer,
    vocab::{CommandMatch, OpenEar, OpenQuestion, Pending},
};

/// How long an answer to a question needs no wake word, from the moment the question was heard: time to think, but no
/// longer than a question for consent stays open.
const ANSWER_MS: u32 = 15_000;
/// Speech that begins this soon after the end of the previous utterance may continue it.
const GOES_ON_US: u64 = 2_000_000;

/// A question of the assistant.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// Since when it is asked, monotonic; 0: since before a restart.
    since_us: u64,
    until_us: u64,
    /// Whether it was said to its end.
    heard: bool,
    /// Its words and the request that waits for the answer, unless a model asked.
    pending: Option<(String, Pending)>,
}

/// When a question is put again after a restart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedAgain {
    pub(crate) from_us: u64,
    /// Whether the wearer was told of the restart.
    pub(crate) told: bool,
}

/// The last spoken request, by which an utterance is recognised that goes on with it.
#[derive(Clone, Debug)]
pub(super) struct LastRequest {
    words: String,
    ended_us: u64,
}

impl Floor {
    /// The assistant asks a question. An answer counts from now on; for how long is known once the question was heard.
    pub(crate) fn note_question(&mut self, cx: &mut Context, text: String, pending: Pending) {
        let until_us = cx.after_ms(cx.config.turn_ms_max);
        let since_us = cx.now_us();
        self.question = Some(Question { since_us, until_us, heard: false, pending: Some((text, pending)) });
        // It may be another question with the same time.
        self.stored_question = None;
        self.watch_question(cx);
    }

    /// What was said by itself is over: a question with it.
    pub(crate) fn question_heard(&mut self, cx: &mut Context) {
        if self.asked_again.is_none()
            && let Some(question) = self.question.as_mut().filter(|question| !question.heard)
        {
            question.heard = true;
            question.until_us = cx.after_ms(ANSWER_MS);
            self.watch_ear(cx);
        }
    }

    /// After a restart: an answer to a question that was heard counts, whether the glasses replay it or not. What was not
    /// heard is not asked before it is put again.
    pub(crate) fn restore_question(&mut self, cx: &mut Context, question: OpenQuestion, again: AskedAgain) {
        let OpenQuestion { text, pending, heard, until_wall_ms } = question;
        let left_ms = until_wall_ms.saturating_sub(cx.now.wall_ms).clamp(0, ANSWER_MS.into());
        let until_us = cx.after_ms(u32::try_from(left_ms).unwrap_or(0)).max(again.from_us);
        self.question = Some(Question { since_us: 0, until_us, heard, pending: Some((text, pending)) });
        self.asked_again = Some(again);
        self.watch_ear(cx);
    }

    /// A question that is to be put again waits until then, and so does the end of the time in which an answer counts; until when
    /// it waits.
    pub(crate) fn delay_again(&mut self, cx: &mut Context, from_us: u64) -> Option<u64> {
        let again = self.asked_again.as_mut()?;
        again.from_us = again.from_us.max(from_us);
        let from_us = again.from_us;
        if let Some(question) = &mut self.question {
            question.until_us = question.until_us.max(from_us);
        }
        self.watch_ear(cx);
        Some(from_us)
    }

    /// The question that is to be put again by now, from now on; whether the wearer was told of the restart.
    pub(crate) fn take_again(&mut self, cx: &mut Context) -> Option<(String, bool)> {
        let now_us = cx.now_us();
        if self.grounds_now(now_us) == Grounds::Called {
            return None;
        }
        let AskedAgain { told, .. } = self.asked_again.take_if(|again| again.from_us <= now_us)?;
        let (text, pending) = self.question.take()?.pending?;
        self.note_question(cx, text.clone(), pending);
        Some((text, told))
    }

    /// An answer is over; `asks`: it ended in a question. What follows needs no wake word for a while.
    pub(crate) fn answer_heard(&mut self, cx: &mut Context, asks: bool) {
        let until_us = cx.after_ms(ANSWER_MS);
        self.question = match self.question.take() {
            Some(question) if asks || question.pending.is_some() => {
                Some(Question { until_us, heard: true, ..question })
            }
            None if asks => Some(Question { since_us: cx.now_us(), until_us, heard: true, pending: None }),
            _ => None,
        };
        if cx.config.follow_up && !self.handed_over && !cx.translating {
            self.ear = Ear::FollowUp { until_us: cx.after_ms(cx.config.follow_up_ms) };
        }
        self.watch_ear(cx);
    }

    /// A foreground app begins to listen: subsequent speech is meant for it.
    pub(crate) fn hand_over(&mut self, cx: &mut Context) {
        self.handed_over = true;
        if matches!(self.ear, Ear::FollowUp { .. }) {
            self.ear = Ear::Closed;
        }
        self.watch_ear(cx);
    }

    /// A request is accepted: returns what it may answer or continue. Any open question ends with it.
    pub(crate) fn take_request(
        &mut self,
        cx: &mut Context,
        words: &str,
        spoken: Option<(u64, u64)>,
    ) -> Option<Pending> {
        let pending = self.pending(cx, spoken.map_or(cx.now_us(), |(started_us, _)| started_us));
        self.close_ear(cx);
        self.handed_over = false;
        self.wordless = None;
        self.last = spoken.map(|(_, ended_us)| LastRequest { words: String::from(words), ended_us });
        // Typed text is complete.
        pending.filter(|pending| spoken.is_some() || !pending.calls.is_empty())
    }

    /// What an utterance that began at this moment may answer or continue.
    pub(super) fn pending(&self, cx: &Context, started_us: u64) -> Option<Pending> {
        let asked = self.asked(started_us).and_then(|question| question.pending.as_ref());
        asked.map(|(_, pending)| pending.clone()).or_else(|| {
            let last = self.last.as_ref().filter(|last| started_us <= last.ended_us.saturating_add(GOES_ON_US))?;
            Some(Pending { words: last.words.clone(), done: cx.done.clone(), ..Pending::default() })
        })
    }

    /// Why an utterance that begins now may be meant for the assistant.
    pub(super) fn grounds_now(&self, now_us: u64) -> Grounds {
        match self.ear {
            Ear::Open { until_us } if now_us <= until_us || self.is_held_down() => Grounds::Called,
            _ if self.asked(now_us).is_some() => Grounds::Asked,
            Ear::FollowUp { until_us } if now_us <= until_us => Grounds::FollowUp,
            _ => Grounds::None,
        }
    }

    /// The same at the end of an utterance, when more is known.
    pub(super) fn grounds(&self, cx: &Context, activity: &Activity, origin: Origin) -> Grounds {
        let busy_or_just_done = activity.busy || self.is_expecting(cx.now_us());
        let follows =
            cx.config.follow_up && !cx.translating && (origin.over_speech || (origin.during_turn && busy_or_just_done));
        match origin.grounds {
            Grounds::None if follows => Grounds::FollowUp,
            Grounds::None if cx.config.always_listening && !origin.rest => Grounds::Always,
            grounds => grounds,
        }
    }

    /// Whether a request waits for the answer to the assistant's question.
    pub(crate) fn has_open_question(&self, now_us: u64) -> bool {
        self.asked(now_us).is_some_and(|question| question.pending.is_some())
    }

    /// Whether an utterance that begins at this moment may answer a question of the assistant.
    pub(crate) fn is_asked(&self, at_us: u64) -> bool {
        self.asked(at_us).is_some()
    }

    /// Whether a request has come to wait for an answer since then.
    pub(crate) fn is_asked_since(&self, at_us: u64) -> bool {
        self.question.as_ref().is_some_and(|question| question.pending.is_some() && question.since_us > at_us)
    }

    /// The wearer dismissed the question.
    pub(crate) fn drop_question(&mut self, cx: &mut Context) {
        self.question = None;
        self.asked_again = None;
        self.watch_question(cx);
    }

    /// The question that an utterance beginning at this moment may answer.
    fn asked(&self, at_us: u64) -> Option<&Question> {
        let is_put = |question: &&Question| question.heard || self.asked_again.is_none();
        self.question.as_ref().filter(is_put).filter(|question| at_us <= question.until_us)
    }

    /// Moves on by this time what is open, and the end of the previous request.
    pub(super) fn delay_addressing(&mut self, cx: &mut Context, by_us: u64) {
        if let Ear::Open { until_us } | Ear::FollowUp { until_us } = &mut self.ear {
            *until_us = until_us.saturating_add(by_us);
        }
        if let Some(question) = &mut self.question {
            question.until_us = question.until_us.saturating_add(by_us);
        }
        if let Some(last) = &mut self.last {
            last.ended_us = last.ended_us.saturating_add(by_us);
        }
        self.watch_ear(cx);
    }

    /// Arms the timer for the last of what is open: the listening indicator follows it.
    pub(super) fn watch_ear(&mut self, cx: &mut Context) {
        let ear_us = match self.ear {
            Ear::Closed => None,
            Ear::Open { until_us } | Ear::FollowUp { until_us } => Some(until_us),
        };
        let asked_us = self.question.as_ref().map(|question| question.until_us);
        let until_us = ear_us.max(asked_us);
        match until_us {
            Some(until_us) => cx.arm_at(Timer::EarCloses, until_us.saturating_add(1)),
            None => cx.disarm(Timer::EarCloses),
        }
        let stored = until_us.map(|until_us| (matches!(self.ear, Ear::Open { .. }), until_us));
        if core::mem::replace(&mut self.stored_ear, stored) != stored {
            let open = stored.map(|(called, until_us)| OpenEar { called, until_wall_ms: cx.wall_ms_at(until_us) });
            cx.push(Output::EarOpen(open));
        }
        self.watch_question(cx);
    }

    /// Has the question stored for a restart, while an answer counts or it is to be put again.
    pub(crate) fn watch_question(&mut self, cx: &mut Context) {
        let is_open = |question: &&Question| self.asked_again.is_some() || cx.now_us() <= question.until_us;
        let question = self.question.as_ref().filter(is_open);
        let open = question.and_then(|question| Some((question, question.pending.as_ref()?)));
        let stored = open.map(|(question, _)| (question.heard, question.until_us));
        if core::mem::replace(&mut self.stored_question, stored) != stored {
            let open = open.map(|(&Question { heard, until_us, .. }, (text, pending))| OpenQuestion {
                text: text.clone(),
                pending: pending.clone(),
                heard,
                until_wall_ms: cx.wall_ms_at(until_us),
            });
            cx.push(Output::QuestionOpen(open));
        }
    }

    /// The gateway was restarted: the time in which no wake phrase is needed goes on. It is measured by the wall clock,
    /// which may be wrong, so it is not longer than one that begins now.
    pub(crate) fn reopen_ear(&mut self, cx: &mut Context, ear: OpenEar) {
        let most_ms = if ear.called { cx.config.ear_open_ms } else { cx.config.follow_up_ms.max(ANSWER_MS) };
        let left_ms = ear.until_wall_ms.saturating_sub(cx.now.wall_ms).clamp(0, most_ms.into());
        let until_us = cx.after_ms(u32::try_from(left_ms).unwrap_or(0));
        if left_ms > 0 {
            self.ear = if ear.called { Ear::Open { until_us } } else { Ear::FollowUp { until_us } };
        }
        self.watch_ear(cx);
    }
}

/// Whether an utterance with these grounds counts; `matched`: how well it matches a command.
pub(super) fn is_meant(
    cx: &Context,
    grounds: Grounds,
    doubtful: bool,
    text: &str,
    matched: Option<CommandMatch>,
) -> bool {
    if grounds == Grounds::None || !doubtful {
        return grounds != Grounds::None;
    }
    let fits = matched >= Some(CommandMatch::Incomplete);
    fits || (grounds == Grounds::FollowUp && !cx.app_listens() && goes_on(&cx.config, text))
}

/// Whether the form of an utterance after an answer continues the conversation.
fn goes_on(config: &Config, text: &str) -> bool {
    commands::command(text).is_some() || (config.conversational && request_form::is_request(text))
}
