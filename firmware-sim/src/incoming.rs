//! Handling of each message from the gateway.

use device_protocol::down::{ApprovalRequest, Clause, Display, ToolCall};
use device_protocol::{
    Class, Decoded, Down, Frame, GoodbyeReason, ListeningState, Message as _, Stamp, View, decode_down, limits, up,
};

use crate::display::Outcome;
use crate::driver::{ANSWERS_MAX, Driver, StandingQuestion};
use crate::names::named;
use crate::photo;
use crate::seen::Seen;
use crate::session::Verdict;

/// Most open approvals.
const APPROVALS_MAX: usize = 16;
/// A press within this time is not an answer to a question, as the wearer cannot have read it (PROTOCOL.md, section
/// 11).
const READ_US: u64 = 500_000;

impl Driver {
    pub(crate) fn handle_frame(&mut self, bytes: &[u8]) {
        let (class, stamp, message) = match decode_down(bytes) {
            Ok(Decoded::Frame(Frame { stamp, message })) => (message.class(), stamp, Some(message)),
            Ok(Decoded::Skipped { kind, stamp }) => (Class::of_kind(kind), stamp, None),
            Err(error) => return self.violation(GoodbyeReason::Malformed, error.to_string()),
        };
        let now_us = self.clock.now_us();
        match class {
            Class::Link | Class::Reserved => {}
            Class::Audio => self.sequences.receive_audio(now_us, stamp.sequence),
            Class::Control => match self.sequences.receive_control(now_us, stamp.sequence) {
                Verdict::Take => self.turn = self.turn.max(stamp.turn),
                Verdict::Drop => return,
                Verdict::Gap => {
                    let (last, _) = self.sequences.received();
                    let what = format!("control frame {} follows {last}", stamp.sequence);
                    return self.violation(GoodbyeReason::BadSequence, what);
                }
            },
        }
        if let Some(message) = message {
            self.handle_message(now_us, stamp, message);
        }
    }

    fn handle_message(&mut self, now_us: u64, stamp: Stamp, message: Down<'_>) {
        let turn = stamp.turn;
        match message {
            Down::Challenge(_) | Down::PairingCode(_) | Down::Welcome(_) | Down::Reject(_) => {
                let what = format!("{} after the handshake", message.name());
                self.violation(GoodbyeReason::UnexpectedMessage, what);
            }
            Down::Heartbeat(_) => self.echo = Some((stamp.time_us, now_us)),
            Down::Ack(ack) => {
                self.sequences.handle_ack(ack.control, ack.audio);
                self.sound_acknowledged(ack.audio, now_us);
                self.sequences.handle_dealt_with(ack.sound_until_us);
                self.code_sound(&ack);
                self.send_missing(ack.audio, ack.audio_missing, ack.audio_missing_bits);
            }
            // Another connection of these glasses has the session already, also one that they have given up.
            Down::Goodbye(goodbye) if goodbye.reason == GoodbyeReason::Replaced && self.may_replace_itself() => {
                self.lose("replaced by the next one");
            }
            Down::Goodbye(goodbye) => {
                let resumes = goodbye.reason == GoodbyeReason::ShuttingDown && self.options.reconnect;
                let reason = named(goodbye.reason.name());
                self.see(Seen::Goodbye { reason, message: goodbye.message.to_owned(), resumes });
                if resumes {
                    self.lose("the gateway stops");
                    self.not_before(goodbye.retry_after_ms);
                } else {
                    self.finish();
                }
            }
            Down::Listening(listening) => {
                self.is_needed = !matches!(listening.state, ListeningState::Idle | ListeningState::Muted);
                self.see(Seen::Listening { turn, state: named(listening.state.name()) });
            }
            Down::Transcript(transcript) => self.see(Seen::Transcript {
                turn,
                utterance: transcript.utterance,
                revision: transcript.revision,
                is_final: transcript.is_final,
                addressed: transcript.addressed,
                text: transcript.text.to_owned(),
            }),
            Down::Display(display) => self.handle_display(now_us, turn, &display),
            Down::SpeechStart(start) => {
                self.see(Seen::SpeechStart { turn, speech: start.speech, text: start.text.to_owned() });
                if let Err(what) = self.speaker.handle_start(now_us, turn, &start) {
                    self.violation(GoodbyeReason::BadFormat, what);
                }
            }
            Down::Clause(clause) => self.handle_clause(turn, &clause),
            Down::SpeechChunk(chunk) => self.speaker.handle_chunk(now_us, stamp.sequence, &chunk),
            Down::SpeechEnd(end) => self.speaker.handle_end(now_us, &end),
            Down::Hush(hush) => {
                self.see(Seen::Hush { speech: hush.speech, fade_ms: hush.fade_ms });
                self.speaker.handle_hush(now_us, hush.speech, hush.fade_ms);
            }
            Down::ToolActivity(activity) => self.see(Seen::ToolActivity {
                turn,
                call: activity.call,
                label: activity.label.to_owned(),
                state: named(activity.state.name()),
            }),
            Down::ApprovalRequest(request) => self.handle_approval(now_us, &request),
            Down::ApprovalSettled(settled) => {
                self.approvals.retain(|open| open.approval != settled.approval);
                let choice = named(settled.choice.name());
                self.see(Seen::ApprovalSettled { approval: settled.approval, choice });
            }
            Down::ToolCall(call) => self.handle_tool_call(turn, &call),
            // Each tool here finishes before a cancel could arrive; its result is already in transit.
            Down::ToolCancel(_) => {}
            Down::Warning(warning) => self.see(Seen::Warning {
                code: named(warning.code.name()),
                name: warning.name.to_owned(),
                message: warning.message.to_owned(),
            }),
            Down::FirmwareOffer(offer) => self.handle_offer(&offer),
            Down::FirmwareChunk(chunk) => self.handle_piece(&chunk),
            Down::FirmwareCancel(cancel) => self.handle_withdrawn(cancel.update),
            Down::Chime(chime) => self.see(Seen::Chime { sound: named(chime.sound.name()) }),
        }
    }

