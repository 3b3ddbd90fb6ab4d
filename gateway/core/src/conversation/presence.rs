//! The device's coming and going, and the end of everything.

use alloc::{format, string::ToString, vec::Vec};

use super::{
    Conversation,
    owed::{restart_told_elsewhere, unknown_told},
};
use crate::{
    agent::{history::Heard, phrases},
    approval,
    input::Input,
    link::Link,
    output::{Chime, CloseReason, Output, TurnOutcome},
    reply::{Ended, Purpose},
    vocab::{AppEvent, DeviceInfo, ListeningState, LostTurn, Remains, SoundReport, Unkept},
};

impl Conversation {
    pub(super) fn connected(&mut self, device: &DeviceInfo, resumed: bool) {
        // A device that moves to another connection resumes before the old one is known to be lost.
        self.link_lost();
        let lost_us = match self.link {
            Link::Lost { since_us } if resumed => Some(self.cx.now_us().saturating_sub(since_us)),
            _ => None,
        };
        if lost_us.is_none() {
            self.give_up();
            self.floor.handle_begun();
            self.listening = ListeningState::Idle;
        }
        self.cx.display = device.display;
        self.cx.speaker = device.speaker;
        self.cx.echo_cancelled = device.echo_cancelled;
        self.cx.captions = device.captions;
        self.link.handle_connected(&mut self.cx);
        self.quality.handle_connected();
        self.cx.screen(|screen, now| screen.handle_connected(now, device, lost_us.is_none()));
        if let Some(lost_us) = lost_us {
            let activity = self.activity();
            self.floor.handle_resumed(&mut self.cx, &activity, lost_us);
            self.agent.handle_resumed(&mut self.cx);
            self.approvals.handle_resumed(&self.cx);
            let ended = self.reply.handle_resumed(&mut self.cx);
            self.ended(ended);
        }
        if self.muted {
            self.cx.push(Output::SetMuted { muted: true, stays: self.mute_stays });
        }
        let turn = self.agent.turn();
        self.cx.push(Output::Listening { turn, state: self.listening });
    }

    /// A mini-app does something. One that comes to listen in front is who is spoken to next.
    pub(super) fn app(&mut self, event: AppEvent) {
        let listened = self.cx.app_listens();
        self.cx.app(event);
        if self.cx.app_listens() && !listened {
            self.floor.hand_over(&mut self.cx);
        }
    }

    /// A wearer who asks, types, presses or looks up is not asleep, nor is one who speaks to an app that listens.
    pub(super) fn note_awake(&mut self, input: &Input) {
        let is_awake = match input {
            Input::Text(_) | Input::TextRepeated(_) | Input::Look { up: true } => true,
            Input::Button(_) | Input::ButtonRepeated(_) => true,
            Input::Voice(_) => self.cx.app_listens(),
            _ => self.agent.turn().is_some(),
        };
        if is_awake {
            self.notices.handle_awake(self.cx.now_us());
        }
    }

    pub(super) fn link_lost(&mut self) {
        if !self.link.is_up() {
            return;
        }
        self.link.handle_lost(&mut self.cx);
        self.floor.handle_lost(&mut self.cx);
        self.agent.handle_link_lost(&mut self.cx);
        self.cx.screen(|screen, _| screen.handle_lost());
        self.reply.watch(&mut self.cx, false);
        self.notices.give_back(&mut self.cx);
        self.settle_notice(false);
        if matches!(self.reply.purpose(), Some(Purpose::Notice { .. })) {
            let ended = self.reply.stop(&mut self.cx);
            self.ended(ended);
        }
    }

    /// What was being said when the link broke is not whole: it is not acted upon.
    pub(super) fn sound_missed(&mut self, packets: u32, until_us: u64) {
        let event = self.floor.handle_missed(&mut self.cx, packets, until_us);
        self.heard(event);
    }

    /// The coding of sound follows what the link does to it.
    pub(super) fn sound_reported(&mut self, report: SoundReport) {
        if let Some(coding) = self.quality.handle_report(self.cx.now_us(), report) {
            self.cx.push(Output::CodeSound(coding));
        }
    }

