//! The session's parts and its loop.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use device_protocol::{DisplayKind, Down, GoodbyeReason, RejectCode, limits};
use gateway_core::{
    conversation::{self, Conversation},
    driver::Driver,
    input::{Input, UserInput},
    output::Output,
    vocab::{DeviceInfo, DisplaySize, Timestamp, ToolResult, Turn},
};
use tokio::{sync::mpsc, time::timeout};
use tools::{in_flight::Stay, ports::DeviceStatus};

use super::{
    formats,
    meter::Meter,
    photos::{Called, Photos},
    room::Room,
    services::Services,
    tap::{self, Tap},
    window::Window,
};
use crate::{
    clock,
    device_task::work::Work,
    erasing,
    identity::Admitted,
    mailbox::{self, DeviceMessage, Mailbox},
    roster::{Full, Present, Via},
    runtime::drive::{Shell, drive, settle},
    speech::ear::{self, Ear},
    speech::mouth::Mouth,
    store,
    telemetry::TurnRecord,
    transport::{Link, LinkError, Sender, ToolFailure, Transport},
    users::{self, UserMessage},
};

/// How long a device that connected again waits until its older session has ended, which takes it one round of its loop.
const REPLACED_MAX: Duration = Duration::from_secs(2);

/// Why a session ends, with words for people; `None`: the device said goodbye or vanished.
pub(super) type End = Option<(GoodbyeReason, String)>;

/// Everything of one device's session.
pub(super) struct Session {
    pub(super) services: Arc<Services>,
    pub(super) id: String,
    number: u32,
    pub(super) user: mpsc::Sender<UserMessage>,
    pub(super) user_name: String,
    /// Ends where everything of the user is erased.
    pub(super) stay: Stay,
    pub(super) transport: Transport,
    driver: Driver<Conversation>,
    /// When something last arrived, unless the core was told.
    pub(super) heard_us: Option<u64>,
    pub(super) ear: Option<Ear>,
    pub(super) mouth: Option<Mouth>,
    pub(super) formats: formats::Agreed,
    pub(super) work: Work,
    pub(super) mailbox: Mailbox,
    pub(super) status: Arc<Mutex<DeviceStatus>>,
    /// Calls that the glasses have not answered, by their numbers.
    pub(super) calls: BTreeMap<u32, Called>,
    /// Numbers of the calls that run, by their ids.
    pub(super) numbers: BTreeMap<String, u32>,
    /// The number that was given last.
    pub(super) numbered: u32,
    /// Where failures of tools are told with their reasons.
    failures: Option<mpsc::Sender<ToolFailure>>,
    /// Queue wait and duration of the last decode that was not a partial.
    pub(super) last_decode: Option<(u64, u64)>,
    pub(super) photos: Photos,
    /// What apps hear.
    pub(super) tap: Tap,
    pub(super) records: BTreeMap<u32, TurnRecord>,
    /// The turn that is being answered; 0: none.
    pub(super) turn: u32,
    /// Speech under way: its number and its turn.
    pub(super) speech: (u32, Turn),
    /// The question that was put last: its number and its turn.
    pub(super) asked: (u32, u32),
    pub(super) control_received: u32,
    pub(super) window: Window,
    /// Whether the device was told that sound is passed over.
    pub(super) told_of_sound: bool,
    /// What fits its frames.
    pub(super) room: Room,
    /// The device's last heartbeat: its clock and ours.
    pub(super) heartbeat: Option<(u64, u64)>,
    pub(super) meter: Meter,
    pub(super) end: Option<End>,
    messages: mpsc::Receiver<DeviceMessage>,
}

