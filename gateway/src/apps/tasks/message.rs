//! What the task of a user's apps is told, and what it tells their sockets.

use std::sync::Arc;

use gateway_core::{
    input::AppInput,
    vocab::{AppCard, AppConnection, AppEvent, AppState, AppStopReason},
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tools::apps::manifest::App;

use crate::apps::glasses::Glasses;

/// Messages that may wait for one app's socket beside its streams.
pub(crate) const WAITING_MAX: usize = 64;

/// A message to the task of a user's apps.
pub(crate) enum AppsMessage {
    /// Something that the life cycles decide alone.
    Input(AppInput),
    /// These ran when the gateway stopped; answered when they are taken up.
    Restore { cards: Vec<AppCard>, reply: oneshot::Sender<()> },
    /// Start an app; answered when it can draw, with whether it had to be started, or with why it does not run.
    Start { app: Arc<App>, reply: oneshot::Sender<Result<bool, String>> },
    /// Stop an app; answered when it is gone, with whether it ran.
    Stop { package: String, reason: AppStopReason, reply: oneshot::Sender<bool> },
    /// A socket of an app was acknowledged. `resumed`: it goes on where it was.
    Joined { package: String, connection: AppConnection, resumed: bool, socket: mpsc::Sender<ToApp> },
    /// It is gone; answered with where its app is then.
    Left { package: String, connection: AppConnection, reply: oneshot::Sender<Option<AppState>> },
    /// An app is given what is said from now on, or not any more. From any other connection than its own it is dropped.
    Listens { package: String, connection: AppConnection, listens: bool },
    /// Something that an app wants on the glasses. From any other connection than that of the running app it is dropped, and
    /// so is a picture of an animation that is `over`.
    Draw { package: String, connection: AppConnection, event: AppEvent, over: Option<CancellationToken> },
    /// Glasses have come; answered when they know of the apps.
    GlassesCame { device: String, glasses: Glasses, reply: oneshot::Sender<()> },
    /// Glasses have gone; answered when the apps know.
    GlassesWent { device: String, reply: oneshot::Sender<()> },
    /// Their battery has changed.
    Battery { percent: u8, charging: bool },
    /// The user has set something of an app: its settings, and the house's.
    SettingsSet { package: String, settings: Vec<Value>, system: Value },
    /// An app is not installed any more: what its sessions were called is forgotten.
    Removed { package: String },
    /// Everything of the user is erased; answered when it is forgotten here.
    Erased { reply: oneshot::Sender<()> },
}

/// What a socket's task is told.
#[derive(Debug)]
pub(crate) enum ToApp {
    /// Send this.
    Json(Value),
    /// Say that the app is stopped, and close.
    Close {
        /// Its own stop has run, and must not run again.
        heard: bool,
    },
    /// Go without a word.
    Drop,
}
