//! A device's turns: the model is asked, the turn ends, and the record of what it took is kept.

use gateway_core::{
    input::{Input, UserInput},
    output::{Stage, TurnOutcome},
    vocab::{Message, Pending, Turn},
};

use super::session::Session;
use crate::telemetry::TurnRecord;

/// Records of turns open at once: the current turn and those that wait for their last acknowledgement.
const RECORDS_MAX: usize = 8;

impl Session {
    pub(super) fn ask_model(&mut self, turn: Turn, rank: u8, messages: Vec<Message>, pending: Option<Pending>) {
        self.turn = Some((turn, self.services.telemetry.under_way.begin()));
        self.services.roster.turn(&self.id, self.number, Some(turn.id));
        let scene = self.services.assistant.scenes.of(&self.user_name);
        let asked = self.requests.ask_model(turn, rank, messages, (pending, scene));
        self.record(turn.id).asked(turn, rank, (asked.known, asked.revision));
        if let Some(events) = asked.answer {
            self.input(Input::AnsweredOnBox { turn, events });
        }
    }

    pub(super) fn turn_done(&mut self, turn: Turn, messages: Vec<Message>, outcome: TurnOutcome) {
        self.stored.turn_done(turn.id, self.incoming.control_received());
        self.give_up_asking();
        self.turn = None;
        self.services.roster.turn(&self.id, self.number, None);
        self.requests.turn_done(turn);
        let device = self.id.clone();
        self.tell_user(UserInput::TurnDone { device, turn, messages });
        let mut record = self.records.remove(&turn.id).unwrap_or_default();
        record.finish(outcome);
        self.services.telemetry.turns.push(record);
    }

    /// The wearer was told what the restart has cut off, and is being asked again or does not want to be.
    pub(super) fn restart_told(&mut self) {
        self.stored.told();
        self.give_up_asking();
    }

    /// Forgets questions of before a restart that nobody will put any more.
    fn give_up_asking(&mut self) {
        if self.stored.is_settled() {
            self.asked_before.give_up(&self.services.executor, &self.user_name);
        }
    }

    /// Notes when a turn reached this stage.
    pub(super) fn mark(&mut self, turn: Turn, stage: Stage, at_us: u64) {
        let at_us = match (stage, &mut self.ear) {
            (Stage::LastVoice, Some(ear)) => {
                let (at_us, transit_us, busy_us) = (ear.to_gateway_us(at_us), ear.transit_us(), ear.take_busy_us());
                let end_score = ear.end_score();
                // Only recognised speech was decoded, and each decode belongs to one turn.
                let decode = self.last_decode.take();
                let record = self.record(turn.id);
                record.network_us.get_or_insert(transit_us);
                record.ear_us.get_or_insert(busy_us);
                record.end_score = end_score;
                record.asr_queue_us = decode.map(|(queue_us, _)| queue_us);
                record.asr_decode_us = decode.map(|(_, decode_us)| decode_us);
                at_us
            }
            _ => at_us,
        };
        self.record(turn.id).mark(stage, at_us);
    }

    /// The turn being answered.
    pub(super) fn answered(&self) -> Option<Turn> {
        self.turn.as_ref().map(|(turn, _)| *turn)
    }

    /// The record of a turn, created on first use.
    pub(super) fn record(&mut self, turn: u32) -> &mut TurnRecord {
        if self.records.len() >= RECORDS_MAX && !self.records.contains_key(&turn) {
            self.records.pop_first();
        }
        let (device, transport) = (&self.id, self.transport.label);
        self.records.entry(turn).or_insert_with(|| TurnRecord {
            device: device.clone(),
            transport,
            turn,
            ..TurnRecord::default()
        })
    }
}
