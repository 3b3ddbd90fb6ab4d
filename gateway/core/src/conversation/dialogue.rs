//! What the machines' events mean for one another: who stops whom, and what comes next.

use alloc::string::String;

use super::Conversation;
use crate::{
    agent::{self, Spoken, phrases},
    approval::{self, Answer},
    floor::{
        self, Activity, Said,
        commands::{self, Command},
    },
    input::{Announcement, Button},
    link::Link,
    output::{Chime, Output, TurnOutcome},
    reply::{Ended, Purpose},
    vocab::{Approval, ApprovalOutcome, Content, ListeningState, Priority, Transcript, Turn, VoiceFact},
};

/// Part of an interrupted announcement from which on it counts as heard.
const NOTICE_HEARD_PART: f32 = 0.5;
/// What belongs to no turn.
const NO_TURN: Turn = Turn { id: 0, revision: 0 };

/// What the wearer hears.
impl Conversation {
    pub(super) fn voice(&mut self, fact: VoiceFact) {
        if self.muted || !self.link.is_up() {
            return;
        }
        let activity = self.activity();
        let event = self.floor.handle_voice(&mut self.cx, &activity, fact);
        self.heard(event);
    }

    pub(super) fn transcript(&mut self, transcript: Transcript) {
        let activity = self.activity();
        let event = self.floor.handle_transcript(&mut self.cx, &activity, transcript);
        self.heard(event);
    }

    pub(super) fn transcript_failed(&mut self, utterance: u32, revision: u16) {
        let event = self.floor.handle_transcript_failed(&mut self.cx, utterance, revision);
        self.heard(event);
    }

    pub(super) fn end_of_turn(&mut self) {
        let activity = self.activity();
        let event = self.floor.handle_end_of_turn(&mut self.cx, &activity);
        self.heard(event);
    }

    pub(super) fn utterance_stalled(&mut self) {
        let activity = self.activity();
        let event = self.floor.handle_stalled(&mut self.cx, &activity);
        self.heard(event);
    }

    pub(super) fn transcript_missing(&mut self) {
        let event = self.floor.handle_transcript_missing(&mut self.cx);
        self.heard(event);
    }

    pub(super) fn voice_confirmed(&mut self) {
        let activity = self.activity();
        let event = self.floor.handle_voice_confirmed(&activity);
        self.heard(event);
    }

    fn heard(&mut self, event: Option<floor::Event>) {
        match event {
            None | Some(floor::Event::Nothing) => {}
            Some(floor::Event::Interrupt) => self.interrupted_by_voice(),
            Some(floor::Event::Lost { addressed }) => self.not_understood(addressed),
            Some(floor::Event::Said(said)) => self.said(said),
        }
    }

    /// The wearer speaks over the assistant. While a question stands the turn lives on: what is
    /// being said may be the answer to it.
    fn interrupted_by_voice(&mut self) {
        if self.approvals.standing().is_some() {
            self.reply.pause(&mut self.cx);
        } else if let Some(Purpose::Notice { id }) = self.reply.purpose() {
            self.cut_notice = Some(*id);
            let ended = self.reply.stop(&mut self.cx);
            if ended.is_some_and(|ended| ended.part >= NOTICE_HEARD_PART) {
                self.settle_notice(true);
            }
        } else {
            self.stop(false);
        }
    }

    /// What was said over an announcement tells whether it has served its purpose.
    pub(super) fn settle_notice(&mut self, heard: bool) {
        if let Some(id) = self.cut_notice.take() {
            self.cx.push(Output::Announced { id, heard });
        }
    }

    fn said(&mut self, said: Said) {
        self.settle_notice(said.cancels);
        if self.approvals.standing().is_some() {
            let text = said.request.as_deref().unwrap_or(&said.text);
            let answer = Answer { text, started_us: said.started_us, echo: said.echo };
            let settled = self.approvals.handle_said(&mut self.cx, answer);
            if settled.is_some() {
                self.approval_settled(settled);
                return;
            }
            // Only a wake word or a cancel word gets past a question.
            if !said.woken && !said.cancels {
                self.put_again();
                return;
            }
        }
        let expecting = self.floor.is_expecting(self.cx.now_us());
        let going_on = self.is_busy() || said.over_turn || expecting;
        if said.cancels && going_on {
            self.stop(true);
            self.floor.close_ear(&mut self.cx);
            return;
        }
        let Some(request) = said.request else {
            return;
        };
        if !commands::has_words(&request) {
            self.stop(false);
            self.call();
            return;
        }
        match commands::command(&request) {
            Some(Command::Repeat) => self.repeat(),
            Some(Command::Mute) => self.mute(true),
            Some(Command::Cancel) | None => {
                let spoken = Spoken { last_voice_us: said.last_voice_us, decided_us: said.decided_us };
                self.start_turn(request, Some(spoken));
            }
        }
    }

