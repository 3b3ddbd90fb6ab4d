//! One app's socket: from its acknowledgement to its end.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use audio::asr::Spoken;
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use gateway_core::vocab::{AppConnection, AppState, ErrorCode};
use serde_json::{Value, json};
use tokio::{
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};
use tokio_tungstenite::tungstenite::{
    self, Message,
    protocol::{CloseFrame, frame::coding::CloseCode},
};
use tokio_util::sync::CancellationToken;
use tools::apps::{log::Latest, manifest::App};

use super::{
    feed::{Event, Listener},
    glasses,
    host::Host,
    message::{AppsMessage, RequestOutcome, ToApp},
    order::Order,
    refusals,
    relay::Relay,
    streams::Subscriptions,
    wire::{self, FromApp},
};
use crate::{clock, limits::Traffic, runtime::sleep_until, transport::websocket};

/// The close code for an app that has already run its stop handler, from the private range.
const STOP_WAS_HEARD: u16 = 4001;
/// How long sending one frame may take before the app counts as stalled, in milliseconds.
const WRITE_MS_MAX: u64 = 5_000;
/// Interval of pings, in milliseconds.
const PING_MS: u64 = 10_000;
/// Silence, pongs included, after which an app counts as gone, in milliseconds: two pings went unanswered.
const SILENT_MS_MAX: u64 = 25_000;
/// Text frames handled per second: several times an animation of 30 drawings a second.
const FRAMES_PER_S_MAX: u32 = 200;
/// Bytes per second, of text and binary frames alike: the largest frame, and several times 30 bitmaps a second.
pub(super) const TRAFFIC: Traffic = Traffic { frames_per_s_max: u32::MAX, bytes_per_s_max: 2 * 1024 * 1024 };
/// Why an app has to dial again that was installed anew.
const CHANGED: &str = "the app was installed anew";
/// The frame to which refusals of streams belong that were granted before.
const JUDGED_AGAIN: &str = r#"{"type":"subscription_update"}"#;
/// Refusals remembered per connection: more than there are kinds of requests.
const TOLD_MAX: usize = 128;

pub(super) type Ws = websocket::Socket;

/// Major version of the app's SDK, recognised by its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SdkVersion {
    /// Takes updates about the glasses for an error.
    V1,
    /// Takes unrequested messages for errors. The kit behaves like it.
    V2,
    /// Expects messages that version 2 does not know.
    V3,
}

/// An app whose first frame was accepted.
pub(super) struct Session {
    pub(super) host: Arc<Host>,
    pub(super) user: String,
    pub(super) app: Arc<App>,
    pub(super) name: String,
    pub(super) connection: AppConnection,
    /// It continues a session whose socket was lost.
    pub(super) resumed: bool,
    pub(super) subscriptions: Subscriptions,
    /// What is spoken to the user's glasses that are there.
    pub(super) spoken: Vec<Spoken>,
    /// When its current subscription list counts as final.
    pub(super) settled_us: Option<u64>,
    pub(super) listener: Option<Listener>,
    /// Sender to this socket, for longer requests.
    pub(super) out: mpsc::Sender<ToApp>,
    pub(super) requests: Arc<Semaphore>,
    /// Its running animation; dropping it ends the animation.
    pub(super) animation: Option<tokio_util::sync::DropGuard>,
    /// The order of its requests for speech and sounds.
    pub(super) order: Order,
    /// Its running speech and sounds, by track.
    pub(super) playing: Vec<(Option<u8>, CancellationToken)>,
    /// What it could not be told of their ends.
    pub(super) unsent: Vec<RequestOutcome>,
    /// Streams of sound that it sends in pieces.
    pub(super) relay: Relay,
    /// The app's SDK.
    pub(super) sdk: SdkVersion,
    /// Refusals already reported: each once per connection.
    pub(super) told: BTreeSet<String>,
    pub(super) joined_us: u64,
    pub(super) second: (u64, u32),
}

/// How a socket's task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The app closed it, or it broke.
    Lost,
    /// After notifying the app that it is stopped. `heard`: its stop handler has already run.
    Stopped { heard: bool },
    /// It sends too much.
    Flooding,
    /// Without a message.
    Dropped,
    /// With a code on which SDKs reconnect, and why.
    Again(&'static str),
}

impl Session {
    /// Serves the socket to its end.
    pub(super) async fn run(mut self, mut ws: Ws, mut messages: mpsc::Receiver<ToApp>) {
        tracing::info!(user = self.user, package = self.app.package, "an app's socket is open");
        let package = self.app.package.clone();
        let (connection, resumed, out) = (self.connection, self.resumed, self.out.clone());
        let joined = AppsMessage::Joined { package: package.clone(), connection, resumed, socket: out };
        self.host.tasks.send(&self.user, joined).await;
        // What was seen for a session before is not for this one, nor for an app that may not see any more.
        if !resumed || !self.may("CAMERA") {
            self.host.pending_outcomes.drop_photos(&self.user, &package);
        }
        for outcome in self.host.pending_outcomes.joined(&self.user, &package, self.out.clone()).await {
            // If the socket is gone already, serving it shows so.
            drop(self.tell_outcome(&mut ws, outcome).await);
        }
        let end = self.serve(&mut ws, &mut messages).await;
        self.leave_outcomes(&mut messages);
        let (reply, state) = oneshot::channel();
        self.tell(AppsMessage::Left { package: package.clone(), connection, reply }).await;
        let may_come_back = state.await == Ok(Some(AppState::Grace));
        if !may_come_back {
            self.host.pending_outcomes.drop_photos(&self.user, &package);
        }
        if may_come_back {
            tracing::info!(user = self.user, package, "an app's socket was lost");
            self.host.installed.note(&self.user, &package, "socket", "lost; it may come back".to_owned());
        } else {
            tracing::debug!(user = self.user, package, ?end, "an app's socket is closed");
        }
        match end {
            End::Stopped { heard } => {
                drop(send(&mut ws, &json!({"type": "app_stopped", "reason": "stopped"})).await);
                // 1000 makes 2.x run its `onStop`, which must not run twice. After any other code it does not reconnect
                // if the reason contains these words.
                let code = if heard { CloseCode::from(STOP_WAS_HEARD) } else { CloseCode::Normal };
                close(&mut ws, code, "App stopped").await;
            }
            End::Again(why) => close(&mut ws, CloseCode::Restart, why).await,
            // After 1008, 2.x would neither reconnect nor end its session.
            End::Flooding => close(&mut ws, CloseCode::Again, "too many bytes a second").await,
            End::Lost | End::Dropped => {}
        }
    }