    /// Goes on after a restart. A turn died with the process: the wearer is told, and decides whether to ask again. Calls
    /// that waited for consent are asked about again, in a turn of their own.
    pub(super) fn restarted(&mut self, remains: Remains) {
        if let Some(ear) = remains.ear {
            self.floor.reopen_ear(&mut self.cx, ear);
        }
        let question = remains.question.filter(|question| self.is_to_be_asked_again(question));
        let Some(LostTurn { request, unknown, asked }) = remains.turn else {
            return question.into_iter().for_each(|question| self.expect_question_again(question, false));
        };
        let asks = !asked.is_empty() || question.is_some();
        self.restart_untold = Some(restart_told_elsewhere(&unknown, asks));
        let unknown = unknown_told(&unknown);
        let told = match (asks, &unknown) {
            (false, None) => phrases::RESTARTED,
            (false, Some(_)) => phrases::RESTARTED_IN_CALL,
            (true, _) => phrases::RESTARTED_IN_QUESTION,
        };
        let text = unknown.map_or_else(|| told.to_string(), |unknown| format!("{told} {unknown}"));
        self.aside(&text);
        if !asked.is_empty() {
            self.expect_asking_again(request, asked);
        } else if let Some(question) = question {
            self.expect_question_again(question, true);
        }
    }

    /// Reports when nothing of what a restart has cut off is left to be told: the news was heard, or cut off by the
    /// wearer, and what waited for consent is taken up, or not wanted any more.
    pub(super) fn settle_restart(&mut self) {
        let is_open = self.unanswered.is_some() || self.reply.purpose() == Some(&Purpose::Aside);
        if self.restart_untold.is_some() && !is_open {
            self.restart_untold = None;
            self.cx.push(Output::RestartTold { elsewhere: false });
        }
    }

    /// Tells of a fault of the microphone, where nobody else has the floor and nobody sleeps.
    pub(super) fn tell_of_microphone(&mut self) {
        let now_us = self.cx.now_us();
        let is_free = self.link.is_up() && !self.is_busy() && !self.floor.is_hearing() && !self.floor.is_called(now_us);
        if !is_free || self.muted || self.notices.may_sleep(&self.cx) {
            return;
        }
        if let Some(text) = self.microphone.take(now_us) {
            self.cx.chime(Chime::Trouble);
            self.aside(text);
        }
    }

    pub(super) fn device_silent(&mut self) {
        self.cx.push(Output::Close { reason: CloseReason::Silent });
        self.link_lost();
    }

    pub(super) fn resume_expired(&mut self) {
        if !matches!(self.link, Link::Lost { .. }) {
            return;
        }
        self.give_up();
        self.link.expire(&mut self.cx);
        self.cx.disarm_all();
    }

    pub(super) fn shutdown(&mut self) {
        self.reset();
        self.link.close(&mut self.cx, CloseReason::Shutdown);
        self.cx.disarm_all();
    }

    /// After the end of the session: requests are refused, and what the wearer must still learn goes to the next
    /// device.
    pub(super) fn refuse(&mut self, input: Input) {
        match input {
            Input::Announce(announcement) => self.cx.push(Output::Announced { id: announcement.id, heard: false }),
            Input::ApprovalAsked(asked) => {
                approval::refuse(&mut self.cx, &asked);
            }
            Input::NotKept(Unkept::Photo) => {
                self.cx.push(Output::Undelivered { text: phrases::PHOTO_NOT_KEPT.to_string() });
            }
            _ => {}
        }
    }

    /// Ends everything. What a lost link has kept from the wearer is told elsewhere.
    fn give_up(&mut self) {
        if matches!(self.link, Link::Lost { .. }) {
            self.tell_elsewhere();
        }
        self.reset();
    }

    /// Ends everything that belongs to the session.
    fn reset(&mut self) {
        self.approvals.give_up(&mut self.cx);
        self.interpreter.end(&mut self.cx);
        self.restart_untold = None;
        self.unanswered = None;
        self.telling.clear();
        self.afterwards.clear();
        self.forget_waiting();
        self.notices.give_back(&mut self.cx);
        self.settle_notice(false);
        self.floor.discard(&mut self.cx);
        let heard = match self.reply.stop(&mut self.cx) {
            Some(Ended { purpose: Purpose::Answer, heard, .. }) => heard,
            other => {
                self.ended(other);
                Heard::Part(Vec::new())
            }
        };
        // The pages around a question, too: with nothing said any more, they are what is stopped.
        let nothing = self.reply.stop(&mut self.cx);
        debug_assert!(nothing.is_none(), "it was stopped");
        self.agent.abandon(&mut self.cx, heard, TurnOutcome::Interrupted);
    }
}
