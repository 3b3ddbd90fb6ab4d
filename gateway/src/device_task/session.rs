//! A session's parts.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use device_protocol::{Down, GoodbyeReason, down::SpeechEnd};
use gateway_core::{
    conversation::Conversation,
    driver::Driver,
    input::{Input, UserInput},
    vocab::{DeviceInfo, ToolResult, Turn},
};
use tokio::sync::mpsc;
use tools::{in_flight::SessionLease, ports::DeviceStatus};

use super::{
    Claim, Claims,
    again::AskedBefore,
    formats,
    incoming::Incoming,
    outgoing::Outgoing,
    photos::{Called, Photos},
    presence::Presence,
    quality::Quality,
    requests::Requests,
    restart::StoredSession,
    room::Room,
    services::Services,
    tap::Tap,
    translations::Translations,
    update::Update,
};
use crate::{
    clock,
    mailbox::{DeviceMessage, Ending, Mailbox},
    speech::{ear::Ear, mouth::Mouth, speaking::Speaking},
    telemetry::{OneUnderWay, TurnRecord},
    transport::{LinkError, ToolFailure, Transport},
    users::UserMessage,
};

/// Why a session's loop ends.
pub(super) enum End {
    /// The link broke or fell silent; the session may go on without one.
    Lost,
    /// The device has come back on another connection, which takes the session over.
    Claimed(Claim),
    /// The session is over, for this reason and a text for people; `None`: the device said goodbye, or did not come
    /// back.
    Over(Option<(GoodbyeReason, String)>),
}

/// The current speech, as the glasses know it.
#[derive(Clone, Copy)]
pub(super) struct Speech {
    pub(super) number: u32,
    pub(super) turn: Option<Turn>,
}

/// A question, as the glasses know it.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) number: u32,
    pub(super) turn: Option<Turn>,
}

/// State of one device's session.
pub(super) struct Session {
    pub(super) services: Arc<Services>,
    pub(super) id: String,
    pub(super) number: u32,
    pub(super) heartbeat_ms: u32,
    /// What the core knows of the device.
    pub(super) info: DeviceInfo,
    pub(super) user: mpsc::Sender<UserMessage>,
    pub(super) user_name: String,
    /// Ends when all data of the user is erased.
    pub(super) lease: SessionLease,
    pub(super) transport: Transport,
    pub(super) outgoing: Outgoing,
    pub(super) incoming: Incoming,
    pub(super) quality: Quality,
    pub(super) claims: Claims,
    pub(super) stored: StoredSession,
    pub(super) driver: Driver<Conversation>,
    /// When something last arrived, unless already reported to the core.
    pub(super) heard_us: Option<u64>,
    pub(super) ear: Option<Ear>,
    pub(super) mouth: Option<Mouth>,
    /// Volume and pace of a device with a speaker.
    pub(super) speaking: Option<Speaking>,
    pub(super) formats: formats::Agreed,
    pub(super) requests: Requests,
    pub(super) mailbox: Mailbox,
    /// Fires when the gateway or its operator ends the session.
    pub(super) ending: Ending,
    pub(super) status: Arc<Mutex<DeviceStatus>>,
    /// Calls about which the wearer was being asked when the process before this one died, and is asked again.
    pub(super) asked_before: AskedBefore,
    /// Calls that the glasses have not answered, by number.
    pub(super) calls: BTreeMap<u32, Called>,
    /// Numbers of running calls, by id.
    pub(super) numbers: BTreeMap<String, u32>,
    /// The last number assigned.
    pub(super) numbered: u32,
    /// Where failures of tools are reported with their reasons.
    pub(super) failures: Option<mpsc::Sender<ToolFailure>>,
    /// Queue wait and duration of the last decode that was not a partial.
    pub(super) last_decode: Option<(u64, u64)>,
    pub(super) photos: Photos,
    /// What apps receive.
    pub(super) tap: Tap,
    /// Utterances that are being translated.
    pub(super) translations: Translations,
    pub(super) records: BTreeMap<u32, TurnRecord>,
    /// The turn being answered, which counts among those of all sessions.
    pub(super) turn: Option<(Turn, OneUnderWay)>,
    /// The speech that was started last.
    pub(super) speech: Option<Speech>,
    /// The question that was asked last.
    pub(super) asked: Option<Asked>,
    /// Whether the device was informed that its sound is ignored.
    pub(super) told_of_sound: bool,
    /// After a restart, until the first sound: when somebody was speaking to the assistant whose words were not dealt with.
    pub(super) called_us: Option<u64>,
    /// The end of a speech, which follows its last packet.
    pub(super) speech_end: Option<(u32, SpeechEnd)>,
    /// Limits of its frames.
    pub(super) room: Room,
    /// The update of its firmware.
    pub(super) update: Update,
    /// The device's last heartbeat: its clock and the gateway's.
    pub(super) heartbeat: Option<(u64, u64)>,
    pub(super) end: Option<End>,
    /// Before `messages`: when these are closed, the session has been taken out.
    pub(super) presence: Presence,
    pub(super) messages: mpsc::Receiver<DeviceMessage>,
}

