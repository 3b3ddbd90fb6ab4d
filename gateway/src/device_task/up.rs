//! Handles frames from the device.

use std::sync::PoisonError;

use audio::{codec::is_pause, speaker::Report};
use device_protocol::{
    ButtonAction, ButtonId, Choice, Class, Decoded, Down, Frame, Gesture, GoodbyeReason, LinkKind, PlayState, Posture,
    Stamp, ToolFlags, Up, WarningCode, decode_up, down as message, limits, up,
};
use gateway_core::{
    input::{Button, Input},
    vocab::{AnsweredBy, ApprovalChoice, DeviceFacts, Unkept},
};
use tools::{definition::Hints, device::Offer};

use super::{
    formats::misfit,
    incoming::Order,
    photos::{Photo, tell_if_lost},
    restart::ReportedWake,
    session::{End, Session},
};
use crate::{clock, mailbox::DismissReason, text::crop};

/// Packets of sound in a row that cannot be decoded, at which the session ends: no link does that, and each costs as much
/// as one that can.
const UNDECODABLE_MAX: u32 = 100;

impl Session {
    /// Handles one envelope.
    pub(super) fn frame(&mut self, bytes: &[u8]) {
        let now_us = clock::mono_us();
        self.welcome_arrived(now_us);
        match decode_up(bytes) {
            Ok(Decoded::Frame(Frame { stamp, message })) => {
                if self.in_sequence(&stamp, Class::of_kind(device_protocol::Message::kind(&message)), now_us) {
                    self.message(stamp, message, now_us);
                }
            }
            Ok(Decoded::Skipped { kind, stamp }) => {
                self.in_sequence(&stamp, Class::of_kind(kind), now_us);
                tracing::debug!(kind, "a message of a later version was skipped");
            }
            Err(error) => self.close(GoodbyeReason::Malformed, format!("malformed frame: {error}")),
        }
    }

    pub(super) fn close(&mut self, reason: GoodbyeReason, text: String) {
        self.end(End::Over(Some((reason, text))));
    }

    /// Ends the session at the request of the gateway or its operator.
    pub(super) fn dismissed(&mut self, (reason, text): DismissReason) {
        if reason == GoodbyeReason::ShuttingDown {
            self.stored.freeze();
            self.input(Input::Shutdown);
        }
        self.close(reason, text.to_owned());
    }

    /// Control frames must arrive once each and in order; a repeated one is dropped.
    fn in_sequence(&mut self, stamp: &Stamp, class: Class, now_us: u64) -> bool {
        if class != Class::Control {
            return true;
        }
        match self.link.incoming.control(stamp.sequence, now_us) {
            Order::Next => true,
            Order::Repeated => false,
            Order::Gap { expected } => {
                let text = format!("control frame {} came where {expected} was due", stamp.sequence);
                self.close(GoodbyeReason::BadSequence, text);
                false
            }
        }
    }

    fn message(&mut self, stamp: Stamp, message: Up<'_>, now_us: u64) {
        self.link.heard(stamp.time_us, now_us);
        match message {
            Up::Audio(packet) => self.audio(stamp, &packet, now_us),
            Up::AudioEnd(end) => {
                let last = self.link.last_audio(end.last_audio_sequence);
                self.end_stream(last, stamp.time_us, now_us);
                self.take_facts();
            }
            Up::Ack(ack) => self.acknowledged(&ack),
            Up::HeadPosition(head) => {
                self.app_feed.head(&head);
                self.input(Input::Look { up: head.posture == Posture::Up });
            }
            Up::Heartbeat(_) => self.link.heartbeat_came(stamp.time_us, now_us),
            Up::Played(played) => {
                let stopped = played.state == PlayState::Stopped;
                let report = Report {
                    played_us: played.played_us,
                    at_us: stamp.time_us,
                    playing: played.state == PlayState::Playing,
                    finished: played.state == PlayState::Finished,
                };
                if let Some(input) = self.speech.played(played.speech, report, stopped) {
                    self.input(input);
                }
            }
            Up::Button(button) => {
                self.app_feed.button(&button, stamp.time_us);
                self.button(&button, stamp.time_us);
            }
            Up::Touch(touch) => match self.app_feed.touch(touch.gesture) {
                Gesture::Tap => self.pressed(Button::Press, stamp.time_us),
                Gesture::LongTap => self.pressed(Button::LongPress, stamp.time_us),
                _ => {}
            },
            Up::Battery(battery) => {
                let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
                status.battery_percent = (battery.percent <= 100).then_some(battery.percent);
                status.charging = Some(battery.charging);
                drop(status);
                self.tell_status();
                if battery.percent <= 100 {
                    self.app_feed.battery(battery.percent, battery.charging);
                    self.services.apps.battery(&self.user.name, &self.id, battery.percent, battery.charging);
                }
            }
            Up::Connection(connection) => self.connection(connection.link),
            Up::Wake(up::Wake { phrase, score_permille }) => {
                self.wake_told(&ReportedWake { phrase: phrase.to_owned(), at_us: stamp.time_us, score_permille });
                self.take_facts();
            }
            Up::Mute(mute) => self.input(Input::Mute(mute.muted)),
            Up::ApprovalAnswer(answer) => {
                let choice = if answer.choice == Choice::Yes { ApprovalChoice::Yes } else { ApprovalChoice::No };
                self.input(Input::ApprovalAnswered { id: answer.approval.into(), choice, by: AnsweredBy::Tap });
            }
            Up::ToolList(list) => self.tools_offered(&list),
            Up::ToolResult(result) => self.calls.answered(&result),
            Up::PhotoChunk(chunk) => self.photo_piece(&chunk),
            Up::FirmwareAnswer(_) | Up::FirmwareProgress(_) | Up::FirmwareReport(_) => self.about_firmware(&message),
            Up::TextInput(text) => self.text_typed(text.text, stamp.time_us),
            Up::Goodbye(goodbye) => {
                tracing::debug!(reason = ?goodbye.reason, "the device says goodbye");
                // Whoever switches them on again finds them as they come; those that failed, or restart by themselves, stay muted.
                if goodbye.reason == GoodbyeReason::PowerOff {
                    self.mute_stays(false);
                }
                self.input(Input::LinkLost);
                self.end(End::Over(None));
            }
            Up::Hello(_) | Up::Proof(_) => {
                self.close(GoodbyeReason::UnexpectedMessage, "the handshake is over".to_owned());
            }
        }
    }

