//! Start and end of a session: formats are agreed on, the device is registered and welcomed; at the end it is removed.

use std::sync::{Arc, Mutex};

use audio::{asr::Spoken, jitter};
use device_protocol::{RejectCode, Sensors, limits, up::HelloOwned};
use gateway_core::{
    conversation::{self, Conversation},
    driver::Driver,
    input::{Input, UserInput},
    vocab::{LostTurn, Remains},
};
use tokio::sync::mpsc;
use tools::{in_flight::SessionLease, ports::DeviceStatus};

use super::{
    app_feed::{self, AppFeed},
    approval::OpenApproval,
    calls::DeviceCalls,
    formats::{self, Agreed, Terms},
    frame_limits::FrameLimits,
    incoming::Incoming,
    link::SessionLink,
    photos::Photos,
    presence::Presence,
    requests::Requests,
    restart::{Restored, RestoredTurn, StoredSession},
    services::{Admission, Engines, Services, SessionTelemetry},
    session::Session,
    settings::Changeable,
    speech_output::SpeechOutput,
    translations::Translations,
    turn_records::TurnRecords,
    typed::TypedRequest,
    untold,
    update::Update,
    user::SessionUser,
};
use crate::{
    apps::{feed::Feed, glasses::Glasses},
    clock,
    identity::{Admitted, Asked, Refusal},
    mailbox::{self, Ending, Mailbox},
    recordings::About,
    roster::{Present, Via},
    speech::{
        ear::{self, Ear, WakeSource},
        mouth::Mouth,
        speaking::Speaking,
        wake::WakeWords,
    },
    store,
    transport::{Link, LinkError, Transport},
    users::UserMessage,
};

impl Session {
    /// Agrees on formats, registers the device, welcomes it.
    pub(super) async fn open(
        services: Arc<Services>,
        link: &mut Link,
        Admitted { id, record, asked: Asked { hello, sent_us, received_us } }: Admitted,
        number: u32,
    ) -> Result<Box<Self>, Refusal> {
        let terms = Terms::of(&id, &record.user, &hello.capabilities)
            .map_err(|text| Refusal::new(RejectCode::NoCommonFormat, text))?;
        let formats = terms.formats;
        let (mailbox, messages) = mpsc::channel(mailbox::WAITING_MAX);
        // The session keeps them, also when others come meanwhile.
        let settings = services.settings.now();
        let (spoken, language) = languages_of(&services, &record.user, &hello.language, formats.up.is_some());
        let ear = ear_of(&services, &settings, (&formats, &hello, link.transport, spoken), &mailbox)?;
        let mouth = mouth_of(&services.engines, &settings, (&formats, &hello), &language).map_err(Refusal::internal)?;
        let (ending, status) = (Ending::default(), status_of(&record.name, (&hello, &terms), link.transport));
        let feed = services.apps.feeds.of(&record.user);
        let user = services.users.mailbox(&record.user).map_err(refused)?;
        let lease = services.executor.in_flight().session(&record.user).ok_or_else(erasing)?;
        let present = Present {
            session: number,
            user: record.user.clone(),
            language: language.clone(),
            mailbox: mailbox.clone(),
            ending: ending.clone(),
            status: status.clone(),
            via: Via::new(link.transport, link.peer, received_us),
        };
        let conversation = conversation_of(&services.engines, &settings, &hello, ear.as_ref());
        let glasses = app_feed::glasses(&hello, &formats, spoken);
        let own = app_feed::own_of(spoken, &language).code();
        let presence = enter(&services, &id, present, (glasses, feed.clone(), user.clone())).await?;
        let is_resumable = link.transport.is_glasses && settings.conversation.resume_ms_max > 0;
        let restored = restored_of(&services, &hello, (&record.user, &id), (link.transport, is_resumable));
        services.assistant.preparer.prepare(&record.user, &id, &language);
        let mut session = Box::new(Self {
            update: Update::new(&id, &hello, &services.firmware),
            claims: services.resumption.resumable.enter(&id, number),
            stored: stored_of(&services, (&record.user, &id), (link.transport, is_resumable), &mailbox),
            link: SessionLink::new(
                (link, received_us),
                &hello.capabilities,
                incoming_of(restored.as_ref(), sent_us),
                conversation.heartbeat_ms,
                is_resumable,
            ),
            terms,
            driver: driver_of(&services.telemetry, (&record.user, &id, number), &lease, conversation),
            requests: requests_of(&services, (&record.user, &id, number), language, &lease, &mailbox),
            speech: SpeechOutput::new(
                mouth.map(|mouth| (mouth, Speaking::load(&services.store, &record.user, &id, settings.voice))),
                mailbox.clone(),
            ),
            turns: TurnRecords::new((&record.user, &id), link.transport),
            typed: TypedRequest::new(link.answered.take()),
            user: SessionUser::new(record.user, lease, user),
            app_feed: AppFeed::new(feed, (&id, &services.admission.name_of(number)), &hello.model, own),
            translations: Translations::default(),
            services,
            id,
            number,
            ear,
            mailbox,
            ending,
            status,
            calls: DeviceCalls::new(link.failures.take()),
            photos: Photos::default(),
            approval: OpenApproval::default(),
            end: None,
            presence,
            messages,
        });
        if let Err(error) = session.begin(restored) {
            session.leave().await;
            return Err(Refusal::internal(error));
        }
        Ok(session)
    }

