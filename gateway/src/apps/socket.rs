//! One app's socket: from its first frame to its end.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use gateway_core::vocab::{AppConnection, AppState, ErrorCode};
use hyper::upgrade::Upgraded;
use serde_json::{Value, json};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};
use tokio_util::sync::CancellationToken;
use tools::apps::{log::Latest, manifest::App};

pub use super::admission::Headers;
use super::{
    admission::{self, Refusal},
    feed::{Event, Listener},
    glasses,
    host::Host,
    refusals,
    relay::Relay,
    settings,
    streams::{self, Offer, Subscriptions},
    tasks::message::{AppsMessage, ToApp, WAITING_MAX},
    wire::{self, FromApp},
};
use crate::{clock, runtime::sleep_until, transport::websocket};

/// The code with which a socket is closed whose app has run its own stop already: one of those that are free to use.
const STOP_WAS_HEARD: u16 = 4001;
/// How long a list of streams stands before it is told to who writes the app: a handler after the other makes a list.
const SETTLE_MS: u64 = 500;
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
/// Refusals of one connection that are remembered: more than an app has things to ask for.
const TOLD_MAX: usize = 128;

pub(super) type Ws = websocket::Socket;

/// The main version of the SDK that an app was written with, by how it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SdkVersion {
    /// Takes news of the glasses for an error.
    V1,
    /// Takes messages that it did not ask for to be errors. The kit speaks like it.
    V2,
    /// Waits for messages that the second does not know.
    V3,
}

/// An app whose first frame was right.
pub(super) struct Session {
    pub(super) host: Arc<Host>,
    pub(super) user: String,
    pub(super) app: Arc<App>,
    pub(super) name: String,
    pub(super) connection: AppConnection,
    /// It goes on where it was before its socket was lost.
    pub(super) resumed: bool,
    pub(super) subscriptions: Subscriptions,
    /// When its list of streams is taken for the last one of a burst.
    pub(super) settled_us: Option<u64>,
    pub(super) listener: Option<Listener>,
    /// To this very socket, for what takes longer.
    pub(super) out: mpsc::Sender<ToApp>,
    pub(super) requests: Arc<Semaphore>,
    /// The animation that it draws; dropped, it ends.
    pub(super) animation: Option<tokio_util::sync::DropGuard>,
    /// What it says and plays, by track.
    pub(super) playing: Vec<(Option<u8>, CancellationToken)>,
    /// Sound that it sends in pieces.
    pub(super) relay: Relay,
    /// What is at the other end.
    pub(super) sdk: SdkVersion,
    /// Refusals that stand in the app's log, and places that were told: each once for a connection.
    pub(super) told: BTreeSet<String>,
    pub(super) joined_us: u64,
    pub(super) second: (u64, u32),
}

/// How a socket's task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The app closed it, or it broke.
    Lost,
    /// After telling that the app is stopped. `heard`: its own stop has run.
    Stopped { heard: bool },
    /// Without a word.
    Dropped,
    /// With a code that makes an SDK dial again.
    Restarting,
}

/// Serves an upgraded connection to its end.
pub async fn serve(host: Arc<Host>, upgraded: Upgraded, headers: Headers) {
    let mut ws = websocket::server_socket(upgraded, wire::FRAME_BYTES_MAX).await;
    let (out, messages) = mpsc::channel(WAITING_MAX);
    let Ok(newcomer) = host.newcomers.try_acquire() else {
        return tracing::warn!("too many sockets wait to say who they are; one was dropped");
    };
    let admitted = admission::admit(&host, &mut ws, out, headers).await;
    drop(newcomer);
    match admitted {
        Ok(session) => session.run(ws, messages).await,
        Err(Refusal { code, message, again }) => {
            tracing::info!(code, message, "an app's socket was refused");
            // Said and then closed: an SDK whose frames nobody answers would wait for ever.
            let now = clock::wall_ms();
            let told = if again { wire::reconnect_rejected(&message, now) } else { wire::error(code, &message, now) };
            drop(send(&mut ws, &told).await);
            close(&mut ws, CloseCode::Normal, "refused").await;
        }
    }
}

