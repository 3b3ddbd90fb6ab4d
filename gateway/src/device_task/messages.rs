//! Handles messages from outside a device's task: results of work on other threads, and wishes of other tasks.

use audio::asr::Language;
use gateway_core::{
    input::Input,
    vocab::{Transcript, TranscriptKind},
};

use super::session::Session;
use crate::mailbox::{DeviceMessage, Synthesised, Transcribed};

impl Session {
    /// Handles a message from outside the task.
    pub(super) fn handle_message(&mut self, message: DeviceMessage) {
        match message {
            DeviceMessage::Input(input) => {
                if let Input::Tool { call_id, result, .. } = &*input {
                    self.requests.tool_done(call_id);
                    self.calls.tell_failure(call_id, result);
                }
                self.input(*input);
            }
            DeviceMessage::RequestSent(sent) => self.turns.request_sent(&sent),
            DeviceMessage::Transcribed(transcribed) => self.transcribed(*transcribed),
            DeviceMessage::Translated(translated) => {
                let told = self.translations.ended(*translated, self.ear.as_mut(), &mut self.app_feed);
                told.into_iter().for_each(|input| self.input(input));
            }
            DeviceMessage::Synthesised(clause) => self.synthesised(clause),
            DeviceMessage::Scored(scored) => {
                if let Some(ear) = &mut self.ear {
                    ear.note_score(&scored);
                }
            }
            DeviceMessage::WakeHeard(heard) => {
                if let Some(ear) = &mut self.ear {
                    let fact = ear.wake_heard(heard);
                    self.input(Input::Voice(fact));
                }
            }
            DeviceMessage::CallDevice(call) => {
                if let Err(error) = self.call_device(*call) {
                    self.failed(&error);
                }
            }
            DeviceMessage::CancelCalls => {
                if let Err(error) = self.calls.cancel(&mut self.link) {
                    self.failed(&error);
                }
            }
            DeviceMessage::ApplyTools if self.requests.tools_have_changed() => self.input(Input::ApplyTools),
            DeviceMessage::ApplyTools => {}
            DeviceMessage::Firmware { image, read } => {
                if let Err(error) = self.firmware_read(image, read) {
                    self.failed(&error);
                }
            }
            // What waits for it is looked at after each message.
            DeviceMessage::Stored => {}
        }
    }

    /// The sound of a clause is there.
    fn synthesised(&mut self, clause: Synthesised) {
        if clause.clause == 0
            && let Some(turn) = self.speech.turn_of(clause.speech)
        {
            let record = self.turns.record(turn.id);
            record.tts_us.get_or_insert(clause.compute_us);
            record.tts_queue_us.get_or_insert(clause.queue_us);
        }
        if let Some(input) = self.speech.synthesised(clause) {
            self.input(input);
        }
    }

    /// The language of an utterance's words: the one that was detected in it, or else the device's own.
    pub(super) fn language_of(&self, utterance: u32) -> Language {
        self.requests.language.detected_in(utterance).unwrap_or_else(|| self.app_feed.own())
    }

    /// A decode has ended.
    fn transcribed(&mut self, transcribed: Transcribed) {
        let Transcribed { utterance, revision, kind, report } = transcribed;
        match report.result {
            Ok(result) => {
                let is_whole = matches!(kind, TranscriptKind::Speculative | TranscriptKind::Final);
                if is_whole {
                    self.turns.decoded(report.queue_us, result.decode_us);
                }
                let (confidence, last_word) = (result.confidence(), result.last_word_confidence());
                let breaks_off = result.breaks_off;
                let text = result.text;
                if self.services.engines.languages.of(&self.user.name).is_detected(kind, &text) {
                    self.requests.language.detected((utterance, revision), result.language);
                    // Of what is still being spoken the language may be a wrong guess, and preparing takes time.
                    if is_whole && let Some(tag) = self.requests.language.take_unprepared(utterance) {
                        self.services.assistant.preparer.prepare(&self.user.name, &self.id, tag);
                    }
                }
                let foreign = self.language_of(utterance) != Language::ENGLISH;
                let transcript =
                    Transcript { utterance, revision, kind, text, confidence, last_word, breaks_off, foreign };
                self.input(Input::Transcript(transcript));
            }
            Err(error) => {
                tracing::debug!(utterance, %error, "a decode failed");
                self.input(Input::TranscriptFailed { utterance, revision });
            }
        }
        if let Some(ear) = &mut self.ear {
            ear.decode_ended(utterance, revision);
        }
    }
}
