//! A session's parts.

use std::sync::{Arc, Mutex};

use device_protocol::GoodbyeReason;
use gateway_core::{
    conversation::Conversation,
    driver::Driver,
    input::{Input, UserInput},
};
use tokio::sync::mpsc;
use tools::ports::DeviceStatus;

use super::{
    Claim, Claims, app_feed::AppFeed, approval::OpenApproval, calls::DeviceCalls, formats::Terms, link::SessionLink,
    photos::Photos, presence::Presence, requests::Requests, restart::StoredSession, services::Services,
    speech_output::SpeechOutput, translations::Translations, turn_records::TurnRecords, typed::TypedRequest,
    update::Update, user::SessionUser,
};
use crate::{
    clock,
    mailbox::{DeviceMessage, Ending, Mailbox},
    speech::ear::Ear,
    transport::LinkError,
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

/// State of one device's session.
pub(super) struct Session {
    pub(super) services: Arc<Services>,
    pub(super) id: String,
    pub(super) number: u32,
    pub(super) terms: Terms,
    pub(super) user: SessionUser,
    pub(super) link: SessionLink,
    pub(super) claims: Claims,
    pub(super) stored: StoredSession,
    pub(super) driver: Driver<Conversation>,
    pub(super) ear: Option<Ear>,
    pub(super) speech: SpeechOutput,
    pub(super) requests: Requests,
    pub(super) mailbox: Mailbox,
    /// Fires when the gateway or its operator ends the session.
    pub(super) ending: Ending,
    pub(super) status: Arc<Mutex<DeviceStatus>>,
    pub(super) calls: DeviceCalls,
    pub(super) photos: Photos,
    pub(super) app_feed: AppFeed,
    /// Utterances that are being translated.
    pub(super) translations: Translations,
    pub(super) turns: TurnRecords,
    /// What was typed and is not dealt with.
    pub(super) typed: TypedRequest,
    pub(super) approval: OpenApproval,
    /// The update of its firmware.
    pub(super) update: Update,
    pub(super) end: Option<End>,
    /// Before `messages`: when these are closed, the session has been taken out.
    pub(super) presence: Presence,
    pub(super) messages: mpsc::Receiver<DeviceMessage>,
}

impl Session {
    /// Passes the ear's events to the core.
    pub(super) fn take_facts(&mut self) {
        if let Some(ear) = &mut self.ear {
            self.app_feed.sound(ear);
        }
        if let Some(followed) = self.app_feed.newly_followed() {
            self.input(Input::Followed(followed));
        }
        while let Some(fact) = self.ear.as_mut().and_then(Ear::next_fact) {
            self.app_feed.voice(fact);
            self.input(Input::Voice(fact));
        }
        if let Some(ear) = &self.ear
            && let Some(fact) = self.speech.hear_echo(ear)
        {
            self.input(Input::Voice(fact));
        }
        while let Some((fault, present)) = self.ear.as_mut().and_then(Ear::next_fault) {
            self.microphone_fault(fault, present);
        }
    }

    /// Hears what a gap has held up, one packet after the other: what the core does about one, such as to close the utterance, comes
    /// before the next one is heard.
    pub(super) fn hear_more(&mut self) {
        while self.driver.is_idle() && self.end.is_none() {
            let now_us = clock::mono_us();
            let Some(ear) = self.ear.as_mut().filter(|ear| ear.is_ready(now_us)) else { return };
            ear.tick(now_us);
            self.end_if_undecodable();
            self.take_facts();
        }
    }

    /// Queues an input for the core; it is handled after all earlier outputs have been carried out.
    pub(super) fn input(&mut self, input: Input) {
        self.driver.push(input);
    }

    /// Notes why the loop is to end. That the session is over counts more than that its link is lost.
    pub(super) fn end(&mut self, end: End) {
        self.typed.cut_off();
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

    pub(super) fn tell_user(&mut self, input: UserInput) {
        if !self.user.tell(input) {
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
}
