//! One app's socket: from its first frame to its end.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::{
    sync::{Semaphore, mpsc},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};
use tools::apps::manifest::App;

use super::{
    feed::{Event, Listener},
    glasses,
    host::{Host, ToApp, WAITING_MAX},
    life::{Connection, Input},
    settings,
    streams::Subscriptions,
    wire::{self, FromApp},
};
use crate::clock;

/// How long the first frame may take.
const INIT_MS_MAX: u64 = 5_000;
/// How long one frame may take to leave before the app counts as stalled.
const WRITE_MS_MAX: u64 = 5_000;
/// How often the gateway asks whether the app is there.
const PING_MS: u64 = 10_000;
/// An app that has been silent that long, pongs included, is gone: two pings went unanswered.
const SILENT_MS_MAX: u64 = 25_000;
/// How long after its connection an app's empty subscription list is the burst of its start and not a wish.
const EMPTY_IGNORED_MS: u64 = 8_000;
/// Text frames that are looked at in one second: an animation of 30 drawings a second, several times over.
const FRAMES_PER_S_MAX: u32 = 200;
/// Requests of one app that are being carried out at once.
const REQUESTS_MAX: usize = 8;

type Ws = WebSocketStream<TokioIo<Upgraded>>;

/// An app whose first frame was right.
pub(super) struct Session {
    pub(super) host: Arc<Host>,
    pub(super) user: String,
    pub(super) app: Arc<App>,
    pub(super) name: String,
    pub(super) connection: Connection,
    pub(super) subscriptions: Subscriptions,
    pub(super) listener: Option<Listener>,
    /// To this very socket, for what takes longer.
    pub(super) out: mpsc::Sender<ToApp>,
    pub(super) requests: Arc<Semaphore>,
    /// The animation that it draws; dropped, it ends.
    pub(super) animation: Option<tokio_util::sync::DropGuard>,
    joined_us: u64,
    second: (u64, u32),
}

/// How a socket's task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The app closed it, or it broke.
    Lost,
    /// With code 1000, after telling that the app is stopped.
    Stopped,
    /// Without a word.
    Dropped,
    /// With a code that makes an SDK dial again.
    Restarting,
}

/// Serves an upgraded connection to its end.
pub async fn serve(host: Arc<Host>, upgraded: Upgraded) {
    let config = WebSocketConfig::default()
        .read_buffer_size(8 * 1024)
        .write_buffer_size(0)
        .max_write_buffer_size(2 * wire::FRAME_BYTES_MAX)
        .max_message_size(Some(wire::FRAME_BYTES_MAX))
        .max_frame_size(Some(wire::FRAME_BYTES_MAX));
    let mut ws = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
    let (out, mail) = mpsc::channel(WAITING_MAX);
    let Ok(newcomer) = host.newcomers.try_acquire() else {
        return tracing::warn!("too many sockets wait to say who they are; one was dropped");
    };
    let admitted = admit(&host, &mut ws, out).await;
    drop(newcomer);
    match admitted {
        Ok(session) => session.run(ws, mail).await,
        Err((code, message)) => {
            tracing::info!(code, message, "an app's socket was refused");
            // Said and then closed: an SDK whose frames nobody answers would wait for ever.
            drop(send(&mut ws, &wire::error(code, message, clock::wall_ms())).await);
            close(&mut ws, CloseCode::Normal, message).await;
        }
    }
}

type Refusal = (&'static str, &'static str);

async fn admit(host: &Arc<Host>, ws: &mut Ws, out: mpsc::Sender<ToApp>) -> Result<Session, Refusal> {
    let first = async {
        loop {
            match ws.next().await {
                Some(Ok(Message::Text(text))) => return Some(text),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return None,
            }
        }
    };
    let malformed = ("MALFORMED_MESSAGE", "the first frame has to be a tpa_connection_init");
    let first = tokio::select! {
        first = timeout(Duration::from_millis(INIT_MS_MAX), first) => first.ok().flatten().ok_or(malformed)?,
        () = host.stop.cancelled() => return Err(("INTERNAL_ERROR", "the gateway is stopping")),
    };
    let Ok(FromApp::TpaConnectionInit { session_id, package_name, api_key }) = serde_json::from_str(&first) else {
        return Err(malformed);
    };
    let Some(app) = host.installed.get(&package_name) else {
        return Err(("APP_NOT_STARTED", "no such app is installed"));
    };
    if !key_fits(&app, &api_key) {
        return Err(("INVALID_API_KEY", "the API key is not the one that this app was installed with"));
    }
    // From here on by connection alone: later frames name their session in several ways.
    let user = {
        let users = host.users();
        let mut found = users.iter().filter_map(|(user, apps)| Some((user, apps.lives.by_session(&session_id)?)));
        found.find(|(_, card)| card.package == package_name).map(|(user, _)| user.clone())
    };
    let user = user.ok_or(("SESSION_NOT_FOUND", "this session was not started by the gateway, or is over"))?;
    let connection = host.next_connection();
    let session = Session {
        host: host.clone(),
        user,
        app,
        name: session_id,
        connection,
        subscriptions: Subscriptions::default(),
        listener: None,
        out,
        requests: Arc::new(Semaphore::new(REQUESTS_MAX)),
        animation: None,
        joined_us: clock::mono_us(),
        second: (0, 0),
    };
    let (ack, state) = session.greeting();
    let sent = send(ws, &ack).await.is_ok() && send(ws, &state).await.is_ok();
    if !sent {
        return Err(("INTERNAL_ERROR", "the socket went away"));
    }
    Ok(session)
}