impl Session {
    /// Agrees on formats, enters the device, welcomes it.
    pub(super) async fn open(
        services: Arc<Services>,
        link: &mut Link,
        admitted: Admitted,
        number: u32,
    ) -> Result<Self, (RejectCode, String)> {
        let Admitted { id, record, hello } = admitted;
        let internal = |error: String| (RejectCode::Internal, error);
        let formats = formats::agree(&hello.capabilities).map_err(|text| (RejectCode::NoCommonFormat, text))?;
        let (mailbox, messages) = mpsc::channel(mailbox::WAITING_MAX);
        let organs = ear::Organs {
            silero: services.engines.silero.clone(),
            scheduler: services.engines.asr.clone(),
            wake_phrases: services.config.conversation.wake_phrases.clone().into(),
            judge: services.engines.judge.clone(),
        };
        let ear = formats
            .up
            .map(|(codec, rate)| Ear::new(codec, rate, link.transport.ordered, organs, mailbox.clone()))
            .transpose()
            .map_err(|error| internal(error.to_string()))?;
        let mouth = formats
            .down
            .map(|(codec, rate)| {
                Mouth::new(
                    codec,
                    rate,
                    services.engines.voice.clone(),
                    services.engines.compute.clone(),
                    services.config.speed,
                )
            })
            .transpose()
            .map_err(|error| internal(error.to_string()))?;
        let screen = &hello.capabilities.display;
        let display =
            (screen.kind != DisplayKind::None).then_some(DisplaySize { columns: screen.columns, rows: screen.rows });
        let status = Arc::new(Mutex::new(DeviceStatus {
            name: record.name.clone(),
            model: hello.model.clone(),
            firmware: hello.firmware.clone(),
            connection: link.transport.name.to_owned(),
            display,
            ..DeviceStatus::default()
        }));
        let feed = services.apps.feeds.of(&record.user);
        let refused = |error: users::Error| match error {
            // In a moment it may.
            users::Error::Crowded(_) | users::Error::Store(store::Error::Erasing) => {
                (RejectCode::Busy, error.to_string())
            }
            error => internal(error.to_string()),
        };
        let user = services.users.mailbox(&record.user).map_err(refused)?;
        let stay =
            services.executor.in_flight().stay(&record.user).ok_or_else(|| refused(store::Error::Erasing.into()))?;
        let language =
            if hello.language.is_empty() { services.config.language.clone() } else { hello.language.clone() };
        let present = Present {
            session: number,
            user: record.user.clone(),
            language: language.clone(),
            mailbox: mailbox.clone(),
            status: status.clone(),
            via: Via { transport: link.transport, peer: link.peer, since_us: clock::mono_us() },
        };
        let replaced = services
            .roster
            .enter(&id, present, services.config.limits.sessions_max)
            .map_err(|Full| (RejectCode::Busy, "as many devices are connected as the gateway allows".to_owned()))?;
        // Apps run on glasses only.
        let worn = link.transport.is_glasses;
        // Two sessions of one device would each offer its tools.
        if let Some(old) = replaced
            && timeout(REPLACED_MAX, old.mailbox.closed()).await.is_err()
        {
            part(&services, (&id, number), &record.user, worn).await;
            return Err((RejectCode::Busy, "the older session of this device has not ended yet".to_owned()));
        }
        // Before the welcome: who knows of the glasses may start apps on them.
        if worn {
            services.apps.glasses_came(&record.user, &id, tap::glasses(&hello, &formats)).await;
        }
        let heartbeat_ms = formats::heartbeat_ms(&hello.capabilities, services.config.conversation.heartbeat_ms);
        let welcomed = formats::welcome(&mut link.down, &services, &record.user, number, &formats, heartbeat_ms);
        if let Err(error) = welcomed {
            part(&services, (&id, number), &record.user, worn).await;
            return Err(internal(error.to_string()));
        }
        let info = DeviceInfo {
            id: id.clone(),
            user: record.user.clone(),
            display,
            bitmaps: screen.kind == DisplayKind::Pixels,
            speaker: formats.down.is_some(),
            echo_cancelled: hello.capabilities.echo_cancelled,
            captions: screen.captions,
        };
        services.preparer.prepare(&record.user, &id, &language);
        let mut session = Self {
            driver: Driver::new(Conversation::new(conversation::Config {
                heartbeat_ms,
                silent_ms_max: heartbeat_ms * limits::HEARTBEATS_MISSED_MAX,
                ..services.config.conversation.clone()
            })),
            heard_us: None,
            work: Work::new(
                record.user.clone(),
                id.clone(),
                // Numbers of sessions begin anew with the process.
                format!("{:x}.{number}", clock::wall_ms()),
                language,
                (services.models.clone(), services.preparer.clone()),
                services.executor.clone(),
                stay.clone(),
                services.remembered.clone(),
                mailbox.clone(),
            ),
            meter: Meter::new(&services.config.limits, clock::mono_us()),
            transport: link.transport,
            user_name: record.user,
            services,
            id,
            number,
            user,
            stay,
            ear,
            mouth,
            formats,
            mailbox,
            status,
            calls: BTreeMap::new(),
            numbers: BTreeMap::new(),
            numbered: 0,
            failures: link.failures.take(),
            last_decode: None,
            photos: Photos::default(),
            tap: Tap::new(feed, &hello.model),
            records: BTreeMap::new(),
            turn: 0,
            speech: (0, Turn::default()),
            asked: (0, 0),
            control_received: 0,
            window: Window::default(),
            told_of_sound: false,
            room: Room::of(&hello.capabilities),
            heartbeat: None,
            end: None,
            messages,
        };
        session.tell_user(UserInput::DeviceJoined { device: session.id.clone() });
        if worn {
            session.tap.connected(true);
        }
        session.input(Input::Connected { device: info, resumed: false });
        Ok(session)
    }

    /// Runs until the session ends.
    pub(super) async fn run(mut self, link: &mut Link) -> End {
        let mut running = Running { session: &mut self, link };
        let end = drive(&mut running).await;
        // No session is resumed yet: what is under way ends now, with what was heard of it.
        running.session.input(Input::LinkLost);
        running.session.input(Input::Shutdown);
        settle(&mut running);
        self.leave().await;
        end
    }