    /// The wearer typed this at this time, on the device's clock.
    fn text_typed(&mut self, text: &str, at_us: u64) {
        self.requests.language.typed();
        if self.link.incoming.is_repeated(at_us) {
            return self.input(Input::TextRepeated(text.to_owned()));
        }
        self.typed.begin();
        self.input(Input::Text(text.to_owned()));
    }

    /// How the device is connected, as tools are told.
    fn connection(&mut self, link: LinkKind) {
        let name = match link {
            LinkKind::WiFi => "Wi-Fi",
            LinkKind::Bluetooth => "Bluetooth",
            LinkKind::Cellular => "mobile network",
            LinkKind::Wired => "cable",
            _ => return,
        };
        name.clone_into(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner).connection);
        self.tell_status();
    }

    /// Updates what the model may be told about the glasses.
    fn tell_status(&mut self) {
        let status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let facts = DeviceFacts {
            battery_percent: status.battery_percent,
            charging: status.charging,
            connection: Some(status.connection.clone()),
        };
        drop(status);
        self.input(Input::Status(facts));
    }

    fn audio(&mut self, stamp: Stamp, packet: &up::Audio<'_>, now_us: u64) {
        let Some((codec, rate_hz)) = self.terms.formats.up else {
            return self.close(GoodbyeReason::BadFormat, "sound from a device without a microphone".to_owned());
        };
        if let Some(what) = misfit(packet, codec, rate_hz) {
            return self.close(GoodbyeReason::BadFormat, what);
        }
        if packet.duration_us > limits::PACKET_DURATION_US_MAX {
            let text = format!("a packet of {} us; at most {}", packet.duration_us, limits::PACKET_DURATION_US_MAX);
            return self.close(GoodbyeReason::Malformed, text);
        }
        let pauses = is_pause(codec, packet.payload);
        let incoming = &mut self.link.incoming;
        if !incoming.audio(stamp.sequence, packet.duration_us, pauses, now_us) {
            if incoming.take_drop_warning() {
                let text = format!("sound {} is too far ahead of what came before; it was passed over", stamp.sequence);
                self.warn(WarningCode::SoundDropped, "", &text);
            }
            return;
        }
        let until_us = stamp.time_us.saturating_add(packet.duration_us.into());
        incoming.note_sound(stamp.sequence, until_us, packet.duration_us);
        if let Some(backlog_us) = incoming.take_backlog_us(stamp.time_us) {
            self.input(Input::SoundRepeated { backlog_ms: u32::try_from(backlog_us / 1_000).unwrap_or(u32::MAX) });
        }
        if self.link.incoming.take_lost_sentence(stamp.time_us) {
            self.stored.addressed(None);
            self.input(Input::SentenceLost);
        }
        // By their numbers, not by their times: in silence a device may send nothing.
        let received = self.link.incoming.take_resumed_at();
        let packets = received.map_or(0, |received| stamp.sequence.saturating_sub(received).saturating_sub(1));
        if packets > 0 {
            self.input(Input::SoundMissed { packets, until_us: stamp.time_us });
        }
        if let Some((last, ended_us)) = self.link.incoming.take_passed_end(stamp.sequence, stamp.time_us) {
            self.end_stream(last, ended_us, now_us);
        }
        if let Some(ear) = &mut self.ear
            && let Err(error) = ear.push(stamp.sequence, stamp.time_us, packet.payload, now_us)
        {
            tracing::debug!(%error, "a packet could not be heard");
        }
        if self.link.incoming.take_repeated_end(stamp.time_us, until_us) {
            self.end_stream(stamp.sequence, until_us, now_us);
        }
        self.end_if_undecodable();
        self.sound_heard(stamp.time_us);
        self.take_facts();
    }

    /// The device's stream has ended with this packet, at this time on its clock.
    fn end_stream(&mut self, last: u32, ended_us: u64, now_us: u64) {
        self.link.incoming.end_stream(last, ended_us);
        if let Some(ear) = &mut self.ear {
            ear.end_stream(last, now_us);
        }
    }

    /// Ends the session if too many packets of sound in a row could not be decoded: those that came, or had waited for others.
    pub(super) fn end_if_undecodable(&mut self) {
        let undecodable = self.ear.as_ref().map_or(0, |ear| ear.stats().undecodable);
        if undecodable >= UNDECODABLE_MAX {
            let text = format!("{undecodable} packets of sound in a row could not be decoded");
            self.close(GoodbyeReason::BadFormat, text);
        }
    }

    /// The device has heard a wake phrase, in this session or before a restart.
    pub(super) fn wake_told(&mut self, reported: &ReportedWake) {
        if !self.stored.wake_told(reported) {
            return;
        }
        let score = f32::from(reported.score_permille.min(1_000)) / 1_000.0;
        let problem = self.ear.as_mut().and_then(|ear| ear.wake_told(&reported.phrase, reported.at_us, score));
        if let Some(problem) = problem {
            self.warn(WarningCode::WakePhraseUnknown, &reported.phrase, &problem);
        }
    }

    /// Reports to the device, for its log, what was not accepted as sent.
    pub(super) fn warn(&mut self, code: WarningCode, name: &str, text: &str) {
        let name = crop(name, limits::NAME_BYTES_MAX);
        let warning = message::Warning { code, name, message: crop(text, limits::LABEL_BYTES_MAX) };
        if let Err(error) = self.link.send(None, Down::Warning(warning)) {
            self.failed(&error);
        }
    }

    /// A button was used at this time, on the device's clock.
    fn button(&mut self, button: &up::Button, at_us: u64) {
        let gesture = match (button.button, button.action) {
            (ButtonId::Mute, ButtonAction::Press) | (ButtonId::Main, ButtonAction::LongPress) => Button::LongPress,
            (ButtonId::Main, ButtonAction::Press) => Button::Press,
            (ButtonId::Main, ButtonAction::Down) => Button::Down { at_us },
            (ButtonId::Main, ButtonAction::Up) => Button::Up { at_us },
            _ => return,
        };
        self.pressed(gesture, at_us);
    }

    /// The wearer pressed at this time, on the device's clock.
    fn pressed(&mut self, gesture: Button, at_us: u64) {
        let is_repeated = self.link.incoming.is_repeated(at_us);
        self.input(if is_repeated { Input::ButtonRepeated(gesture) } else { Input::Button(gesture) });
    }

    fn tools_offered(&mut self, list: &up::ToolList<'_>) {
        let offers = list
            .tools
            .iter()
            .map(|tool| Offer {
                name: tool.name.to_owned(),
                description: tool.description.to_owned(),
                schema_json: tool.schema.to_owned(),
                phrases_json: tool.phrases.to_owned(),
                reply: tool.reply_template.to_owned(),
                hints: Hints {
                    read_only: tool.flags.contains(ToolFlags::READ_ONLY),
                    destructive: tool.flags.contains(ToolFlags::DESTRUCTIVE),
                    idempotent: tool.flags.contains(ToolFlags::IDEMPOTENT),
                    slow: tool.flags.contains(ToolFlags::SLOW),
                },
                timeout_ms: None,
            })
            .collect();
        self.register_tools(offers);
    }

    fn photo_piece(&mut self, chunk: &up::PhotoChunk<'_>) {
        match self.photos.push(chunk, clock::mono_us()) {
            Ok(None) => {}
            Ok(Some(photo)) => self.photo(photo),
            Err(error) => tracing::warn!(device = self.id, error, "a photo was dropped"),
        }
        self.tell_of_lost_photos();
    }

    /// The answers of calls tell of their photos that were dropped; of others that were to be stored the wearer is told.
    pub(super) fn tell_of_lost_photos(&mut self) {
        for call in self.photos.take_lost() {
            tracing::warn!(device = self.id, ?call, "a photo is lost: not all of it came, or it is too large");
            if let Some(called) = call.and_then(|call| self.calls.open(call)) {
                called.lacks_photo();
            } else if call.is_none_or(|call| self.calls.keeps_photos(call)) {
                self.input(Input::NotKept(Unkept::Photo));
            }
        }
    }

    fn photo(&mut self, photo: Photo) {
        let is_kept = photo.call.is_none_or(|call| self.calls.keeps_photos(call));
        tracing::info!(device = self.id, bytes = photo.bytes.len(), is_kept, "photo received");
        let mut called = photo.call.and_then(|call| self.calls.open(call));
        if let Some(called) = &mut called {
            called.push(&photo);
        }
        // No data of a user who is being erased is written.
        let Some(lease) = self.user.lease.enter().filter(|_| is_kept) else { return };
        let of_user = (lease, self.user.name.clone());
        let kept = self.services.gallery.keep(&self.id, of_user, (photo.mime, photo.bytes));
        match called {
            Some(called) => called.keeps(kept),
            None => tell_if_lost(kept, self.mailbox.clone()),
        }
    }
}
