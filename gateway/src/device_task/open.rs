//! Start and end of a session: formats are agreed on, the device is registered and welcomed; at the end it is removed.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use device_protocol::{
    DisplayKind, RejectCode, limits,
    up::{Capabilities, HelloOwned},
};
use gateway_core::{
    conversation::{self, Conversation},
    driver::Driver,
    input::{Input, UserInput},
    vocab::{DeviceInfo, DisplaySize},
};
use tokio::{sync::mpsc, time::timeout};
use tools::ports::DeviceStatus;

use super::{
    formats::{self, Agreed},
    photos::Photos,
    requests::Requests,
    room::Room,
    services::Services,
    session::Session,
    tap::{self, Tap},
    window::Window,
};
use crate::{
    clock,
    identity::Admitted,
    mailbox::{self, Mailbox},
    roster::{Full, Present, Via},
    speech::{
        ear::{self, Ear},
        mouth::Mouth,
    },
    store,
    transport::{Link, Transport},
    users,
};

/// How long a reconnected device waits for its older session to end, which takes one round of that session's loop.
const REPLACED_MAX: Duration = Duration::from_secs(2);

impl Session {
    /// Agrees on formats, registers the device, welcomes it.
    pub(super) async fn open(
        services: Arc<Services>,
        link: &mut Link,
        admitted: Admitted,
        number: u32,
    ) -> Result<Self, (RejectCode, String)> {
        let Admitted { id, record, hello } = admitted;
        let formats = formats::agree(&hello.capabilities).map_err(|text| (RejectCode::NoCommonFormat, text))?;
        let (mailbox, messages) = mpsc::channel(mailbox::WAITING_MAX);
        let ear = ear_of(&services, &formats, link.transport.ordered, &mailbox).map_err(internal)?;
        let mouth = mouth_of(&services, &formats).map_err(internal)?;
        let status = Arc::new(Mutex::new(status_of(&record.name, &hello, link.transport)));
        let feed = services.apps.feeds.of(&record.user);
        let user = services.users.mailbox(&record.user).map_err(refused)?;
        let lease =
            services.executor.in_flight().session(&record.user).ok_or_else(|| refused(store::Error::Erasing.into()))?;
        let language =
            if hello.language.is_empty() { services.settings.language.clone() } else { hello.language.clone() };
        let present = Present {
            session: number,
            user: record.user.clone(),
            language: language.clone(),
            mailbox: mailbox.clone(),
            status: status.clone(),
            via: Via { transport: link.transport, peer: link.peer, since_us: clock::mono_us() },
        };
        let heartbeat_ms = formats::heartbeat_ms(&hello.capabilities, services.settings.conversation.heartbeat_ms);
        enter(&services, link, &id, present, (&hello, &formats), heartbeat_ms).await?;
        let info = info_of(&id, &record.user, &hello.capabilities, &formats);
        services.preparer.prepare(&record.user, &id, &language);
        let mut session = Self {
            driver: Driver::new(Conversation::new(conversation_of(&services, heartbeat_ms))),
            heard_us: None,
            requests: Requests::new(
                record.user.clone(),
                id.clone(),
                // Session numbers restart with the process.
                format!("{:x}.{number}", clock::wall_ms()),
                language,
                (services.models.clone(), services.preparer.clone()),
                services.executor.clone(),
                lease.clone(),
                services.context.clone(),
                mailbox.clone(),
            ),
            transport: link.transport,
            user_name: record.user,
            services,
            id,
            number,
            user,
            lease,
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
            turn: None,
            speech: None,
            asked: None,
            control_received: 0,
            window: Window::default(),
            told_of_sound: false,
            room: Room::of(&hello.capabilities),
            heartbeat: None,
            end: None,
            messages,
        };
        session.tell_user(UserInput::DeviceJoined { device: session.id.clone() });
        if link.transport.is_glasses {
            session.tap.connected(true);
        }
        session.input(Input::Connected { device: info, resumed: false });
        Ok(session)
    }
}

