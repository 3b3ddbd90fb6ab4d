//! What the wearer types and presses.

use alloc::string::String;

use super::{Conversation, stopping::Stop};
use crate::{
    approval::Answer,
    floor::commands::{self, Command, Translate},
    input::Button,
    limits::UTTERANCE_CHARS_MAX,
    link::Link,
    vocab::AnsweredBy,
};

impl Conversation {
    pub(super) fn typed(&mut self, text: &str) {
        let text = text.trim();
        if self.link == Link::Fresh || text.is_empty() {
            return;
        }
        let request: String = text.chars().take(UTTERANCE_CHARS_MAX).collect();
        let began_us = self.cx.now_us();
        let command = commands::command(&request);
        let is_expecting = self.floor.is_called(began_us) || self.floor.is_asked(began_us);
        let stops = command == Some(Command::Cancel) && (self.can_be_stopped() || is_expecting);
        let is_void = !stops && self.is_answer_to_be_repeated(&request, began_us);
        if is_void || self.approvals.is_premature(&self.cx, &request) {
            return;
        }
        let answer =
            Answer { text: &request, began_us, ended_us: began_us, late: false, echo: false, by: AnsweredBy::Text };
        let settled = self.approvals.handle_said(&mut self.cx, answer);
        if settled.is_some() {
            return self.approval_settled(settled);
        }
        match command {
            Some(Command::Cancel) if stops => {
                self.stop(Stop::Dismissed);
                self.floor.close_ear(&mut self.cx);
            }
            Some(Command::Repeat) => self.repeat(),
            Some(Command::Mute) => self.mute(true, true),
            Some(Command::Unmute) => self.tell_of_unmuting(false),
            Some(Command::Translate(wanted)) => self.translate(wanted),
            Some(Command::Cancel) if self.interpreter.is_on() => self.translate(Translate::End),
            _ => {
                self.by_hand_us = began_us;
                self.start_turn(request, None);
            }
        }
    }

    pub(super) fn button(&mut self, button: Button) {
        match button {
            Button::LongPress => self.mute(!self.muted, true),
            Button::Press if self.can_be_stopped() => self.stop(Stop::Dismissed),
            Button::Press if self.muted || !self.link.is_up() => {}
            Button::Press => {
                self.by_hand_us = self.cx.now_us();
                self.call();
            }
            Button::Down { at_us } => self.talk_down(at_us, false),
            Button::Up { at_us } => self.talk_up(at_us),
        }
    }
}
