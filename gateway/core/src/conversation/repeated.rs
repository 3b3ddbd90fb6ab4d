//! After a restart the glasses repeat what was said meanwhile. It is older than what the wearer types after it, and than the
//! news of the restart: it interrupts neither, but waits for them; a "stop" ends only what was said before it. So it is with what is
//! decoded so late that the wearer has typed something since.

use alloc::{collections::VecDeque, string::String};

use super::Conversation;
use crate::{
    agent::Spoken,
    floor::commands::{self, Command},
    input::Button,
    limits::UTTERANCES_PENDING_MAX,
    output::Chime,
    reply::Purpose,
    vocab::Turn,
};

/// Sound that the glasses repeat.
#[derive(Debug, Default)]
pub(super) struct Repeated {
    /// Voices that begin before this are repeated, monotonic.
    until_us: u64,
    /// Requests that wait for the answer to a typed one, or for the news of the restart, oldest first.
    waiting: VecDeque<(String, Spoken)>,
    /// The turn whose question, cut off by the restart, is asked again.
    asked_again: Option<Turn>,
}

impl Conversation {
    /// The glasses repeat sound until then.
    pub(super) fn note_repeated(&mut self, until_us: u64) {
        self.repeated.until_us = until_us;
    }

    /// This turn asks a question again that the restart has cut off.
    pub(super) fn note_asked_again(&mut self, turn: Option<Turn>) {
        self.repeated.asked_again = turn;
    }

    /// Whether a voice that began at this time, monotonic, was said before the restart.
    pub(super) fn is_from_before(&self, began_us: u64) -> bool {
        began_us < self.repeated.until_us
    }

    /// Whether what is going on is newer than a voice that began at this time, monotonic: a typed request, or, where it is repeated,
    /// the news of the restart.
    pub(super) fn is_older_than_reply(&self, began_us: u64) -> bool {
        let tells_news = self.restart_untold.is_some() && self.reply.purpose() == Some(&Purpose::Aside);
        let is_repeated = self.is_from_before(began_us);
        self.agent.is_typed() && (is_repeated || began_us < self.by_hand_us) || is_repeated && tells_news
    }

    /// Whether a request that began at this time is repeated, and older than what is being answered or asked.
    pub(super) fn is_older(&self, began_us: u64) -> bool {
        let is_asked = || self.is_from_before(began_us) && self.floor.is_asked_since(began_us);
        self.is_older_than_reply(began_us) || is_asked()
    }

    /// Typed before the restart. A yes or a no was the answer to a question that has died with the process, and may have been
    /// acted upon: it is no request, and no answer to what is asked since then. An engine's question lives on, and a "stop"
    /// ends a turn that was typed before it.
    pub(super) fn typed_before(&mut self, text: &str) {
        let is_asked = self.is_asked_from_before(self.cx.now_us());
        let ends_turn = self.agent.turn().is_some() && commands::command(text) == Some(Command::Cancel);
        let counts = self.approvals.standing().is_none() && (is_asked || ends_turn);
        if counts || commands::yes_or_no(text).is_none() {
            // What is still to be asked again is newer.
            let unanswered = self.unanswered.take();
            self.typed(text);
            self.unanswered = unanswered;
        }
    }

    /// Whether what began at this time may answer the offline engine's own question, which has outlived the restart.
    fn is_asked_from_before(&self, began_us: u64) -> bool {
        self.floor.has_open_question(began_us) && !self.floor.is_asked_since(0)
    }

    /// Whether this is a yes or a no that counts for nothing: to a question that is asked again, or said before the restart, as
    /// where it is [typed](Self::typed_before).
    pub(super) fn is_void_answer(&self, text: &str, began_us: u64) -> bool {
        let is_from_before = self.is_from_before(began_us) && commands::yes_or_no(text).is_some();
        self.is_answer_to_be_repeated(text, began_us) || is_from_before && !self.is_asked_from_before(began_us)
    }

    /// Whether a "stop" that began at this time was said before the restart, and what it meant has died with the process.
    pub(super) fn is_void_stop(&self, began_us: u64) -> bool {
        let is_from_before = self.is_from_before(began_us) && self.agent.turn().is_none();
        is_from_before && !self.is_asked_from_before(began_us)
    }

    /// Pressed before the restart. It stops what was asked for before it and is repeated as well; what it was to stop else has died
    /// with the process. Neither the news of the restart, nor a question that is asked again, nor anything else that has begun since
    /// then is stopped by it.
    pub(super) fn pressed_before(&mut self, button: Button) {
        let turn = self.agent.turn();
        let asks = self.approvals.standing().is_some() || turn == self.repeated.asked_again;
        let is_newer = self.is_busy() && (turn.is_none() || asks);
        // What is still to be asked again is newer, too.
        let unanswered = self.unanswered.take();
        match button {
            Button::Press if is_newer => {}
            Button::Down { at_us } => self.talk_down(at_us, is_newer),
            _ => self.button(button),
        }
        self.unanswered = unanswered;
    }

    /// A request is dealt with once nothing else goes on. Of too many the oldest is left out.
    pub(super) fn wait_for_typed(&mut self, request: String, spoken: Spoken) {
        // A wake phrase before it has called, and nothing begins while a call is open.
        if self.is_older_than_reply(spoken.started_us) {
            self.floor.end_call(&mut self.cx);
        }
        let waiting = &mut self.repeated.waiting;
        if waiting.len() >= UTTERANCES_PENDING_MAX {
            waiting.pop_front();
        }
        waiting.push_back((request, spoken));
    }

    /// Whether a request waits.
    pub(super) fn has_waiting(&self) -> bool {
        !self.repeated.waiting.is_empty()
    }

    /// The wearer wants nothing more of what waits.
    pub(super) fn forget_waiting(&mut self) {
        self.repeated.waiting.clear();
    }

    /// Begins the request that has waited longest, if nothing else goes on, and nobody is to answer a question first.
    pub(super) fn begin_waiting(&mut self) {
        let free = !self.floor.is_hearing() && !self.floor.is_called(self.cx.now_us());
        if self.is_busy() || !self.link.is_up() || !free {
            return;
        }
        let Some((request, spoken)) = self.repeated.waiting.pop_front() else {
            return;
        };
        match commands::command(&request) {
            // It meant an answer from before the restart.
            Some(Command::Repeat) => self.begin_waiting(),
            Some(Command::Unmute) => self.tell_of_unmuting(true),
            Some(Command::Translate(wanted)) => self.translate(wanted),
            _ => {
                self.start_turn(request, Some(spoken));
                self.cx.chime(Chime::Understood);
                self.cx.name_turn(self.agent.turn());
            }
        }
    }
}
