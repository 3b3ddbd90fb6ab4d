//! The record of a turn, with every stage.

use gateway_core::{
    output::{Stage, TurnOutcome},
    vocab::{Turn, Usage},
};
use serde::Serialize;

use crate::{clock, mailbox::RequestSent};

/// When each stage of a turn was reached, in microseconds of the gateway's clock, and how long the
/// parts took. Absent: the turn did not come through there.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TurnRecord {
    /// Whose turn it was. Glasses may have been paired for somebody else since.
    pub user: String,
    /// Fingerprint of the device.
    pub device: String,
    /// `ws`, `wss`, `quic` or `text`.
    pub transport: &'static str,
    /// Unique within the session.
    pub turn: u32,
    /// How it ended.
    pub outcome: &'static str,
    /// Requests to models.
    pub requests: u32,
    /// Times that it was begun anew, with another model or with other tools.
    pub restarts: u16,
    /// Rank of the model that was asked last.
    pub model_rank: Option<u8>,
    /// Tools that there were for the last request: those of this user, device and client that are not switched off.
    pub tools_known: Option<u32>,
    /// The catalogue's revision at that moment.
    pub tools_revision: Option<u64>,
    /// Tools that the last request that went out told its model of: what the router chose, and the provider takes.
    pub tools_offered: Option<u32>,
    /// Tokens of all requests.
    pub input_tokens: u64,
    /// Tokens of all answers.
    pub output_tokens: u64,
    /// Sentences that the display offered to say next.
    pub follow_ups: u8,
    /// Capture time of the last voiced sample.
    pub last_voice_us: Option<u64>,
    /// How long the latest packet had travelled by then, beyond the fastest one of the session.
    pub network_us: Option<u64>,
    /// Decoding and voice activity of all packets since the turn before, summed up.
    pub ear_us: Option<u64>,
    /// Probability that the speaker was done, of the last pause that was judged in time.
    pub end_score: Option<f32>,
    /// The end of turn was decided.
    pub end_decided_us: Option<u64>,
    /// Wait of the final decode for a recognition thread.
    pub asr_queue_us: Option<u64>,
    /// The final decode itself.
    pub asr_decode_us: Option<u64>,
    /// The words of the request were accepted: the final transcript, or a text that was typed.
    pub final_us: Option<u64>,
    /// The connection to the model's server took up the turn's first request, whole. Everything that the gateway does
    /// for it is over by then, a new connection and TLS included; what is left is one write of the system. A request
    /// that is tried again counts from its first try. Absent where the box answered.
    pub request_sent_us: Option<u64>,
    /// First event of the model.
    pub model_first_us: Option<u64>,
    /// First tool call handed out.
    pub tool_start_us: Option<u64>,
    /// Last tool result in.
    pub tool_end_us: Option<u64>,
    /// First text on its way to the display.
    pub first_display_us: Option<u64>,
    /// First clause handed to synthesis.
    pub first_clause_us: Option<u64>,
    /// Its wait for a synthesis thread.
    pub tts_queue_us: Option<u64>,
    /// Synthesis of that clause.
    pub tts_us: Option<u64>,
    /// First speech frame sent.
    pub first_frame_us: Option<u64>,
    /// The device acknowledged that it played.
    pub heard_us: Option<u64>,
    /// When it ended, in milliseconds since the Unix epoch.
    pub ended_wall_ms: i64,
}

impl TurnRecord {
    /// Notes a stage; the first time counts.
    pub fn mark(&mut self, stage: Stage, at_us: u64) {
        let place = match stage {
            Stage::LastVoice => &mut self.last_voice_us,
            Stage::EndDecided => &mut self.end_decided_us,
            Stage::Final => &mut self.final_us,
            Stage::ModelFirst => &mut self.model_first_us,
            Stage::ToolStart => &mut self.tool_start_us,
            Stage::ToolEnd => {
                self.tool_end_us = Some(at_us);
                return;
            }
            Stage::FirstClause => &mut self.first_clause_us,
            Stage::FirstDisplay => &mut self.first_display_us,
            Stage::Heard => &mut self.heard_us,
        };
        place.get_or_insert(at_us);
    }

