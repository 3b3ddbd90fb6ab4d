//! Carries out the core's outputs.

use std::sync::PoisonError;

use device_protocol::{Down, GoodbyeReason, Sound, down as message, limits};
use gateway_core::{
    input::{AnnouncementId, Input, UserInput},
    output::{Chime, CloseReason, Output, ToolActivityState},
    vocab::{Addressing, Approval, ListeningState, Pending, Settlement, TranscriptKind, Turn},
};

use super::{
    formats::wire,
    session::{End, Session},
};
use crate::{
    clock,
    speech::{ear::Ear, language::Understood, mouth::Due},
    transport::LinkError,
};

/// Milliseconds over which the device fades what it still plays.
const HUSH_FADE_MS: u16 = 30;

impl Session {
    #[expect(clippy::too_many_lines, reason = "a plain match, one output after another")]
    pub(super) fn carry_out(&mut self, output: Output) -> Result<(), LinkError> {
        match output {
            Output::Transcribe { utterance, revision, kind, meant, from_us } => {
                self.transcribe((utterance, revision), (kind, meant), from_us);
            }
            Output::Translate { utterance } => {
                let failed = self.translations.for_wearer(utterance, self.ear.as_mut());
                failed.into_iter().for_each(|input| self.input(input));
            }
            Output::Wake(outcome) => self.services.engines.wake_counts.settled(outcome),
            Output::UtteranceLost { addressed } => self.services.telemetry.losses.count(addressed),
            Output::MatchCommand { utterance, revision, text, pending } => {
                self.match_command((utterance, revision), &text, pending);
            }
            Output::SetVocabulary(vocabulary) => {
                if let Some(ear) = &mut self.ear {
                    ear.set_vocabulary(vocabulary);
                }
            }
            Output::CancelTranscribe { utterance, revision, except } => {
                if let Some(ear) = &mut self.ear {
                    ear.cancel_transcribe(utterance, revision, &except);
                }
            }
            Output::MeasureFrom { utterance, from_us } => {
                if let Some(ear) = &mut self.ear {
                    ear.measure_from(utterance, from_us);
                }
            }
            Output::PauseAfter { utterance, silence_us } => {
                if let Some(ear) = &mut self.ear {
                    ear.pause_after(utterance, silence_us);
                }
            }
            Output::UtterancesSettled { until } => self.stored.utterances_settled(until),
            Output::CloseUtterance { utterance } => self.close_utterance(utterance),
            Output::SetMuted { muted, stays } => self.set_muted(muted, stays),
            Output::Listening { turn, state } => {
                self.update.conversation(state);
                let listening = message::Listening { state: listening(state) };
                self.link.send(turn, Down::Listening(listening))?;
            }
            Output::Caption { turn, utterance, revision, last, addressed, text } => {
                self.caption(turn, utterance, revision, (last, addressed), &text)?;
            }
            Output::ExpectRequest { rank } => {
                self.requests.expect_request(rank);
                self.stored.addressed(self.ear.as_ref().and_then(Ear::heard_until_us));
            }
            Output::EarOpen(ear) => self.stored.ear(ear),
            Output::QuestionOpen(question) => self.stored.question(question),
            Output::RequestTurn { turn, request } => {
                self.typed.turn_begun(turn);
                self.requests.language.begun(turn);
                self.stored.turn(turn.id, request, self.link.incoming.control_received());
                let device = self.id.clone();
                self.tell_user(UserInput::TurnRequested { device, turn });
            }
            Output::RestartTold { elsewhere } => self.restart_told(elsewhere),
            Output::TurnReopened { turn, request } => {
                self.requests.language.reopened(turn);
                self.stored.turn(turn.id, request, self.link.incoming.control_received());
            }
            Output::AskModel { turn, rank, messages, pending } => self.ask_model(turn, rank, messages, pending),
            Output::ModelUsed { turn, rank, usage, outcome } => {
                self.turns.record(turn.id).used(usage);
                self.tell_user(UserInput::ModelUsed { rank, usage, outcome });
            }
            Output::FallbackTold { reason, level } => {
                self.tell_user(UserInput::FallbackTold { reason, level });
            }
            Output::FollowUpsOffered { turn, count } => self.turns.record(turn.id).follow_ups = count,
            Output::CancelModel { turn } => self.requests.cancel_model(turn),
            Output::RunTool { turn, call } => {
                let declared = self.requests.run_tool(turn, call);
                declared.into_iter().for_each(|input| self.input(input));
            }
            Output::Prefer(preference) => self.services.assistant.preferences.keep(&self.user.name, preference),
            Output::CancelTool { call_id, .. } => self.requests.cancel_tool(&call_id),
            Output::ToolActivity { turn, call_id, tool, state } => {
                let label = self.requests.title(&tool);
                self.activity(turn, &call_id, &label, state)?;
            }
            // A further start of the same call, with another label.
            Output::ToolProgress { turn, call_id, line } => {
                self.activity(turn, &call_id, &line, ToolActivityState::Started)?;
            }
            Output::Speak { turn, speech, clause, text, from, last } => {
                self.speak(turn, speech, Due { clause, text, from, last })?;
            }
            Output::EndSpeech { speech, clause } => self.speech.finish(speech, clause),
            Output::Play { speech, clause, sound, piece, from, last } => {
                self.play((speech, clause), (sound, piece), from, last)?;
            }
            Output::Hush { speech } => self.hush(speech)?,
            Output::Display(command) => self.display(&command)?,
            Output::Chime(chime) => {
                self.link.send(None, Down::Chime(message::Chime { sound: sound(chime) }))?;
            }
            Output::AskApproval(approval) => self.ask_approval(&approval)?,
            Output::ApprovalSettled(settled) => self.approval_settled(settled)?,
            Output::TurnDone { turn, messages, outcome } => self.turn_done(turn, messages, outcome),
            Output::Mark { turn, stage, at_us } => self.turns.mark(turn, stage, at_us, self.ear.as_mut()),
            Output::Undelivered { text } => self.undelivered(text),
            Output::Announced { id: AnnouncementId::App(id), heard } => self.services.apps.spoken(id, heard),
            Output::Announced { id: AnnouncementId::Schedule(id), heard } => {
                let device = self.id.clone();
                self.tell_user(UserInput::Announced { device, id, heard });
            }
            Output::CodeSound(coding) => self.code_sound(coding),
            Output::Heartbeat => {
                let heartbeat = self.link.heartbeat();
                self.link.send(None, Down::Heartbeat(heartbeat))?;
            }
            Output::Close { reason } => self.close_for(reason),
        }
        Ok(())
    }