impl Session {
    /// Passes the ear's events to the core.
    pub(super) fn take_facts(&mut self) {
        if let Some(ear) = &mut self.ear {
            self.tap.sound(ear);
        }
        if let Some(followed) = self.tap.newly_followed() {
            self.input(Input::Followed(followed));
        }
        while let Some(fact) = self.ear.as_mut().and_then(Ear::next_fact) {
            self.tap.voice(fact);
            self.input(Input::Voice(fact));
        }
        if let (Some(ear), Some(mouth)) = (&self.ear, &mut self.mouth)
            && let Some(fact) = mouth.hear_echo(ear)
        {
            self.input(Input::Voice(fact));
        }
        while let Some((fault, present)) = self.ear.as_mut().and_then(Ear::next_fault) {
            self.microphone_fault(fault, present);
        }
    }

    /// Queues an input for the core; it is handled after all earlier outputs have been carried out.
    pub(super) fn input(&mut self, input: Input) {
        self.driver.push(input);
    }

    /// Notes why the loop is to end. That the session is over counts more than that its link is lost.
    pub(super) fn end(&mut self, end: End) {
        if !matches!(self.end, Some(End::Over(_) | End::Claimed(_))) {
            self.end = Some(end);
        }
    }

    /// The link has failed.
    pub(super) fn failed(&mut self, error: &LinkError) {
        let reason = match error {
            LinkError::Transport(_) => return self.end(End::Lost),
            LinkError::Malformed(_) => GoodbyeReason::Malformed,
            LinkError::TooSlow => GoodbyeReason::TooSlow,
            LinkError::Flooding(_) => GoodbyeReason::Flooding,
        };
        self.close(reason, error.to_string());
    }

    /// Reports why a call failed, if a receiver is set.
    pub(super) fn tell_failure(&self, call_id: &str, result: &ToolResult) {
        let (Some(failures), Some(call), Some(error)) =
            (&self.failures, self.numbers.get(call_id).copied(), &result.error)
        else {
            return;
        };
        // If the channel is full, the failure is reported without its reason.
        drop(failures.try_send(ToolFailure { call, why: error.message.clone() }));
    }

    pub(super) fn tell_user(&mut self, input: UserInput) {
        if self.user.try_send(UserMessage::Input(input)).is_err() {
            // The user's task answers each message in microseconds: a full mailbox means that it is gone.
            self.close(GoodbyeReason::Internal, "the user's task is gone".to_owned());
        }
    }

    pub(super) async fn leave(&mut self) {
        if let Some(ear) = &self.ear {
            let counts = ear.stats();
            self.services.telemetry.sound.add(counts.packets, counts.lost);
            tracing::debug!(device = self.id, ?counts, "what the ear took in");
        }
        self.services.firmware.left(&self.id);
        self.presence.leave().await;
    }

    /// Sends a message of this turn, or of none.
    pub(super) fn send(&mut self, turn: Option<Turn>, message: Down<'_>) -> Result<u32, LinkError> {
        self.outgoing.send(turn_on_wire(turn), clock::mono_us(), message)
    }
}

/// A turn's number in frames: 0 stands for none.
pub(super) fn turn_on_wire(turn: Option<Turn>) -> u32 {
    turn.map_or(0, |turn| turn.id)
}