impl Session {
    pub(super) fn greeting(&self, again: bool) -> (Value, Value) {
        let settings = self.host.settings_of(&self.user, &self.app);
        let system = settings::of_the_house(&zone(), &self.app.permissions);
        let apps = self.host.tasks.snapshot(&self.user);
        let glasses = apps.glasses.values().next();
        let capabilities = glasses.map_or_else(glasses::none, glasses::Glasses::capabilities);
        let model = glasses.map(|glasses| glasses.model.clone());
        let battery = self.host.battery_of(&self.user);
        let mut state = json!({"connected": model.is_some(), "modelName": model});
        if let (Some(fields), Some((percent, charging))) = (state.as_object_mut(), battery) {
            fields.insert("batteryLevel".to_owned(), percent.into());
            fields.insert("charging".to_owned(), charging.into());
        }
        let now = clock::wall_ms();
        let mut ack = wire::connection_ack(&self.name, &settings, &system, &capabilities, now);
        if let (true, Some(fields)) = (again, ack.as_object_mut()) {
            fields.insert("type".to_owned(), "reconnect_ack".into());
        }
        (ack, glasses::state_update(state, true, wire::time(now)))
    }

    async fn run(mut self, mut ws: Ws, mut messages: mpsc::Receiver<ToApp>) {
        tracing::info!(user = self.user, package = self.app.package, "an app's socket is open");
        let package = self.app.package.clone();
        let (connection, resumed, out) = (self.connection, self.resumed, self.out.clone());
        let joined = AppsMessage::Joined { package: package.clone(), connection, resumed, socket: out };
        self.host.tasks.send(&self.user, joined).await;
        let end = self.serve(&mut ws, &mut messages).await;
        let (reply, state) = oneshot::channel();
        self.tell(AppsMessage::Left { package: package.clone(), connection, reply }).await;
        if state.await == Ok(Some(AppState::Grace)) {
            tracing::info!(user = self.user, package, "an app's socket was lost");
            self.host.installed.note(&self.user, &package, "socket", "lost; it may come back".to_owned());
        } else {
            tracing::debug!(user = self.user, package, ?end, "an app's socket is closed");
        }
        match end {
            End::Stopped { heard } => {
                drop(send(&mut ws, &json!({"type": "app_stopped", "reason": "stopped"})).await);
                // 1000 makes 2.x run its `onStop`, which must not run twice. Behind any other code it does not dial again
                // where the reason holds these words.
                let code = if heard { CloseCode::from(STOP_WAS_HEARD) } else { CloseCode::Normal };
                close(&mut ws, code, "App stopped").await;
            }
            End::Restarting => close(&mut ws, CloseCode::Restart, "the gateway restarts").await,
            End::Lost | End::Dropped => {}
        }
    }

