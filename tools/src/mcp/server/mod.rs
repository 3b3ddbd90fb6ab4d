//! The gateway as an MCP server: all tools, and the resources and prompts of downstream servers, for one user and one
//! class of clients at a time.

mod call_channel;
mod changes;
mod events;
mod handler;
mod http;
mod lists;
mod parked;
mod results;
mod sessions;
#[cfg(test)]
mod watch_tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gateway_core::vocab::ClientClass;
use serde::Deserialize;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use self::http::{Http, HttpReply, Limits};
use self::{handler::Session, parked::Parked};
use super::client::Pool;
use crate::executor::Executor;

/// How long pending calls may take when the gateway stops.
const STOP_MS_MAX: u64 = 1_000;

/// Who approves a client's calls that need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approver {
    /// The client's own user, asked by elicitation; the wearer if the client cannot be asked.
    Client,
    /// The wearer: whatever the client answers itself would be its own word.
    Wearer,
}

impl Approver {
    /// Who approves unless it is configured: only the wearer's own programs may speak for the wearer.
    pub fn of(class: ClientClass) -> Self {
        match class {
            ClientClass::Internal => Self::Client,
            ClientClass::Copilot | ClientClass::External => Self::Wearer,
        }
    }
}

/// The user and class of a client.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    /// For whom it calls.
    pub user: String,
    /// Class of the client.
    pub class: ClientClass,
    /// Who approves its calls.
    pub approves: Approver,
    /// Whether it is the operator's own program: then it is told about everybody who uses the gateway.
    pub is_operator: bool,
}

/// The device of a user on which questions may be asked and device tools run; `None`: none is connected.
type DeviceOf = dyn Fn(&str) -> Option<String> + Send + Sync;

/// What all clients share.
pub struct Hub {
    executor: Executor,
    pool: Arc<Pool>,
    device_of: Box<DeviceOf>,
    stop: CancellationToken,
    tracker: TaskTracker,
    calls: AtomicU64,
    /// Prefix of the calls' numbers, since the numbers restart with the process.
    epoch: String,
}

impl Hub {
    /// `device_of` returns the device of a user on which questions may be asked and device tools run; `None`: none is
    /// connected.
    pub fn new(
        executor: Executor,
        pool: Arc<Pool>,
        device_of: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
        epoch: i64,
    ) -> Arc<Self> {
        Arc::new(Self {
            executor,
            pool,
            device_of: Box::new(device_of),
            stop: CancellationToken::new(),
            tracker: TaskTracker::new(),
            calls: AtomicU64::new(1),
            epoch: format!("mcp-{epoch:x}"),
        })
    }

    /// Connections to the downstream servers, whose resources and prompts clients get.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Serves one client over a pair of byte streams until it ends.
    ///
    /// # Errors
    /// The client does not speak the protocol.
    pub async fn serve_stream<S>(self: &Arc<Self>, who: Who, stream: S) -> Result<(), String>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let session = Endpoint::new(self.clone(), who).session();
        let served = rmcp::serve_server(session, tokio::io::split(stream));
        let running = tokio::select! {
            running = served => running.map_err(|error| error.to_string())?,
            () = self.stop.cancelled() => return Ok(()),
        };
        let ended = running.cancellation_token();
        tokio::select! {
            ended = running.waiting() => drop(ended),
            () = self.stop.cancelled() => ended.cancel(),
        }
        Ok(())
    }

    /// Closes all clients and then the downstream servers. Calls that take longer are abandoned.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tracker.close();
        drop(timeout(Duration::from_millis(STOP_MS_MAX), self.tracker.wait()).await);
        self.pool.stop().await;
    }

    fn call_id(&self) -> String {
        format!("{}-{}", self.epoch, self.calls.fetch_add(1, Ordering::Relaxed))
    }
}

/// State shared by the sessions of one user and class.
pub(crate) struct Endpoint {
    hub: Arc<Hub>,
    who: Who,
    parked: Parked,
}

impl Endpoint {
    fn new(hub: Arc<Hub>, who: Who) -> Arc<Self> {
        Arc::new(Self { hub, who, parked: Parked::default() })
    }

    fn session(self: &Arc<Self>) -> Session {
        Session::new(self.clone())
    }

    fn device(&self) -> Option<String> {
        (self.hub.device_of)(&self.who.user)
    }
}
