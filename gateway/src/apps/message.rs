//! Messages to the task of a user's apps, and from it to their sockets.

use std::sync::Arc;

use audio::asr::Spoken;
use gateway_core::{
    input::AppInput,
    vocab::{AppCard, AppConnection, AppEvent, AppState, AppStopReason},
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tools::apps::manifest::App;

use super::glasses::Glasses;

/// Messages queued for one app's socket, in addition to its streams.
pub(crate) const WAITING_MAX: usize = 64;

/// A message to the task of a user's apps.
pub(crate) enum AppsMessage {
    /// An input for the life cycles only.
    Input(AppInput),
    /// For a test: the task fails.
    #[cfg(test)]
    Panic,
    /// These apps ran when the gateway stopped; answered when they are restored.
    Restore { cards: Vec<AppCard>, reply: oneshot::Sender<()> },
    /// Start an app; answered when it can draw, with whether it had to be started, or why it does not run.
    Start { app: Arc<App>, reply: oneshot::Sender<Result<bool, String>> },
    /// Stop an app; answered when it is gone, with whether it ran.
    Stop { package: String, reason: AppStopReason, reply: oneshot::Sender<bool> },
    /// A socket of an app was acknowledged. `resumed`: it continues its session.
    Joined { package: String, connection: AppConnection, resumed: bool, socket: mpsc::Sender<ToApp> },
    /// The socket is gone; answered with the app's state after that.
    Left { package: String, connection: AppConnection, reply: oneshot::Sender<Option<AppState>> },
    /// Whether an app receives transcripts from now on. From any other connection than its own it is dropped.
    Listens { package: String, connection: AppConnection, listens: bool },
    /// A drawing of an app. From any other connection than that of the running app it is dropped, and so is a picture
    /// of an animation that is `over`.
    Draw { package: String, connection: AppConnection, event: AppEvent, over: Option<CancellationToken> },
    /// Glasses have connected; answered when they know the apps.
    GlassesCame { device: String, glasses: Glasses, reply: oneshot::Sender<()> },
    /// Glasses have disconnected; answered when the apps know.
    GlassesWent { device: String, reply: oneshot::Sender<()> },
    /// The battery level has changed.
    Battery { percent: u8, charging: bool },
    /// The user has changed an app's settings: its settings, and the gateway's.
    SettingsSet { package: String, settings: Vec<Value>, system: Value },
    /// An app is no longer installed: its session names are forgotten.
    Removed { package: String },
    /// All data of the user is erased; answered when it is forgotten here.
    Erased { reply: oneshot::Sender<()> },
}

/// How something has ended that an app had asked for, and that takes a while: a sound or a photo.
#[derive(Debug)]
pub(crate) struct RequestOutcome {
    /// The app's own id of its request, if the request is stored: that of a sound is.
    pub request: Option<String>,
    /// What the app is told.
    pub message: Value,
    /// When it ended.
    pub wall_ms: i64,
}

/// A message to a socket's task.
#[derive(Debug)]
pub(crate) enum ToApp {
    /// Send this.
    Json(Value),
    /// Send how a request for a sound or a photo has ended.
    RequestOutcome(RequestOutcome),
    /// What is spoken to the user's glasses that are there now: its streams are judged by that.
    Spoken(Vec<Spoken>),
    /// Notify the app that it is stopped, and close.
    Close {
        /// Its stop handler has run, and must not run again.
        heard: bool,
    },
    /// Close without a message.
    Drop,
}
