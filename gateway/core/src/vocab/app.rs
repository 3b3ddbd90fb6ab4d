//! Mini-apps: what they do with the glasses, and where they are in their lives.

use alloc::string::String;
use serde::{Deserialize, Serialize};

use super::display::{Content, View};

/// How an app shares the glasses with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppKind {
    /// In front: only one runs at a time.
    #[default]
    Foreground,
    /// Beside others: draws now and then.
    Background,
    /// Fills the dashboard.
    Dashboard,
}

/// What a mini-app does with a pair of glasses.
#[derive(Clone, Debug, PartialEq)]
pub enum AppEvent {
    /// It is being started: its boot screen may be drawn.
    Starting {
        /// Its package.
        package: String,
        /// Its name, for people.
        name: String,
        /// How it shares the glasses.
        kind: AppKind,
    },
    /// It was running before these glasses came: no boot screen.
    Resumed {
        /// Its package.
        package: String,
        /// Its name, for people.
        name: String,
        /// How it shares the glasses.
        kind: AppKind,
    },
    /// It can draw now.
    Running {
        /// Its package.
        package: String,
    },
    /// It is given what is said, or not any more.
    Listens {
        /// Its package.
        package: String,
        /// Whether it is.
        listens: bool,
    },
    /// It is gone; nothing of it stays on the display.
    Stopped {
        /// Its package.
        package: String,
    },
    /// It wants to draw.
    Draw {
        /// Its package.
        package: String,
        /// Which view.
        view: View,
        /// What; `None` clears.
        content: Option<Content>,
        /// How long it stands, in milliseconds; `None`: until replaced; 0: once, never restored.
        duration_ms: Option<u32>,
        /// Now, whatever the throttle says.
        force: bool,
    },
    /// Its line of the dashboard.
    DashboardLine {
        /// Its package.
        package: String,
        /// The line; empty: none.
        text: String,
    },
}

/// Number of a connection, unique in the process.
pub type AppConnection = u64;
/// Number of a call of a webhook, unique among a user's.
pub type WebhookCall = u64;

/// What is known of an app when it is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppCard {
    /// Package.
    pub package: String,
    /// Name for people.
    pub name: String,
    /// How it shares the glasses.
    pub kind: AppKind,
    /// What its session is called; the app gives it back when it dials.
    pub session: String,
}

/// Where an app is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppState {
    /// The webhook was called; its socket is awaited.
    Connecting,
    /// Its socket is acknowledged.
    Running,
    /// The socket is lost and may come back.
    Grace,
    /// It ran before and is called again.
    Resurrecting,
    /// It ran before and could not be called; it is tried again.
    Away,
    /// It was told to stop and still has its socket.
    Stopping,
    /// It would run, but no glasses are there.
    Dormant,
}

/// Why an app is stopped, in the webhook's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppStopReason {
    /// The wearer or an operator wants it.
    User,
    /// Another app takes its place, or nobody wears the glasses.
    System,
    /// It failed.
    Error,
}

impl AppStopReason {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user_disabled",
            Self::System => "system_stop",
            Self::Error => "error",
        }
    }
}
