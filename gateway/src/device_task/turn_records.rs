//! The records of a session's turns: what each took, stage by stage.

use std::collections::BTreeMap;

use gateway_core::{
    output::{Stage, TurnOutcome},
    vocab::Turn,
};

use crate::{
    mailbox::RequestSent,
    speech::ear::Ear,
    telemetry::{ActiveTurn, TurnRecord},
    transport::Transport,
};

/// Records of turns open at once: the current turn and those that wait for their last acknowledgement.
const RECORDS_MAX: usize = 8;

/// Records of turns that are not over, and which turn is being answered.
pub(super) struct TurnRecords {
    user: String,
    device: String,
    transport: Transport,
    open: BTreeMap<u32, TurnRecord>,
    /// The turn being answered, which counts among those of all sessions.
    current: Option<(Turn, ActiveTurn)>,
    /// Queue wait and duration of the last decode that was not a partial.
    last_decode: Option<(u64, u64)>,
}

impl TurnRecords {
    /// None yet, of this user's device over this transport.
    pub(super) fn new((user, device): (&str, &str), transport: Transport) -> Self {
        Self {
            user: user.to_owned(),
            device: device.to_owned(),
            transport,
            open: BTreeMap::new(),
            current: None,
            last_decode: None,
        }
    }

    /// Turns from now on come over this transport.
    pub(super) fn moved(&mut self, transport: Transport) {
        self.transport = transport;
    }

    /// This turn is being answered.
    pub(super) fn begin(&mut self, turn: Turn, counted: ActiveTurn) {
        self.current = Some((turn, counted));
    }

    /// The turn being answered.
    pub(super) fn current(&self) -> Option<Turn> {
        self.current.as_ref().map(|(turn, _)| *turn)
    }

    /// The record of a turn, created on first use.
    pub(super) fn record(&mut self, turn: u32) -> &mut TurnRecord {
        if self.open.len() >= RECORDS_MAX && !self.open.contains_key(&turn) {
            self.open.pop_first();
        }
        let (user, device, transport) = (&self.user, &self.device, self.transport.label);
        self.open.entry(turn).or_insert_with(|| TurnRecord {
            user: user.clone(),
            device: device.clone(),
            transport,
            turn,
            ..TurnRecord::default()
        })
    }

    /// A request of a turn has gone out.
    pub(super) fn request_sent(&mut self, sent: &RequestSent) {
        // If it arrives after the end of its turn, the record is gone.
        if let Some(record) = self.open.get_mut(&sent.turn.id) {
            record.sent(sent);
        }
    }

    /// A decode that was not a partial has waited and taken so long, in microseconds.
    pub(super) fn decoded(&mut self, queue_us: u64, decode_us: u64) {
        self.last_decode = Some((queue_us, decode_us));
    }

    /// Notes when a turn reached this stage. `ear`: the device's, if it has a microphone.
    pub(super) fn mark(&mut self, turn: Turn, stage: Stage, at_us: u64, ear: Option<&mut Ear>) {
        let at_us = match (stage, ear) {
            (Stage::LastVoice, Some(ear)) => {
                let (at_us, transit_us, busy_us) = (ear.to_gateway_us(at_us), ear.transit_us(), ear.take_busy_us());
                // Only recognised speech was decoded, and each decode belongs to one turn.
                let decode = self.last_decode.take();
                let record = self.record(turn.id);
                record.network_us.get_or_insert(transit_us);
                record.ear_us.get_or_insert(busy_us);
                record.end_score = ear.end_score();
                record.asr_queue_us = decode.map(|(queue_us, _)| queue_us);
                record.asr_decode_us = decode.map(|(_, decode_us)| decode_us);
                at_us
            }
            _ => at_us,
        };
        self.record(turn.id).mark(stage, at_us);
    }

    /// This turn is over; returns its record. One that was interrupted may wait for its calls, and end after the next one has
    /// begun, which goes on.
    pub(super) fn finish(&mut self, turn: Turn, outcome: TurnOutcome) -> TurnRecord {
        self.current.take_if(|(current, _)| current.id == turn.id);
        let mut record = self.open.remove(&turn.id).unwrap_or_default();
        record.finish(outcome);
        record
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::telemetry::ActiveTurns;

    #[test]
    fn a_turn_that_is_over_gets_no_record_again_and_the_oldest_gives_way() {
        let mut records = TurnRecords::new(("ann", "glasses"), Transport::WSS);
        let turn = Turn { id: 1, revision: 0 };
        records.record(1).follow_ups = 2;
        let record = records.finish(turn, TurnOutcome::Completed);
        assert_eq!(
            (record.user.as_str(), record.device.as_str(), record.transport, record.turn, record.follow_ups),
            ("ann", "glasses", "wss", 1, 2)
        );
        records.request_sent(&RequestSent { turn, at_us: 5, tools: 1 });
        assert!(records.open.is_empty());
        for turn in 1..=10 {
            records.record(turn);
        }
        assert!(records.open.keys().copied().eq(3..=10));
    }

    #[test]
    fn a_turn_that_ends_late_leaves_the_one_behind_it() {
        let (mut records, active_turns) =
            (TurnRecords::new(("ann", "glasses"), Transport::WSS), Arc::<ActiveTurns>::default());
        let [first, second] = [1, 2].map(|id| Turn { id, revision: 0 });
        records.begin(first, active_turns.begin());
        // The wearer interrupts it while its tool works.
        records.begin(second, active_turns.begin());
        records.finish(first, TurnOutcome::Interrupted);
        assert_eq!(records.current(), Some(second));
        // It may have been asked again since it began.
        records.finish(Turn { revision: 1, ..second }, TurnOutcome::Completed);
        assert_eq!(records.current(), None);
    }
}
