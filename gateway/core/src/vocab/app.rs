//! Mini-apps: their use of the glasses, and their life cycle.

use alloc::string::String;
use core::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::display::{Content, View};

/// How an app shares the glasses with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppKind {
    /// In the foreground: only one runs at a time.
    #[default]
    Foreground,
    /// Runs alongside others; draws occasionally.
    Background,
    /// Fills the dashboard.
    Dashboard,
}

/// An event of a mini-app on a pair of glasses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "`package` is that of the mini-app")]
pub enum AppEvent {
    /// It is being started: its boot screen may be drawn.
    Starting {
        package: String,
        /// Its name, for people.
        name: String,
        /// How it shares the glasses.
        kind: AppKind,
    },
    /// It was running before these glasses connected: no boot screen.
    Resumed {
        package: String,
        /// Its name, for people.
        name: String,
        /// How it shares the glasses.
        kind: AppKind,
    },
    /// It can draw now.
    Running { package: String },
    /// It begins or ceases to receive speech.
    Listens {
        package: String,
        /// Whether it receives speech.
        listens: bool,
    },
    /// It stopped; its content is removed from the display.
    Stopped { package: String },
    /// It wants to draw.
    Draw {
        package: String,
        /// In front of the eyes, or the dashboard.
        view: View,
        /// What; `None` clears.
        content: Option<Content>,
        /// How long it is shown.
        #[serde(rename = "duration_ms")]
        duration: DrawingDuration,
        /// Draw at once, without the throttle.
        force: bool,
    },
    /// Sets its line of the dashboard.
    DashboardLine {
        package: String,
        /// The line, if any.
        text: Option<String>,
    },
}

/// How long a drawing of an app is shown. Apps and recordings write it as a number of milliseconds, if any; 0: once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<u32>", into = "Option<u32>")]
pub enum DrawingDuration {
    /// Until it is replaced. Once it was covered, it is restored if the wearer has not had time to read it.
    UntilReplaced,
    /// Until it is replaced or covered: it is never restored.
    Once,
    /// For so many milliseconds.
    Ms(NonZeroU32),
}

impl From<Option<u32>> for DrawingDuration {
    fn from(ms: Option<u32>) -> Self {
        ms.map_or(Self::UntilReplaced, |ms| NonZeroU32::new(ms).map_or(Self::Once, Self::Ms))
    }
}

impl From<DrawingDuration> for Option<u32> {
    fn from(duration: DrawingDuration) -> Self {
        match duration {
            DrawingDuration::UntilReplaced => None,
            DrawingDuration::Once => Some(0),
            DrawingDuration::Ms(ms) => Some(ms.get()),
        }
    }
}

/// Number of a connection, unique in the process.
pub type AppConnection = u64;
/// Number of a webhook call, unique within a user.
pub type WebhookCall = u64;

/// Properties of an app, known when it is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppCard {
    /// Its unique name, such as `com.example.todo`.
    pub package: String,
    /// Name for people.
    pub name: String,
    /// How it shares the glasses.
    pub kind: AppKind,
    /// Name of its session; the app returns it when it dials.
    pub session: String,
}

/// State of an app's life cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AppState {
    /// The webhook was called; waiting for its socket.
    Connecting,
    /// Its socket is acknowledged.
    Running,
    /// The socket is lost and may come back.
    Grace,
    /// It ran before and its webhook is called again.
    Resurrecting,
    /// It ran before and its webhook could not be called; retried later.
    Away,
    /// A stop was sent; its socket is still open.
    Stopping,
    /// It would run, but no glasses are connected.
    Dormant,
}

impl AppState {
    /// Whether the wearer has the app now: its session stands or is being made. One that only waits, for its server or
    /// for glasses, has been told to stop, or is not there.
    pub fn is_running(self) -> bool {
        match self {
            Self::Connecting | Self::Running | Self::Grace | Self::Resurrecting => true,
            Self::Away | Self::Stopping | Self::Dormant => false,
        }
    }
}

/// Why an app is stopped, as sent to the webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppStopReason {
    /// At the request of the wearer or an operator.
    User,
    /// Another app replaces it, or no glasses are connected.
    System,
    /// It failed.
    Error,
}

impl AppStopReason {
    /// The value on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user_disabled",
            Self::System => "system_stop",
            Self::Error => "error",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_that_waits_for_its_server_or_for_glasses_does_not_run() {
        for state in [AppState::Connecting, AppState::Running, AppState::Grace, AppState::Resurrecting] {
            assert!(state.is_running(), "{state:?}");
        }
        for state in [AppState::Away, AppState::Stopping, AppState::Dormant] {
            assert!(!state.is_running(), "{state:?}");
        }
    }

    #[test]
    fn a_duration_is_stored_as_apps_write_it() {
        for (ms, stored) in [(None, "null"), (Some(0), "0"), (Some(1), "1"), (Some(u32::MAX), "4294967295")] {
            let duration = DrawingDuration::from(ms);
            assert_eq!(duration == DrawingDuration::Once, ms == Some(0));
            assert_eq!(serde_json::to_string(&duration).unwrap(), stored);
            assert_eq!(serde_json::from_str::<DrawingDuration>(stored).unwrap(), duration);
        }
        let drawn = r#"{"Draw":{"package":"a","view":"main","content":null,"duration_ms":0,"force":false}}"#;
        let event: AppEvent = serde_json::from_str(drawn).unwrap();
        assert!(matches!(event, AppEvent::Draw { duration: DrawingDuration::Once, .. }), "{event:?}");
        assert_eq!(serde_json::to_string(&event).unwrap(), drawn);
    }
}
