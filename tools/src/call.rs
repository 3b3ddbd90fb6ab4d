//! A call's origin.

use std::{sync::Arc, time::Duration};

use gateway_core::vocab::{ClientClass, Turn};
use tokio_util::sync::CancellationToken;

use crate::{caller::Caller, in_flight::SessionLease};

/// Where a call comes from.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// Whose call.
    pub user: String,
    /// The device on which it was wished for.
    pub device: String,
    /// Within it a turn and a call id name a call once and for all: the same call seen again is not
    /// run again. `None` where nobody vouches for that; every call is a new one then.
    pub session: Option<String>,
    /// The turn that makes the call; `None`: it comes from outside of any turn.
    pub turn: Option<Turn>,
    /// Fires when the turn is interrupted.
    pub cancel: CancellationToken,
    /// For tools that set no time of their own.
    pub default_timeout: Duration,
    /// Who asks.
    pub client: ClientClass,
    /// The client itself, where it can be spoken to while the call runs.
    pub caller: Option<Arc<dyn Caller>>,
    /// Of whom it comes from, where an erasure of the user ends that: a call of the time before is refused.
    pub session_lease: Option<SessionLease>,
}