    /// Welcomes the device, and tells the others that it is there.
    fn begin(&mut self, restored: Option<Restored>) -> Result<(), LinkError> {
        // Before the welcome: who sees it may count on the device's tools, and on being able to reach its wearer.
        if self.speech.has_speaker() {
            self.register_tools(Vec::new());
        }
        if self.terms.leaves_speaker_silent() {
            let why = "the speaker has LC3 at 8 kHz and nothing else, which cannot be coded";
            tracing::warn!(device = self.id, why, "answers are shown, and not spoken");
        }
        // What is typed on the box is no device of the wearer: reminders and questions of others wait for glasses.
        if self.link.is_glasses() {
            self.tell_user(UserInput::DeviceJoined { device: self.id.clone() });
        }
        self.welcome(false, restored.as_ref().map(|restored| restored.continued))?;
        self.presence.connected(true);
        self.input(Input::Connected { device: self.terms.info.clone(), resumed: false });
        if self.services.resumption.stored.stays_muted(&self.id, &self.user.name) {
            self.input(Input::StaysMuted);
        } else if restored.as_ref().is_some_and(|restored| restored.muted) {
            self.input(Input::Mute(true));
        }
        if let Some(restored) = restored {
            self.go_on_with(restored);
        }
        Ok(())
    }

    /// Goes on with what is left of a session after a restart.
    fn go_on_with(&mut self, restored: Restored) {
        let Restored { ear, question, addressed_us, wake, turn, .. } = restored;
        tracing::info!(device = self.id, session = self.number, turn = turn.is_some(), "goes on after a restart");
        self.stored.addressed(addressed_us);
        // The ear looks for the phrase in the sound that comes again.
        if let Some(told) = wake {
            self.wake_told(&told);
        }
        let turn = turn.map(|turn| self.cut_off(turn));
        self.input(Input::Restarted(Remains { ear, question, turn }));
    }

    /// A turn of which the wearer is told. Until then it is kept for the process behind this one.
    fn cut_off(&mut self, RestoredTurn { request, unknown, asked }: RestoredTurn) -> LostTurn {
        let of = (self.user.name.as_str(), Some(self.id.as_str()));
        let calls = untold::lost_calls(&self.services.registry, of, &unknown);
        self.stored.cut_off(request.clone(), unknown);
        LostTurn { request, unknown: calls, asked: self.requests.ask_again(asked) }
    }
}

