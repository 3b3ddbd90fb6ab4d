//! The user whose device has the session.

use gateway_core::input::UserInput;
use tokio::sync::mpsc;
use tools::in_flight::SessionLease;

use crate::users::UserMessage;

/// The way from a session to its user.
pub(super) struct SessionUser {
    pub(super) name: String,
    /// Ends when all data of the user is erased.
    pub(super) lease: SessionLease,
    mailbox: mpsc::Sender<UserMessage>,
}

impl SessionUser {
    /// `mailbox`: of the user's task.
    pub(super) fn new(name: String, lease: SessionLease, mailbox: mpsc::Sender<UserMessage>) -> Self {
        Self { name, lease, mailbox }
    }

    /// Passes an input to the user's task; `false`: that is gone. It answers each message in microseconds, so that a full
    /// mailbox means the same.
    pub(super) fn tell(&self, input: UserInput) -> bool {
        self.mailbox.try_send(input.into()).is_ok()
    }
}