    async fn serve(&mut self, ws: &mut Ws, messages: &mut mpsc::Receiver<ToApp>) -> End {
        let stop = self.host.stop.clone();
        let mut changes = self.host.installed.changes();
        // It may have changed since it was admitted.
        if self.is_outdated() {
            return End::Again(CHANGED);
        }
        let mut ping = tokio::time::interval(Duration::from_millis(PING_MS));
        let mut heard_us = clock::mono_us();
        loop {
            let sent = tokio::select! {
                () = stop.cancelled() => return End::Again("the gateway restarts"),
                Ok(()) = changes.changed() => {
                    if self.is_outdated() {
                        return End::Again(CHANGED);
                    }
                    Ok(())
                }
                message = messages.recv() => match message {
                    Some(ToApp::Json(message)) if self.sdk == SdkVersion::V1 && glasses::is_news(&message) => Ok(()),
                    Some(ToApp::Json(message)) => send(ws, &message).await,
                    Some(ToApp::RequestOutcome(outcome)) => self.tell_outcome(ws, outcome).await,
                    Some(ToApp::Spoken(spoken)) => {
                        let answers = self.judge_again(spoken).await;
                        self.answer(ws, answers, JUDGED_AGAIN).await
                    }
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
                        Some(Ok(Message::Close(_))) | None => return End::Lost,
                        Some(Err(error)) => return self.broken(error),
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

    /// Whether the app has this permission.
    pub(super) fn may(&self, permission: &str) -> bool {
        self.app.may(permission)
    }

    /// Whether the app was installed anew with other permissions, another key or another server: then it is to dial again and
    /// is admitted by these. One that is no longer installed is stopped.
    fn is_outdated(&self) -> bool {
        let admitted_by = |app: &App| (app.permissions.clone(), app.api_key_sha256.clone(), app.public_url.clone());
        let now = self.host.installed.get_for(&self.user, &self.app.package);
        now.is_some_and(|now| admitted_by(&now) != admitted_by(&self.app))
    }

    /// How the socket ends after an error.
    fn broken(&mut self, error: tungstenite::Error) -> End {
        if websocket::flooding(error).is_err() {
            return End::Lost;
        }
        let bytes_max = TRAFFIC.bytes_per_s_max;
        tracing::warn!(package = self.app.package, bytes_max, "an app sends too many bytes a second; closed");
        let why = format!("more than {bytes_max} bytes in a second; the connection was closed");
        self.log_once("socket", ErrorCode::RateLimited, why, String::new());
        End::Flooding
    }

    /// Whether another frame may be handled in this second.
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
        self.answer(ws, answers, text).await
    }

    /// Sends answers to a frame. Refusals are logged with it.
    async fn answer(&mut self, ws: &mut Ws, answers: Vec<Value>, frame: &str) -> Result<(), Gone> {
        for answer in answers {
            if let Some((code, why)) = refusals::refused(&answer) {
                self.log_once(&refusals::kind(frame), code, why, refusals::shown(frame));
            }
            send(ws, &answer).await?;
        }
        Ok(())
    }

    /// Logs a refusal for the app's author, once per connection, since apps retry.
    fn log_once(&mut self, what: &str, code: ErrorCode, why: String, frame: String) {
        if self.told.len() < TOLD_MAX && self.told.insert(format!("{what} {why}")) {
            self.host.installed.complain(Some(&self.user), &self.app.package, what, code, why, frame);
        }
    }

    /// Sends a message to the task of the user's apps.
    pub(super) async fn tell(&self, message: AppsMessage) {
        // If that has ended, the gateway is stopping, and this socket is notified as well.
        self.host.tasks.tell(&self.user, message).await;
    }

    /// Logs the result of its last list.
    fn note_subscriptions(&mut self) {
        self.settled_us = None;
        self.host.installed.note(&self.user, &self.app.package, "subscriptions", self.subscriptions.told());
    }

    async fn event(&mut self, ws: &mut Ws, event: Event) -> Result<(), Gone> {
        if let Event::Audio { pcm, .. } = event {
            return put(ws, Message::Binary(pcm)).await;
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

async fn next(listener: &mut Option<Listener>) -> Event {
    match listener {
        Some(listener) => listener.next().await,
        None => std::future::pending().await,
    }
}

/// The socket can no longer be written to.
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

pub(super) async fn close(ws: &mut Ws, code: CloseCode, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    if put(ws, Message::Close(Some(frame))).await.is_ok() {
        websocket::drain(ws.get_mut().unmetered()).await;
    }
}