/// The conversation, recorded where that is wanted. An erasure of the user waits for the last line.
fn driver_of(
    telemetry: &SessionTelemetry,
    (user, id, number): (&str, &str, u32),
    lease: &SessionLease,
    config: conversation::Config,
) -> Driver<Conversation> {
    let mut driver = Driver::new(Conversation::new(config.clone()));
    if let (Some(recordings), Some(held)) = (&telemetry.recordings, lease.enter()) {
        let about = About::new(user, id, number, clock::wall_ms());
        driver.watch(Box::new(recordings.begin(&about, &config, held)));
    }
    driver
}

/// What is left of the device's session after a restart, if it asks for that. Where it begins anew, the turn that was under way is
/// told all the same; of one on the control socket nothing is left.
fn restored_of(
    services: &Services,
    hello: &HelloOwned,
    (user, id): (&str, &str),
    (transport, is_resumable): (Transport, bool),
) -> Option<Restored> {
    let resume = hello.resume.as_ref().filter(|_| is_resumable);
    let restored = resume.and_then(|resume| services.resumption.stored.take(id, user, resume));
    if restored.is_none() && transport.is_glasses {
        untold::tell_left_of(services, user, id);
    }
    restored
}

/// The device's frames; `sent_us`: when it asked for the session, on its clock.
fn incoming_of(restored: Option<&Restored>, sent_us: u64) -> Incoming {
    restored.map_or_else(Incoming::default, |left| Incoming::continued(sent_us, left.addressed_us, left.stream_end_us))
}

/// What is stored of the session. One that can be resumed waits for the device to have its welcome; of one on the control socket
/// nothing is.
fn stored_of(
    services: &Services,
    (user, id): (&str, &str),
    (transport, is_resumable): (Transport, bool),
    mailbox: &Mailbox,
) -> StoredSession {
    let before = &services.resumption.stored;
    let mut stored = StoredSession::new(services.store.clone(), user, id, before.next(), mailbox.clone());
    if transport.is_glasses && !is_resumable {
        stored.keep_mute(before.stays_muted(id, user));
    }
    stored
}

fn requests_of(
    services: &Services,
    (user, id, number): (&str, &str, u32),
    language: String,
    lease: &SessionLease,
    mailbox: &Mailbox,
) -> Requests {
    Requests::new(
        user.to_owned(),
        id.to_owned(),
        services.admission.name_of(number),
        language,
        &services.assistant,
        services.executor.clone(),
        lease.clone(),
        mailbox.clone(),
    )
}

/// Registers the device in place of its older session.
async fn enter(
    services: &Services,
    id: &str,
    present: Present,
    (glasses, feed, user): (Glasses, Arc<Feed>, mpsc::Sender<UserMessage>),
) -> Result<Presence, Refusal> {
    let presence = Presence {
        roster: services.roster.clone(),
        resumable: services.resumption.resumable.clone(),
        registry: services.registry.clone(),
        apps: services.apps.clone(),
        feed,
        user,
        id: id.to_owned(),
        number: present.session,
        user_name: present.user.clone(),
        model: glasses.model.as_str().into(),
        // Apps run on glasses only.
        is_glasses: present.via.transport.is_glasses,
        has_left: true,
    };
    let Admission { pairings, stop, .. } = &services.admission;
    presence.enter(present, glasses, services.settings.limits.sessions_max, (pairings, stop)).await
}

/// What tools are told about the device.
fn status_of(name: &str, (hello, terms): (&HelloOwned, &Terms), transport: Transport) -> Arc<Mutex<DeviceStatus>> {
    Arc::new(Mutex::new(DeviceStatus {
        name: name.to_owned(),
        model: hello.model.clone(),
        firmware: hello.firmware.clone(),
        connection: transport.name.to_owned(),
        display: formats::display(&hello.capabilities),
        speaker_silent: terms.leaves_speaker_silent(),
        ..DeviceStatus::default()
    }))
}

