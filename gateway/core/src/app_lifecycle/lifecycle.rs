//! What is known of one app of a user.

use crate::vocab::{AppCard, AppConnection, AppState, WebhookCall};

pub(super) struct AppLifecycle {
    pub(super) card: AppCard,
    pub(super) state: AppState,
    pub(super) connection: Option<AppConnection>,
    pub(super) due_us: Option<u64>,
    /// The webhook call that is not answered yet.
    pub(super) calling: Option<WebhookCall>,
    /// It has run: it is retried until it is stopped, whatever its server does.
    pub(super) ran: bool,
    /// It has released its session by itself.
    pub(super) released: bool,
    /// It reconnected while no glasses were connected: its webhook is called again once they are.
    pub(super) anew: bool,
    /// Calls that failed since it last ran.
    pub(super) failures: u32,
    /// The glasses were told that it has stopped, although it is retried.
    pub(super) hidden: bool,
    /// Its webhook has received the stop.
    pub(super) heard: bool,
    /// It stops because no glasses are connected, and is started again with them.
    pub(super) sleeps: bool,
}

impl AppLifecycle {
    pub(super) fn new(card: AppCard, ran: bool) -> Self {
        Self {
            card,
            ran,
            state: if ran { AppState::Grace } else { AppState::Connecting },
            connection: None,
            due_us: None,
            calling: None,
            released: false,
            anew: false,
            failures: 0,
            hidden: false,
            heard: false,
            sleeps: false,
        }
    }

    pub(super) fn is_called(&self) -> bool {
        matches!(self.state, AppState::Connecting | AppState::Resurrecting)
    }

    /// Its socket is there, and its webhook has not answered yet.
    pub(super) fn is_settling(&self) -> bool {
        self.state == AppState::Running && self.calling.is_some()
    }
}
