//! Mini-apps, as far as the display is concerned.

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