    async fn serve(&mut self, ws: &mut Ws, messages: &mut mpsc::Receiver<ToApp>) -> End {
        let stop = self.host.stop.clone();
        let mut ping = tokio::time::interval(Duration::from_millis(PING_MS));
        let mut heard_us = clock::mono_us();
        loop {
            let sent = tokio::select! {
                () = stop.cancelled() => return End::Restarting,
                message = messages.recv() => match message {
                    Some(ToApp::Json(message)) if self.sdk == SdkVersion::V1 && glasses::is_news(&message) => Ok(()),
                    Some(ToApp::Json(message)) => send(ws, &message).await,
                    Some(ToApp::Close { heard }) => return End::Stopped { heard },
                    Some(ToApp::Drop) | None => return End::Dropped,
                },
                frame = ws.next() => {
                    heard_us = clock::mono_us();
                    match frame {
                        Some(Ok(Message::Text(text))) if self.has_room() => self.frame(ws, &text).await,
                        Some(Ok(Message::Binary(piece))) => {
                            self.relay.push(&piece);
                            Ok(())
                        }
                        Some(Ok(Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(()),
                        Some(Ok(Message::Close(_)) | Err(_)) | None => return End::Lost,
                    }
                },
                event = next(&mut self.listener) => self.event(ws, event).await,
                () = sleep_until(self.settled_us.map(clock::instant_at)) => {
                    self.note_subscriptions();
                    Ok(())
                }
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
            let why = format!("more than {FRAMES_PER_S_MAX} frames in a second; the rest of it was dropped");
            self.log_once("socket", ErrorCode::RateLimited, why, String::new());
        }
        self.second.1 <= FRAMES_PER_S_MAX
    }

    async fn frame(&mut self, ws: &mut Ws, text: &str) -> Result<(), Gone> {
        let answers = match serde_json::from_str::<FromApp>(text) {
            Ok(message) => self.handle(message, text).await,
            Err(error) => {
                tracing::debug!(package = self.app.package, %error, "a frame of an app was not understood");
                vec![wire::error("MALFORMED_MESSAGE", "the frame was not understood", clock::wall_ms())]
            }
        };
        for answer in answers {
            if let Some((code, why)) = refusals::refused(&answer) {
                self.log_once(&refusals::kind(text), code, why, refusals::shown(text));
            }
            send(ws, &answer).await?;
        }
        Ok(())
    }

    /// Keeps a refusal for who writes the app; once for a connection, since apps ask again and again.
    fn log_once(&mut self, what: &str, code: ErrorCode, why: String, frame: String) {
        if self.told.len() < TOLD_MAX && self.told.insert(format!("{what} {why}")) {
            self.host.installed.complain(&self.user, &self.app.package, what, code, why, frame);
        }
    }

    /// Tells the task of the user's apps.
    pub(super) async fn tell(&self, message: AppsMessage) {
        // Where it has ended the gateway is stopping, and this socket is told the same.
        self.host.tasks.tell(&self.user, message).await;
    }

    /// A new list of streams; what is to be told about it.
    pub(super) async fn subscribe(&mut self, names: Vec<String>) -> Vec<Value> {
        let since_us = clock::mono_us().saturating_sub(self.joined_us);
        if names.is_empty() && since_us < EMPTY_IGNORED_MS * 1_000 {
            return Vec::new();
        }
        let offer = Offer { language: &self.host.language, located: self.host.location.is_some() };
        let changed = self.subscriptions.replace(names, &self.app.permissions, offer);
        self.settled_us = Some(clock::mono_us() + SETTLE_MS * 1_000);
        let feed = self.host.feeds.of(&self.user);
        let (any, wants) = (self.subscriptions.any(), self.subscriptions.wants());
        if !any {
            self.listener = None;
        } else if self.listener.as_ref().is_none_or(|listener| listener.wants() != wants) {
            self.listener = Some(feed.listen(wants));
        }
        let (package, listens) = (self.app.package.clone(), wants.words || wants.audio);
        self.tell(AppsMessage::Listens { package, connection: self.connection, listens }).await;
        let now = clock::wall_ms();
        let mut told = Vec::new();
        if !changed.denied.is_empty() {
            told.push(wire::permission_error(&changed.denied, now));
        }
        for (stream, why) in changed.unserved {
            told.push(wire::error("STREAM_NOT_AVAILABLE", &format!("{stream}: {why}"), now));
        }
        // A place that does not change is told when it is asked for.
        for stream in self.subscriptions.places() {
            if let (Some(location), true) = (self.host.location, self.told.insert(format!("place {stream}"))) {
                told.push(wire::data_stream(&self.name, stream, streams::place(location), now));
            }
        }
        told
    }

    /// What became of its last list.
    fn note_subscriptions(&mut self) {
        self.settled_us = None;
        self.host.installed.note(&self.user, &self.app.package, "subscriptions", self.subscriptions.told());
    }

    async fn event(&mut self, ws: &mut Ws, event: Event) -> Result<(), Gone> {
        if let Event::Audio(sound) = event {
            return put(ws, Message::Binary(sound)).await;
        }
        let now = clock::wall_ms();
        if let Event::Transcript { text, last, .. } = &event
            && self.subscriptions.wants().words
        {
            let said = if *last { format!("\"{text}\"") } else { format!("\"{text}\" ...") };
            self.host.installed.note_latest(&self.user, &self.app.package, Latest::Transcript, said);
        }
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
pub(super) struct Gone;

pub(super) async fn send(ws: &mut Ws, message: &Value) -> Result<(), Gone> {
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
        websocket::drain(ws.get_mut()).await;
    }
}