/// Registers the device in place of its older session, and welcomes it.
async fn enter(
    services: &Services,
    link: &mut Link,
    id: &str,
    present: Present,
    (hello, formats): (&HelloOwned, &Agreed),
    heartbeat_ms: u32,
) -> Result<(), (RejectCode, String)> {
    let (number, user) = (present.session, present.user.clone());
    let replaced = services
        .roster
        .enter(id, present, services.settings.limits.sessions_max)
        .map_err(|Full| (RejectCode::Busy, "as many devices are connected as the gateway allows".to_owned()))?;
    // Apps run on glasses only.
    let is_glasses = link.transport.is_glasses;
    // Two sessions of one device would each offer its tools.
    if let Some(old) = replaced
        && timeout(REPLACED_MAX, old.mailbox.closed()).await.is_err()
    {
        part(services, (id, number), &user, is_glasses).await;
        return Err((RejectCode::Busy, "the older session of this device has not ended yet".to_owned()));
    }
    // Before the welcome: once the glasses are known, apps may be started on them.
    if is_glasses {
        services.apps.glasses_came(&user, id, tap::glasses(hello, formats)).await;
    }
    if let Err(error) = formats::welcome(&mut link.down, services, &user, number, formats, heartbeat_ms) {
        part(services, (id, number), &user, is_glasses).await;
        return Err(internal(error));
    }
    Ok(())
}

fn display_of(capabilities: &Capabilities) -> Option<DisplaySize> {
    let screen = &capabilities.display;
    (screen.kind != DisplayKind::None).then_some(DisplaySize { columns: screen.columns, rows: screen.rows })
}

/// What tools are told about the device.
fn status_of(name: &str, hello: &HelloOwned, transport: Transport) -> DeviceStatus {
    DeviceStatus {
        name: name.to_owned(),
        model: hello.model.clone(),
        firmware: hello.firmware.clone(),
        connection: transport.name.to_owned(),
        display: display_of(&hello.capabilities),
        ..DeviceStatus::default()
    }
}

/// What the core is told about the device.
fn info_of(id: &str, user: &str, capabilities: &Capabilities, formats: &Agreed) -> DeviceInfo {
    DeviceInfo {
        id: id.to_owned(),
        user: user.to_owned(),
        display: display_of(capabilities),
        bitmaps: capabilities.display.kind == DisplayKind::Pixels,
        speaker: formats.down.is_some(),
        echo_cancelled: capabilities.echo_cancelled,
        captions: capabilities.display.captions,
    }
}

/// Conversation settings for a link with this heartbeat.
fn conversation_of(services: &Services, heartbeat_ms: u32) -> conversation::Config {
    conversation::Config {
        heartbeat_ms,
        silent_ms_max: heartbeat_ms * limits::HEARTBEATS_MISSED_MAX,
        ..services.settings.conversation.clone()
    }
}

fn internal(error: impl ToString) -> (RejectCode, String) {
    (RejectCode::Internal, error.to_string())
}

fn refused(error: users::Error) -> (RejectCode, String) {
    match error {
        // A retry may succeed soon.
        users::Error::Crowded(_) | users::Error::Store(store::Error::Erasing) => (RejectCode::Busy, error.to_string()),
        error => internal(error),
    }
}

/// The ear of a device with a microphone. `ordered`: the link is reliable and keeps the order.
fn ear_of(
    services: &Services,
    formats: &Agreed,
    ordered: bool,
    mailbox: &Mailbox,
) -> Result<Option<Ear>, audio::listener::Error> {
    let Some((codec, rate)) = formats.up else { return Ok(None) };
    let parts = ear::EarDependencies {
        silero: services.engines.silero.clone(),
        scheduler: services.engines.asr.clone(),
        wake_phrases: services.settings.conversation.wake_phrases.clone().into(),
        judge: services.engines.judge.clone(),
    };
    Ear::new(codec, rate, ordered, parts, mailbox.clone()).map(Some)
}

/// The mouth of a device with a speaker.
fn mouth_of(services: &Services, formats: &Agreed) -> Result<Option<Mouth>, audio::speaker::Error> {
    let Some((codec, rate)) = formats.down else { return Ok(None) };
    let (voice, compute) = (services.engines.voice.clone(), services.engines.compute.clone());
    Mouth::new(codec, rate, voice, compute, services.settings.voice.speed).map(Some)
}

/// Removes a session from its place; `false` if a newer session of the same device has it.
pub(super) async fn part(services: &Services, (id, number): (&str, u32), user: &str, is_glasses: bool) -> bool {
    let ours = services.roster.leave(id, number);
    if ours && is_glasses {
        services.apps.glasses_went(user, id).await;
    }
    ours
}