/// Whether a key is the app's, by its hash.
pub(super) fn key_fits(app: &App, key: &str) -> bool {
    let digest = Sha256::digest(key.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    // Over hashes: how long the comparison takes tells nothing about the key.
    !app.api_key_sha256.is_empty() && hex.eq_ignore_ascii_case(&app.api_key_sha256)
}

impl Session {
    fn greeting(&self) -> (Value, Value) {
        let settings = self.host.settings_of(&self.user, &self.app);
        let system = settings::of_the_house(&zone());
        let users = self.host.users();
        let worn = users.get(&self.user).and_then(|apps| apps.glasses.values().next());
        let capabilities = worn.map_or_else(glasses::none, glasses::Glasses::capabilities);
        let model = worn.map(|glasses| glasses.model.clone());
        drop(users);
        let battery = self.host.battery_of(&self.user);
        let mut state = json!({"connected": model.is_some(), "modelName": model});
        if let (Some(fields), Some((percent, charging))) = (state.as_object_mut(), battery) {
            fields.insert("batteryLevel".to_owned(), percent.into());
            fields.insert("charging".to_owned(), charging.into());
        }
        let now = clock::wall_ms();
        let ack = wire::connection_ack(&self.name, &settings, &system, &capabilities, now);
        (ack, glasses::state_update(state, true, wire::time(now)))
    }

    async fn run(mut self, mut ws: Ws, mut mail: mpsc::Receiver<ToApp>) {
        tracing::info!(user = self.user, package = self.app.package, "an app's socket is open");
        let package = self.app.package.clone();
        let (connection, out) = (self.connection, self.out.clone());
        // In this order: the machine may want the socket closed at once.
        self.host.with(&self.user, |apps| {
            apps.sockets.insert(connection, out);
            let joined = Input::Joined { package: package.clone(), connection };
            apps.lives.handle_input(clock::mono_us(), joined);
        });
        let end = self.serve(&mut ws, &mut mail).await;
        let host = self.host.clone();
        host.with(&self.user, |apps| {
            apps.sockets.remove(&connection);
            apps.lives.handle_input(clock::mono_us(), Input::Lost { package, connection });
        });
        tracing::info!(user = self.user, package = self.app.package, ?end, "an app's socket is closed");
        match end {
            End::Stopped => {
                drop(send(&mut ws, &json!({"type": "app_stopped", "reason": "stopped"})).await);
                close(&mut ws, CloseCode::Normal, "App stopped").await;
            }
            End::Restarting => close(&mut ws, CloseCode::Restart, "the gateway restarts").await,
            End::Lost | End::Dropped => {}
        }
    }

    async fn serve(&mut self, ws: &mut Ws, mail: &mut mpsc::Receiver<ToApp>) -> End {
        let stop = self.host.stop.clone();
        let mut ping = tokio::time::interval(Duration::from_millis(PING_MS));
        let mut heard_us = clock::mono_us();
        loop {
            let sent = tokio::select! {
                () = stop.cancelled() => return End::Restarting,
                letter = mail.recv() => match letter {
                    Some(ToApp::Json(message)) => send(ws, &message).await,
                    Some(ToApp::Close) => return End::Stopped,
                    Some(ToApp::Drop) | None => return End::Dropped,
                },
                frame = ws.next() => {
                    heard_us = clock::mono_us();
                    match frame {
                        Some(Ok(Message::Text(text))) if self.has_room() => self.frame(ws, &text).await,
                        // Sound comes from 3.x only, for a relay that is not here.
                        Some(Ok(Message::Text(_) | Message::Binary(_) | Message::Ping(_) | Message::Pong(_)
                            | Message::Frame(_))) => Ok(()),
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return End::Lost,
                    }
                },
                event = next(&mut self.listener) => self.event(ws, event).await,
                _ = ping.tick() => {
                    let silent_us = clock::mono_us().saturating_sub(heard_us);
                    if silent_us > SILENT_MS_MAX * 1_000 {
                        tracing::info!(package = self.app.package, "an app's socket is silent; dropped");
                        return End::Lost;
                    }
                    put(ws, Message::Ping(Bytes::new())).await
                }
            };
            if sent.is_err() {
                return End::Lost;
            }
        }
    }

    /// Whether another frame may be looked at in this second.
    fn has_room(&mut self) -> bool {
        let second = clock::mono_us() / 1_000_000;
        if self.second.0 != second {
            self.second = (second, 0);
        }
        self.second.1 += 1;
        if self.second.1 == FRAMES_PER_S_MAX + 1 {
            tracing::warn!(package = self.app.package, "an app sends too much; the rest of this second is dropped");
        }
        self.second.1 <= FRAMES_PER_S_MAX
    }

    async fn frame(&mut self, ws: &mut Ws, text: &str) -> Result<(), Gone> {
        let answers = match serde_json::from_str::<FromApp>(text) {
            Ok(message) => self.handle(message),
            Err(error) => {
                tracing::debug!(package = self.app.package, %error, "a frame of an app was not understood");
                vec![wire::error("MALFORMED_MESSAGE", "the frame was not understood", clock::wall_ms())]
            }
        };
        for answer in answers {
            send(ws, &answer).await?;
        }
        Ok(())
    }

    /// A new list of streams; what is to be told about it.
    pub(super) fn subscribe(&mut self, names: Vec<String>) -> Vec<Value> {
        let since_us = clock::mono_us().saturating_sub(self.joined_us);
        if names.is_empty() && since_us < EMPTY_IGNORED_MS * 1_000 {
            return Vec::new();
        }
        let changed = self.subscriptions.replace(names, &self.app.permissions, &self.host.language);
        let feed = self.host.feeds.of(&self.user);
        let (any, audio) = (self.subscriptions.any(), self.subscriptions.audio());
        if !any {
            self.listener = None;
        } else if self.listener.as_ref().is_none_or(|listener| listener.hears_audio() != audio) {
            self.listener = Some(feed.listen(audio));
        }
        let now = clock::wall_ms();
        let mut told = Vec::new();
        if !changed.denied.is_empty() {
            told.push(wire::permission_error(&changed.denied, now));
        }
        for (stream, why) in changed.unserved {
            told.push(wire::error("STREAM_NOT_AVAILABLE", &format!("{stream}: {why}"), now));
        }
        told
    }

    async fn event(&mut self, ws: &mut Ws, event: Event) -> Result<(), Gone> {
        if let Event::Audio(sound) = event {
            return put(ws, Message::Binary(sound)).await;
        }
        let now = clock::wall_ms();
        let frames: Vec<Value> = self
            .subscriptions
            .of(&event)
            .into_iter()
            .map(|(stream, data)| wire::data_stream(&self.name, stream, data, now))
            .collect();
        for frame in frames {
            send(ws, &frame).await?;
        }
        Ok(())
    }
}

impl Host {
    fn battery_of(&self, user: &str) -> Option<(u8, bool)> {
        let glasses = self.roster.all().into_iter().filter(|(_, present)| present.user == user);
        let mut batteries = glasses.filter_map(|(_, present)| {
            let status = present.status.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            Some((status.battery_percent?, status.charging.unwrap_or(false)))
        });
        batteries.next()
    }
}

/// The zone's name, as apps want it.
pub(super) fn zone() -> String {
    clock::zone().iana_name().unwrap_or("UTC").to_owned()
}

async fn next(listener: &mut Option<Listener>) -> Event {
    match listener {
        Some(listener) => listener.next().await,
        None => std::future::pending().await,
    }
}

/// The socket cannot be written to any more.
struct Gone;

async fn send(ws: &mut Ws, message: &Value) -> Result<(), Gone> {
    put(ws, Message::Text(message.to_string().into())).await
}

async fn put(ws: &mut Ws, message: Message) -> Result<(), Gone> {
    match timeout(Duration::from_millis(WRITE_MS_MAX), ws.send(message)).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(Gone),
    }
}

async fn close(ws: &mut Ws, code: CloseCode, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    if put(ws, Message::Close(Some(frame))).await.is_ok() {
        // Until the app has closed too: closing over unread bytes would reset the connection.
        let gone = async { while let Some(Ok(_)) = ws.next().await {} };
        drop(timeout(Duration::from_millis(1_000), gone).await);
    }
}
