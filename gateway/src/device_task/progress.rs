//! Lines about the progress of a turn's calls, for the display.

use gateway_core::{input::Input, vocab::Turn};
use tools::caller::Watcher;

use crate::mailbox::{DeviceMessage, Mailbox};

/// Shows on the glasses what the calls of a turn do.
#[derive(Debug)]
pub(super) struct OnDisplay {
    turn: Turn,
    mailbox: Mailbox,
}

impl OnDisplay {
    /// On the glasses of this task.
    pub(super) fn new(turn: Turn, mailbox: Mailbox) -> Self {
        Self { turn, mailbox }
    }
}

impl Watcher for OnDisplay {
    fn doing(&self, call: &str, line: String) {
        let progress = Input::ToolProgress { turn: self.turn, call_id: call.to_owned(), line };
        // With a full mailbox the display misses a line.
        drop(self.mailbox.try_send(DeviceMessage::from(progress)));
    }
}