    fn transcribe(&mut self, of: (u32, u16), kind: (TranscriptKind, Addressing), from_us: Option<u64>) {
        let taken = self.ear.as_mut().is_some_and(|ear| ear.transcribe(of, kind, from_us));
        if !taken {
            let (utterance, revision) = of;
            self.input(Input::TranscriptFailed { utterance, revision });
        }
    }

    fn match_command(&mut self, of: (u32, u16), text: &str, pending: Option<Pending>) {
        let scene = self.services.assistant.scenes.of(&self.user.name);
        if let Some(matched) = self.requests.match_command(of, text, pending, scene) {
            self.input(matched);
        }
    }

    fn close_utterance(&mut self, utterance: u32) {
        if let Some(ear) = &mut self.ear {
            ear.close_utterance(utterance, clock::mono_us());
            self.stored.utterance_ended(utterance, ear.heard_until_us());
        }
        self.app_feed.closed(utterance);
        // A wake phrase of the device whose end was still to come is taken for one of this utterance.
        self.take_facts();
    }

    fn set_muted(&mut self, muted: bool, stays: bool) {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).muted = muted;
        let incoming = &self.link.incoming;
        self.stored.muted(muted, incoming.control_received(), incoming.sound_until_us());
        // Without a button they would be deaf for good.
        self.mute_stays(stays && self.terms.can_unmute);
        // Before the glasses show it: whoever sees it relies on it, also behind a restart.
        self.stored.store();
        if let Some(ear) = &mut self.ear {
            ear.set_muted(muted);
        }
        if muted {
            self.app_feed.silenced();
        }
    }

    /// Keeps whether a session that the device begins anew begins muted.
    pub(super) fn mute_stays(&mut self, stays: bool) {
        self.stored.mute_stays(stays);
        // Others never come again.
        if self.link.is_glasses() {
            self.services.resumption.stored.mute_stays(&self.id, &self.user.name, stays);
        }
    }

    /// Shows words of an utterance, and passes them on to apps, which may want the last ones translated.
    fn caption(
        &mut self,
        turn: Option<Turn>,
        utterance: u32,
        revision: u16,
        (last, addressed): (bool, bool),
        text: &str,
    ) -> Result<(), LinkError> {
        let language = self.language_of(utterance).code();
        self.app_feed.words(utterance, text, language, last);
        if last {
            self.requests.language.last_words(utterance, addressed);
        }
        let wanted = if last { self.app_feed.wants_translations() } else { Vec::new() };
        if !wanted.is_empty() {
            let from = Understood::translated_from(self.app_feed.own(), &wanted);
            self.translations.for_apps(utterance, &from, self.ear.as_mut());
        }
        let transcript = message::Transcript {
            utterance,
            revision: revision.into(),
            is_final: last,
            addressed,
            text: self.link.frame_limits.crop(text, limits::TEXT_BYTES_MAX, 0),
        };
        self.link.send(turn, Down::Transcript(transcript))
    }

    /// Shows what becomes of a call of the turn.
    fn activity(&mut self, turn: Turn, call_id: &str, label: &str, state: ToolActivityState) -> Result<(), LinkError> {
        let activity = self.calls.activity(call_id, label, state);
        self.link.send(Some(turn), Down::ToolActivity(activity))
    }

    fn speak(&mut self, turn: Option<Turn>, speech: u32, due: Due) -> Result<(), LinkError> {
        let clause = due.clause;
        let caption = self.link.frame_limits.crop(&due.text, limits::TEXT_BYTES_MAX, 0).to_owned();
        let Some(is_new) = self.speech.speak(turn, speech, due) else {
            self.input(Input::SpeechFailed { speech, clause });
            return Ok(());
        };
        if is_new {
            self.start_speech(speech, turn, &caption)?;
        }
        if !caption.is_empty() {
            self.link.send(turn, Down::Clause(message::Clause { speech, clause, text: &caption }))?;
        }
        Ok(())
    }

    fn start_speech(&mut self, speech: u32, turn: Option<Turn>, caption: &str) -> Result<(), LinkError> {
        let (codec, rate_hz) = self.terms.formats.down.unwrap_or((audio::codec::Codec::Pcm16, 0));
        let start = message::SpeechStart { speech, codec: wire(codec), rate_hz, text: caption };
        self.link.send(turn, Down::SpeechStart(start))
    }

    /// Plays a piece of an app's sound, behind the part of it that was heard before.
    fn play(
        &mut self,
        (speech, clause): (u32, u16),
        (sound, piece): (u64, u16),
        from: f32,
        last: bool,
    ) -> Result<(), LinkError> {
        let played = self.services.apps.sound(sound).and_then(|sound| {
            let pcm = sound.piece(piece, gateway_core::limits::SOUND_PIECE_MS);
            self.speech.play((speech, clause), (pcm, sound.rate_hz), from, last)
        });
        let Some((is_new, failed)) = played else {
            self.input(Input::SpeechFailed { speech, clause });
            return Ok(());
        };
        if is_new {
            self.start_speech(speech, None, "")?;
        }
        if let Some(failed) = failed {
            self.input(failed);
        }
        Ok(())
    }

    fn hush(&mut self, speech: u32) -> Result<(), LinkError> {
        self.speech.hush(speech);
        let turn = self.speech.turn_of(speech);
        self.link.send(turn, Down::Hush(message::Hush { speech, fade_ms: HUSH_FADE_MS }))
    }

    fn ask_approval(&mut self, approval: &Approval) -> Result<(), LinkError> {
        let request = self.approval.ask(approval, self.link.frame_limits);
        self.link.send(approval.turn, Down::ApprovalRequest(request))
    }

    fn approval_settled(&mut self, settled: Settlement) -> Result<(), LinkError> {
        self.services.approvals.settle(Some(&self.id), settled);
        let (turn, settled) = self.approval.settle(settled);
        self.link.send(turn, Down::ApprovalSettled(settled))
    }

    fn close_for(&mut self, reason: CloseReason) {
        match reason {
            CloseReason::Silent if self.link.outgoing.is_resumable() => self.end(End::Lost),
            CloseReason::Silent => self.close(GoodbyeReason::Silent, "nothing was heard of the device".to_owned()),
            CloseReason::Expired => self.end(End::Over(None)),
            CloseReason::Shutdown => self.close(GoodbyeReason::ShuttingDown, "the gateway is stopping".to_owned()),
        }
    }

    /// Sends the speech packets that are due, as long as the link takes them: on a thin one speech waits here, where it
    /// can still be hushed, and nothing else waits behind it.
    pub(super) fn send_speech(&mut self) -> Result<(), LinkError> {
        let now_us = clock::mono_us();
        loop {
            self.link.outgoing.send_again()?;
            if !self.link.outgoing.takes_sound() {
                return Ok(());
            }
            // Behind its last packet.
            if let Some((turn, end)) = self.speech.take_end() {
                self.link.outgoing.send(turn, now_us, Down::SpeechEnd(end))?;
            }
            let Some(packet) = self.speech.poll_packet(now_us) else { return Ok(()) };
            let chunk = message::SpeechChunk {
                speech: packet.speech,
                clause: packet.clause,
                position_us: packet.playout_us,
                duration_us: u32::try_from(packet.duration_us).unwrap_or(0),
                payload: &packet.bytes,
            };
            let sequence = self.link.outgoing.send(packet.turn, packet.planned_us, Down::SpeechChunk(chunk))?;
            if let Some(turn) = self.speech.turn_of(packet.speech) {
                self.turns.record(turn.id).first_frame_us.get_or_insert(now_us);
            }
            if let Some(input) = self.speech.sent(&packet, sequence) {
                self.input(input);
            }
        }
    }
}

/// A chime on the wire.
fn sound(chime: Chime) -> Sound {
    match chime {
        Chime::Attentive => Sound::Wake,
        Chime::Understood | Chime::Done => Sound::Done,
        Chime::Working => Sound::Working,
        Chime::Notice => Sound::Alarm,
        Chime::Attention => Sound::Attention,
        Chime::Trouble => Sound::Error,
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