    /// Notes a request to a model, made with so many tools of this revision of the catalogue.
    pub fn asked(&mut self, turn: Turn, rank: u8, (known, revision): (u32, u64)) {
        self.requests += 1;
        self.restarts = turn.revision;
        self.model_rank = Some(rank);
        self.tools_known = Some(known);
        self.tools_revision = Some(revision);
    }

    /// Notes that a request has gone out.
    pub fn sent(&mut self, sent: &RequestSent) {
        self.request_sent_us.get_or_insert(sent.at_us);
        self.tools_offered = Some(sent.tools);
    }

    /// From the accepted words to the first request on its way, in microseconds.
    pub(crate) fn request_us(&self) -> Option<u64> {
        Some(self.request_sent_us?.saturating_sub(self.final_us?))
    }

    /// The stages that it came through, and how long after the last voiced sample, or after a typed text, in microseconds.
    pub(super) fn stages(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let began = self.last_voice_us.or(self.final_us);
        let stages = [
            ("end", self.end_decided_us),
            ("final", self.final_us),
            ("request", self.request_sent_us),
            ("model", self.model_first_us),
            ("tool", self.tool_end_us),
            ("display", self.first_display_us),
            ("speech", self.first_frame_us),
            ("heard", self.heard_us),
        ];
        stages.into_iter().filter_map(move |(stage, at)| Some((stage, at?.saturating_sub(began?))))
    }

    /// Notes what a request took.
    pub fn used(&mut self, usage: Usage) {
        self.input_tokens += u64::from(usage.input);
        self.output_tokens += u64::from(usage.output);
    }

    /// Ends the record and logs it.
    pub fn finish(&mut self, outcome: TurnOutcome) {
        self.ended_wall_ms = clock::wall_ms();
        self.outcome = match outcome {
            TurnOutcome::Completed => "completed",
            TurnOutcome::Interrupted => "interrupted",
            TurnOutcome::Failed => "failed",
        };
        let since = |later: Option<u64>, earlier: Option<u64>| Some((later?.saturating_sub(earlier?)) / 1000);
        tracing::info!(
            target: "turn",
            device = self.device,
            user = self.user,
            turn = self.turn,
            transport = self.transport,
            outcome = self.outcome,
            model = self.model_rank,
            requests = self.requests,
            tools_known = self.tools_known,
            tools_offered = self.tools_offered,
            tools_revision = self.tools_revision,
            tokens = self.input_tokens + self.output_tokens,
            end_ms = since(self.end_decided_us, self.last_voice_us),
            final_ms = since(self.final_us, self.last_voice_us),
            request_us = self.request_us(),
            display_ms = since(self.first_display_us, self.last_voice_us),
            speech_ms = since(self.first_frame_us, self.last_voice_us),
            asr_queue_ms = self.asr_queue_us.map(|us| us / 1000),
            asr_decode_ms = self.asr_decode_us.map(|us| us / 1000),
            tool_ms = since(self.tool_end_us, self.tool_start_us),
            tts_ms = self.tts_us.map(|us| us / 1000),
            "turn"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_is_timed_and_the_last_one_counted() {
        let mut record = TurnRecord::default();
        let turn = Turn { id: 1, revision: 0 };
        record.mark(Stage::Final, 1_000);
        record.asked(turn, 0, (40, 7));
        assert_eq!((record.request_us(), record.tools_offered), (None, None), "nothing has gone out yet");
        record.sent(&RequestSent { turn, at_us: 1_600, tools: 12 });
        record.asked(turn, 0, (41, 8));
        record.sent(&RequestSent { turn, at_us: 9_000, tools: 13 });
        assert_eq!((record.request_us(), record.requests), (Some(600), 2));
        let tools = (record.tools_known, record.tools_offered, record.tools_revision);
        assert_eq!(tools, (Some(41), Some(13), Some(8)));
    }
}
