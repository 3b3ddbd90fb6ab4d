//! A device's turns: the model is asked, and the turn ends.

use gateway_core::{
    input::{Input, UserInput},
    output::TurnOutcome,
    vocab::{Message, Pending, Turn},
};

use super::session::Session;

impl Session {
    pub(super) fn ask_model(&mut self, turn: Turn, rank: u8, messages: Vec<Message>, pending: Option<Pending>) {
        self.turns.begin(turn, self.services.telemetry.active_turns.begin());
        self.services.roster.turn(&self.id, self.number, Some(turn.id));
        let scene = self.services.assistant.scenes.of(&self.user.name);
        let asked = self.requests.ask_model(turn, rank, messages, (pending, scene));
        self.turns.record(turn.id).asked(turn, rank, (asked.known, asked.revision));
        if let Some(events) = asked.answer {
            self.input(Input::AnsweredOnBox { turn, events });
        }
    }

    pub(super) fn turn_done(&mut self, turn: Turn, messages: Vec<Message>, outcome: TurnOutcome) {
        self.typed.turn_done(turn);
        self.stored.turn_done(turn.id, self.link.incoming.control_received());
        self.give_up_asking();
        self.requests.turn_done(turn);
        let device = self.id.clone();
        self.tell_user(UserInput::TurnDone { device, turn, messages });
        self.services.telemetry.turns.push(self.turns.finish(turn, outcome));
        self.services.roster.turn(&self.id, self.number, self.turns.current().map(|turn| turn.id));
    }

    /// Has what the wearer has not heard told on the next device. It goes to the task that the user has now, since that of this session
    /// may have failed. Nothing is told of a user who was erased meanwhile.
    pub(super) fn undelivered(&self, text: String) {
        let (lease, users) = (self.user.lease.enter(), &self.services.users);
        if lease.is_none() || !users.undelivered(&self.user.name, text) {
            tracing::debug!(device = self.id, session = self.number, "what was not heard is told nowhere else");
        }
    }

    /// The wearer was told what the restart has cut off, and is being asked again or does not want to be; or all of it is told on the
    /// next device (`elsewhere`).
    pub(super) fn restart_told(&mut self, elsewhere: bool) {
        if elsewhere {
            self.services.resumption.stored.told(&self.id, &self.user.name);
            // Where its welcome has not arrived, the row of the session before it says that it is still to be told.
            self.stored.keep();
            self.stored.told_elsewhere();
        } else {
            self.stored.told();
        }
        self.give_up_asking();
    }

    /// Forgets questions of before a restart that nobody will put any more.
    pub(super) fn give_up_asking(&mut self) {
        if self.stored.is_settled() {
            self.requests.give_up_asking();
        }
    }
}
