//! What an operator grants a device, whether it waits, has a window or comes with an invitation, and how the result gets back.

use tokio::sync::oneshot;

/// What the operator decided for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The device's user.
    pub user: String,
    /// Its name; empty: its model.
    pub name: String,
}

/// A grant for the device's handshake, with a channel for the result.
#[derive(Debug)]
pub struct Granted {
    grant: Grant,
    outcome: oneshot::Sender<Outcome>,
}

/// The device's name once it is stored, or why it is not.
pub type Outcome = Result<String, String>;

impl Granted {
    /// With the channel on which the operator is told the result.
    pub(super) fn new(grant: Grant) -> (Self, oneshot::Receiver<Outcome>) {
        let (outcome, told) = oneshot::channel();
        (Self { grant, outcome }, told)
    }

    /// By an invitation, with the channel of its operator.
    pub(super) fn by_invitation(grant: Grant, outcome: oneshot::Sender<Outcome>) -> Self {
        Self { grant, outcome }
    }

    /// The user and the name that the device gets.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Reports the result to the operator's request.
    pub fn settle(self, outcome: Outcome) {
        // A window was opened long before: no request waits.
        drop(self.outcome.send(outcome));
    }
}