    fn handle_display(&mut self, now_us: u64, turn: u32, display: &Display<'_>) {
        if self.options.profile.display.is_none() {
            return;
        }
        match self.screen.handle(now_us, display) {
            Outcome::Taken => self.show(turn, display.view),
            Outcome::Stale => self.see(Seen::DisplayStale { revision: display.revision }),
            Outcome::Unknown => {}
        }
    }

    /// Redraws after a content ended.
    pub(crate) fn draw(&mut self) {
        self.show(self.turn, View::Main);
    }

    fn show(&self, turn: u32, view: View) {
        let (text, lines) = (self.screen.text(view), self.screen.draw(view));
        self.see(Seen::Display { turn, view: named(view.name()), text, lines });
    }

    fn handle_clause(&mut self, turn: u32, clause: &Clause<'_>) {
        self.speaker.handle_clause(clause);
        let (speech, clause, text) = (clause.speech, clause.clause, clause.text.to_owned());
        self.see(Seen::Clause { turn, speech, clause, text });
    }

    fn handle_approval(&mut self, now_us: u64, request: &ApprovalRequest<'_>) {
        if self.approvals.len() == APPROVALS_MAX {
            self.approvals.remove(0);
        }
        self.approvals.push(StandingQuestion {
            approval: request.approval,
            readable_us: now_us + READ_US,
            expires_us: now_us + u64::from(request.expires_ms) * 1_000,
            choice: None,
        });
        self.see(Seen::ApprovalRequest {
            approval: request.approval,
            title: request.title.to_owned(),
            message: request.message.to_owned(),
        });
    }

    fn handle_tool_call(&mut self, turn: u32, call: &ToolCall<'_>) {
        let known = self.answers.iter().find(|(number, _)| *number == call.call);
        let again = known.is_some();
        let answer = match known {
            Some((_, answer)) => answer.clone(),
            None => self.controls.call(call.name, call.arguments),
        };
        if !again {
            if self.answers.len() == ANSWERS_MAX {
                self.answers.pop_front();
            }
            self.answers.push_back((call.call, answer.clone()));
            if let Some(number) = answer.photo {
                self.send_photo(call.call, number);
            }
        }
        self.see(Seen::ToolCalled {
            turn,
            call: call.call,
            name: call.name.to_owned(),
            arguments: call.arguments.to_owned(),
            ok: answer.error.is_empty(),
            content: answer.content.clone(),
        });
        self.control(up::ToolResult {
            call: call.call,
            ok: answer.error.is_empty(),
            content: &answer.content,
            data: &answer.data,
            error: answer.error,
        });
    }

    fn send_photo(&mut self, call: u32, number: u32) {
        let sight = self.options.profile.sight.clone();
        let (mime, file) = sight.unwrap_or_else(|| (photo::MIME.to_owned(), photo::take(number)));
        let pieces = file.chunks(limits::PHOTO_CHUNK_BYTES_MAX);
        let last = pieces.len().saturating_sub(1);
        for (index, payload) in pieces.enumerate() {
            self.control(up::PhotoChunk {
                photo: number,
                call,
                index: u16::try_from(index).unwrap_or(u16::MAX),
                last: index == last,
                mime: &mime,
                payload,
            });
        }
    }
}