/// Conversation settings of a device with this ear.
fn conversation_of(
    engines: &Engines,
    settings: &Changeable,
    hello: &HelloOwned,
    ear: Option<&Ear>,
) -> conversation::Config {
    let heartbeat_ms = formats::heartbeat_ms(&hello.capabilities, settings.conversation.heartbeat_ms);
    conversation::Config {
        acoustic_wake: ear.is_some_and(Ear::hears_wake),
        translates: engines.languages.translates,
        heartbeat_ms,
        silent_ms_max: heartbeat_ms * limits::HEARTBEATS_MISSED_MAX,
        ..settings.conversation.clone()
    }
}

fn erasing() -> Refusal {
    refused(store::Error::Erasing)
}

fn refused(error: store::Error) -> Refusal {
    match error {
        // A retry may succeed soon.
        store::Error::TooManyUsers(_) | store::Error::Erasing => Refusal::new(RejectCode::Busy, error.to_string()),
        error => Refusal::internal(error),
    }
}

/// How missing packets are waited for. `resends`: the device keeps its sound, and may be asked for it.
pub(super) fn waits(transport: Transport, resends: bool) -> jitter::Config {
    match (transport.ordered, resends) {
        (true, _) => jitter::Config::ORDERED,
        (false, true) => jitter::Config::RESENT,
        (false, false) => jitter::Config::DATAGRAM,
    }
}

/// What is spoken to a device of this user, and in which language it is answered. `own`: the device's language; the
/// gateway's where it names none. `hears`: whether it has a microphone.
fn languages_of(services: &Services, user: &str, own: &str, hears: bool) -> (Spoken, String) {
    let own = if own.is_empty() { &services.settings.language } else { own };
    let understood = services.engines.languages.of(user);
    (understood.spoken(own), understood.answered(own, hears))
}

/// The ear of a device with a microphone.
fn ear_of(
    services: &Services,
    settings: &Changeable,
    (formats, hello, transport, spoken): (&Agreed, &HelloOwned, Transport, Spoken),
    mailbox: &Mailbox,
) -> Result<Option<Ear>, Refusal> {
    let Some((codec, rate)) = formats.up else { return Ok(None) };
    let wake_phrases: Arc<[String]> = settings.conversation.wake_phrases.clone().into();
    let with_heads = |words: &WakeWords| Some(WakeSource::Heads(words.clone(), words.heads_of(&wake_phrases)?));
    let wake = match &services.engines.wake {
        _ if hello.capabilities.sensors.contains(Sensors::WAKE) && services.settings.device_wake => {
            WakeSource::Device(wake_phrases.clone())
        }
        Some(words) => with_heads(words).unwrap_or(WakeSource::Text),
        None => WakeSource::Text,
    };
    let parts = ear::EarDependencies {
        silero: services.engines.silero.clone(),
        scheduler: services.engines.asr.clone(),
        spoken,
        wake_phrases,
        dead_us: services.settings.dead_microphone_us,
        judge: services.engines.judge.clone(),
        wake,
        wake_counts: services.engines.wake_counts.clone(),
    };
    let resends = settings.conversation.resume_ms_max > 0;
    Ear::new(codec, rate, waits(transport, resends), parts, mailbox.clone()).map(Some).map_err(Refusal::internal)
}

/// The mouth of a device with a speaker.
fn mouth_of(
    engines: &Engines,
    settings: &Changeable,
    (formats, hello): (&Agreed, &HelloOwned),
    language: &str,
) -> Result<Option<Mouth>, audio::speaker::Error> {
    let Some(format) = formats.down else { return Ok(None) };
    let packet_bytes_max = FrameLimits::of(&hello.capabilities).packet_bytes();
    let voices = (engines.voices(), language.to_owned());
    Mouth::new(format, packet_bytes_max, voices, settings.voice.speed, hello.capabilities.echo_cancelled).map(Some)
}