    fn not_understood(&mut self, addressed: bool) {
        if addressed && !self.is_busy() {
            self.aside(phrases::NOT_UNDERSTOOD);
        } else if !self.is_busy() {
            self.cx.push(Output::Chime(Chime::Trouble));
        }
    }

    pub(super) fn typed(&mut self, text: &str) {
        let text = text.trim();
        if self.link == Link::Fresh || text.is_empty() {
            return;
        }
        let request: String = text.chars().take(crate::limits::UTTERANCE_CHARS_MAX).collect();
        let answer = Answer { text: &request, started_us: self.cx.now_us(), echo: false };
        let settled = self.approvals.handle_said(&mut self.cx, answer);
        if settled.is_some() {
            return self.approval_settled(settled);
        }
        match commands::command(&request) {
            Some(Command::Cancel) if self.is_busy() => self.stop(true),
            Some(Command::Repeat) => self.repeat(),
            Some(Command::Mute) => self.mute(true),
            _ => self.start_turn(request, None),
        }
    }

    /// The wearer wants attention and has not said for what.
    fn call(&mut self) {
        self.floor.open_ear(&mut self.cx);
        self.cx.push(Output::Chime(Chime::Attentive));
    }

    pub(super) fn button(&mut self, button: Button) {
        match button {
            Button::LongPress => self.mute(!self.muted),
            Button::Press if self.is_busy() => self.stop(true),
            Button::Press if self.muted || !self.link.is_up() => {}
            Button::Press => self.call(),
        }
    }

    pub(super) fn mute(&mut self, muted: bool) {
        if self.muted == muted {
            return;
        }
        self.muted = muted;
        if muted {
            self.floor.discard(&mut self.cx);
        }
        self.cx.push(Output::SetMuted(muted));
    }
}

/// Turns and what is said in them.
impl Conversation {
    fn start_turn(&mut self, request: String, spoken: Option<Spoken>) {
        self.stop(false);
        self.floor.close_ear(&mut self.cx);
        self.agent.start(&mut self.cx, request, spoken);
        let turn = self.agent.turn().unwrap_or(NO_TURN);
        self.reply.begin(&mut self.cx, Purpose::Answer, turn);
    }

    pub(super) fn answer(&mut self, events: alloc::vec::Vec<agent::Event>) {
        for event in events {
            let ended = match event {
                agent::Event::Text { step, text } => self.reply.push(&mut self.cx, step, &text),
                agent::Event::Pause => {
                    self.reply.flush(&mut self.cx);
                    None
                }
                agent::Event::Say { step, text } => self.reply.push_sentence(&mut self.cx, step, &text),
                agent::Event::Aside { text, shown } => self.reply.push_aside(&mut self.cx, &text, shown),
                agent::Event::Show(content) => {
                    self.reply.show(&mut self.cx, content, Priority::Assistant);
                    None
                }
                agent::Event::Complete => {
                    // A call that failed meanwhile has no use for consent any more.
                    self.approvals.cancel_all(&mut self.cx);
                    let follow_ups = self.agent.take_follow_ups();
                    self.reply.suggest(follow_ups);
                    self.reply.finish(&mut self.cx)
                }
            };
            self.ended(ended);
        }
    }

    /// The tools have changed and are to count at once.
    pub(super) fn apply_tools(&mut self) {
        let heard = self.reply.is_heard();
        if self.agent.apply_tools(&mut self.cx, heard) {
            self.reply.begin_anew(&mut self.cx);
        }
    }

    /// Something was said to its end.
    pub(super) fn ended(&mut self, ended: Option<Ended>) {
        let Some(ended) = ended else {
            return;
        };
        match ended.purpose {
            Purpose::Answer => {
                self.agent.complete(&mut self.cx, &ended.heard);
                self.floor.expect_follow_up(&mut self.cx);
            }
            Purpose::Notice { id } => self.cx.push(Output::Announced { id, heard: ended.part >= NOTICE_HEARD_PART }),
            Purpose::Aside => {}
        }
    }

    /// Ends whatever is going on. `on_purpose`: the wearer asked for just that.
    fn stop(&mut self, on_purpose: bool) {
        self.approvals.cancel_all(&mut self.cx);
        let Some(ended) = self.reply.stop(&mut self.cx) else {
            return;
        };
        match ended.purpose {
            Purpose::Answer => {
                let was_heard = ended.part > 0.0 && !self.agent.is_thinking();
                self.agent.interrupt(&mut self.cx, ended.heard, TurnOutcome::Interrupted);
                if was_heard && !on_purpose {
                    self.floor.expect_follow_up(&mut self.cx);
                }
            }
            Purpose::Notice { id } => {
                self.cx.push(Output::Announced { id, heard: on_purpose || ended.part >= NOTICE_HEARD_PART })
            }
            Purpose::Aside => {}
        }
    }

    fn repeat(&mut self) {
        self.stop(false);
        if self.reply.last_answer().is_empty() {
            self.aside(phrases::NOTHING_TO_REPEAT);
        } else {
            let again = String::from(self.reply.last_answer());
            self.aside(&again);
        }
        self.floor.expect_follow_up(&mut self.cx);
    }

