//! The origin of a call.

use std::{sync::Arc, time::Duration};

use gateway_core::vocab::{ClientClass, Turn};
use tokio_util::sync::CancellationToken;

use crate::{
    caller::{Caller, Watcher},
    conversation::PastMessage,
    in_flight::SessionLease,
};

/// The origin of a call.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// For whom it is made.
    pub user: String,
    /// The device on which it was requested, or whose display the question is put on; `None`: there is none.
    pub device: Option<String>,
    /// Within a session, turn and call id identify a call: if the same call arrives again, it is not run again. `None`
    /// if there is no such guarantee; every call is then a new one.
    pub session: Option<String>,
    /// The turn that makes the call; `None` if it belongs to no turn.
    pub turn: Option<Turn>,
    /// Fires when the turn is interrupted.
    pub cancel: CancellationToken,
    /// For tools that declare no timeout of their own.
    pub default_timeout: Duration,
    /// Class of the calling client.
    pub client: ClientClass,
    /// The client itself, if it can be contacted while the call runs.
    pub caller: Option<Arc<dyn Caller>>,
    /// The recent conversation of the turn that makes the call; empty if it belongs to no turn.
    pub conversation: Arc<[PastMessage]>,
    /// Tag of the language in which the wearer has asked for it; `None`: not known.
    pub language: Option<String>,
    /// The lease of the calling session, if it ends with an erasure of the user: a call from before the erasure is
    /// rejected.
    pub session_lease: Option<SessionLease>,
    /// Who is told what a program does, if the call runs one.
    pub watcher: Option<Arc<dyn Watcher>>,
}