    /// Hands what the ear noticed to the core.
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
    }

    /// Tells the core; it is handled when all that came before has been carried out.
    pub(super) fn input(&mut self, input: Input) {
        self.driver.push(input);
    }

    /// Tells why a call failed, where somebody wants to know.
    pub(super) fn tell_failure(&self, call_id: &str, result: &ToolResult) {
        let (Some(failures), Some(call), Some(error)) =
            (&self.failures, self.numbers.get(call_id).copied(), &result.error)
        else {
            return;
        };
        // One that does not fit is told without its reason.
        drop(failures.try_send(ToolFailure { call, why: error.message.clone() }));
    }

    pub(super) fn tell_user(&mut self, input: UserInput) {
        if self.user.try_send(UserMessage::Input(input)).is_err() {
            // The user's task answers each message in microseconds: a full box means that it is gone.
            self.end.get_or_insert_with(|| Some((GoodbyeReason::Internal, "the user's task is gone".to_owned())));
        }
    }

    async fn leave(&mut self) {
        if let Some(ear) = &self.ear {
            tracing::debug!(device = self.id, counts = ?ear.stats(), "what the ear took in");
        }
        tools::device::unregister(&self.services.registry, &self.id);
        let worn = self.transport.is_glasses;
        if part(&self.services, (&self.id, self.number), &self.user_name, worn).await {
            if worn {
                self.tap.connected(false);
            }
            self.tell_user(UserInput::DeviceLeft { device: self.id.clone() });
        }
    }

    /// Sends a message of the current turn.
    pub(super) fn send(&self, down: &mut Sender, turn: u32, message: Down<'_>) -> Result<u32, LinkError> {
        down.send(turn, clock::mono_us(), message)
    }
}

/// A session with its link.
struct Running<'a> {
    session: &'a mut Session,
    link: &'a mut Link,
}

/// What happens to a session from outside.
#[allow(clippy::large_enum_variant, reason = "one at a time, taken apart where it is made")]
enum Event {
    Message(Option<DeviceMessage>),
    Frame(Result<Option<Bytes>, LinkError>),
    /// Everything of the user is being erased.
    Erasing,
}

impl Shell for Running<'_> {
    type Machine = Conversation;
    type Event = Event;
    type End = End;

    fn driver(&mut self) -> &mut Driver<Conversation> {
        &mut self.session.driver
    }

    fn now(&self) -> Timestamp {
        clock::now()
    }

    async fn next_event(&mut self) -> Event {
        tokio::select! {
            biased;
            message = self.session.messages.recv() => Event::Message(message),
            // Whoever was too busy for the goodbye goes now.
            () = self.session.stay.ended() => Event::Erasing,
            frame = self.link.up.recv() => Event::Frame(frame),
        }
    }

    fn handle_event(&mut self, event: Event) {
        let (session, down) = (&mut *self.session, &mut self.link.down);
        match event {
            Event::Message(Some(message)) => session.handle_message(message, down),
            Event::Message(None) => {}
            Event::Erasing => session.end = Some(Some((GoodbyeReason::ShuttingDown, erasing::GOODBYE.to_owned()))),
            Event::Frame(Ok(Some(bytes))) => session.frame(&bytes, down),
            Event::Frame(Ok(None)) => session.end = Some(None),
            Event::Frame(Err(error)) => session.end = Some(end_of(&error)),
        }
    }

    fn carry_out(&mut self, output: Output) {
        if let Err(error) = self.session.carry_out(output, &mut self.link.down) {
            self.session.end.get_or_insert_with(|| end_of(&error));
        }
    }

    /// Sends the speech that is due.
    fn settled(&mut self) {
        if let Err(error) = self.session.send_speech(&mut self.link.down) {
            self.session.end.get_or_insert_with(|| end_of(&error));
        }
    }

    fn next_tick_us(&self) -> Option<u64> {
        let ear = self.session.ear.as_ref().and_then(Ear::next_wake_us);
        let mouth = self.session.mouth.as_ref().and_then(Mouth::next_wake_us);
        ear.into_iter().chain(mouth).min()
    }

    fn tick(&mut self) {
        if let Some(ear) = &mut self.session.ear {
            ear.tick(clock::mono_us());
        }
        self.session.take_facts();
        if let Some(at_us) = self.session.heard_us.take() {
            self.session.input(Input::Alive { at_us });
        }
    }

    fn end(&mut self) -> Option<End> {
        self.session.end.take()
    }
}

/// Takes a session out of its place; `false` where a newer one of the same device has it.
async fn part(services: &Services, (id, number): (&str, u32), user: &str, worn: bool) -> bool {
    let ours = services.roster.leave(id, number);
    if ours && worn {
        services.apps.glasses_went(user, id).await;
    }
    ours
}

/// What a broken link means for the session.
pub(super) fn end_of(error: &LinkError) -> End {
    let reason = match error {
        LinkError::Transport(_) => return None,
        LinkError::Malformed(_) => GoodbyeReason::Malformed,
        LinkError::TooSlow => GoodbyeReason::TooSlow,
        LinkError::Flooding(_) => GoodbyeReason::Flooding,
    };
    Some((reason, error.to_string()))
}