    /// Says something that belongs to no turn.
    fn aside(&mut self, text: &str) {
        self.reply.begin(&mut self.cx, Purpose::Aside, NO_TURN);
        let ended = self.reply.push_sentence(&mut self.cx, 0, text);
        self.ended(ended);
        let ended = self.reply.finish(&mut self.cx);
        self.ended(ended);
    }

    /// The device plays nothing of what it was given: the answer is over as it is.
    pub(super) fn speech_stalled(&mut self) {
        let Some(ended) = self.reply.stop(&mut self.cx) else {
            return;
        };
        match ended.purpose {
            Purpose::Answer => {
                self.approvals.cancel_all(&mut self.cx);
                self.agent.interrupt(&mut self.cx, ended.heard, TurnOutcome::Failed);
            }
            Purpose::Notice { .. } | Purpose::Aside => self.ended(Some(ended)),
        }
    }
}

/// Consent and announcements.
impl Conversation {
    pub(super) fn approval_asked(&mut self, asked: Approval) {
        if self.agent.turn() != Some(asked.turn) || !self.agent.is_thinking() {
            approval::settle(&mut self.cx, &asked, ApprovalOutcome::Cancelled);
            return;
        }
        let (id, question) = (asked.id, asked.question.clone());
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
    fn put_again(&mut self) {
        if self.approvals.is_unheard()
            && let Some(asked) = self.approvals.standing()
            && !self.reply.is_speaking()
        {
            let (id, question) = (asked.id, asked.question.clone());
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
                let (id, question) = (next.id, next.question.clone());
                self.reply.push_question(&mut self.cx, id, &question);
            }
            None => self.agent.resume(&mut self.cx),
        }
    }

    pub(super) fn announce(&mut self, announcement: Announcement) {
        let saying = self.cut_notice == Some(announcement.id)
            || self.reply.purpose() == Some(&Purpose::Notice { id: announcement.id });
        if saying {
            return;
        }
        if self.link.is_up() {
            self.notices.handle_announce(&mut self.cx, announcement);
        } else {
            self.cx.push(Output::Announced { id: announcement.id, heard: false });
        }
    }

    /// Takes an announcement back, whether it waits or is being said.
    pub(super) fn withdraw(&mut self, id: u64) {
        self.notices.withdraw(&mut self.cx, id);
        if self.reply.purpose() == Some(&(Purpose::Notice { id })) {
            let ended = self.reply.stop(&mut self.cx);
            self.ended(ended);
        }
    }

    /// Announces what waits, where nobody else has the floor.
    fn announce_next(&mut self) {
        while self.link.is_up() && !self.is_busy() {
            let now_us = self.cx.now_us();
            let free = !self.floor.is_hearing() && !self.floor.is_called(now_us);
            let Some(Announcement { id, say, show }) = self.notices.take(&mut self.cx, free) else {
                return;
            };
            let voice_only = matches!(&show, Content::Text { text } if text.is_empty());
            if !voice_only {
                self.cx.push(Output::Chime(Chime::Notice));
            }
            let purpose = Purpose::Notice { id };
            self.reply.begin(&mut self.cx, purpose, NO_TURN);
            if voice_only {
                self.reply.say_only();
            } else {
                self.reply.show(&mut self.cx, show, Priority::Notice);
            }
            let ended = self.reply.push_sentence(&mut self.cx, 0, &say);
            self.ended(ended);
            let ended = self.reply.finish(&mut self.cx);
            self.ended(ended);
        }
    }
}

/// What the machines need to know of one another.
impl Conversation {
    fn is_busy(&self) -> bool {
        self.agent.turn().is_some() || self.reply.is_active()
    }

    fn activity(&self) -> Activity {
        let speaking = self.reply.is_speaking();
        Activity {
            busy: self.is_busy(),
            speaking,
            spoken: if self.cx.echo_cancelled { String::new() } else { commands::plain(&self.reply.spoken()) },
        }
    }

    /// After every input: what follows from the new state of things.
    pub(super) fn settle(&mut self) {
        if !self.floor.is_hearing() {
            self.settle_notice(false);
        }
        self.announce_next();
        if self.reply.take_began() {
            self.floor.speech_began(&self.cx);
        }
        let listening = self.listening_now();
        if listening != self.listening && self.link != Link::Fresh {
            self.listening = listening;
            if self.link.is_up() {
                self.cx.push(Output::Listening(listening));
            }
        }
    }

    fn listening_now(&self) -> ListeningState {
        if self.muted {
            ListeningState::Muted
        } else if self.reply.is_speaking() {
            ListeningState::Speaking
        } else if self.agent.is_thinking() {
            ListeningState::Thinking
        } else if self.floor.is_hearing() {
            ListeningState::Hearing
        } else if self.floor.is_expecting(self.cx.now_us()) {
            ListeningState::Attentive
        } else {
            ListeningState::Idle
        }
    }
}
