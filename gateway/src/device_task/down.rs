//! Carries out the core's outputs.

use device_protocol::{Choice, Down, GoodbyeReason, Sound, down as message, limits};
use gateway_core::{
    input::{AnnouncementId, Input, UserInput},
    output::{Chime, CloseReason, Output, Stage, ToolActivityState},
    vocab::{ApprovalOutcome, ListeningState, Transcript, TranscriptKind, Turn},
};

use super::session::{Asked, End, Session, Speech, turn_on_wire};
use crate::{
    clock,
    mailbox::Transcribed,
    speech::ear::Ear,
    telemetry::TurnRecord,
    text::crop,
    transport::{self, LinkError},
};

/// Milliseconds over which the device fades what it still plays.
const HUSH_FADE_MS: u16 = 30;
/// Records of turns open at once: the current turn and those that wait for their last acknowledgement.
const RECORDS_MAX: usize = 8;
impl Session {
    #[expect(clippy::too_many_lines, reason = "a plain match, one output after another")]
    pub(super) fn carry_out(&mut self, output: Output) -> Result<(), LinkError> {
        match output {
            Output::Transcribe { utterance, revision, kind, meant, from_us } => {
                let decode = |ear: &mut Ear| ear.transcribe((utterance, revision), (kind, meant), from_us);
                let taken = self.ear.as_mut().is_some_and(decode);
                if !taken {
                    self.input(Input::TranscriptFailed { utterance, revision });
                }
            }
            Output::Translate { utterance } => self.translate_for_wearer(utterance),
            Output::Wake(outcome) => self.services.engines.wake_counts.settled(outcome),
            Output::UtteranceLost { addressed } => self.services.losses.count(addressed),
            Output::MatchCommand { utterance, revision, text, pending } => {
                let scene = self.services.scenes.of(&self.user_name);
                if let Some(matched) = self.requests.match_command((utterance, revision), &text, pending, scene) {
                    self.input(matched);
                }
            }
            Output::SetVocabulary(vocabulary) => {
                if let Some(ear) = &mut self.ear {
                    ear.set_vocabulary(vocabulary);
                }
            }
            Output::CancelTranscribe { utterance, revision } => {
                if let Some(ear) = &mut self.ear {
                    ear.cancel_transcribe(utterance, revision);
                }
            }
            Output::UtterancesSettled { until } => self.stored.utterances_settled(until),
            Output::CloseUtterance { utterance } => {
                if let Some(ear) = &mut self.ear {
                    ear.close_utterance(utterance, clock::mono_us());
                    self.stored.utterance_ended(utterance, ear.heard_until_us());
                }
            }
            Output::SetMuted(muted) => {
                self.status.lock().unwrap_or_else(std::sync::PoisonError::into_inner).muted = muted;
                self.stored.muted(muted);
                if let Some(ear) = &mut self.ear {
                    ear.set_muted(muted);
                }
            }
            Output::Listening { turn, state } => {
                self.update.conversation(state);
                let listening = message::Listening { state: listening(state) };
                self.send(turn, Down::Listening(listening))?;
            }
            Output::Caption { turn, utterance, revision, last, addressed, text } => {
                self.tap.words(utterance, &text, last);
                if last && self.tap.wants_translations() {
                    self.translate_for_apps(utterance);
                }
                let transcript = message::Transcript {
                    utterance,
                    revision: revision.into(),
                    is_final: last,
                    addressed,
                    text: self.room.crop(&text, limits::TEXT_BYTES_MAX, 0),
                };
                self.send(turn, Down::Transcript(transcript))?;
            }
            Output::ExpectRequest { rank } => {
                self.requests.expect_request(rank);
                self.stored.called(self.ear.as_ref().and_then(Ear::heard_until_us));
            }
            Output::EarOpen(ear) => self.stored.ear(ear),
            Output::QuestionOpen(question) => self.stored.question(question),
            Output::RequestTurn { turn, request } => {
                self.stored.turn(Some(request), self.incoming.control_received());
                let device = self.id.clone();
                self.tell_user(UserInput::TurnRequested { device, turn });
            }
            Output::TurnReopened { request, .. } => {
                self.stored.turn(Some(request), self.incoming.control_received());
            }
            Output::AskModel { turn, rank, messages, pending } => {
                self.turn = Some((turn, self.services.under_way.begin()));
                self.services.roster.turn(&self.id, self.number, Some(turn.id));
                let scene = self.services.scenes.of(&self.user_name);
                let asked = self.requests.ask_model(turn, rank, messages, (pending, scene));
                self.record(turn.id).asked(turn, rank, (asked.known, asked.revision));
                if let Some(events) = asked.answer {
                    self.input(Input::AnsweredOnBox { turn, events });
                }
            }
            Output::ModelUsed { turn, rank, usage, outcome } => {
                self.record(turn.id).used(usage);
                self.tell_user(UserInput::ModelUsed { rank, usage, outcome });
            }
            Output::FallbackTold { reason, level } => {
                self.tell_user(UserInput::FallbackTold { reason, level });
            }
            Output::FollowUpsOffered { turn, count } => self.record(turn.id).follow_ups = count,
            Output::CancelModel { turn } => self.requests.cancel_model(turn),
            Output::RunTool { turn, call } => {
                let declared = self.requests.declared(turn, &call);
                self.requests.run_tool(turn, call);
                declared.into_iter().for_each(|input| self.input(input));
            }
            Output::Prefer(preference) => self.services.preferences.keep(&self.user_name, preference),
            Output::CancelTool { call_id, .. } => self.requests.cancel_tool(&call_id),
            Output::ToolActivity { turn, call_id, tool, state } => {
                let label = self.requests.title(&tool);
                self.activity(turn, call_id, &label, state)?
            }
            // A further start of the same call, with another label.
            Output::ToolProgress { turn, call_id, line } => {
                self.activity(turn, call_id, &line, ToolActivityState::Started)?;
            }
            Output::Speak { turn, speech, clause, text, last } => self.speak(turn, speech, clause, text, last)?,
            Output::EndSpeech { speech, clause } => {
                if let Some(mouth) = &mut self.mouth {
                    mouth.end(speech, clause, &self.mailbox);
                }
            }
            Output::Play { speech, clause, sound, piece, last } => {
                self.play(speech, clause, sound, piece, last)?;
            }
            Output::Hush { speech } => {
                if let Some(mouth) = &mut self.mouth {
                    mouth.hush(speech, clock::mono_us());
                }
                self.speech_end.take_if(|(_, end)| end.speech == speech);
                let turn = self.speech.filter(|latest| latest.number == speech).and_then(|latest| latest.turn);
                self.send(turn, Down::Hush(message::Hush { speech, fade_ms: HUSH_FADE_MS }))?;
            }
            Output::Display(command) => self.display(&command)?,
            Output::Chime(chime) => {
                let sound = match chime {
                    Chime::Attentive => Sound::Wake,
                    Chime::Understood => Sound::Done,
                    Chime::Working => Sound::Working,
                    Chime::Notice => Sound::Alarm,
                    Chime::Trouble => Sound::Error,
                };
                self.send(None, Down::Chime(message::Chime { sound }))?;
            }
            Output::AskApproval(approval) => {
                let title = crop(&approval.question.title, limits::LABEL_BYTES_MAX);
                let request = message::ApprovalRequest {
                    approval: u32::try_from(approval.id).unwrap_or(u32::MAX),
                    title,
                    message: self.room.crop(&approval.question.shown, limits::DISPLAY_TEXT_BYTES_MAX, title.len()),
                    expires_ms: approval.expires_ms,
                };
                self.asked = Some(Asked { number: request.approval, turn: approval.turn });
                self.send(approval.turn, Down::ApprovalRequest(request))?;
            }
            Output::ApprovalSettled(settled) => {
                self.services.approvals.settle(Some(&self.id), settled);
                let choice = match settled.outcome {
                    ApprovalOutcome::Approved => Choice::Yes,
                    ApprovalOutcome::Denied => Choice::No,
                    ApprovalOutcome::Expired | ApprovalOutcome::Unasked => Choice::Expired,
                    ApprovalOutcome::Cancelled => Choice::Dismissed,
                };
                let approval = u32::try_from(settled.id).unwrap_or(u32::MAX);
                let turn = self.asked.filter(|latest| latest.number == approval).and_then(|latest| latest.turn);
                self.send(turn, Down::ApprovalSettled(message::ApprovalSettled { approval, choice }))?;
            }
            Output::TurnDone { turn, messages, outcome } => {
                self.stored.turn(None, self.incoming.control_received());
                self.turn = None;
                self.services.roster.turn(&self.id, self.number, None);
                self.requests.turn_done(turn);
                let device = self.id.clone();
                self.tell_user(UserInput::TurnDone { device, turn, messages });
                let mut record = self.records.remove(&turn.id).unwrap_or_default();
                record.finish(outcome);
                self.services.turns.push(record);
            }
            Output::Mark { turn, stage, at_us } => {
                let at_us = match (stage, &mut self.ear) {
                    (Stage::LastVoice, Some(ear)) => {
                        let (at_us, transit_us, busy_us) =
                            (ear.to_gateway_us(at_us), ear.transit_us(), ear.take_busy_us());
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
            Output::Undelivered { text } => self.tell_user(UserInput::Undelivered { text }),
            Output::Announced { id: AnnouncementId::App(id), heard } => self.services.apps.spoken(id, heard),
            Output::Announced { id: AnnouncementId::Schedule(id), heard } => {
                let device = self.id.clone();
                self.tell_user(UserInput::Announced { device, id, heard });
            }
            Output::CodeSound(coding) => self.code_sound(coding),
            Output::Heartbeat => {
                let beat = transport::heartbeat(self.heartbeat, clock::mono_us());
                self.send(None, Down::Heartbeat(beat))?;
            }
            Output::Close { reason } => match reason {
                CloseReason::Silent if self.outgoing.is_resumable() => self.end(End::Lost),
                CloseReason::Silent => {
                    self.close(GoodbyeReason::Silent, "nothing was heard of the device".to_owned());
                }
                CloseReason::Expired => self.end(End::Over(None)),
                CloseReason::Shutdown => {
                    self.close(GoodbyeReason::ShuttingDown, "the gateway is stopping".to_owned());
                }
            },
        }
        Ok(())
    }

    fn speak(
        &mut self,
        turn: Option<Turn>,
        speech: u32,
        clause: u16,
        text: String,
        last: bool,
    ) -> Result<(), LinkError> {
        let Some(mouth) = &mut self.mouth else {
            self.input(Input::SpeechFailed { speech, clause });
            return Ok(());
        };
        let caption = self.room.crop(&text, limits::TEXT_BYTES_MAX, 0).to_owned();
        let new = mouth.speak(speech, turn_on_wire(turn), clause, text, last, &self.mailbox);
        if new {
            self.start_speech(speech, turn, &caption)?;
        }
        if !caption.is_empty() {
            self.send(turn, Down::Clause(message::Clause { speech, clause, text: &caption }))?;
        }
        Ok(())
    }

    fn start_speech(&mut self, speech: u32, turn: Option<Turn>, caption: &str) -> Result<(), LinkError> {
        self.speech = Some(Speech { number: speech, turn });
        let (codec, rate_hz) = self.formats.down.unwrap_or((audio::codec::Codec::Pcm16, 0));
        let start = message::SpeechStart { speech, codec: super::formats::wire(codec), rate_hz, text: caption };
        self.send(turn, Down::SpeechStart(start)).map(drop)
    }

    /// Plays a piece of an app's sound.
    fn play(&mut self, speech: u32, clause: u16, sound: u64, piece: u16, last: bool) -> Result<(), LinkError> {
        let (Some(mouth), Some(sound)) = (&mut self.mouth, self.services.apps.sound(sound)) else {
            self.input(Input::SpeechFailed { speech, clause });
            return Ok(());
        };
        let pcm = sound.piece(piece, gateway_core::limits::SOUND_PIECE_MS);
        let (new, failed) = mouth.play(speech, clause, pcm, sound.rate_hz, last);
        if new {
            self.start_speech(speech, None, "")?;
        }
        if let Some(failed) = failed {
            self.input(failed);
        }
        Ok(())
    }

    /// Sends the speech packets that are due, as long as the link takes them: on a thin one speech waits here, where it
    /// can still be hushed, and nothing else waits behind it.
    pub(super) fn send_speech(&mut self) -> Result<(), LinkError> {
        let now_us = clock::mono_us();
        loop {
            self.outgoing.send_again()?;
            if !self.outgoing.takes_sound() {
                return Ok(());
            }
            // Behind its last packet.
            if let Some((turn, end)) = self.speech_end.take() {
                self.outgoing.send(turn, now_us, Down::SpeechEnd(end))?;
            }
            let Some(packet) = self.mouth.as_mut().and_then(|mouth| mouth.poll_packet(now_us)) else { return Ok(()) };
            let chunk = message::SpeechChunk {
                speech: packet.speech,
                clause: packet.clause,
                position_us: packet.playout_us,
                duration_us: u32::try_from(packet.duration_us).unwrap_or(0),
                payload: &packet.bytes,
            };
            let sequence = self.outgoing.send(packet.turn, packet.planned_us, Down::SpeechChunk(chunk))?;
            let speech = self.speech.filter(|speech| packet.speech == speech.number);
            if let Some(turn) = speech.and_then(|speech| speech.turn) {
                self.record(turn.id).first_frame_us.get_or_insert(now_us);
            }
            if packet.last_of_speech {
                let end = message::SpeechEnd {
                    speech: packet.speech,
                    last_audio_sequence: sequence,
                    duration_us: packet.playout_us + packet.duration_us,
                };
                self.speech_end = Some((packet.turn, end));
            }
            if let Some(input) = self.mouth.as_mut().and_then(|mouth| mouth.first_of_clause(&packet)) {
                self.input(input);
            }
        }
    }

    pub(super) fn transcribed(&mut self, transcribed: Transcribed) {
        let Transcribed { utterance, revision, kind, report } = transcribed;
        match report.result {
            Ok(result) => {
                if matches!(kind, TranscriptKind::Speculative | TranscriptKind::Final) {
                    self.last_decode = Some((report.queue_us, result.decode_us));
                }
                let confidence = result.confidence();
                let text = result.text;
                let turned = self.services.engines.languages.of(&self.user_name).turned(result.language);
                if let Some(tag) = turned.filter(|_| kind != TranscriptKind::Partial && !text.is_empty()) {
                    self.tap.turn_to(tag);
                    if self.requests.turn_to(tag) {
                        self.services.preparer.prepare(&self.user_name, &self.id, tag);
                    }
                }
                let foreign = self.tap.is_foreign();
                self.input(Input::Transcript(Transcript { utterance, revision, kind, text, confidence, foreign }));
            }
            Err(error) => {
                tracing::debug!(utterance, %error, "a decode failed");
                let is_displaced = matches!(error, audio::asr::Error::Displaced);
                let comes_later =
                    is_displaced && self.ear.as_mut().is_some_and(|ear| ear.decode_displaced(utterance, revision));
                if !comes_later {
                    self.input(Input::TranscriptFailed { utterance, revision });
                }
            }
        }
        if let Some(ear) = &mut self.ear {
            ear.decode_ended(utterance, revision);
        }
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

/// The listening indicator on the wire.
pub(super) fn listening(state: ListeningState) -> device_protocol::ListeningState {
    use device_protocol::ListeningState as Wire;
    match state {
        ListeningState::Idle => Wire::Idle,
        ListeningState::Attentive => Wire::Wake,
        ListeningState::Hearing => Wire::Listening,
        ListeningState::Thinking => Wire::Thinking,
        ListeningState::Speaking => Wire::Speaking,
        ListeningState::Muted => Wire::Muted,
    }
}
